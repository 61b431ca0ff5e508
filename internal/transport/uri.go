// Package transport is the sockets below every protocol: it listens and dials by the URIs of
// activemq.xml, watches for silence, writes what waits from one goroutine per connection, or, where
// it is little, at once, and gives up on peers that take nothing.
package transport

import (
	"net"
	"strings"
	"time"

	"hopwire/internal/address"
	"hopwire/internal/message"
)

// DefaultPort is where a broker is reached when its URI names no port.
const DefaultPort = "61616"

// URI is the address of a connector or broker: scheme://host:port?options.
type URI struct {
	Scheme  string
	Host    string
	Port    string
	Options map[string]string // as written, values decoded
	text    string
}

// String is the URI as it was written, without its options, which may hold secrets.
func (u URI) String() string { return u.text }

// Address is host:port.
func (u URI) Address() string { return net.JoinHostPort(u.Host, u.Port) }

// sockets are the schemes that are plain TCP to us: Go needs no other way for many connections.
var sockets = map[string]bool{"tcp": true, "nio": true}

// encrypted are schemes that ActiveMQ has and that are refused here.
var encrypted = map[string]bool{
	"ssl": true, "nio+ssl": true, "auto+ssl": true,
	"auto+nio+ssl": true, "https": true, "wss": true,
}

// ParseURI reads a URI of one socket. "failover:", "static:" and the like are lists: see
// address.Members.
func ParseURI(text string) (URI, error) {
	shown, _, _ := strings.Cut(strings.TrimSpace(text), "?")
	shown = address.Shown(shown)
	a, err := address.Split(text)
	switch {
	case err != nil:
	case encrypted[a.Scheme]:
		return URI{}, message.Errorf(message.Unavailable,
			"uri %q: %s is not supported yet; a plain tcp:// or nio:// is, or a TLS proxy before it",
			shown, a.Scheme)
	case !sockets[a.Scheme]:
		return URI{}, message.Errorf(message.Unavailable,
			"uri %q: the transport %q is not known; use tcp:// or nio://", shown, a.Scheme)
	default:
		err = a.Reachable()
	}
	u := URI{Scheme: a.Scheme, Host: a.Host, Port: a.Port, Options: map[string]string{}, text: shown}
	if u.Port == "" {
		u.Port = DefaultPort
	}
	var options []address.Option
	if err == nil {
		options, err = address.Options(a.Query)
	}
	if err != nil {
		return URI{}, message.Errorf(message.Protocol, "uri %q: %w", shown, err)
	}
	for _, o := range options {
		u.Options[o.Name] = o.Value
	}
	return u, nil
}

// Options are the settings of a connection that a URI carries. See ParseOptions for names and
// defaults.
type Options struct {
	MaximumConnections int           // of a listener; 0 is no limit
	ConnectionTimeout  time.Duration // to connect, and for the hello; default 30 s
	SoTimeout          time.Duration // silence on the socket that ends it; 0 is none
	StallTimeout       time.Duration // soWriteTimeout: time without one byte taken; default 5 min
	SoLinger           int           // seconds; -1 leaves the system's way
	SocketBufferBytes  int           // both directions; 0 leaves them to the system
	TCPNoDelay         bool          // default true
	KeepAlive          bool          // TCP keep-alive
	InactivityMonitor  bool          // useInactivityMonitor, default true
	SendKeepAlive      bool          // useKeepAlive, default true

	// WireFormat are the wireFormat.* options, without the prefix.
	WireFormat map[string]string
	// Ignored are options that have no meaning here, sorted.
	Ignored []string
}

// Defaults of Options.
const (
	DefaultConnectionTimeout = 30 * time.Second
	DefaultStallTimeout      = 5 * time.Minute
)

// DefaultOptions are those of a URI without any.
func DefaultOptions() Options {
	return Options{
		ConnectionTimeout: DefaultConnectionTimeout, StallTimeout: DefaultStallTimeout,
		SoLinger: -1, TCPNoDelay: true, InactivityMonitor: true, SendKeepAlive: true,
		WireFormat: map[string]string{},
	}
}
