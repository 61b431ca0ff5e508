package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"hopwire/internal/rungroup"
	"hopwire/openwire"
)

// Conn is a connection to a broker, or with failover to one of several.
type Conn struct {
	target   *target
	settings settings
	id       *openwire.ConnectionId
	info     *openwire.ConnectionInfo
	done     chan struct{}   // closed when the connection is over
	tasks    *rungroup.Group // supervisor and handlers
	calls    *rungroup.Group // the goroutine for callbacks

	mu        sync.Mutex    // guards what follows and everything in sessions, producers, consumers
	link      *link         // nil while there is none
	up        chan struct{} // closed when link is there
	epoch     int           // counts links; what was dispatched on an older one is stale
	closing   bool          // Close was called
	ending    bool          // and the connection was removed at the broker
	err       error         // why the connection is over
	broker    *openwire.BrokerInfo
	commands  int32
	nextTemp  int64
	nextTx    int64
	nextID    int64 // of sessions
	pending   map[int32]*call
	sessions  []*Session
	consumers map[openwire.ConsumerId]*Consumer
	producers map[openwire.ProducerId]*Producer
	temps     []*openwire.DestinationInfo
	audit     audit
	events    []func()
	eventKick chan struct{}
	caller    string              // the goroutine for callbacks
	handlers  map[string]*Session // goroutines of handlers
}

// call is a command that waits for its answer. done is called once with mu held.
type call struct {
	cmd  openwire.Command
	kind callKind
	open func() error // why who sent it is closed; nil if only the connection sends such commands
	done func(answer openwire.DataStructure, err error)
}

// callKind is what happens to a call when the connection is replaced.
type callKind int

const (
	callAgain    callKind = iota // it is sent again
	callDoubt                    // a commit: nobody knows
	callNeedless                 // the end of the old connection did it
)

var connCount atomic.Int64

// Dial connects to uri, which is tcp://host:port or failover:(tcp://a,tcp://b), with ActiveMQ's
// options after '?': wireFormat.*, jms.*, and for failover initialReconnectDelay,
// maxReconnectDelay, maxReconnectAttempts, startupMaxReconnectAttempts, randomize, timeout,
// backOffMultiplier and useExponentialBackOff. An unknown option is an error. In a value, as in a
// password before an @, the characters / , ( ) ? and @ are written in hexadecimal, as %2F. The
// context bounds the connecting only. errors.Is(err, ErrUnavailable) means that no broker could be
// reached, a *BrokerError that one refused the connection; if the context ended first, errors.Is
// finds its error.
func Dial(ctx context.Context, uri string, opts ...Option) (*Conn, error) {
	t, err := parseURI(uri)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		target: t, settings: t.settings, done: make(chan struct{}), up: make(chan struct{}),
		commands: 1, pending: map[int32]*call{}, consumers: map[openwire.ConsumerId]*Consumer{},
		producers: map[openwire.ProducerId]*Producer{}, eventKick: make(chan struct{}, 1),
		tasks: rungroup.New(context.Background()), calls: rungroup.New(context.Background()),
		handlers: map[string]*Session{},
	}
	for _, o := range opts {
		o(&c.settings)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	seed := fmt.Sprintf("ID:%s-%d-%d-%d", host, os.Getpid(), time.Now().UnixMilli(),
		connCount.Add(1))
	c.id = &openwire.ConnectionId{Value: seed + ":1"}
	clientID := c.settings.clientID
	if clientID == "" {
		clientID = seed + "-0:1"
	}
	c.info = &openwire.ConnectionInfo{
		BaseCommand:  openwire.BaseCommand{CommandID: 1, ResponseRequired: true},
		ConnectionID: c.id, ClientID: clientID, UserName: c.settings.user,
		Password: c.settings.password, Manageable: true, ClientMaster: true,
		FaultTolerant: t.failover != nil,
	}
	l, err := c.establish(ctx, false)
	if err != nil {
		return nil, err
	}
	c.link = l
	close(c.up)
	c.tasks.Go("supervise", func(ctx context.Context) error { return c.supervise(ctx, l) })
	c.calls.Go("call back", func(context.Context) error { return c.callBack() })
	return c, nil
}

// ClientID is the client id that the broker knows the connection by.
func (c *Conn) ClientID() string { return c.info.ClientID }

