package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
	"hopwire/test/wait"
)

// slowPolicies abort consumers of names that begin with how.
const slowPolicies = `
<policyEntry queue="slow.>"><slowConsumerStrategy>
  <abortSlowConsumerStrategy maxSlowDuration="1000" checkPeriod="500"/>
  </slowConsumerStrategy></policyEntry>
<policyEntry topic="slow.>"><slowConsumerStrategy>
  <abortSlowConsumerStrategy maxSlowDuration="1000" checkPeriod="500"/>
  </slowConsumerStrategy></policyEntry>
<policyEntry topic="often.>"><slowConsumerStrategy>
  <abortSlowConsumerStrategy maxSlowCount="1" maxSlowDuration="-1" checkPeriod="300"/>
  </slowConsumerStrategy></policyEntry>
<policyEntry queue="ack.>"><slowConsumerStrategy>
  <abortSlowAckConsumerStrategy maxTimeSinceLastAck="1000" maxSlowDuration="1000"
    checkPeriod="500"/></slowConsumerStrategy></policyEntry>
<policyEntry topic="ack.>"><slowConsumerStrategy>
  <abortSlowAckConsumerStrategy maxTimeSinceLastAck="1000" maxSlowDuration="1000"
    checkPeriod="500"/></slowConsumerStrategy></policyEntry>
<policyEntry queue="cut.>"><slowConsumerStrategy>
  <abortSlowAckConsumerStrategy maxTimeSinceLastAck="1000" maxSlowDuration="1000"
    checkPeriod="500" abortConnection="true"/></slowConsumerStrategy></policyEntry>
<policyEntry queue="idle.>"><slowConsumerStrategy>
  <abortSlowAckConsumerStrategy maxTimeSinceLastAck="1000" maxSlowDuration="1000"
    checkPeriod="500" ignoreIdleConsumers="false"/></slowConsumerStrategy></policyEntry>
`

// aborted is long enough for a strategy to find a slow consumer and to end it.
const aborted = 5 * time.Second

// over says what a consumer has to say when the strategy had its time.
func (p *program) over(label string, c *jms.Consumer) {
	p.t.Helper()
	_, err := c.TryReceive(1, 300*time.Millisecond)
	p.failed(label, err)
}

