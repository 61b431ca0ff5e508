package interop

import (
	"slices"
	"strings"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

type stats = broker.Stats

func empty(s stats) bool { return s.Size == 0 }

// otherScenarios are about topics, selectors, browsers, wildcards, temporary destinations,
// advisories and exceptions.
var otherScenarios = []scenario{
	{"a topic is for who listens", func(p *program) {
		p.send(p.topic(""), 1)
		one, two := p.conn.Consumer(p.topic("")), p.conn.Consumer(p.topic(""))
		p.send(p.topic(""), 3)
		p.got("one", one.Wait(3, patience))
		p.got("two", two.Wait(3, patience))
		p.failed("close", one.Close())
		p.send(p.topic(""), 1)
		p.got("two", two.Wait(4, patience)[3:])
	}},
	{"a topic consumer may ignore its own connection", func(p *program) {
		s := p.session(jms.Auto)
		c := s.Consumer(jms.ConsumerOptions{Dest: p.topic(""), NoLocal: true})
		p.send(p.topic(""), 2)
		p.d.Connect(p.b.URL()).Send(p.topic(""), 1, "other")
		p.got("heard", c.Wait(1, patience))
	}},
	{"selectors share a queue", func(p *program) {
		s := p.session(jms.Auto)
		s.Send(jms.SendOptions{Dest: p.queue(""), N: 6, Body: "m{}", Type: "t",
			Props: map[string]string{"n": "int:{}", "s": "string:x{}", "b": "bool:true"}})
		for _, selector := range []string{
			"n > 3 AND n <> 5", "s LIKE 'x_' AND n BETWEEN 1 AND 2", "s IN ('x0') OR nothing IS NULL",
		} {
			c := s.Consumer(jms.ConsumerOptions{Dest: p.queue(""), Selector: selector, Pull: true})
			p.got(selector, c.Receive(6, 500*time.Millisecond))
			must(p.t, c.Close())
		}
	}},
	{"selectors see headers", func(p *program) {
		s := p.session(jms.Auto)
		s.Send(jms.SendOptions{Dest: p.queue(""), Body: "a", Priority: 7, Type: "t1"})
		s.Send(jms.SendOptions{Dest: p.queue(""), Body: "b", NonPersistent: true, CorrelationID: "c"})
		for _, selector := range []string{
			"JMSPriority > 5", "JMSDeliveryMode = 'NON_PERSISTENT'", "JMSType = 't1'",
			"JMSCorrelationID = 'c'", "JMSTimestamp > 0", "JMSRedelivered = FALSE", "1 = 0",
			"JMSMessageID LIKE 'ID:%'", "JMSExpiration = 0", "JMSXDeliveryCount = 1",
		} {
			p.got(selector, p.conn.Browse(p.queue(""), selector))
		}
	}},
	{"a browser takes nothing", func(p *program) {
		p.send(p.queue(""), 3)
		p.got("browsed", p.conn.Browse(p.queue(""), ""))
		s := p.session(jms.Client)
		c := p.pull(s, p.queue("")+"?consumer.prefetchSize=1")
		c.Receive(1, patience)
		p.got("browsed, one in flight", p.conn.Browse(p.queue(""), ""))
		p.failed("close", s.Close())
		p.got("taken", p.conn.Consumer(p.queue("")).Wait(3, patience))
		p.got("browsed", p.conn.Browse(p.queue(""), ""))
	}},
	{"the consumer of higher priority comes first", func(p *program) {
		low := p.conn.Consumer(p.queue("") + "?consumer.priority=1")
		high := p.conn.Consumer(p.queue("") + "?consumer.priority=9")
		p.send(p.queue(""), 4)
		p.got("high", high.Wait(4, patience))
		p.failed("close", high.Close())
		p.send(p.queue(""), 2)
		p.got("low", low.Wait(2, patience))
	}},
	{"wildcards of consumers", func(p *program) {
		star := p.conn.Consumer(p.queue(".*.b"))
		rest := p.conn.Consumer(p.topic(".a.>"))
		twice := p.conn.Consumer(p.topic(".a.>.>"))
		for _, suffix := range []string{".a.b", ".c.b", ".a.c"} {
			p.conn.Send(p.queue(suffix), 1, "on"+suffix)
		}
		for _, suffix := range []string{".a", ".a.b", ".a.b.c", ".b"} {
			p.conn.Send(p.topic(suffix), 1, "on"+suffix)
		}
		p.got("star", star.Wait(2, patience))
		p.got("rest", rest.Wait(3, patience))
		p.got("twice", twice.Wait(3, patience))
		p.got("left", p.conn.Browse(p.queue(".a.c"), ""))
	}},
	{"composites go to each", func(p *program) {
		c := p.conn.Consumer(p.topic(".t"))
		dest := p.queue(".a") + "," + p.queue(".b") + "," + p.topic(".t")
		p.send(dest, 2)
		p.got("a", p.conn.Browse(p.queue(".a"), ""))
		p.got("b", p.conn.Browse(p.queue(".b"), ""))
		p.got("t", c.Wait(2, patience))
		both := p.conn.Consumer(p.queue(".a") + "," + p.queue(".b"))
		p.say("both: %d", len(both.Wait(4, patience)))
	}},
	{"request and reply by a temporary queue", func(p *program) {
		p.d.Connect(p.b.URL()).Session(jms.Auto).Consumer(
			jms.ConsumerOptions{Dest: p.queue(""), Reply: true})
		for range 3 {
			replies := p.conn.Request(jms.SendOptions{Dest: p.queue(""), Body: "?"}, 1, patience)
			p.say("%d replies, right %t", len(replies), len(replies) == 1 &&
				strings.HasSuffix(replies[0].Body, replies[0].CorrelationID))
		}
	}},
	{"a temporary destination is its connection's", func(p *program) {
		other := p.d.Connect(p.b.URL())
		s := other.Session(jms.Auto)
		temp, err := s.Temporary(false)
		must(p.t, err)
		p.send(temp, 2)
		_, err = p.session(jms.Auto).TryConsumer(jms.ConsumerOptions{Dest: temp})
		p.failed("a stranger listens", err)
		p.got("owner", other.Consumer(temp).Wait(2, patience))
		must(p.t, other.Close())
		_, err = p.session(jms.Auto).TrySend(jms.SendOptions{Dest: temp, Body: "late"})
		p.failed("after its end", err)
	}},
	{"consumers and producers are advised of", func(p *program) {
		on := func(kind string) *jms.Consumer {
			return p.conn.Consumer("topic://ActiveMQ.Advisory." + kind + "." + p.name)
		}
		consumers, producers := on("Consumer.Queue"), on("Producer.Queue")
		c := p.conn.Consumer(p.queue(""))
		consumers.Wait(1, patience)
		must(p.t, c.Close())
		p.send(p.queue(""), 1)
		p.advised("consumers", consumers.Wait(2, patience))
		p.advised("producers", producers.Wait(1, patience))
		late := on("Consumer.Queue")
		late.Silent(200 * time.Millisecond)
		p.conn.Consumer(p.queue(""))
		late.Wait(1, patience)
		replayed := on("Consumer.Queue")
		p.advised("who comes late", replayed.Wait(1, patience))
	}},
	{"destinations and connections are advised of", func(p *program) {
		queues := p.conn.Consumer("topic://ActiveMQ.Advisory.Queue")
		before := queues.Count()
		p.send(p.queue(""), 1)
		p.conn.Consumer(p.queue(""))
		queues.Wait(before+1, patience)
		connections := p.conn.Consumer("topic://ActiveMQ.Advisory.Connection")
		connections.Wait(1, patience)
		before = connections.Count()
		other := p.d.Connect(p.b.URL())
		connections.Wait(before+1, patience)
		must(p.t, other.Close())
		p.advised("connection", connections.Wait(before+2, patience)[before:])
	}},
	{"mistakes have the classes of ActiveMQ", func(p *program) {
		s := p.session(jms.Auto)
		try := func(what string, o jms.ConsumerOptions) {
			_, err := s.TryConsumer(o)
			p.failed(what, err)
		}
		try("selector", jms.ConsumerOptions{Dest: p.queue(""), Selector: "a ="})
		try("selector of nonsense", jms.ConsumerOptions{Dest: p.queue(""), Selector: "1 + 'x' > (("})
		try("option", jms.ConsumerOptions{Dest: p.queue("") + "?consumer.nonsense=1"})
		p.failed("unsubscribe", s.Unsubscribe("never"))
		id := jms.ConnectOptions{URL: p.b.URL(), ClientID: p.name}
		_, err := p.d.Dial(id)
		p.failed("client id", err)
		_, err = p.d.Dial(id)
		p.failed("the same client id", err)
		_, err = s.TrySend(jms.SendOptions{Dest: p.queue(".>"), Body: "x"})
		p.failed("send to a wildcard", err)
	}},
}

// advised says what advisories tell, without what differs by run.
func (p *program) advised(label string, messages []jms.Msg) {
	p.say("%s: %d", label, len(messages))
	for _, m := range messages {
		var names []string
		for name := range m.Props {
			if name != "JMSXDeliveryCount" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		p.say("  %s type=%s persistent=%t consumers=%q producers=%q %v", m.Dest, m.Type, m.Persistent,
			m.Prop("consumerCount"), m.Prop("producerCount"), names)
	}
}