// BrokerName is the name of the broker that the connection leads to, "" if it has not said.
func (c *Conn) BrokerName() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broker == nil {
		return ""
	}
	return c.broker.BrokerName
}

// Addr is the host:port of the broker that the connection leads to, "" while there is none.
func (c *Conn) Addr() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return ""
	}
	return c.link.addr
}

// Done is closed when the connection is over.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection is over: ErrClosed after Close; nil while it is not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close closes all sessions, takes leave from the broker and waits for the connection's goroutines,
// handlers included. When the context is done first, the connection is cut and its error
// returned; a handler that still runs is not waited for. A second Close only waits. Called by a
// message handler of the connection it does nothing and returns ErrOwnHandler; the error and state
// handlers may call it, and are not waited for then.
func (c *Conn) Close(ctx context.Context) error {
	me := goroutine()
	c.mu.Lock()
	if c.handlers[me] != nil {
		c.mu.Unlock()
		return fmt.Errorf("closing the connection: %w", ErrOwnHandler)
	}
	groups := []*rungroup.Group{c.tasks, c.calls}
	if c.caller == me {
		groups = groups[:1]
	}
	over := c.closing || c.goneLocked()
	if over {
		c.mu.Unlock()
		return wait(ctx, groups)
	}
	c.closing = true
	sessions := append([]*Session(nil), c.sessions...)
	c.mu.Unlock()
	var err error
	for _, s := range sessions {
		err = errors.Join(err, s.Close(ctx))
	}
	err = errors.Join(err, c.leave(ctx))
	c.mu.Lock()
	c.failLocked(ErrClosed)
	c.mu.Unlock()
	if late := wait(ctx, groups); err == nil {
		err = late
	}
	return err
}

