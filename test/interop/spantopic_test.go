package interop

import (
	"fmt"
	"time"

	"hopwire/test/interop/jms"
)

// modes are all modes of a session.
var modes = []jms.Mode{jms.Auto, jms.Client, jms.DupsOK, jms.Individual, jms.Transacted}

// durable plays with a durable subscription of the span, whose consumer leaves and comes back.
func (s span) durable(mode jms.Mode, options string) {
	o := jms.ConsumerOptions{Dest: s.dest, Durable: "sub", Pull: true}
	dial := func() *jms.Conn {
		c, err := s.p.d.Dial(jms.ConnectOptions{URL: s.p.b.URL() + "?" + options,
			ClientID: s.p.name + s.title})
		must(s.p.t, err)
		return c
	}
	conn := dial()
	session := conn.Session(mode)
	c := session.Consumer(o)
	s.feed(c, "T0", "U0", "U1", "T1", "T2", "U2")
	s.settle(session, c, c.Received())
	s.feed(c, "U3", "T3")
	s.put("T4", "U4")
	s.p.say("exceptions: %d", len(conn.Faults()))
	must(s.p.t, conn.Close())
	s.put("T5")
	conn = dial()
	session = conn.Session(jms.Auto)
	s.set("back", session.Consumer(o).Receive(9, 300*time.Millisecond))
	must(s.p.t, conn.Close())
}

// topicSpanScenarios are about acknowledgements of consumers of several topics, or of queues and
// topics.
var topicSpanScenarios = []scenario{
	{"topics of one consumer are acknowledged", func(p *program) {
		for i, mode := range modes {
			s := p.pattern(fmt.Sprint("pattern ", mode), "TU")
			if i%2 == 1 {
				s = p.members(fmt.Sprint("composite ", mode), "TU")
			}
			for _, n := range []int{5, 1} {
				conn := p.with(prefetch(n), "jms.optimizeAcknowledge=true")
				session := conn.Session(mode)
				c := s.pull(session)
				s.settle(session, c, s.feed(c, "T0", "U0", "U1", "T1", "T2", "U2"))
				s.feed(c, "U3", "T3", "T4", "U4", "T5", "U5")
				p.say("exceptions: %d", len(conn.Faults()))
				must(p.t, conn.Close())
			}
		}
	}},
	{"a durable subscription of several topics is acknowledged", func(p *program) {
		for _, mode := range modes {
			p.pattern(fmt.Sprint("pattern ", mode), "TU").durable(mode,
				prefetch(5)+"&jms.optimizeAcknowledge=true")
			if mode == jms.Client || mode == jms.Transacted {
				p.members(fmt.Sprint("composite ", mode), "TU").durable(mode, prefetch(1000))
			}
		}
	}},
	{"a composite is sent to several topics of one consumer", func(p *program) {
		for _, mode := range modes {
			s := p.members(fmt.Sprint("two ", mode), "TU")
			conn := p.with(prefetch(5))
			session := conn.Session(mode)
			c := s.pull(session)
			p.conn.Send(s.dest, 6, "m{}")
			got := c.Receive(12, soon/2)
			s.set("got", got)
			s.settle(session, c, got)
			p.say("exceptions: %d", len(conn.Faults()))
			must(p.t, conn.Close())
		}
	}},
	{"queues and topics of one consumer are acknowledged", func(p *program) {
		if p.b.Kind().Real() {
			p.mixed("aT", jms.Auto, 1)
			p.mixed("Ta", jms.Auto, 1)
			return
		}
		for _, mode := range modes {
			p.mixed("aT", mode, 1000)
			p.mixed("Ta", mode, 1)
			p.mixed("aT", mode, 0)
		}
	}},
}

// mixed plays with a consumer of a queue and a topic.
func (p *program) mixed(letters string, mode jms.Mode, n int) {
	s := p.members(fmt.Sprint(letters, " ", mode, " ", n), letters)
	conn := p.with(prefetch(n), "jms.optimizeAcknowledge=true", atOnce)
	session := conn.Session(mode)
	c := s.pull(session)
	s.settle(session, c, s.feed(c, "a0", "T0", "a1"))
	if p.b.Kind().Real() {
		return
	}
	got := s.feed(c, "T1", "a2", "T2")
	switch mode {
	case jms.Client:
		must(p.t, session.Recover())
		s.got("again", c.Receive(3, soon))
	case jms.Transacted:
		must(p.t, session.Rollback())
		s.got("again", c.Receive(3, soon))
	}
	s.settle(session, c, got)
	s.feed(c, "a3", "a4", "T3", "T4", "a5", "T5", "a6")
	p.say("exceptions: %d", len(conn.Faults()))
	must(p.t, conn.Close())
	s.dest = s.of("a")
	s.rest()
}
