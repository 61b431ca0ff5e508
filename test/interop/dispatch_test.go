package interop

import (
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// sentPolicies tell of what goes to consumers of names that begin with "sent" or "whole".
const sentPolicies = `
<policyEntry queue="sent.>" advisoryForDispatched="true"/>
<policyEntry topic="sent.>" advisoryForDispatched="true"/>
<policyEntry queue="whole.>" advisoryForDispatched="true" includeBodyForAdvisory="true"/>
<policyEntry tempQueue="true" advisoryForDispatched="true"/>
<policyEntry tempTopic="true" advisoryForDispatched="true"/>
`

// sentScenarios are about advisories of what goes to consumers, which ActiveMQ 5.17 does not have.
var sentScenarios = []scenario{
	{"policies tell of what goes to a queue's consumers", func(p *program) {
		for _, under := range []string{"sent", "whole"} {
			dest, on := p.under(under, ""), p.on("MessageDispatched.Queue."+under+"."+p.name)
			p.conn.Put(jms.SendOptions{Dest: dest, N: 2, Body: "m{}", CorrelationID: "corr",
				ReplyTo: "queue://reply", Props: map[string]string{"n": "int:{}"}})
			p.about("waiting", on, 0, "")
			p.conn.Browse(dest, "")
			p.about("browsed", on, 0, "")
			in := p.pull(p.session(jms.Client), dest)
			p.about("dispatched", on, 2, "")
			p.got("taken", in.Receive(1, patience))
			must(p.t, in.Close())
			p.got("again", p.pull(p.session(jms.Auto), dest).Receive(2, patience))
			p.about("dispatched again", on, 4, "")
		}
	}},
	{"policies tell of what goes to who asks for it", func(p *program) {
		dest, on := p.under("sent", ""), p.on("MessageDispatched.Queue.sent."+p.name)
		p.send(dest, 3)
		in := p.pull(p.session(jms.Auto), dest+"?consumer.prefetchSize=0")
		p.about("not asked", on, 0, "")
		p.got("taken", in.Receive(2, patience))
		p.about("asked", on, 2, "")
	}},
	{"policies tell of what a client rolls back", func(p *program) {
		dest, on := p.under("sent", ""), p.on("MessageDispatched.Queue.sent."+p.name)
		p.send(dest, 1)
		s := p.session(jms.Transacted)
		in := p.pull(s, dest)
		p.got("taken", in.Receive(1, patience))
		p.failed("rollback", s.Rollback())
		p.got("again", in.Receive(1, patience))
		p.failed("commit", s.Commit())
		p.about("dispatched", on, 1, "")
		p.pause(soon / 4)
		p.say("in all: %d", on.Count())
	}},
	{"policies tell of what goes to a topic's consumers", func(p *program) {
		dest, on := "topic://sent."+p.name, p.on("MessageDispatched.Topic.sent."+p.name)
		p.send(dest, 1)
		p.about("nobody", on, 0, "")
		s := p.as("c").Session(jms.Auto)
		one, two := p.conn.Consumer(dest), p.conn.Consumer("topic://sent.>")
		durable := s.Consumer(p.durable(dest))
		p.send(dest, 1)
		for _, in := range []*jms.Consumer{one, two, durable} {
			p.say("got: %d", len(in.Wait(1, patience)))
		}
		p.about("dispatched", on, 3, "")
	}},
	{"policies tell of what goes to consumers of temporary destinations", func(p *program) {
		for _, topic := range []bool{false, true} {
			s := p.session(jms.Auto)
			temp, err := s.Temporary(topic)
			must(p.t, err)
			kind, name, _ := strings.Cut(temp, "://")
			on := p.on("MessageDispatched." + map[string]string{"temp-queue": "TempQueue.",
				"temp-topic": "TempTopic."}[kind] + name)
			in := p.pull(s, temp)
			p.conn.Put(jms.SendOptions{Dest: temp, Body: "m", NonPersistent: true})
			p.got("taken", in.Receive(1, patience))
			p.about("dispatched", on, 1, "")
		}
	}},
}

// TestPoliciesTellOfDispatchesAsThoseOfActiveMQ6 compares with transcripts that -update writes from
// a run with ActiveMQ 6.
func TestPoliciesTellOfDispatchesAsThoseOfActiveMQ6(t *testing.T) {
	for _, k := range []broker.Kind{broker.ActiveMQ6, broker.Hopwire} {
		t.Run(k.String(), func(t *testing.T) {
			b := broker.Start(t, k, broker.Options{Persistent: true, Policy: sentPolicies, Compat: 6})
			playAll(t, b, func(p *program, s scenario) {
				p.model = broker.ActiveMQ6
				play(p, s)
			}, sentScenarios)
		})
	}
}

// A bridge is a consumer of what it forwards: a queue's messages and a topic's.
func TestPoliciesTellOfWhatIsForwarded(t *testing.T) {
	for _, k := range []broker.Kind{broker.ActiveMQ6, broker.Hopwire} {
		t.Run(k.String(), func(t *testing.T) {
			p := pair{k, broker.Hopwire}
			a, b := linked(t, p, oneWay, broker.Options{Policy: sentPolicies}, "")
			d := jms.Start(t, jms.V6)
			there, here := d.Connect(b.URL()), d.Connect(a.URL())
			demand := here.Consumer("topic://ActiveMQ.Advisory.Consumer.>")
			for _, dest := range []string{"queue://sent.Q", "topic://sent.T"} {
				kind, name, _ := strings.Cut(dest, "://")
				on := here.Consumer("topic://ActiveMQ.Advisory.MessageDispatched." +
					strings.ToUpper(kind[:1]) + kind[1:] + "." + name)
				before := demand.Count()
				c := there.Consumer(dest)
				demand.Wait(before+1, patience)
				here.Send(dest, 3, "m{}")
				c.Wait(3, patience)
				for _, m := range on.Wait(3, patience) {
					if m.Prop("orignalDestination") != "string:"+dest && m.Prop("orignalDestination") != dest ||
						m.Prop("consumerId") == "" {
						t.Errorf("of %s is told %v", dest, m.Props)
					}
				}
				on.Silent(100 * time.Millisecond)
			}
		})
	}
}
