package interop

import (
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// unusedPolicies remove what nobody uses for a second, of names that begin with "brief".
const unusedPolicies = `
<policyEntry queue="brief.>" gcInactiveDestinations="true" inactiveTimeoutBeforeGC="1000"/>
<policyEntry topic="brief.>" gcInactiveDestinations="true" inactiveTimoutBeforeGC="1000"/>
`

// unused is long enough for such a destination to go, wherever the sweeps are.
const unused = 4 * time.Second

// leaves sends a message over a connection of its own, whose producers end with it.
func (p *program) leaves(dest string) {
	p.t.Helper()
	conn := p.d.Connect(p.b.URL())
	conn.Send(dest, 1, "m")
	must(p.t, conn.Close())
}

// unusedScenarios are about destinations that nobody uses.
var unusedScenarios = []scenario{
	{"an unused queue goes", func(p *program) {
		dest, c := p.under("brief", ""), p.on("Queue")
		p.leaves(dest)
		p.about("made", c, 1, p.name)
		p.pause(unused)
		p.about("with a message", c, 1, p.name)
		p.got("taken", p.pull(p.session(jms.Auto), dest).Receive(1, patience))
		p.pause(unused)
		p.about("with a consumer", c, 1, p.name)
	}},
	{"a queue comes and goes", func(p *program) {
		dest, c := p.under("brief", ""), p.on("Queue")
		for range 2 {
			p.leaves(dest)
			in := p.pull(p.session(jms.Auto), dest)
			p.got("taken", in.Receive(1, patience))
			must(p.t, in.Close())
			p.pause(unused)
		}
		p.about("made and gone, twice", c, 4, p.name)
	}},
	{"an unused topic goes", func(p *program) {
		dest, c := "topic://brief."+p.name, p.on("Topic")
		p.leaves(dest)
		p.about("made and gone", c, 2, p.name)
		in := p.conn.Consumer(dest)
		p.pause(unused)
		p.about("with a consumer", c, 3, p.name)
		must(p.t, in.Close())
		p.about("without", c, 4, p.name)
	}},
	{"a producer keeps its queue", func(p *program) {
		c, conn := p.on("Queue"), p.d.Connect(p.b.URL())
		conn.Send(p.under("brief", ""), 1, "m")
		in := p.pull(p.session(jms.Auto), p.under("brief", ""))
		p.got("taken", in.Receive(1, patience))
		must(p.t, in.Close())
		p.pause(unused)
		p.about("with a producer", c, 1, p.name)
		must(p.t, conn.Close())
		p.about("without", c, 2, p.name)
	}},
	{"a durable subscription keeps its topic", func(p *program) {
		dest, c := "topic://brief."+p.name, p.on("Topic")
		conn := p.as("c")
		s := conn.Session(jms.Auto)
		must(p.t, s.Consumer(p.durable(dest)).Close())
		p.pause(unused)
		p.about("away", c, 1, p.name)
		p.leaves(dest)
		p.got("kept", s.Consumer(p.durable(dest)).Wait(1, patience))
	}},
	{"a pattern keeps its queues", func(p *program) {
		c := p.on("Queue")
		in := p.conn.Consumer("queue://brief." + p.name + ".>")
		p.leaves(p.under("brief", ".a"))
		p.got("taken", in.Wait(1, patience))
		p.pause(unused)
		p.about("with a consumer", c, 1, p.name+".a")
		must(p.t, in.Close())
		p.about("without", c, 2, p.name+".a")
	}},
	{"an unused queue that was declared", func(p *program) {
		p.pause(unused)
		p.say("it is there: %t", p.b.Queue("brief.declared").Exists)
		p.leaves("queue://brief.declared")
		p.got("used", p.conn.Browse("queue://brief.declared", ""))
		p.got("taken", p.conn.Consumer("queue://brief.declared").Wait(1, patience))
	}},
}

// TestWhatNobodyUsesGoesAsWithActiveMQ compares with transcripts, as
// TestAJMSProgramSeesWhatItSeesOfActiveMQ does.
func TestWhatNobodyUsesGoesAsWithActiveMQ(t *testing.T) {
	mostKinds(t, func(t *testing.T, k broker.Kind) {
		b := broker.Start(t, k, broker.Options{Persistent: true, Policy: unusedPolicies,
			Attributes: `schedulePeriodForDestinationPurge="500"`,
			Elements:   `<destinations><queue physicalName="brief.declared"/></destinations>`})
		playAll(t, b, play, unusedScenarios)
	})
}

// A queue that bridges alone consume may go; what comes later is forwarded as before. ActiveMQ 5.17
// tries it at each sweep and fails, as the bridge's subscription is one that is active.
func TestAQueueThatABridgeAloneConsumesMayGo(t *testing.T) {
	mostPairs(t, func(t *testing.T, p pair) {
		b := broker.Start(t, p.b, broker.Options{Name: "b"})
		a := broker.Start(t, p.a, broker.Options{Name: "a", Policy: `<policyEntry queue=">"
  gcInactiveDestinations="true" inactiveTimeoutBeforeGC="1000" gcWithNetworkConsumers="true"/>`,
			Attributes: `schedulePeriodForDestinationPurge="500"`,
			Connectors: []broker.Connector{{Name: "ab", URI: broker.Static(b) + quick}}})
		d := jms.Start(t, jms.V5)
		c := d.Connect(b.URL()).Consumer("queue://Q")
		conn := d.Connect(a.URL())
		conn.Send("queue://Q", 3, "m{}")
		c.Wait(3, patience)
		must(t, conn.Close())
		if p.a == broker.Hopwire {
			a.WaitQueue("Q", patience, "its end", func(s broker.Stats) bool { return !s.Exists })
		}
		d.Connect(a.URL()).Send("queue://Q", 3, "n{}")
		c.Wait(6, patience)
	})
}
