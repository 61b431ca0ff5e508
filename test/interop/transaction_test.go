package interop

import (
	"hopwire/test/interop/jms"
)

// transactionScenarios are about local transactions.
var transactionScenarios = []scenario{
	{"sends are seen from the commit on", func(p *program) {
		s := p.session(jms.Transacted)
		c := p.pull(p.session(jms.Auto), p.queue(""))
		s.Send(jms.SendOptions{Dest: p.queue(""), N: 3, Body: "m{}"})
		p.none("before", c)
		p.got("browsed", p.conn.Browse(p.queue(""), ""))
		p.failed("commit", s.Commit())
		p.got("after", c.Receive(3, patience))
	}},
	{"a rollback forgets sends", func(p *program) {
		s := p.session(jms.Transacted)
		s.Send(jms.SendOptions{Dest: p.queue(""), N: 2, Body: "gone"})
		p.failed("rollback", s.Rollback())
		s.Send(jms.SendOptions{Dest: p.queue(""), N: 2, Body: "m{}"})
		p.failed("commit", s.Commit())
		p.got("taken", p.conn.Consumer(p.queue("")).Wait(2, patience))
	}},
	{"a rollback delivers again in order", func(p *program) {
		p.send(p.queue(""), 5)
		s := p.session(jms.Transacted)
		c := p.pull(s, p.queue(""))
		p.got("first", c.Receive(3, patience))
		p.failed("rollback", s.Rollback())
		p.got("again", c.Receive(5, patience))
		p.failed("commit", s.Commit())
		p.got("left", p.conn.Browse(p.queue(""), ""))
	}},
	{"an open transaction ends with its session", func(p *program) {
		p.send(p.queue(""), 3)
		s := p.session(jms.Transacted)
		p.got("first", p.pull(s, p.queue("")).Receive(2, patience))
		s.Send(jms.SendOptions{Dest: p.queue(".out"), Body: "gone"})
		p.failed("close", s.Close())
		p.got("again", p.pull(p.session(jms.Auto), p.queue("")).Receive(3, patience))
		p.got("sent", p.conn.Browse(p.queue(".out"), ""))
	}},
	{"an open transaction ends with its connection", func(p *program) {
		p.send(p.queue(""), 3)
		conn := p.d.Connect(p.b.URL())
		s := conn.Session(jms.Transacted)
		p.got("first", p.pull(s, p.queue("")).Receive(2, patience))
		s.Send(jms.SendOptions{Dest: p.queue(".out"), Body: "gone"})
		p.failed("close", conn.Close())
		p.got("again", p.pull(p.session(jms.Auto), p.queue("")).Receive(3, patience))
		p.got("sent", p.conn.Browse(p.queue(".out"), ""))
	}},
	{"a consumer closed in a transaction still counts in it", func(p *program) {
		p.send(p.queue(""), 4)
		s := p.session(jms.Transacted)
		c := p.pull(s, p.queue(""))
		p.got("first", c.Receive(2, patience))
		p.failed("close", c.Close())
		other := p.pull(p.session(jms.Auto), p.queue(""))
		p.none("before", other)
		p.failed("rollback", s.Rollback())
		p.got("after", other.Receive(4, patience))
	}},
	{"acknowledgements and sends commit together", func(p *program) {
		p.send(p.queue(".in"), 2)
		s := p.session(jms.Transacted)
		c := p.pull(s, p.queue(".in"))
		p.got("in", c.Receive(2, patience))
		s.Send(jms.SendOptions{Dest: p.queue(".out"), N: 2, Body: "o{}"})
		p.got("before", p.conn.Browse(p.queue(".in"), ""))
		p.failed("commit", s.Commit())
		p.got("in, left", p.conn.Browse(p.queue(".in"), ""))
		p.got("out", p.conn.Browse(p.queue(".out"), ""))
	}},
	{"a topic is told from the commit on", func(p *program) {
		c := p.conn.Consumer(p.topic(""))
		s := p.session(jms.Transacted)
		s.Send(jms.SendOptions{Dest: p.topic(""), N: 2, Body: "gone"})
		p.failed("rollback", s.Rollback())
		s.Send(jms.SendOptions{Dest: p.topic(""), N: 2, Body: "m{}"})
		p.failed("commit", s.Commit())
		p.got("heard", c.Wait(2, patience))
	}},
	{"many messages in one transaction", func(p *program) {
		s := p.session(jms.Transacted)
		s.Send(jms.SendOptions{Dest: p.queue(""), N: 300, Body: "m{}"})
		p.failed("commit", s.Commit())
		c := p.pull(s, p.queue(""))
		first := c.Receive(300, patience)
		p.failed("rollback", s.Rollback())
		again := c.Receive(300, patience)
		p.failed("commit", s.Commit())
		p.say("%d and again %d, last %s", len(first), len(again), again[len(again)-1].Body)
		p.got("left", p.conn.Browse(p.queue(""), ""))
	}},
}
