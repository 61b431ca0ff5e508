package hopwire

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
)

// Embed starts a broker for a program or a test that needs no file: its messages are in memory, it
// has ActiveMQ's default settings, no bridge, no port and no control socket. Dial is the way in.
// Without Options.Log the default logger gets warnings and errors alone.
// The name is taken as a file's brokerName is: what ActiveMQ does not have in one is _.
func Embed(ctx context.Context, name string, o Options) (*Broker, error) {
	if strings.TrimSpace(name) == "" {
		return nil, errors.New("the broker's name is empty")
	}
	var escaped strings.Builder
	if err := xml.EscapeText(&escaped, []byte(name)); err != nil {
		return nil, fmt.Errorf("the broker's name %q: %w", name, err)
	}
	o.NoControl = true
	if o.Log == nil {
		o.Log = slog.New(aboveInfo{slog.Default().Handler()})
	}
	s, err := Parse(name, `<broker xmlns="http://activemq.apache.org/schema/core" persistent="false"`+
		` brokerName="`+escaped.String()+`"/>`, o)
	if err != nil {
		return nil, err
	}
	return s.Start(ctx)
}

// aboveInfo is a handler without what is below a warning.
type aboveInfo struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w aboveInfo) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w aboveInfo) WithAttrs(attrs []slog.Attr) slog.Handler {
	return aboveInfo{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (w aboveInfo) WithGroup(name string) slog.Handler {
	return aboveInfo{w.Handler.WithGroup(name)}
}

// Dial connects to the broker from its own process, without a port; addr is not looked at. With
// client.WithDialer(b.Dial) a client connects so to whatever address it is given. Users log in as
// anywhere.
func (b *Broker) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := b.inside.Dial(ctx)
	if errors.Is(err, net.ErrClosed) {
		return nil, endedError{b.config.Name}
	}
	if err != nil {
		return nil, fmt.Errorf("broker %s: %w", b.config.Name, err)
	}
	return c, nil
}

// endedError says that a broker has ended, which is a net.ErrClosed.
type endedError struct{ name string }

func (e endedError) Error() string { return "broker " + e.name + " has ended" }

func (e endedError) Unwrap() error { return net.ErrClosed }

// URL is where clients and peers reach the broker: the address of its first transport connector,
// with the port that was taken for port 0. It is "" when there is none.
func (b *Broker) URL() string {
	if len(b.listeners) == 0 {
		return ""
	}
	return b.listeners[0].address()
}
