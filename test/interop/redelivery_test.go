package interop

import (
	"fmt"
	"time"

	"hopwire/test/interop/jms"
)

// deadPolicies are of queues whose names begin with what becomes of their dead letters.
const deadPolicies = `
<policyEntry queue="own.>" expireMessagesPeriod="200"><deadLetterStrategy>
  <individualDeadLetterStrategy queuePrefix="DEAD." processNonPersistent="true"/>
  </deadLetterStrategy></policyEntry>
<policyEntry queue="passing.>" expireMessagesPeriod="200"><deadLetterStrategy>
  <individualDeadLetterStrategy queuePrefix="DEAD." processExpired="false"/>
  </deadLetterStrategy></policyEntry>
<policyEntry queue="brief.>" expireMessagesPeriod="200"><deadLetterStrategy>
  <individualDeadLetterStrategy queuePrefix="DEAD." queueSuffix=".SOON" expiration="600000"/>
  </deadLetterStrategy></policyEntry>
<policyEntry queue="drop.>" expireMessagesPeriod="200"><deadLetterStrategy><discarding/>
  </deadLetterStrategy></policyEntry>
<policyEntry topic="own.>"><deadLetterStrategy>
  <individualDeadLetterStrategy topicPrefix="DEAD.TOPIC."/></deadLetterStrategy></policyEntry>
`

// under is a queue of a policy.
func (p *program) under(policy, suffix string) string {
	return "queue://" + policy + "." + p.name + suffix
}

// poison has a consumer refuse messages of a queue for ever, after what is sent to it.
func (p *program) poison(dest string, send ...jms.SendOptions) {
	p.t.Helper()
	conn := p.with("jms.redeliveryPolicy.maximumRedeliveries=0", atOnce)
	s := conn.Session(jms.Transacted)
	c := p.pull(s, dest)
	for _, o := range send {
		o.Dest = dest
		p.conn.Put(o)
		p.got("refused", c.Receive(1, patience))
		p.failed("rollback", s.Rollback())
	}
	p.none("then", c)
	must(p.t, conn.Close())
}

// rolled says deliveries of n rollbacks.
func (p *program) rolled(s *jms.Session, c *jms.Consumer, n int) {
	p.t.Helper()
	for i := range n {
		p.got(fmt.Sprint("delivery ", i+1), c.Receive(1, patience))
		p.failed("rollback", s.Rollback())
	}
}

// late says whether a message came after so much time, and not much later.
func (p *program) late(what string, least time.Duration, since time.Time, m jms.Msg) time.Time {
	took := m.At.Sub(since)
	p.say("%s: after %v %t", what, least, took > least-30*time.Millisecond && took < least+patience)
	return m.At
}

