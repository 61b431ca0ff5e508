package interop

import (
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// toldOf asks for all advisories that a policy may ask for.
const toldOf = `advisoryForConsumed="true" advisoryForDelivery="true"
  advisoryForDiscardingMessages="true" advisoryForSlowConsumers="true"
  advisoryForFastProducers="true" advisoryWhenFull="true" sendAdvisoryIfNoConsumers="true" `

// toldPolicies ask for advisories of names that begin with "told" or "whole".
const toldPolicies = `
<policyEntry queue="told.>" memoryLimit="40 kb" expireMessagesPeriod="200" ` + toldOf + `>
  <pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy></policyEntry>
<policyEntry topic="told.>" ` + toldOf + `/>
<policyEntry topic="few.>" ` + toldOf + `><pendingMessageLimitStrategy>
  <constantPendingMessageLimitStrategy limit="1"/></pendingMessageLimitStrategy></policyEntry>
<policyEntry queue="whole.>" includeBodyForAdvisory="true" expireMessagesPeriod="200" ` +
	toldOf + `/>
<policyEntry topic="whole.>" includeBodyForAdvisory="true" ` + toldOf + `/>
<policyEntry tempQueue="true" ` + toldOf + `/>
<policyEntry tempTopic="true" ` + toldOf + `/>
`

// toldOn listens to what is told of one destination; it gives the listeners of some kinds.
func (p *program) toldOn(family string, kinds ...string) []*jms.Consumer {
	p.t.Helper()
	var all []*jms.Consumer
	for _, kind := range kinds {
		all = append(all, p.on(kind+"."+family))
	}
	return all
}

// entire says what messages are like that advisory topics give.
func (p *program) entire(label string, messages []jms.Msg) {
	p.got(label, messages)
	for _, m := range messages {
		p.say("    %s type=%q persistent=%t correlation=%q reply to %q n=%q", m.Dest, m.Type,
			m.Persistent, m.CorrelationID, m.ReplyTo, m.Prop("n"))
	}
}

// toldScenarios are about advisories that a policy asks for.
var toldScenarios = []scenario{
	{"policies tell of what comes to a queue and is consumed", func(p *program) {
		for _, under := range []string{"told", "whole"} {
			dest := p.under(under, "")
			on := p.toldOn("Queue."+under+"."+p.name, "MessageDelivered", "MessageConsumed")
			p.conn.Put(jms.SendOptions{Dest: dest, N: 2, Body: "m{}", CorrelationID: "corr",
				Type: "type", ReplyTo: "queue://reply", Props: map[string]string{"n": "int:{}"}})
			p.about("delivered", on[0], 2, "")
			p.about("not consumed", on[1], 0, "")
			p.got("taken", p.pull(p.session(jms.Auto), dest).Receive(2, patience))
			p.about("consumed", on[1], 2, "")
		}
	}},
	{"policies tell of what comes to a topic and is consumed", func(p *program) {
		dest := "topic://told." + p.name
		on := p.toldOn("Topic.told."+p.name, "MessageDelivered", "MessageConsumed")
		s := p.as("c").Session(jms.Auto)
		in, durable := p.conn.Consumer(dest), s.Consumer(p.durable(dest))
		p.send(dest, 1)
		p.got("heard", in.Wait(1, patience))
		p.got("heard", durable.Wait(1, patience))
		p.about("delivered", on[0], 1, "")
		p.pause(soon / 4)
		p.about("consumed", on[1], 1, "")
	}},
	{"policies tell of transactions when they are committed", func(p *program) {
		dest := p.under("told", "")
		on := p.toldOn("Queue.told."+p.name, "MessageDelivered", "MessageConsumed")
		s := p.session(jms.Transacted)
		s.Send(jms.SendOptions{Dest: dest, Body: "gone"})
		p.failed("rollback", s.Rollback())
		s.Send(jms.SendOptions{Dest: dest, Body: "m"})
		p.pause(soon / 4)
		p.about("open", on[0], 0, "")
		p.failed("commit", s.Commit())
		p.about("committed", on[0], 1, "")
		c := p.pull(s, dest)
		p.got("taken", c.Receive(1, patience))
		p.failed("commit", s.Commit())
		p.about("consumed", on[1], 1, "")
	}},
	{"policies tell of what ends otherwise", func(p *program) {
		dest := p.under("told", "")
		on := p.toldOn("Queue.told."+p.name, "MessageDelivered", "MessageConsumed", "Expired",
			"MessageDiscarded")
		p.conn.Put(jms.SendOptions{Dest: dest, Body: "late", TTL: 50 * time.Millisecond})
		p.about("delivered", on[0], 1, "")
		p.about("expired", on[2], 1, "")
		p.about("consumed", on[1], 1, "")
		p.poison(dest, jms.SendOptions{Body: "m"})
		p.about("delivered", on[0], 2, "")
		p.about("consumed", on[1], 2, "")
		p.about("discarded", on[3], 0, "")
	}},
	{"policies give bodies to other advisories", func(p *program) {
		dest := p.under("whole", "")
		on := p.toldOn("Queue.whole."+p.name, "Expired", "MessageDLQd")
		p.conn.Put(jms.SendOptions{Dest: dest, Body: "late", TTL: 50 * time.Millisecond})
		p.about("expired", on[0], 1, "")
		p.about("dead", on[1], 1, "")
	}},
	{"policies tell of what nobody consumes", func(p *program) {
		for _, kind := range []string{"queue", "topic"} {
			dest := kind + "://told." + p.name
			c := p.on("NoConsumer." + strings.ToUpper(kind[:1]) + kind[1:] + ".told." + p.name)
			o := jms.SendOptions{Dest: dest, Body: "m{}", CorrelationID: "corr", Type: "type",
				ReplyTo: "queue://reply", Priority: 7, Props: map[string]string{"n": "int:7"}}
			p.conn.Put(o)
			p.pause(soon / 4)
			p.entire("persistent", c.Received())
			o.NonPersistent = true
			p.conn.Put(o)
			p.entire("not persistent", c.Wait(1, patience))
			in := p.pull(p.session(jms.Auto), dest)
			p.conn.Put(o)
			p.pause(soon / 4)
			p.entire("with a consumer", c.Received())
			must(p.t, in.Close())
		}
	}},
	{"policies tell of a queue's slow consumers", func(p *program) {
		dest := p.under("told", "")
		c := p.on("SlowConsumer.Queue.told." + p.name)
		in := p.session(jms.Client).Consumer(jms.ConsumerOptions{
			Dest: dest + "?consumer.prefetchSize=2", Pull: true})
		p.conn.Put(jms.SendOptions{Dest: dest, N: 2, Body: "m{}"})
		p.pause(soon / 4)
		p.about("full", c, 0, "")
		p.conn.Put(jms.SendOptions{Dest: dest, N: 4, Body: "n{}"})
		p.pause(soon / 4)
		p.about("more waits", c, 1, "")
		p.got("taken", in.Receive(2, patience))
		must(p.t, in.Ack())
		p.pause(soon / 4)
		p.say("full again: %t", c.Count() > 1)
	}},
	{"policies tell of a topic's slow consumers", func(p *program) {
		dest := "topic://told." + p.name
		c := p.on("SlowConsumer.Topic.told." + p.name)
		in := p.session(jms.Client).Consumer(jms.ConsumerOptions{
			Dest: dest + "?consumer.prefetchSize=2", Pull: true})
		p.conn.Put(jms.SendOptions{Dest: dest, N: 5, Body: "m{}"})
		p.pause(soon / 4)
		p.about("three wait", c, 0, "")
		p.conn.Put(jms.SendOptions{Dest: dest, N: 1, Body: "n{}"})
		p.about("one more", c, 1, "")
		p.conn.Put(jms.SendOptions{Dest: dest, N: 1, Body: "o{}"})
		p.pause(soon / 4)
		p.about("and another", c, 1, "")
		p.got("taken", in.Receive(2, patience))
	}},
	{"policies tell of fast producers", func(p *program) {
		dest := p.under("told", "")
		on := p.toldOn("Queue.told."+p.name, "FastProducer", "FULL")
		done := begins(p.with("jms.alwaysSyncSend=true").Session(jms.Auto), big(dest, 8, false))
		p.stalls(done)
		p.about("fast", on[0], 1, "")
		full := on[1].Wait(1, patience)
		for _, m := range full {
			p.say("%s %s %q type=%s count=%t", m.Dest, m.Data, m.Prop("usageName"), m.Type,
				m.Prop("usageCount") > "4")
		}
		c := p.pull(p.session(jms.Auto), dest)
		p.numbers("taken", c.Receive(8, patience))
		p.failed("sent", <-done)
	}},
	{"policies tell of what a topic's consumer does not get", func(p *program) {
		dest := "topic://told." + p.name
		on := p.toldOn("Topic.told."+p.name, "MessageDiscarded", "Expired")
		in := p.session(jms.Client).Consumer(jms.ConsumerOptions{
			Dest: dest + "?consumer.prefetchSize=1", Pull: true})
		p.conn.Put(jms.SendOptions{Dest: dest, Body: "m"})
		p.conn.Put(jms.SendOptions{Dest: dest, N: 2, Body: "late{}", TTL: 50 * time.Millisecond})
		p.pause(soon / 4)
		p.got("taken", in.Receive(1, patience))
		must(p.t, in.Ack())
		p.pause(soon / 4)
		p.about("discarded", on[0], 2, "")
		p.say("expired: %d", len(p.calm(on[1])))
	}},
	{"policies tell of what a topic's consumer has no room for", func(p *program) {
		dest := "topic://few." + p.name
		c := p.on("MessageDiscarded.Topic.few." + p.name)
		in := p.session(jms.Client).Consumer(jms.ConsumerOptions{
			Dest: dest + "?consumer.prefetchSize=1", Pull: true})
		p.conn.Put(jms.SendOptions{Dest: dest, N: 4, Body: "m{}"})
		p.about("discarded", c, 2, "")
		p.got("taken", in.Receive(2, patience))
	}},
	{"policies tell of temporary destinations", func(p *program) {
		for _, topic := range []bool{false, true} {
			temp, err := p.session(jms.Auto).Temporary(topic)
			must(p.t, err)
			kind, name, _ := strings.Cut(temp, "://")
			family := map[string]string{"temp-queue": "TempQueue.", "temp-topic": "TempTopic."}[kind]
			on := p.toldOn(family+name, "MessageDelivered", "MessageConsumed")
			other := p.on("NoConsumer." + strings.TrimPrefix(family, "Temp") + name)
			p.conn.Put(jms.SendOptions{Dest: temp, Body: "m", NonPersistent: true})
			p.about("delivered", on[0], 1, "")
			p.say("nobody: %d", len(p.calm(other)))
			if !topic {
				p.got("taken", p.conn.Consumer(temp).Wait(1, patience))
				p.about("consumed", on[1], 1, "")
			}
		}
	}},
}

// TestPoliciesTellAsThoseOfActiveMQ compares with transcripts, as
// TestAJMSProgramSeesWhatItSeesOfActiveMQ does.
func TestPoliciesTellAsThoseOfActiveMQ(t *testing.T) {
	mostKinds(t, func(t *testing.T, k broker.Kind) {
		b := broker.Start(t, k, broker.Options{Persistent: true, Policy: toldPolicies})
		playAll(t, b, play, toldScenarios)
	})
}
