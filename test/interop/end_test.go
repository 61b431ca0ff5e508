package interop

import (
	"time"

	"hopwire/test/interop/jms"
)

// endScenarios are about client ids, the ends of what is open, and what transactions hold together.
var endScenarios = []scenario{
	{"client ids are one connection's", func(p *program) {
		dial := func(what, id string) *jms.Conn {
			c, err := p.d.Dial(jms.ConnectOptions{URL: p.b.URL(), ClientID: id})
			p.failed(what, err)
			return c
		}
		one := dial("one", p.name)
		dial("the same", p.name)
		dial("another", p.name+".2")
		dial("of odd characters", p.name+" ünï/:,*>")
		must(p.t, one.Close())
		dial("the same after its close", p.name)
		late := p.d.Connect(p.b.URL())
		late.Send(p.queue(""), 1, "m")
		p.failed("after use", late.SetClientID(p.name+".3"))
	}},
	{"a listener closes what it belongs to", func(p *program) {
		for _, does := range []string{"close", "close session", "close connection"} {
			for _, mode := range []jms.Mode{jms.Auto, jms.Client, jms.DupsOK, jms.Transacted,
				jms.Individual} {
				dest := p.queue("." + does + "." + string(mode))
				p.send(dest, 3)
				conn := p.with(atOnce)
				c := conn.Session(mode).Consumer(jms.ConsumerOptions{Dest: dest, Does: does})
				c.Wait(1, patience)
				p.say("%s, %s: %d", does, mode, len(p.calm(c)))
				for _, f := range c.Faults() {
					p.say("  in the listener: %s", class(f))
				}
				must(p.t, conn.Close())
				p.got("left", p.pull(p.session(jms.Auto), dest).Receive(3, soon/4))
			}
		}
	}},
	{"what is closed does nothing", func(p *program) {
		conn := p.d.Connect(p.b.URL())
		s := conn.Session(jms.Client)
		c := p.pull(s, p.queue(""))
		p.send(p.queue(""), 2)
		p.got("taken", c.Receive(1, patience))
		p.failed("close the consumer", c.Close())
		p.failed("ack", c.Ack())
		p.got("left", p.pull(p.session(jms.Auto), p.queue("")).Receive(2, soon))
		p.failed("commit", s.Commit())
		p.failed("rollback", s.Rollback())
		p.failed("recover", conn.Session(jms.Transacted).Recover())
		p.failed("close", conn.Close())
	}},
	{"what was not committed when all is closed in turn", func(p *program) {
		p.send(p.queue(""), 3)
		conn := p.d.Connect(p.b.URL())
		s := conn.Session(jms.Transacted)
		c := p.pull(s, p.queue(""))
		p.got("taken", c.Receive(2, patience))
		s.Send(jms.SendOptions{Dest: p.queue(".out"), Body: "out"})
		p.failed("close the consumer", c.Close())
		p.failed("close the session", s.Close())
		p.failed("close", conn.Close())
		p.got("left", p.pull(p.session(jms.Auto), p.queue("")).Receive(3, patience))
		p.got("out", p.conn.Browse(p.queue(".out"), ""))
	}},
	{"transactions of nothing", func(p *program) {
		s := p.session(jms.Transacted)
		for range 2 {
			p.failed("commit", s.Commit())
			p.failed("rollback", s.Rollback())
		}
		c := p.pull(s, p.queue(""))
		p.none("nothing", c)
		p.failed("commit", s.Commit())
		p.send(p.queue(""), 1)
		p.got("taken", c.Receive(1, patience))
		p.failed("close the consumer", c.Close())
		p.failed("commit", s.Commit())
		p.failed("commit", s.Commit())
		p.got("left", p.conn.Browse(p.queue(""), ""))
	}},
	{"a transaction of queues and topics", func(p *program) {
		q, t := p.conn.Consumer(p.queue("")), p.conn.Consumer(p.topic(""))
		s := p.session(jms.Transacted)
		for _, body := range []string{"gone", "kept"} {
			for _, dest := range []string{p.queue(""), p.topic(""), p.queue("") + "," + p.topic("")} {
				s.Send(jms.SendOptions{Dest: dest, N: 2, Body: body + "{}"})
				s.Send(jms.SendOptions{Dest: dest, Body: body + " np", NonPersistent: true})
			}
			if body == "gone" {
				p.failed("rollback", s.Rollback())
				q.Silent(300 * time.Millisecond)
			}
		}
		p.failed("commit", s.Commit())
		p.say("of the queue %q", sorted(q.Wait(6, patience)))
		p.say("of the topic %q", sorted(t.Wait(6, patience)))
	}},
	{"a transaction takes from one queue what it sent there before", func(p *program) {
		s := p.session(jms.Transacted)
		c := p.pull(s, p.queue(""))
		s.Send(jms.SendOptions{Dest: p.queue(""), N: 2, Body: "m{}"})
		p.none("its own", c)
		p.failed("commit", s.Commit())
		p.got("then", c.Receive(1, patience))
		s.Send(jms.SendOptions{Dest: p.queue(""), Body: "m2"})
		p.failed("rollback", s.Rollback())
		p.got("again", c.Receive(3, soon))
		p.failed("commit", s.Commit())
		p.got("left", p.conn.Browse(p.queue(""), ""))
	}},
	{"sessions of one connection are their own transactions", func(p *program) {
		one, two := p.session(jms.Transacted), p.session(jms.Transacted)
		p.send(p.queue(""), 4)
		a := p.pull(one, p.queue("")+"?consumer.prefetchSize=1")
		p.got("one", a.Receive(1, patience))
		b := p.pull(two, p.queue("")+"?consumer.prefetchSize=1")
		p.got("two", b.Receive(1, patience))
		p.failed("commit one", one.Commit())
		must(p.t, a.Close())
		p.failed("rollback two", two.Rollback())
		p.got("two again", b.Receive(2, patience))
		p.failed("commit two", two.Commit())
		p.got("then", b.Receive(1, patience))
		p.failed("commit two", two.Commit())
		p.got("left", p.conn.Browse(p.queue(""), ""))
	}},
	{"a transaction with what expires before its commit", func(p *program) {
		s := p.session(jms.Transacted)
		s.Send(jms.SendOptions{Dest: p.under("drop", ""), Body: "late", TTL: 100 * time.Millisecond})
		s.Send(jms.SendOptions{Dest: p.under("drop", ""), Body: "timely"})
		p.pause(300 * time.Millisecond)
		p.failed("commit", s.Commit())
		p.got("taken", p.pull(p.session(jms.Auto), p.under("drop", "")).Receive(2, soon))
	}},
	{"a stopped connection's consumer is asked", func(p *program) {
		p.send(p.queue(""), 2)
		c := p.pull(p.session(jms.Auto), p.queue(""))
		p.got("started", c.Receive(1, patience))
		p.failed("stop", p.conn.Stop())
		p.none("stopped", c)
		p.failed("start", p.conn.Start())
		p.got("started again", c.Receive(1, patience))
	}},
}