// redeliveryScenarios are about rollbacks, listeners that fail, and dead letters.
var redeliveryScenarios = []scenario{
	{"rollbacks are counted", func(p *program) {
		conn := p.with(atOnce)
		s := conn.Session(jms.Transacted)
		c := p.pull(s, p.queue(""))
		p.send(p.queue(""), 1)
		p.rolled(s, c, 4)
		must(p.t, conn.Close())
		p.got("another", p.pull(p.session(jms.Auto), p.queue("")).Receive(1, patience))
	}},
	{"recovers are counted", func(p *program) {
		conn := p.with(atOnce)
		for _, mode := range []jms.Mode{jms.Client, jms.Individual, jms.Auto} {
			s := conn.Session(mode)
			dest := p.queue("." + string(mode))
			c := p.pull(s, dest)
			p.send(dest, 2)
			p.got("first", c.Receive(2, patience))
			for range 2 {
				p.failed("recover", s.Recover())
				p.got("again", c.Receive(2, soon))
			}
			must(p.t, s.Close())
			p.got("another", p.pull(p.session(jms.Auto), dest).Receive(2, soon))
		}
	}},
	{"redeliveries wait longer and longer", func(p *program) {
		conn := p.with("jms.redeliveryPolicy.initialRedeliveryDelay=200",
			"jms.redeliveryPolicy.redeliveryDelay=200", "jms.redeliveryPolicy.useExponentialBackOff=true",
			"jms.redeliveryPolicy.backOffMultiplier=2", "jms.redeliveryPolicy.maximumRedeliveryDelay=500")
		s := conn.Session(jms.Transacted)
		c := p.pull(s, p.queue(""))
		p.send(p.queue(""), 1)
		at := p.one(c).At
		for _, ms := range []time.Duration{200, 400, 500} {
			must(p.t, s.Rollback())
			at = p.late("redelivered", ms*time.Millisecond, at, p.one(c))
		}
		p.failed("commit", s.Commit())
	}},
	{"no redelivery at all", func(p *program) {
		p.poison(p.queue(""), jms.SendOptions{Body: "m0"})
		p.deadLetter("m0")
	}},
	{"redeliveries without end", func(p *program) {
		conn := p.with("jms.redeliveryPolicy.maximumRedeliveries=-1", atOnce)
		s := conn.Session(jms.Transacted)
		c := p.pull(s, p.queue(""))
		p.send(p.queue(""), 1)
		p.rolled(s, c, 9)
		p.got("at last", c.Receive(1, patience))
		p.failed("commit", s.Commit())
		p.none("then", c)
	}},
	{"a dead letter keeps what it was", func(p *program) {
		p.poison(p.under("own", ""), jms.SendOptions{Body: "text", Priority: 7, CorrelationID: "corr",
			Type: "type", ReplyTo: p.queue(".reply"), Props: map[string]string{"i": "int:5",
				"s": "string:x", "b": "bool:true", "d": "double:0.5"}},
			jms.SendOptions{Kind: "map", Map: map[string]string{"k": "long:7"}, TTL: time.Hour},
			jms.SendOptions{Kind: "bytes", Body: "bytes", NonPersistent: true})
		for _, m := range p.conn.Browse(p.under("DEAD.own", ""), "") {
			p.whole("dead", m)
		}
		c := p.conn.Consumer(p.under("DEAD.own", ""))
		p.got("taken", c.Wait(3, patience))
	}},
	{"what expires goes where its queue says", func(p *program) {
		for _, policy := range []string{"own", "passing", "brief", "drop"} {
			dest := p.under(policy, "")
			for _, np := range []bool{false, true} {
				p.conn.Put(jms.SendOptions{Dest: dest, Body: fmt.Sprint("late ", np), NonPersistent: np,
					TTL: 50 * time.Millisecond})
			}
			p.b.WaitQueue(policy+"."+p.name, patience, "empty", empty)
			p.say("%s:", policy)
			for _, prefix := range []string{"queue://DEAD.", "queue://ActiveMQ.DLQ.Queue."} {
				for _, suffix := range []string{"", ".SOON"} {
					dead := prefix + policy + "." + p.name + suffix
					for _, m := range p.conn.Browse(dead, "") {
						p.whole(dead, m)
					}
				}
			}
		}
	}},
	{"poison goes where its queue says", func(p *program) {
		for _, policy := range []string{"passing", "brief", "drop"} {
			p.poison(p.under(policy, ""), jms.SendOptions{Body: "persistent"},
				jms.SendOptions{Body: "not", NonPersistent: true})
			for _, suffix := range []string{"", ".SOON"} {
				dead := p.under("DEAD."+policy, suffix)
				for _, m := range p.conn.Browse(dead, "") {
					p.whole(dead, m)
				}
			}
		}
	}},
	{"poison of a dead letter queue stays in it", func(p *program) {
		p.poison(p.under("own", ""), jms.SendOptions{Body: "m"})
		dead := p.under("DEAD.own", "")
		conn := p.with("jms.redeliveryPolicy.maximumRedeliveries=1", atOnce)
		s := conn.Session(jms.Transacted)
		c := p.pull(s, dead)
		p.rolled(s, c, 1)
		p.got("again", c.Receive(1, patience))
		p.failed("commit", s.Commit())
		p.none("left", c)
	}},
	{"a listener fails and its message comes again", func(p *program) {
		for _, mode := range []jms.Mode{jms.Auto, jms.DupsOK, jms.Individual, jms.Client} {
			conn := p.with(atOnce)
			dest := p.queue("." + string(mode))
			c := conn.Session(mode).Consumer(jms.ConsumerOptions{Dest: dest, Fail: 2})
			p.send(dest, 2)
			p.got(string(mode), p.calm(c))
			must(p.t, conn.Close())
			p.got("left", p.pull(p.session(jms.Auto), dest).Receive(2, 300*time.Millisecond))
		}
	}},
	{"a listener of a transaction fails", func(p *program) {
		conn := p.with(atOnce)
		c := conn.Session(jms.Transacted).Consumer(jms.ConsumerOptions{Dest: p.queue(""), Fail: 1})
		p.send(p.queue(""), 2)
		p.got("heard", p.calm(c))
		must(p.t, conn.Close())
		p.got("left", p.pull(p.session(jms.Auto), p.queue("")).Receive(2, patience))
	}},
	{"a listener rolls back or recovers by itself", func(p *program) {
		for _, does := range []string{"rollback", "recover"} {
			mode := jms.Transacted
			if does == "recover" {
				mode = jms.Client
			}
			conn := p.with(atOnce)
			dest := p.queue("." + does)
			c := conn.Session(mode).Consumer(jms.ConsumerOptions{Dest: dest, Does: does})
			p.send(dest, 3)
			p.got(does, p.calm(c))
			must(p.t, conn.Close())
		}
	}},
	{"a topic's poison goes to the dead letters of its own", func(p *program) {
		conn := p.with("jms.redeliveryPolicy.maximumRedeliveries=1", atOnce)
		s := conn.Session(jms.Transacted)
		dest := "topic://own." + p.name
		c := p.pull(s, dest)
		p.send(dest, 1)
		p.rolled(s, c, 2)
		p.none("then", c)
		for _, m := range p.conn.Browse(p.under("DEAD.TOPIC.own", ""), "") {
			p.whole("dead", m)
		}
	}},
	{"a consumer's end marks what it received", func(p *program) {
		for _, mode := range []jms.Mode{jms.Client, jms.Transacted, jms.Individual} {
			dest := p.queue("." + string(mode))
			p.send(dest, 4)
			conn := p.d.Connect(p.b.URL())
			p.got("taken", p.pull(conn.Session(mode), dest).Receive(2, patience))
			must(p.t, conn.Close())
			p.got("left", p.pull(p.session(jms.Auto), dest).Receive(4, patience))
		}
	}},
}
