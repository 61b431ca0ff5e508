package link

import (
	"context"
	"errors"
	"strings"
	"time"

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
	over    bool
	session *wire.Session

	up      func(bridge.Link, bridge.Hello)
	receive func(message.Command)
	down    func(error)
}

// Dial implements bridge.Dialer. A URI that is a list, such as failover:(a,b), is tried member by
// member, each bounded by its own connectionTimeout; what the list says about retrying is left to
// the connector, which retries by itself. The uri's wireFormat options are those of this side's
// hello.
func (d *Dialer) Dial(uri string, up func(bridge.Link, bridge.Hello),
	receive func(message.Command), down func(error),
) func() {
	ctx, cancel := context.WithCancel(d.opt.Group.Context())
	x := &dial{d: d, uri: uri, cancel: cancel, up: up, receive: receive, down: down}
	if !d.opt.Group.Go("dial "+transport.Shown(uri), func(context.Context) error {
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

// reach tries the members of the uri in turn.
func (x *dial) reach(ctx context.Context) (*transport.Conn, wire.Offer, error) {
	uris, err := transport.Members(x.uri)
	if err != nil {
		return nil, wire.Offer{}, err
	}
	var errs []error
	for _, uri := range uris {
		c, err := x.d.opt.Connect(ctx, uri)
		if err == nil {
			var offer wire.Offer
			if offer, err = offerTo(c, uri); err == nil {
				return c, offer, nil
			}
			_ = c.Close()
		}
		if len(uris) > 1 {
			err = lineOf(transport.Shown(uri), "", err)
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 1 {
		return nil, wire.Offer{}, errs[0]
	}
	return nil, wire.Offer{}, oneLine(errs)
}

// oneLine joins errors without line breaks.
func oneLine(errs []error) error {
	var text []string
	for _, err := range errs {
		text = append(text, err.Error())
	}
	return message.Errorf(message.Unavailable, "%s", strings.Join(text, "; "))
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
		TooBig:       func(m *message.Message, err error) { refuse(x.session, m, err) },
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
		HopwireLevel: p.HopwireLevel,
	}
}

func (x *dial) phase() string {
	if x.up != nil {
		return "hello"
	}
	return "connection"
}

// giveUp is called on the loop.
func (x *dial) giveUp() {
	x.cancel()
	if x.session != nil {
		x.session.Close(errGivenUp.Error())
		return
	}
	x.d.opt.Hub.Loop().Post(func() { x.ended("connecting", errGivenUp) })
}

// ended tells the connector, once.
func (x *dial) ended(phase string, err error) {
	if x.over {
		return
	}
	x.over = true
	x.cancel()
	where := transport.Shown(x.uri)
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
