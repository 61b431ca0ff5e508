package interop

import (
	"strings"
	"time"

	"hopwire/test/interop/jms"
)

// queueScenarios are about queues, acknowledgement modes, prefetch, dead letters and expiry.
var queueScenarios = []scenario{
	{"a queue keeps order and stores what nobody takes", func(p *program) {
		p.send(p.queue(""), 5)
		c := p.conn.Consumer(p.queue(""))
		p.got("taken", c.Wait(5, patience))
		p.b.WaitQueue(strings.TrimPrefix(p.queue(""), "queue://"), patience, "empty", empty)
	}},
	{"consumers of a queue take turns", func(p *program) {
		one := p.conn.Consumer(p.queue(""))
		two := p.conn.Consumer(p.queue(""))
		p.send(p.queue(""), 10)
		jms.WaitTotal(p.t, 10, patience, one, two)
		p.got("one", one.Received())
		p.got("two", two.Received())
	}},
	{"prefetch bounds what a consumer holds", func(p *program) {
		p.send(p.queue(""), 10)
		p.pull(p.session(jms.Auto), p.queue("")+"?consumer.prefetchSize=3")
		name := strings.TrimPrefix(p.queue(""), "queue://")
		p.b.WaitQueue(name, patience, "3 in flight", func(s stats) bool { return s.Flying == 3 })
		other := p.pull(p.session(jms.Auto), p.queue(""))
		p.got("other", other.Receive(7, patience))
		p.none("other, then", other)
	}},
	{"a consumer without prefetch pulls", func(p *program) {
		c := p.pull(p.session(jms.Auto), p.queue("")+"?consumer.prefetchSize=0")
		p.none("empty", c)
		p.send(p.queue(""), 3)
		p.got("pulled", c.Receive(1, patience))
		p.got("without waiting", c.Receive(1, 0))
		other := p.conn.Consumer(p.queue(""))
		p.got("other", other.Wait(1, patience))
	}},
	{"a pull that waits is answered by the next message", func(p *program) {
		c := p.pull(p.session(jms.Auto), p.queue("")+"?consumer.prefetchSize=0")
		done := make(chan []jms.Msg)
		go func() { done <- c.Receive(1, patience) }()
		p.b.WaitConsumers(strings.TrimPrefix(p.queue(""), "queue://"), 1, patience)
		p.send(p.queue(""), 1)
		p.got("pulled", <-done)
	}},
	{"client acknowledgement covers what came before", func(p *program) {
		p.send(p.queue(""), 5)
		s := p.session(jms.Client)
		c := p.pull(s, p.queue(""))
		p.got("first", c.Receive(2, patience))
		p.failed("ack", c.Ack())
		p.got("then", c.Receive(2, patience))
		p.failed("recover", s.Recover())
		p.got("again", c.Receive(2, patience))
		p.failed("close", s.Close())
		p.got("another", p.pull(p.session(jms.Auto), p.queue("")).Receive(3, patience))
	}},
	{"individual acknowledgement covers one message", func(p *program) {
		p.send(p.queue(""), 4)
		s := p.session(jms.Individual)
		c := p.pull(s, p.queue(""))
		got := c.Receive(4, patience)
		p.failed("ack", c.AckID(got[2].ID))
		p.failed("ack", c.AckID(got[0].ID))
		p.failed("close", s.Close())
		p.got("left", p.pull(p.session(jms.Auto), p.queue("")).Receive(2, patience))
	}},
	{"lazy acknowledgement settles everything", func(p *program) {
		c := p.session(jms.DupsOK).Consumer(jms.ConsumerOptions{Dest: p.queue("")})
		p.send(p.queue(""), 7)
		p.got("taken", c.Wait(7, patience))
		p.failed("close", c.Close())
		p.got("left", p.conn.Browse(p.queue(""), ""))
	}},
	{"what a closed consumer prefetched goes to another", func(p *program) {
		p.send(p.queue(""), 4)
		s := p.session(jms.Auto)
		c := p.pull(s, p.queue(""))
		p.got("first", c.Receive(1, patience))
		p.failed("close", c.Close())
		p.got("other", p.pull(p.session(jms.Auto), p.queue("")).Receive(3, patience))
	}},
	{"poison goes to the dead letters with its cause", func(p *program) {
		conn := p.d.Connect(p.b.URL() + "?jms.redeliveryPolicy.maximumRedeliveries=2" +
			"&jms.redeliveryPolicy.initialRedeliveryDelay=20&jms.redeliveryPolicy.redeliveryDelay=20")
		c := conn.Session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: p.queue(""), Fail: 3})
		conn.Send(p.queue(""), 2, "m{}")
		p.got("heard", c.Wait(4, patience))
		p.deadLetter("m0")
	}},
	{"poison of a transaction goes to the dead letters", func(p *program) {
		conn := p.d.Connect(p.b.URL() + "?jms.redeliveryPolicy.maximumRedeliveries=1" +
			"&jms.redeliveryPolicy.initialRedeliveryDelay=20")
		s := conn.Session(jms.Transacted)
		c := p.pull(s, p.queue(""))
		p.send(p.queue(""), 2)
		for range 3 {
			p.got("taken", c.Receive(1, patience))
			p.failed("rollback", s.Rollback())
		}
		p.deadLetter("m0")
		p.got("taken", c.Receive(1, patience))
		p.failed("commit", s.Commit())
	}},
	{"an expired message goes to the dead letters", func(p *program) {
		s := p.session(jms.Auto)
		s.Send(jms.SendOptions{Dest: p.queue(""), Body: "late", TTL: 50 * time.Millisecond})
		s.Send(jms.SendOptions{Dest: p.queue(""), Body: "fast", TTL: 50 * time.Millisecond,
			NonPersistent: true})
		s.Send(jms.SendOptions{Dest: p.queue(""), Body: "timely", TTL: time.Hour})
		p.deadLetter("late")
		p.got("taken", p.conn.Consumer(p.queue("")).Wait(1, patience))
	}},
	{"priorities order only a queue that is told so", func(p *program) {
		s := p.session(jms.Auto)
		for _, priority := range []int{1, 9, 5} {
			s.Send(jms.SendOptions{Dest: p.queue(""), Body: "m", Priority: priority})
		}
		p.got("taken", p.pull(s, p.queue("")).Receive(3, patience))
	}},
	{"a stopped connection is delivered nothing", func(p *program) {
		p.failed("stop", p.conn.Stop())
		c := p.conn.Consumer(p.queue(""))
		p.d.Connect(p.b.URL()).Send(p.queue(""), 2, "m{}")
		c.Silent(300 * time.Millisecond)
		p.failed("start", p.conn.Start())
		p.got("taken", c.Wait(2, patience))
	}},
}

