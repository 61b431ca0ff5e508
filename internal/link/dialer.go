package link

import (
	"context"
	"errors"
	"time"

	"hopwire/internal/address"
	"hopwire/internal/bridge"
	"hopwire/internal/message"
	"hopwire/internal/rungroup"
	"hopwire/internal/transport"
	"hopwire/internal/wire"
)

// Options say how a Dialer reaches peers.
type Options struct {
	Hub   *wire.Hub
	Group *rungroup.Group
	// Connect makes a connection to one URI; nil is transport.Dial.
	Connect func(ctx context.Context, uri string) (*transport.Conn, error)
}

// Dialer implements bridge.Dialer over OpenWire sockets.
type Dialer struct{ opt Options }

// NewDialer makes a dialer.
func NewDialer(o Options) *Dialer {
	if o.Connect == nil {
		o.Connect = transport.Dial
	}
	return &Dialer{opt: o}
}

var _ bridge.Dialer = (*Dialer)(nil)

// dial is one attempt, and the link it became. Its fields are the loop's, but for uri and cancel.
type dial struct {
	d       *Dialer
	uri     string
	cancel  context.CancelFunc
	over    bool // ended, or given up
	session *wire.Session

	up      func(bridge.Link, bridge.Hello)
	receive func(message.Command)
	down    func(error)
}

// Dial implements bridge.Dialer. The uri's wireFormat options are those of this side's hello.
func (d *Dialer) Dial(uri string, up func(bridge.Link, bridge.Hello),
	receive func(message.Command), down func(error),
) func() {
	ctx, cancel := context.WithCancel(d.opt.Group.Context())
	x := &dial{d: d, uri: uri, cancel: cancel, up: up, receive: receive, down: down}
	if !d.opt.Group.Go("dial "+address.Shown(uri), func(context.Context) error {
		x.connect(ctx)
		return nil
	}) {
		d.opt.Hub.Loop().Post(func() { x.ended("connecting", errStopping) })
	}
	return x.giveUp
}

var (
	errStopping = message.Errorf(message.Unavailable, "the broker is stopping")
	errGivenUp  = message.Errorf(message.Unavailable, "given up")
)

// connect makes the connection; the session goes on by itself.
func (x *dial) connect(ctx context.Context) {
	loop := x.d.opt.Hub.Loop()
	c, offer, err := x.reach(ctx)
	if err != nil {
		loop.Post(func() { x.ended("connecting", err) })
		return
	}
	if !loop.Post(func() {
		if x.over {
			_ = c.Close()
			return
		}
		x.begin(c, offer)
	}) {
		_ = c.Close()
	}
}

func (x *dial) reach(ctx context.Context) (*transport.Conn, wire.Offer, error) {
	c, err := x.d.opt.Connect(ctx, x.uri)
	if err != nil {
		return nil, wire.Offer{}, err
	}
	offer, err := offerTo(c, x.uri)
	if err != nil {
		_ = c.Close()
	}
	return c, offer, err
}

func offerTo(c *transport.Conn, uri string) (wire.Offer, error) {
	offer, err := wire.OfferOf(c.Options().WireFormat)
	if err != nil {
		return offer, err
	}
	if u, err := transport.ParseURI(uri); err == nil && offer.Options.Host == "" {
		offer.Options.Host = u.Host
	}
	return offer, nil
}

// begin starts the session, on the loop.
func (x *dial) begin(c *transport.Conn, offer wire.Offer) {
	timeout := c.Options().ConnectionTimeout
	x.session = wire.New(wire.Config{
		Hub: x.d.opt.Hub, Group: x.d.opt.Group, Conn: c, Offer: offer, Name: "link",
		HelloTimeout: min(timeout, helloTimeout),
		Up:           x.greeted,
		Receive:      func(c message.Command) { x.receive(c) },
		Unsent:       func(c message.Command, err error) { unsent(x.session, c, err, x.receive) },
		Down:         func(err error) { x.ended(x.phase(), err) },
	})
	x.session.Start()
}

// helloTimeout bounds the peer's hello below the connector's own limit of a dial.
const helloTimeout = 30 * time.Second

func (x *dial) greeted(p wire.Peer) {
	up := x.up
	x.up = nil
	up(x.session, helloOf(p))
}

func helloOf(p wire.Peer) bridge.Hello {
	return bridge.Hello{
		Remote: p.Remote, Version: p.Format.Version, MaxFrame: p.MaxFrame(),
		HopwireLevel: p.HopwireLevel, HopwireRun: p.HopwireRun,
	}
}

func (x *dial) phase() string {
	if x.up != nil {
		return "hello"
	}
	return "connection"
}

// giveUp is called on the loop. A connection that was made meanwhile is closed when its turn comes.
func (x *dial) giveUp() {
	x.cancel()
	if x.session != nil {
		x.session.Close(errGivenUp.Error())
		return
	}
	if !x.over {
		x.over = true
		x.d.opt.Hub.Loop().Post(func() { x.tell("connecting", errGivenUp) })
	}
}

// ended tells the connector, unless it gave up before.
func (x *dial) ended(phase string, err error) {
	if !x.over {
		x.over = true
		x.tell(phase, err)
	}
}

// tell is called once.
func (x *dial) tell(phase string, err error) {
	x.cancel()
	where := address.Shown(x.uri)
	if x.session != nil {
		where = x.session.Remote()
	}
	x.down(lineOf(where, phase, err))
}

// lineOf is the one line about an end: where, in what phase if it matters, why.
func lineOf(where, phase string, err error) error {
	kind := message.Unavailable
	if e, ok := errors.AsType[*message.Error](err); ok {
		kind = e.Kind
	}
	if phase != "" {
		where += ": " + phase
	}
	return &message.Error{Kind: kind, Text: where + ": " + plain(err), Cause: err}
}
