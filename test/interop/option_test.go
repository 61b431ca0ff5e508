package interop

import (
	"time"

	"hopwire/test/interop/jms"
)

// holds waits until the consumers of a queue hold n messages that are not acknowledged.
func (p *program) holds(n int) {
	p.t.Helper()
	p.b.WaitQueue(p.bare(""), patience, "so many in flight",
		func(s stats) bool { return s.Flying == n })
	p.say("in flight: %d", n)
}

// bare is a queue's name without its scheme.
func (p *program) bare(suffix string) string { return p.name + suffix }

// optionScenarios are about prefetch and the options of consumers and producers.
var optionScenarios = []scenario{
	{"the prefetch of a consumer changes while it lives", func(p *program) {
		p.send(p.queue(""), 20)
		s := p.session(jms.Client)
		c := p.pull(s, p.queue("")+"?consumer.prefetchSize=2")
		p.holds(2)
		p.failed("more", c.SetPrefetch(p.conn, 6))
		p.holds(6)
		p.failed("less", c.SetPrefetch(p.conn, 3))
		p.got("taken", c.Receive(6, patience))
		p.failed("ack", c.Ack())
		p.holds(3)
		p.failed("close", s.Close())
		p.got("left", p.pull(p.session(jms.Auto), p.queue("")).Receive(14, patience))
	}},
	{"what a client received makes room for more", func(p *program) {
		p.send(p.queue(""), 8)
		s := p.session(jms.Client)
		c := p.pull(s, p.queue("")+"?consumer.prefetchSize=2")
		p.got("taken", c.Receive(8, patience))
		other := p.pull(p.session(jms.Auto), p.queue(""))
		p.none("other", other)
		must(p.t, other.Close())
		p.failed("close", s.Close())
		p.got("left", p.pull(p.session(jms.Auto), p.queue("")).Receive(8, patience))
	}},
	{"what a transaction received makes room for more", func(p *program) {
		p.send(p.queue(""), 8)
		s := p.session(jms.Transacted)
		c := p.pull(s, p.queue("")+"?consumer.prefetchSize=2")
		p.got("taken", c.Receive(8, patience))
		p.failed("rollback", s.Rollback())
		p.got("again", c.Receive(8, patience))
		p.failed("commit", s.Commit())
		p.got("left", p.conn.Browse(p.queue(""), ""))
	}},
	{"a client without acknowledgements and prefetch pulls on", func(p *program) {
		p.send(p.queue(""), 4)
		s := p.session(jms.Individual)
		c := p.pull(s, p.queue("")+"?consumer.prefetchSize=0")
		got := c.Receive(3, patience)
		p.got("taken", got)
		p.failed("ack", c.AckID(got[1].ID))
		p.failed("close", s.Close())
		p.got("left", p.pull(p.session(jms.Auto), p.queue("")).Receive(3, patience))
	}},
	{"optimized acknowledgements settle in the end", func(p *program) {
		for _, mode := range []jms.Mode{jms.Auto, jms.DupsOK} {
			for _, dest := range []string{p.queue("." + string(mode)), p.topic("." + string(mode))} {
				conn := p.with("jms.optimizeAcknowledge=true", "jms.optimizeAcknowledgeTimeOut=200")
				c := p.pull(conn.Session(mode), dest+"?consumer.prefetchSize=10")
				p.send(dest, 25)
				p.say("%s: %d", mode, len(c.Receive(25, patience)))
				must(p.t, conn.Close())
				p.none("left", p.pull(p.session(jms.Auto), dest))
			}
		}
	}},
	{"a lazy session settles what it took when it is closed", func(p *program) {
		p.send(p.queue(""), 12)
		s := p.session(jms.DupsOK)
		c := p.pull(s, p.queue("")+"?consumer.prefetchSize=10")
		p.got("taken", c.Receive(7, patience))
		p.failed("close", s.Close())
		p.got("left", p.pull(p.session(jms.Auto), p.queue("")).Receive(5, patience))
	}},
	{"a queue consumer may ignore its own connection", func(p *program) {
		own := p.session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: p.queue(""), NoLocal: true})
		p.send(p.queue(""), 2)
		p.d.Connect(p.b.URL()).Send(p.queue(""), 1, "other")
		p.got("own", own.Wait(1, patience))
		p.got("left", p.conn.Browse(p.queue(""), ""))
		p.got("other", p.d.Connect(p.b.URL()).Consumer(p.queue("")).Wait(2, patience))
	}},
	{"options of a consumer are in its destination's name", func(p *program) {
		conn := p.d.Connect(p.b.URL())
		chosen := p.conn.Consumer(p.queue("") + "?consumer.selector=n>1&consumer.priority=5")
		foreign := p.conn.Consumer(p.topic("") + "?consumer.noLocal=true&consumer.dispatchAsync=false")
		all := p.conn.Consumer(p.queue("") + "?consumer.dispatchAsync=false&consumer.prefetchSize=1")
		for _, dest := range []string{p.queue(""), p.topic("")} {
			for _, c := range []*jms.Conn{p.conn, conn} {
				c.Put(jms.SendOptions{Dest: dest, N: 3, Body: "m{}",
					Props: map[string]string{"n": "int:{}"}})
			}
		}
		p.got("chosen", chosen.Wait(2, patience))
		p.got("all", all.Wait(4, patience))
		p.got("foreign", foreign.Wait(3, patience))
	}},
	{"a selector in a name and one of the consumer", func(p *program) {
		c := p.session(jms.Auto).Consumer(jms.ConsumerOptions{Selector: "n < 3", Pull: true,
			Dest: p.queue("") + "?consumer.selector=n>1"})
		p.conn.Put(jms.SendOptions{Dest: p.queue(""), N: 5, Body: "m{}",
			Props: map[string]string{"n": "int:{}"}})
		p.got("taken", c.Receive(5, soon))
	}},
	{"wrong options of names have their exceptions", func(p *program) {
		for _, option := range []string{"consumer.nonsense=1", "consumer.prefetchSize=many",
			"consumer.priority=300", "consumer.exclusive=perhaps", "nonsense=1", "consumer.selector=a b",
			"consumer.prefetchSize=-1", "consumer.prefetchSize", "producer.nonsense=1"} {
			_, err := p.session(jms.Auto).TryConsumer(
				jms.ConsumerOptions{Dest: p.queue("") + "?" + option})
			p.failed("consumer of "+option, err)
		}
		for _, option := range []string{"producer.nonsense=1", "producer.windowSize=wide",
			"producer.windowSize=1000", "consumer.nonsense=1", "nonsense=1"} {
			_, err := p.session(jms.Auto).TrySend(
				jms.SendOptions{Dest: p.queue("") + "?" + option, Body: "m"})
			p.failed("producer of "+option, err)
		}
	}},
	{"producers have windows and forms of dispatch", func(p *program) {
		c := p.pull(p.session(jms.Auto), p.queue(""))
		for _, option := range []string{"producer.windowSize=3000", "producer.dispatchAsync=false",
			"producer.windowSize=1&producer.dispatchAsync=true"} {
			for _, options := range []string{"jms.useAsyncSend=true", "jms.alwaysSyncSend=true",
				"jms.producerWindowSize=2000"} {
				conn := p.with(options)
				conn.Put(jms.SendOptions{Dest: p.queue("") + "?" + option, N: 20, Body: "m{}",
					NonPersistent: true})
				got := c.Receive(20, patience)
				p.say("%s and %s: %d, the last %s of %t", option, options, len(got),
					got[len(got)-1].Body, got[0].Dest == p.queue("")+"?"+option)
			}
		}
	}},
	{"a topic consumer limits what waits for it", func(p *program) {
		c := p.pull(p.session(jms.Client),
			p.topic("")+"?consumer.maximumPendingMessageLimit=2&consumer.prefetchSize=2")
		p.send(p.topic(""), 8)
		p.got("taken", c.Receive(8, soon))
	}},
	{"an exclusive consumer takes over by its priority", func(p *program) {
		at := func(priority string) *jms.Consumer {
			return p.conn.Consumer(p.queue("") + "?consumer.exclusive=true&consumer.priority=" + priority)
		}
		first, same := at("3"), at("3")
		p.send(p.queue(""), 2)
		p.got("first", first.Wait(2, patience))
		highest := at("127")
		p.send(p.queue(""), 2)
		p.got("highest", highest.Wait(2, patience))
		again := at("127")
		p.send(p.queue(""), 2)
		p.got("as high", again.Wait(2, patience))
		must(p.t, again.Close())
		must(p.t, highest.Close())
		p.send(p.queue(""), 2)
		p.got("first again", first.Wait(4, patience)[2:])
		must(p.t, first.Close())
		p.send(p.queue(""), 2)
		p.got("of the same priority", same.Wait(2, patience))
	}},
	{"a consumer's close and a connection's stop wait for nobody", func(p *program) {
		c := p.session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: p.queue(""),
			Does: "stop connection"})
		must(p.t, p.conn.Start())
		p.send(p.queue(""), 3)
		c.Wait(1, patience)
		c.Silent(300 * time.Millisecond)
		p.got("until the stop", c.Received())
		for _, f := range c.Faults() {
			p.say("in the listener: %s", class(f))
		}
		p.failed("start", p.conn.Start())
		p.got("then", c.Wait(3, patience)[1:])
	}},
}