// deadLetter takes a message of this run from the dead letters and says how it got there.
func (p *program) deadLetter(body string) {
	dest := "queue://ActiveMQ.DLQ"
	s := p.session(jms.Auto)
	c := s.Consumer(jms.ConsumerOptions{Dest: dest, Pull: true,
		Selector: "JMSDestination = '" + p.queue("") + "'"})
	got := c.Receive(1, 2*time.Second)
	if len(got) == 0 { // the selector of some brokers sees the queue it is in
		p.say("the dead letters are selected by no destination")
		must(p.t, c.Close())
		c = s.Consumer(jms.ConsumerOptions{Dest: dest, Pull: true})
		got = c.Receive(1, patience)
	}
	p.got("dead", got)
	for _, m := range got {
		if m.Body != body {
			p.t.Errorf("dead is %s, want %s", m.Body, body)
		}
		cause, _, _ := strings.Cut(m.Prop("dlqDeliveryFailureCause"), "Expiration:")
		before, _, _ := strings.Cut(cause, "RedeliveryPolicy {") // generations write it differently
		_, after, _ := strings.Cut(cause, "}")
		p.say("  of %s, persistent %t, expires %t, cause %s%s", m.Dest, m.Persistent,
			m.Expires != 0, before, after)
	}
	p.none("more dead", c)
	must(p.t, c.Close())
}
