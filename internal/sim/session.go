package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// dialPatience is how long a caller waits at most for a peer that does not answer.
const dialPatience = 3 * time.Second

// link is a caller's or an acceptor's way to its peer.
type link struct {
	end   *end
	ended func()
}

// Send implements bridge.Link.
func (l *link) Send(c message.Command) { l.end.send(c) }

// Room implements bridge.Link.
func (l *link) Room() bool { return l.end.room() }

// OnRoom implements bridge.Link.
func (l *link) OnRoom(f func()) { l.end.onRoom = append(l.end.onRoom, f) }

// Close implements bridge.Link.
func (l *link) Close(string) {
	if !l.end.closed {
		l.end.close()
		l.end.env.post(l.ended)
	}
}

func hostOf(uri string) string { return strings.TrimPrefix(uri, "sim://") }

// Dial implements bridge.Dialer: "sim://name" calls the broker of that name.
func (l *life) Dial(uri string, up func(bridge.Link, bridge.Hello), receive func(message.Command),
	down func(error)) func() {
	w, host := l.node.w, hostOf(uri)
	over := false
	fail := func(err error) {
		if !over {
			over = true
			l.env.post(func() { down(err) })
		}
	}
	w.After(2*w.opt.Latency, func() {
		peer, c := w.Node(host), w.cable(l.node.cfg.Name, host)
		switch {
		case over || l.env.dead:
		case c.refuses() != nil:
			w.After(w.within(dialPatience), func() { fail(errors.New("no answer")) })
		case peer == nil || peer.life == nil:
			fail(fmt.Errorf("%s: connection refused", uri))
		default:
			over = true
			l.call(c, peer, up, receive, down)
		}
	})
	return func() { fail(errors.New("given up")) }
}

// call makes the connection: the hello is told first, then what the peer sends.
func (l *life) call(c *cable, peer *Node, up func(bridge.Link, bridge.Hello),
	receive func(message.Command), down func(error)) {
	s := c.connect(l.node.cfg.Name, peer.cfg.Name)
	level := 1
	if l.node.cfg.ActiveMQ || peer.cfg.ActiveMQ {
		level = 0
	}
	e := s.ends[0]
	e.env, e.down = l.env, func(err error) { l.lose(e); down(err) }
	e.recv = func(cmd message.Command) {
		if k, ok := cmd.(*message.KeepAliveInfo); ok && k.ResponseRequired {
			e.send(&message.KeepAliveInfo{})
			return
		}
		receive(cmd)
	}
	l.ends = append(l.ends, e)
	lk := &link{end: e, ended: func() { l.lose(e); down(errors.New("closed here")) }}
	l.env.post(func() {
		up(lk, bridge.Hello{Remote: peer.cfg.Name, Version: 12, HopwireLevel: level,
			HopwireRun: peer.life.run()})
	})
	peer.life.accept(s.ends[1], broker.Remote{HopwireLevel: level}, l.run())
}

func (l *life) lose(e *end) {
	l.ends = slices.DeleteFunc(l.ends, func(x *end) bool { return x == e })
}

// session is a connection that a broker was called on.
type session struct {
	life     *life
	end      *end
	conn     *broker.Connection
	acceptor *bridge.Acceptor
	level    int
	run      int64 // of the broker that called; 0 for a client

	deliveries uint64
}

// run is what peers are told, another after each start.
func (l *life) run() int64 {
	if p := l.node.cfg.Plant; p != nil && p.OneRun {
		return 1
	}
	return int64(l.number)
}

// accept takes a call, of a broker in its run of that number.
func (l *life) accept(e *end, from broker.Remote, run int64) *session {
	s := &session{life: l, end: e, level: from.HopwireLevel, run: run}
	from.Address = e.other().name
	e.env, e.recv, e.down = l.env, s.receive, s.down
	l.ends = append(l.ends, e)
	l.env.post(func() {
		s.conn = l.core.Connect(s, from, s.duplex)
		e.send(l.core.Greeting())
	})
	return s
}

// Deliver implements broker.Outbox.
func (s *session) Deliver(c message.ConsumerID, d message.Destination, m *message.Message,
	redelivery int32) {
	s.deliveries++
	s.end.send(&message.MessageDispatch{Consumer: c, Destination: d, Message: m,
		RedeliveryCounter: redelivery})
}

// Written implements broker.Outbox.
func (s *session) Written() uint64 { return s.deliveries }

// Cut implements broker.Outbox: whatever is delivered is on its way at once.
func (*session) Cut() {}

// Room implements broker.Outbox.
func (s *session) Room() bool { return s.end.room() }

// OnRoom implements broker.Outbox.
func (s *session) OnRoom(f func()) { s.end.onRoom = append(s.end.onRoom, f) }

// Respond implements broker.Outbox.
func (s *session) Respond(correlation int32) {
	s.end.send(&message.Response{Correlation: correlation})
}

// Send implements broker.Outbox.
func (s *session) Send(c message.Command) { s.end.send(c) }

// Finish implements broker.Outbox.
func (s *session) Finish() { s.end.finish() }

// Close implements broker.Outbox.
func (s *session) Close(why string) {
	s.end.close()
	s.life.lose(s.end)
	if s.acceptor != nil {
		s.life.env.post(func() { s.acceptor.Down(errors.New(why)) })
	}
}

// down hears that the connection is gone.
func (s *session) down(err error) {
	s.life.lose(s.end)
	if s.acceptor != nil {
		s.acceptor.Down(err)
	}
	s.conn.Gone()
}

// duplex begins the other direction over this connection.
func (s *session) duplex(info *message.BrokerInfo) {
	lk := &link{end: s.end, ended: func() {
		s.life.lose(s.end)
		s.conn.Gone()
	}}
	a, err := s.life.home.Accept(lk, bridge.Hello{Remote: info.Name, Version: 12,
		HopwireLevel: s.level, HopwireRun: s.run, As: s.conn.Principal()}, info)
	if err != nil {
		s.life.node.w.note("%s: duplex from %s: %v", s.life.node.cfg.Name, info.Name, err)
		lk.Close(err.Error())
		return
	}
	s.acceptor = a
}

// receive hands a command to whom it is meant for: on a duplex connection answers and what the
// peer's advisories say are for our half of the bridge, all else is as from a client.
func (s *session) receive(cmd message.Command) {
	if s.acceptor != nil {
		switch c := cmd.(type) {
		case *message.Response:
			s.acceptor.Receive(c)
			return
		case *message.Message:
			if c.Destination.IsAdvisory() {
				s.acceptor.Receive(c)
				return
			}
		case *message.KeepAliveInfo:
			if !c.ResponseRequired {
				s.acceptor.Receive(c)
				return
			}
		case *message.ControlCommand:
			if t, err := network.ParseTalk(c.Command); err == nil && t.Kind != network.Ask {
				s.acceptor.Receive(c)
				return
			}
		case *message.ShutdownInfo:
			s.acceptor.Receive(c)
		}
	}
	s.conn.Handle(cmd)
	if f := s.end.other().does[cmd.Head().CommandID]; f != nil {
		f(s.life)
	}
}
