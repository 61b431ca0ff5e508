package interop

import (
	"strings"
	"time"

	"hopwire/test/interop/jms"
)

// pendingPolicies are of topics whose slow consumers lose messages.
const pendingPolicies = `
<policyEntry topic="three.>"><pendingMessageLimitStrategy>
  <constantPendingMessageLimitStrategy limit="3"/></pendingMessageLimitStrategy>
  <deadLetterStrategy><individualDeadLetterStrategy/></deadLetterStrategy></policyEntry>
<policyEntry topic="nothing.>"><pendingMessageLimitStrategy>
  <constantPendingMessageLimitStrategy limit="0"/></pendingMessageLimitStrategy>
  <deadLetterStrategy><individualDeadLetterStrategy/></deadLetterStrategy></policyEntry>
<policyEntry topic="rate.>"><pendingMessageLimitStrategy>
  <prefetchRatePendingMessageLimitStrategy multiplier="2.5"/></pendingMessageLimitStrategy>
  </policyEntry>
<policyEntry topic="important.>"><pendingMessageLimitStrategy>
  <constantPendingMessageLimitStrategy limit="3"/></pendingMessageLimitStrategy>
  <messageEvictionStrategy><oldestMessageWithLowestPriorityEvictionStrategy/>
  </messageEvictionStrategy></policyEntry>
<policyEntry topic="newest.>"><pendingMessageLimitStrategy>
  <constantPendingMessageLimitStrategy limit="5"/></pendingMessageLimitStrategy>
  <messageEvictionStrategy><uniquePropertyMessageEvictionStrategy propertyName="k"/>
  </messageEvictionStrategy></policyEntry>
`

// slow gives a consumer with a window of two that takes nothing yet, and a session that sends.
func (p *program) slow(dest string) (c *jms.Consumer, s *jms.Session) {
	c = p.pull(p.session(jms.Auto), dest+"?consumer.prefetchSize=2")
	return c, p.with().Session(jms.Auto)
}

// rest says the bodies of all that a consumer gets now.
func (p *program) rest(label string, c *jms.Consumer) {
	p.bodies(label, c.Receive(50, 700*time.Millisecond))
}

// buried says what is in the dead letter queue of a topic.
func (p *program) buried(dest string) {
	p.t.Helper()
	name := strings.TrimPrefix(dest, "topic://")
	got := p.pull(p.session(jms.Auto), "queue://ActiveMQ.DLQ.Topic."+name).Receive(50,
		700*time.Millisecond)
	for _, m := range got {
		cause, _, _ := strings.Cut(m.Prop("dlqDeliveryFailureCause"), "ID:")
		p.say("buried: %s %q", m.Body, cause)
	}
	if len(got) == 0 {
		p.say("buried: none")
	}
}

// pendingScenarios are about consumers of topics that are slow.
var pendingScenarios = []scenario{
	{"a slow consumer keeps the newest", func(p *program) {
		dest := p.kept("three", "")
		c, s := p.slow(dest)
		quick := p.with().Session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: dest, Pull: true})
		s.Send(jms.SendOptions{Dest: dest, N: 12, Body: "m{}"})
		p.rest("slow", c)
		p.bodies("quick", quick.Receive(12, patience))
		p.buried(dest)
	}},
	{"what a slow consumer loses is not dead when it is not persistent", func(p *program) {
		dest := p.kept("three", "")
		c, s := p.slow(dest)
		s.Send(jms.SendOptions{Dest: dest, N: 12, Body: "m{}", NonPersistent: true})
		s.Send(jms.SendOptions{Dest: dest, Body: "end"})
		p.rest("slow", c)
		p.buried(dest)
	}},
	{"nothing waits for a slow consumer", func(p *program) {
		dest := p.kept("nothing", "")
		c, s := p.slow(dest)
		s.Send(jms.SendOptions{Dest: dest, N: 6, Body: "m{}"})
		p.rest("slow", c)
		s.Send(jms.SendOptions{Dest: dest, N: 1, Body: "later"})
		p.rest("then", c)
		p.buried(dest)
	}},
	{"as much waits as the window says", func(p *program) {
		dest := p.kept("rate", "")
		c, s := p.slow(dest)
		s.Send(jms.SendOptions{Dest: dest, N: 12, Body: "m{}"})
		p.rest("slow", c)
	}},
	{"a consumer has less wait for itself", func(p *program) {
		dest := p.kept("rate", "")
		c := p.pull(p.session(jms.Auto),
			dest+"?consumer.prefetchSize=2&consumer.maximumPendingMessageLimit=1")
		p.with().Session(jms.Auto).Send(jms.SendOptions{Dest: dest, N: 12, Body: "m{}"})
		p.rest("slow", c)
	}},
	{"a limit of its own without a strategy is none", func(p *program) {
		dest := p.topic("")
		c := p.pull(p.session(jms.Auto),
			dest+"?consumer.prefetchSize=2&consumer.maximumPendingMessageLimit=1")
		p.with().Session(jms.Auto).Send(jms.SendOptions{Dest: dest, N: 12, Body: "m{}"})
		p.rest("slow", c)
	}},
	{"the least important go first", func(p *program) {
		dest := p.kept("important", "")
		c, s := p.slow(dest)
		for i, priority := range []int{4, 4, 7, 2, 9, 1, 5, 2, 7} {
			s.Send(jms.SendOptions{Dest: dest, From: i, Body: "m{}", Priority: priority})
		}
		p.rest("slow", c)
	}},
	{"the newest of each value stays", func(p *program) {
		dest := p.kept("newest", "")
		c, s := p.slow(dest)
		for i, k := range strings.Split("x x a b a c a d b - e f g h", " ") {
			o := jms.SendOptions{Dest: dest, From: i, Body: "m{}" + k}
			if k != "-" {
				o.Props = map[string]string{"k": "string:" + k}
			}
			s.Send(o)
			p.pause(2 * time.Millisecond) // their timestamps differ
		}
		p.rest("slow", c)
	}},
	{"expired ones go before those that are not", func(p *program) {
		dest := p.kept("three", "")
		c, s := p.slow(dest)
		for i := range 2 {
			s.Send(jms.SendOptions{Dest: dest, From: i, Body: "m{}"})
		}
		s.Send(jms.SendOptions{Dest: dest, Body: "lasts"})
		s.Send(jms.SendOptions{Dest: dest, Body: "over", TTL: 100 * time.Millisecond})
		s.Send(jms.SendOptions{Dest: dest, Body: "over too", TTL: 100 * time.Millisecond})
		p.pause(300 * time.Millisecond)
		s.Send(jms.SendOptions{Dest: dest, N: 2, Body: "new{}"})
		p.rest("slow", c)
	}},
	{"a durable subscription keeps all", func(p *program) {
		dest := p.kept("three", "")
		conn := p.as("r")
		c := conn.Session(jms.Auto).Consumer(p.durable(dest + "?consumer.prefetchSize=2"))
		p.with().Session(jms.Auto).Send(jms.SendOptions{Dest: dest, N: 12, Body: "m{}"})
		p.bodies("durable", p.calm(c))
	}},
}
