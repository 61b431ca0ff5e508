package interop

import (
	"strings"
	"time"

	"hopwire/test/interop/jms"
)

// on listens to an advisory topic.
func (p *program) on(topic string) *jms.Consumer {
	p.t.Helper()
	return p.conn.Consumer("topic://ActiveMQ.Advisory." + topic)
}

// about says what advisories are about, of those that name one word, or of all. It waits for n.
func (p *program) about(label string, c *jms.Consumer, n int, word string) {
	p.t.Helper()
	var told []jms.Msg
	for end := time.Now().Add(patience); len(told) < n && time.Now().Before(end); {
		p.pause(20 * time.Millisecond)
		told = nil
		for _, m := range c.Received() {
			if strings.Contains(m.About, word) {
				told = append(told, m)
			}
		}
	}
	p.say("%s: %d", label, len(told))
	for _, m := range told {
		p.say("  %s %s", m.Data, unnamed.ReplaceAllString(m.About, "ID"))
		for _, name := range []string{"consumerCount", "producerCount", "orignalMessageId",
			"orignalDestination", "consumerId", "producerId", "usageName",
			"discardedCount"} {
			if v := m.Props[name]; v != "" {
				p.say("    %s=%s", name, unnamed.ReplaceAllString(v, "ID"))
			}
		}
		p.say("    %s %s priority=%d persistent=%t correlation=%q reply to %q",
			unnamed.ReplaceAllString(m.Dest, "ID"), m.Type, m.Priority, m.Persistent, m.CorrelationID,
			m.ReplyTo)
	}
}

// advisoryScenarios are about what advisories tell.
var advisoryScenarios = []scenario{
	{"advisories tell all of a consumer", func(p *program) {
		queue, topic := p.on("Consumer.Queue."+p.name), p.on("Consumer.Topic."+p.name)
		conn := p.as("c")
		s := conn.Session(jms.Auto)
		must(p.t, s.Consumer(jms.ConsumerOptions{Dest: p.queue("") + "?consumer.prefetchSize=7" +
			"&consumer.exclusive=true&consumer.priority=3", Selector: "n > 5"}).Close())
		p.about("queue", queue, 2, "")
		must(p.t, s.Consumer(jms.ConsumerOptions{Dest: p.topic("") + retroactive, NoLocal: true}).Close())
		must(p.t, s.Consumer(p.durable(p.topic(""))).Close())
		must(p.t, s.Unsubscribe("sub"))
		p.about("topic", topic, 5, "")
	}},
	{"advisories tell of browsers and of ends", func(p *program) {
		queue := p.on("Consumer.Queue." + p.name)
		p.conn.Browse(p.queue(""), "")
		p.about("browser", queue, 2, "")
		conn := p.d.Connect(p.b.URL())
		conn.Consumer(p.queue(""))
		conn.Consumer(p.queue(""))
		must(p.t, conn.Close())
		p.about("with the connection", queue, 6, "")
	}},
	{"advisories tell all of a producer", func(p *program) {
		queue, topic := p.on("Producer.Queue."+p.name), p.on("Producer.Topic."+p.name)
		s := p.with("jms.producerWindowSize=5000").Session(jms.Auto)
		s.Send(jms.SendOptions{Dest: p.queue(""), Body: "m"})
		s.Send(jms.SendOptions{Dest: p.topic(""), Body: "m"})
		s.Send(jms.SendOptions{Dest: p.queue(""), Body: "m", Anonymous: true})
		must(p.t, s.Close())
		p.about("queue", queue, 2, "")
		p.about("topic", topic, 2, "")
	}},
	{"advisories tell of a pattern and of several destinations", func(p *program) {
		c := p.on("Consumer.Queue." + p.name + ".>")
		s := p.session(jms.Auto)
		must(p.t, s.Consumer(jms.ConsumerOptions{Dest: p.queue(".a") + "," + p.queue(".b")}).Close())
		p.about("two", c, 2, "")
		must(p.t, s.Consumer(jms.ConsumerOptions{Dest: p.queue(".c.*")}).Close())
		p.about("a pattern", c, 4, "")
	}},
	{"advisories tell of queues and topics", func(p *program) {
		for _, kind := range []string{"Queue", "Topic"} {
			c := p.on(kind)
			dest := strings.ToLower(kind) + "://" + p.name
			p.send(dest, 1)
			p.about("made", c, 1, p.name)
			p.failed("destroy", p.conn.Destroy(dest))
			p.about("destroyed", c, 2, p.name)
			p.send(dest, 1)
			p.about("made again", c, 3, p.name)
			late := p.on(kind)
			p.about("who comes late", late, 1, p.name)
		}
	}},
	{"advisories tell of temporary destinations", func(p *program) {
		for _, topic := range []bool{false, true} {
			c := p.on(map[bool]string{false: "TempQueue", true: "TempTopic"}[topic])
			temp, err := p.session(jms.Auto).Temporary(topic)
			must(p.t, err)
			p.about("made", c, 1, temp)
			p.failed("delete", p.conn.Destroy(temp))
			p.about("deleted", c, 2, temp)
			conn := p.d.Connect(p.b.URL())
			temp, err = conn.Session(jms.Auto).Temporary(topic)
			must(p.t, err)
			p.about("made by another", c, 1, temp)
			must(p.t, conn.Close())
			p.about("with its connection", c, 2, temp)
		}
	}},
	{"advisories tell of a connection", func(p *program) {
		c := p.on("Connection")
		conn := p.as("x")
		p.about("open", c, 1, p.name+"x")
		p.about("who comes late", p.on("Connection"), 1, p.name+"x")
		must(p.t, conn.Close())
	}},
	{"advisories tell of what expired", func(p *program) {
		queue, topic := p.on("Expired.Queue.drop."+p.name), p.on("Expired.Topic."+p.name)
		p.conn.Put(jms.SendOptions{Dest: p.under("drop", ""), Body: "late", CorrelationID: "corr",
			TTL: 50 * time.Millisecond})
		p.about("queue", queue, 1, "")
		p.pull(p.session(jms.Auto), p.topic(""))
		p.about("topic", topic, 0, "")
	}},
	{"advisories tell of dead letters", func(p *program) {
		c := p.on("MessageDLQd.Queue.own." + p.name)
		p.poison(p.under("own", ""), jms.SendOptions{Body: "m", CorrelationID: "corr",
			ReplyTo: "queue://reply"})
		p.about("dead", c, 1, "")
		p.got("dead", p.conn.Browse(p.under("DEAD.own", ""), ""))
	}},
	{"advisories are not asked for by policy", func(p *program) {
		var all []*jms.Consumer
		for _, kind := range []string{"SlowConsumer", "FastProducer", "MessageDiscarded",
			"MessageDelivered", "MessageConsumed", "FULL", "NoConsumer"} {
			all = append(all, p.on(kind+".Queue."+p.name), p.on(kind+".Topic."+p.name))
		}
		p.conn.Put(jms.SendOptions{Dest: p.topic(""), Body: "m", NonPersistent: true})
		c := p.pull(p.session(jms.Auto), p.queue("")+"?consumer.prefetchSize=1")
		p.send(p.queue(""), 5)
		p.got("taken", c.Receive(5, patience))
		p.pause(300 * time.Millisecond)
		for _, a := range all {
			p.about("none", a, 0, "")
		}
	}},
}
