package client

import (
	"context"
	"net"
	"time"
)

// Prefetch is how many messages a broker may send ahead to a consumer that has not acknowledged
// them, by kind of consumer. 0 is pull: each Receive asks the broker for one message.
type Prefetch struct {
	Queue   int32 // 1000
	Topic   int32 // 32767
	Browser int32 // 500
	Durable int32 // 100
}

// Redelivery is what happens with a message after a rollback, a Recover, or an error of a handler.
// The client keeps the message and delivers it again after a delay; once it was redelivered Maximum
// times, lost links included, the broker is told to take it to the dead letter queue.
type Redelivery struct {
	Maximum     int           // redeliveries before the dead letter queue, 6; -1 is no limit
	Initial     time.Duration // before the first redelivery, 1 s; 0 is at once
	Delay       time.Duration // before the others; 0 is as Initial
	MaxDelay    time.Duration // bound of exponential delays; 0 or less is none
	Exponential bool          // each delay is the one before times Multiplier
	Multiplier  float64       // 5
}

// DefaultRedelivery is ActiveMQ's redelivery policy.
func DefaultRedelivery() Redelivery {
	return Redelivery{Maximum: 6, Initial: time.Second, Multiplier: 5}
}

// exceeds tells whether a message that was redelivered so often is given up.
func (r Redelivery) exceeds(counter int32) bool {
	return r.Maximum >= 0 && int(counter) > r.Maximum
}

// delay is the time before the nth redelivery, n counts from 1.
func (r Redelivery) delay(n int32) time.Duration {
	steady := r.Delay
	if steady <= 0 {
		steady = r.Initial
	}
	d := r.Initial
	for range n - 1 {
		if !r.Exponential {
			return steady
		}
		d = max(time.Duration(float64(d)*r.Multiplier), steady)
		if r.MaxDelay > 0 && d >= r.MaxDelay {
			return r.MaxDelay
		}
		if d > 24*time.Hour {
			return d
		}
	}
	return d
}

// State is what happened to a connection.
type State int

// The states that a state handler hears of.
const (
	Interrupted State = iota // lost, and being replaced
	Resumed                  // replaced, with everything restored
	Failed                   // lost for good
)

// String names the state.
func (s State) String() string { return [...]string{"interrupted", "resumed", "failed"}[s] }

// DialFunc opens a connection to a broker's host:port.
type DialFunc func(ctx context.Context, addr string) (net.Conn, error)

// settings are what URI options and Options say.
type settings struct {
	user, password string
	clientID       string
	prefetch       Prefetch
	redelivery     Redelivery
	asyncSend      bool // persistent messages are sent without confirmation
	alwaysSync     bool // every message outside a transaction is confirmed
	compress       bool
	dispatchAsync  bool
	exclusive      bool
	sendTimeout    time.Duration // 0 is none
	dial           DialFunc
	onError        func(error)
	onState        func(State, error)
	onRetry        func(error)
}

func defaultSettings() settings {
	return settings{
		prefetch:      Prefetch{Queue: 1000, Topic: 32767, Browser: 500, Durable: 100},
		redelivery:    DefaultRedelivery(),
		dispatchAsync: true,
	}
}

// Option changes how Dial connects; it counts before an option of the same meaning in the URI.
type Option func(*settings)

// WithLogin gives the user name and password of the connection.
func WithLogin(user, password string) Option {
	return func(s *settings) { s.user, s.password = user, password }
}

// WithClientID gives the connection a client id; durable subscriptions need one. It must be unused.
func WithClientID(id string) Option { return func(s *settings) { s.clientID = id } }

// WithPrefetch replaces the default prefetch of consumers.
func WithPrefetch(p Prefetch) Option { return func(s *settings) { s.prefetch = p } }

// WithRedelivery replaces the redelivery policy.
func WithRedelivery(r Redelivery) Option { return func(s *settings) { s.redelivery = r } }

// WithCompression compresses the bodies of sent messages.
func WithCompression() Option { return func(s *settings) { s.compress = true } }

// WithDialer replaces how TCP connections are opened, for TLS or a tunnel.
func WithDialer(dial DialFunc) Option { return func(s *settings) { s.dial = dial } }

// WithErrorHandler is told what the broker reports without having been asked (ConnectionError),
// such as a failed send without confirmation, and why the connection failed for good.
func WithErrorHandler(handle func(error)) Option {
	return func(s *settings) { s.onError = handle }
}

// WithStateHandler is told when the connection is interrupted, resumed or failed; the error is the
// cause, nil for Resumed.
func WithStateHandler(handle func(State, error)) Option {
	return func(s *settings) { s.onState = handle }
}

// WithRetryHandler is told why a try to connect failed, of each address, while failover goes on
// trying: by Dial before it returns, later while the connection is interrupted.
func WithRetryHandler(handle func(error)) Option {
	return func(s *settings) { s.onRetry = handle }
}
