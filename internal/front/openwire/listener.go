package openwire

import (
	"context"
	"log/slog"

	"hopwire/internal/broker"
	"hopwire/internal/message"
	"hopwire/internal/rungroup"
	"hopwire/internal/transport"
	"hopwire/internal/wire"
)

// Options say what a Listener is for.
type Options struct {
	Name string // the transport connector's name; default its URI
	URI  string // tcp:// or nio://, with options
	// Inside is listened on instead of a URI's port; nil opens that.
	Inside *transport.Inside
	// LinkStealing lets a client connect again under its client id, which ends its old connection.
	LinkStealing bool
	// Broker and Hub are of one loop; the hub was made after the broker's EndTurn was hooked.
	Broker *broker.Broker
	Hub    *wire.Hub
	Group  *rungroup.Group
	// Peers takes over duplex connections; nil refuses duplex bridges.
	Peers Peers
	Log   *slog.Logger // nil is silent
}

// Peers makes bridge halves of connections that peers ask duplex bridges of. It is called on the
// loop; package link implements it.
type Peers interface {
	// Adopt begins a half on the session of a peer that was let in. From then on receive gets the
	// peer's commands, and down is called once at the end of the connection. The half ends it by
	// closing the session.
	Adopt(s *wire.Session, info *message.BrokerInfo, as message.Principal) (
		receive func(message.Command), down func(error), err error)
}

// Listener accepts the connections of one transport connector.
type Listener struct {
	opt       Options
	offer     wire.Offer
	l         *transport.Listener
	strangers strangers
}

// Listen opens the connector's port. Nothing is accepted before Start.
func Listen(o Options) (*Listener, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Name == "" {
		o.Name = o.URI
	}
	l, err := o.listen()
	if err != nil {
		return nil, err
	}
	offer, err := wire.OfferOf(l.Options().WireFormat)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	if ignored := l.Options().Ignored; len(ignored) > 0 {
		o.Log.Warn("the connector's uri has options that mean nothing here",
			slog.String("connector", o.Name),
			slog.Any("options", ignored))
	}
	return &Listener{opt: o, offer: offer, l: l, strangers: strangers{log: o.Log}}, nil
}

func (o *Options) listen() (*transport.Listener, error) {
	if o.Inside != nil {
		return transport.ListenInside(o.Inside, o.Log), nil
	}
	return transport.Listen(o.URI, o.Log)
}

// Start begins to accept, until Close or the group's end.
func (l *Listener) Start() {
	l.opt.Group.Go("accept "+l.opt.Name, func(ctx context.Context) error {
		return l.l.Serve(ctx, l.admit)
	})
}

// Addr is where the listener listens, with the port that was taken for port 0.
func (l *Listener) Addr() string { return l.l.Addr().String() }

// Open is the number of connections now.
func (l *Listener) Open() int { return l.l.Open() }

// Refused is how many connections were refused, as there were too many.
func (l *Listener) Refused() int64 { return l.l.Refused() }

// Close ends accepting; connections stay.
func (l *Listener) Close() { _ = l.l.Close() }

// Admit serves a connection that was accepted elsewhere.
func (l *Listener) Admit(c *transport.Conn) { l.admit(c) }

func (l *Listener) admit(c *transport.Conn) {
	k := &connection{l: l, remote: c.Remote()}
	k.session = wire.New(wire.Config{
		Hub: l.opt.Hub, Group: l.opt.Group, Conn: c, Offer: l.offer, Name: "openwire",
		HelloTimeout: c.Options().ConnectionTimeout, Guarded: true,
		Up: k.up, Receive: k.receive, Unsent: k.unsent, Down: k.down,
	})
	k.session.Start()
}