// slowScenarios are about consumers that are aborted.
var slowScenarios = []scenario{
	{"a consumer that acknowledges nothing is aborted", func(p *program) {
		dest := p.under("ack", "")
		c := p.on("Consumer.Queue.ack." + p.name)
		in := p.pull(p.session(jms.Client), dest+"?consumer.prefetchSize=2")
		p.send(dest, 3)
		p.got("taken", in.Receive(2, patience))
		p.about("it came and went", c, 2, "")
		p.over("it receives", in)
		p.got("another", p.conn.Consumer(dest).Wait(3, patience))
	}},
	{"a consumer that does not look is aborted", func(p *program) {
		dest := p.under("ack", "")
		in := p.pull(p.session(jms.Auto), dest)
		p.send(dest, 3)
		p.pause(aborted)
		p.over("it receives", in)
		p.got("another", p.pull(p.session(jms.Auto), dest).Receive(3, patience))
	}},
	{"a transaction of a consumer that is aborted", func(p *program) {
		dest := p.under("ack", "")
		s := p.session(jms.Transacted)
		in := p.pull(s, dest)
		p.send(dest, 3)
		p.got("taken", in.Receive(2, patience))
		p.pause(aborted)
		p.failed("it commits", s.Commit())
		p.got("another", p.pull(p.session(jms.Auto), dest).Receive(3, time.Second))
	}},
	{"a consumer that acknowledges stays", func(p *program) {
		dest := p.under("ack", "")
		in := p.pull(p.session(jms.Auto), dest)
		for range 10 {
			p.send(dest, 1)
			in.Receive(1, patience)
			p.pause(500 * time.Millisecond)
		}
		p.over("it receives", in)
		p.say("taken: %d", in.Count())
	}},
	{"a consumer without messages stays", func(p *program) {
		in := p.pull(p.session(jms.Auto), p.under("ack", ""))
		p.pause(aborted)
		p.over("it receives", in)
	}},
	{"a consumer without messages does not stay everywhere", func(p *program) {
		in := p.pull(p.session(jms.Auto), p.under("idle", ""))
		p.pause(aborted)
		p.over("it receives", in)
	}},
	{"a topic's consumer that acknowledges nothing is aborted", func(p *program) {
		dest := "topic://ack." + p.name
		in := p.pull(p.session(jms.Client), dest)
		p.send(dest, 3)
		p.pause(aborted)
		p.over("it receives", in)
		p.say("consumers: %d", p.b.Topic("ack."+p.name).Consumers)
	}},
	{"a slow consumer's connection is cut", func(p *program) {
		dest := p.under("cut", "")
		conn := p.d.Connect(p.b.URL())
		in := p.pull(conn.Session(jms.Client), dest)
		p.send(dest, 3)
		p.got("taken", in.Receive(1, patience))
		p.say("cut: %t", conn.WaitFault(patience) != nil)
		p.got("another", p.conn.Consumer(dest).Wait(3, patience))
	}},
	{"a slow consumer of a queue is aborted", func(p *program) {
		dest := p.under("slow", "")
		in := p.pull(p.session(jms.Client), dest+"?consumer.prefetchSize=2")
		p.send(dest, 4)
		p.pause(aborted)
		p.over("it receives", in)
		p.got("another", p.pull(p.session(jms.Auto), dest).Receive(4, time.Second))
	}},
	{"a slow consumer of a topic is aborted", func(p *program) {
		dest := "topic://slow." + p.name
		in := p.pull(p.session(jms.Client), dest+"?consumer.prefetchSize=2")
		other := p.pull(p.session(jms.Auto), dest)
		p.send(dest, 8)
		p.pause(aborted)
		p.over("it receives", in)
		p.say("consumers: %d", p.b.Topic("slow."+p.name).Consumers)
		p.got("another", other.Receive(8, patience))
	}},
	{"a consumer that is slow too often is aborted", func(p *program) {
		dest := "topic://often." + p.name
		in := p.pull(p.session(jms.Client), dest+"?consumer.prefetchSize=2")
		p.send(dest, 8)
		p.pause(aborted)
		p.over("it receives", in)
	}},
}

// TestSlowConsumersEndAsWithActiveMQ compares with transcripts, as
// TestAJMSProgramSeesWhatItSeesOfActiveMQ does.
func TestSlowConsumersEndAsWithActiveMQ(t *testing.T) {
	mostKinds(t, func(t *testing.T, k broker.Kind) {
		b := broker.Start(t, k, broker.Options{Persistent: true, Policy: slowPolicies})
		playAll(t, b, play, slowScenarios)
	})
}

// A peer may take the consumer by which a bridge hears of demand for a slow one.
func TestABridgeWhoseAdvisoriesAreAbortedHearsOn(t *testing.T) {
	b := broker.Start(t, broker.ActiveMQ, broker.Options{Name: "b", Policy: `
<policyEntry topic=">"><slowConsumerStrategy><abortSlowAckConsumerStrategy
  maxTimeSinceLastAck="500" maxSlowDuration="500" checkPeriod="500" ignoreIdleConsumers="false"/>
  </slowConsumerStrategy></policyEntry>`})
	a := broker.Start(t, broker.Hopwire, broker.Options{Name: "a", Connectors: []broker.Connector{
		{Name: "ab", URI: broker.Static(b)}}})
	d := jms.Start(t, jms.V5)
	there := d.Connect(b.URL() + "?jms.watchTopicAdvisories=false")
	there.Consumer("queue://first") // an advisory topic is there when something was told on it
	aborts := func() int { return strings.Count(a.Log(1<<20), "SLOW_CONSUMER") }
	wait.For(t, patience, "an abort in the log", func() (string, bool) {
		return fmt.Sprint(aborts()), aborts() > 0
	})
	over := time.Now().Add(3 * time.Second) // more of them
	wait.For(t, patience, "time to go by", func() (string, bool) {
		return "", time.Now().After(over)
	})
	c := there.Consumer("queue://Q")
	a.WaitConsumers("Q", 1, patience)
	d.Connect(a.URL()).Send("queue://Q", 30, "m{}")
	c.Wait(30, patience)
}