// wait waits until nothing of the groups runs; what ended it was reported by the handlers.
func wait(ctx context.Context, groups []*rungroup.Group) error {
	ended := make(chan struct{})
	rungroup.New(context.Background()).Go("wait", func(context.Context) error {
		for _, g := range groups {
			_ = g.Wait()
		}
		close(ended)
		return nil
	})
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// goroutine names the goroutine that calls it, so that a call which would wait for itself is
// known: handlers give the package no other sign of who calls.
func goroutine() string {
	text := make([]byte, 64)
	text = text[:runtime.Stack(text, false)]
	name, _, _ := bytes.Cut(text, []byte(" ["))
	return string(name)
}

// leave removes the connection at the broker, if there is a link, and closes the link.
func (c *Conn) leave(ctx context.Context) error {
	answer := make(chan error, 1)
	c.mu.Lock()
	l := c.link
	_, err := c.callLocked(&openwire.RemoveInfo{
		ObjectID: c.id, LastDeliveredSequenceID: -1,
	}, callNeedless, func(_ openwire.DataStructure, err error) { answer <- err })
	// The broker refuses what comes behind that, so it is to be the last: sessions that were opened
	// meanwhile end with it.
	c.ending = true
	for _, s := range c.sessions {
		s.endLocked(ErrClosed)
	}
	c.mu.Unlock()
	if l == nil {
		return nil
	}
	if err == nil {
		select {
		case err = <-answer:
		case <-l.closed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if errors.Is(err, ErrClosed) {
		return nil // the link was lost meanwhile, which ends the connection as well
	}
	if err == nil {
		if err = l.add(&openwire.ShutdownInfo{}); err == nil {
			err = l.flush(ctx)
		}
	}
	return err
}

// failLocked ends the connection for good.
func (c *Conn) failLocked(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	for id, k := range c.pending {
		delete(c.pending, id)
		if k.kind == callDoubt {
			k.done(nil, fmt.Errorf("%w: %w", ErrInDoubt, err))
		} else {
			k.done(nil, err)
		}
	}
	for _, s := range c.sessions {
		s.endLocked(err)
	}
	if !errors.Is(err, ErrClosed) {
		if h := c.settings.onState; h != nil {
			c.postLocked(func() { h(Failed, err) })
		}
		c.reportLocked(err)
	}
	close(c.done)
	c.tasks.Stop()
	c.calls.Stop()
	if c.link != nil {
		c.link.close(err)
		c.link = nil
	}
}

// reportLocked tells the error handler.
func (c *Conn) reportLocked(err error) {
	if h := c.settings.onError; h != nil {
		c.postLocked(func() { h(err) })
	}
}

// postLocked has a function of the program called by the goroutine for that, in order.
func (c *Conn) postLocked(f func()) {
	c.events = append(c.events, f)
	signal(c.eventKick)
}

// callBack is the goroutine that calls the program's functions.
func (c *Conn) callBack() error {
	c.mu.Lock()
	c.caller = goroutine()
	c.mu.Unlock()
	for {
		over := false
		select {
		case <-c.eventKick:
		case <-c.done:
			over = true
		}
		for {
			c.mu.Lock()
			events := c.events
			c.events = nil
			c.mu.Unlock()
			if len(events) == 0 {
				break
			}
			for _, f := range events {
				f()
			}
		}
		if over {
			return nil
		}
	}
}

// withLink calls f with mu held as soon as there is a link with room; it waits for that as long as
// the context and failover's option timeout allow.
func (c *Conn) withLink(ctx context.Context, f func(*link) error) error {
	var late <-chan time.Time
	if t := c.target.failover; t != nil && t.timeout > 0 {
		timer := time.NewTimer(t.timeout)
		defer timer.Stop()
		late = timer.C
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.mu.Lock()
		if c.err != nil || c.ending {
			err := c.overLocked()
			c.mu.Unlock()
			return err
		}
		if l := c.link; l != nil && l.why(nil) != nil {
			c.interruptLocked(l, lost(l, nil))
			c.mu.Unlock()
			continue
		}
		l, up := c.link, c.up
		if l != nil && l.hasRoom() {
			err := f(l)
			c.mu.Unlock()
			return err
		}
		c.mu.Unlock()
		if l != nil {
			if err := l.waitRoom(ctx); err != nil {
				return err
			}
			continue
		}
		select {
		case <-up:
		case <-c.done:
		case <-ctx.Done():
		case <-late:
			return fmt.Errorf("%w: no connection within failover's timeout of %v", ErrUnavailable,
				c.target.failover.timeout)
		}
	}
}

// goneLocked tells whether the connection is over.
func (c *Conn) goneLocked() bool { return c.err != nil }

// overLocked is the error of a call on a connection that is over.
func (c *Conn) overLocked() error {
	if c.err != nil {
		return c.err
	}
	return ErrClosed
}

// sendLocked writes a command that is not answered; without a link it does nothing.
func (c *Conn) sendLocked(cmd openwire.Command) error {
	if c.ending {
		return c.overLocked()
	}
	c.commands++
	cmd.Base().CommandID = c.commands
	if c.link == nil {
		return nil
	}
	return c.link.add(cmd)
}

// callLocked writes a command that is answered.
func (c *Conn) callLocked(cmd openwire.Command, kind callKind,
	done func(openwire.DataStructure, error),
) (*call, error) {
	cmd.Base().ResponseRequired = true
	if err := c.sendLocked(cmd); err != nil {
		return nil, err
	}
	k := &call{cmd: cmd, kind: kind, done: done}
	c.pending[cmd.Base().CommandID] = k
	return k, nil
}

// request sends a command and waits for its answer. open and changed are called with mu held, if
// they are not nil: open before the command is written, and before it is written again, and what is
// closed writes nothing; changed when it is written.
func (c *Conn) request(ctx context.Context, cmd openwire.Command, open func() error,
	changed func(),
) (openwire.DataStructure, error) {
	type result struct {
		answer openwire.DataStructure
		err    error
	}
	results := make(chan result, 1)
	err := c.withLink(ctx, func(*link) error {
		if open != nil {
			if err := open(); err != nil {
				return err
			}
		}
		k, err := c.callLocked(cmd, callAgain, func(answer openwire.DataStructure, err error) {
			if err == nil {
				err = answerError(answer)
			}
			results <- result{answer, err}
		})
		if err != nil {
			return err
		}
		k.open = open
		if changed != nil {
			changed()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	select {
	case r := <-results:
		return r.answer, r.err
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.pending, cmd.Base().CommandID)
		c.mu.Unlock()
		return nil, ctx.Err()
	}
}

// undoLocked takes back what a request asked for that failed although it was written, unless the
// broker refused it. Without a link there is nothing to take back: it is not asked for again. Nor
// is there behind the end of the connection, which takes back all.
func (c *Conn) undoLocked(cause error, cmd openwire.Command) error {
	if _, refused := errors.AsType[*BrokerError](cause); refused || c.link == nil || c.ending {
		return nil
	}
	return c.sendLocked(cmd)
}
