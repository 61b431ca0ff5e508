package interop

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
	"hopwire/test/wait"
)

// recoveryPolicies are of topics whose names begin with what is kept of them.
const recoveryPolicies = `
<policyEntry topic="none.>" alwaysRetroactive="true"/>
<policyEntry topic="lastImage.>"><subscriptionRecoveryPolicy>
  <lastImageSubscriptionRecoveryPolicy/></subscriptionRecoveryPolicy></policyEntry>
<policyEntry topic="count.>"><subscriptionRecoveryPolicy>
  <fixedCountSubscriptionRecoveryPolicy maximumSize="2"/>
  </subscriptionRecoveryPolicy></policyEntry>
<policyEntry topic="size.>"><subscriptionRecoveryPolicy>
  <fixedSizedSubscriptionRecoveryPolicy maximumSize="6500"/>
  </subscriptionRecoveryPolicy></policyEntry>
<policyEntry topic="sizeOwn.>"><subscriptionRecoveryPolicy>
  <fixedSizedSubscriptionRecoveryPolicy maximumSize="6500" useSharedBuffer="false"/>
  </subscriptionRecoveryPolicy></policyEntry>
<policyEntry topic="timed.>"><subscriptionRecoveryPolicy>
  <timedSubscriptionRecoveryPolicy recoverDuration="2000"/>
  </subscriptionRecoveryPolicy></policyEntry>
<policyEntry topic="retained.>"><subscriptionRecoveryPolicy>
  <retainedMessageSubscriptionRecoveryPolicy><wrapped>
  <fixedCountSubscriptionRecoveryPolicy maximumSize="3"/></wrapped>
  </retainedMessageSubscriptionRecoveryPolicy></subscriptionRecoveryPolicy></policyEntry>
<policyEntry topic="always.>" alwaysRetroactive="true"><subscriptionRecoveryPolicy>
  <fixedCountSubscriptionRecoveryPolicy maximumSize="3"/></subscriptionRecoveryPolicy></policyEntry>
`

const retroactive = "?consumer.retroactive=true"

// kept is a topic of a recovery policy.
func (p *program) kept(policy, suffix string) string {
	return "topic://" + policy + "." + p.name + suffix
}

// heard says what a consumer got until it got nothing for a while, and what of it was retained.
func (p *program) heard(label string, c *jms.Consumer) {
	p.t.Helper()
	messages := p.calm(c)
	p.say("%s: %d", label, len(messages))
	for _, m := range messages {
		line := "  " + strings.TrimRight(m.Body, "x")
		if m.Kind != "text" {
			line += " kind=" + m.Kind
		}
		for _, name := range []string{"ActiveMQ.Retain", "ActiveMQ.Retained"} {
			if v := m.Props[name]; v != "" {
				line += " " + name + "=" + v
			}
		}
		if m.Redelivered {
			line += " redelivered"
		}
		p.say("%s", line)
	}
}

// retain sends a message that is marked as retained.
func (p *program) retain(dest, body string) {
	o := jms.SendOptions{Dest: dest, Body: body,
		Props: map[string]string{"ActiveMQ.Retain": "bool:true"}}
	if body == "" {
		o.Kind = "bytes"
	}
	p.session(jms.Auto).Send(o)
}

// recovers plays what all policies have in common on a topic.
func (p *program) recovers(policy string) {
	p.t.Helper()
	dest := p.kept(policy, "")
	before := p.conn.Consumer(dest)
	p.send(dest, 5)
	p.heard("there before", before)
	p.heard("ordinary", p.conn.Consumer(dest))
	c := p.conn.Consumer(dest + retroactive)
	p.heard("retroactive", c)
	p.conn.Send(dest, 1, "new")
	p.heard("then", c)
	p.heard("another", p.conn.Consumer(dest+retroactive))
}

// retroactiveScenarios are about what topics keep for consumers that come later.
var retroactiveScenarios = []scenario{
	{"a topic without a recovery policy keeps nothing", func(p *program) {
		p.recovers("plain")
		p.recovers("none")
	}},
	{"a topic keeps its last image", func(p *program) { p.recovers("lastImage") }},
	{"a topic keeps a fixed count", func(p *program) { p.recovers("count") }},
	{"a topic keeps a fixed size", func(p *program) {
		for _, policy := range []string{"size", "sizeOwn"} {
			dest := p.kept(policy, "")
			p.conn.Send(dest, 5, "m{}"+strings.Repeat("x", 1000))
			p.heard("thousands", p.conn.Consumer(dest+retroactive))
			p.conn.Send(dest, 1, "big"+strings.Repeat("x", 4000))
			p.heard("a big one", p.conn.Consumer(dest+retroactive))
			p.conn.Send(dest, 1, "huge"+strings.Repeat("x", 8000))
			p.heard("a huge one", p.conn.Consumer(dest+retroactive))
			p.conn.Send(dest, 2, "small{}")
			p.heard("small ones", p.conn.Consumer(dest+retroactive))
		}
	}},
	{"a topic keeps some time", func(p *program) {
		dest := p.kept("timed", "")
		p.send(dest, 5)
		p.heard("at once", p.conn.Consumer(dest+retroactive))
		p.conn.Consumer(dest).Silent(5 * time.Second)
		p.conn.Send(dest, 1, "new")
		p.heard("later", p.conn.Consumer(dest+retroactive))
	}},
	{"a topic keeps what is retained", func(p *program) {
		for _, policy := range []string{"retained", "count", "plain"} {
			dest := p.kept(policy, "")
			before := p.conn.Consumer(dest)
			p.retain(dest, "first")
			p.retain(dest, "second")
			p.send(dest, 2)
			p.heard("there before", before)
			p.heard(policy, p.conn.Consumer(dest+retroactive))
			p.heard(policy+" ordinary", p.conn.Consumer(dest))
			p.session(jms.Auto).Send(jms.SendOptions{Dest: dest, Body: "text",
				Props: map[string]string{"ActiveMQ.Retain": "string:TRUE"}})
			p.session(jms.Auto).Send(jms.SendOptions{Dest: dest, Body: "not",
				Props: map[string]string{"ActiveMQ.Retain": "string:yes"}})
			p.heard("as text", p.conn.Consumer(dest+retroactive))
			p.retain(dest, "")
			p.heard("cleared", p.conn.Consumer(dest+retroactive))
		}
	}},
	{"every subscription of a topic may be retroactive", func(p *program) { p.recovers("always") }},
	{"topics do not share what they keep", func(p *program) {
		for i, suffix := range []string{".a", ".b", ".a.c", ".a", ".b", ".a"} {
			p.conn.Send(p.kept("count", suffix), 1, string(rune('0'+i))+suffix)
		}
		p.heard("a", p.conn.Consumer(p.kept("count", ".a")+retroactive))
		p.heard("b", p.conn.Consumer(p.kept("count", ".b")+retroactive))
		for _, d := range []string{p.kept("count", ".a.>"), p.kept("count", ".b") + ",topic://count." +
			p.name + ".a"} {
			c := p.conn.Consumer(d + retroactive)
			p.say("several: %s", strings.Join(sorted(p.calm(c)), " "))
		}
	}},
	{"what is recovered fits the selector and is not local", func(p *program) {
		dest := p.kept("always", "")
		p.session(jms.Auto).Send(jms.SendOptions{Dest: dest, N: 3, Body: "m{}",
			Props: map[string]string{"n": "int:{}"}})
		s := p.session(jms.Auto)
		p.heard("selector", s.Consumer(jms.ConsumerOptions{Dest: dest, Selector: "n = 1"}))
		p.heard("no local", s.Consumer(jms.ConsumerOptions{Dest: dest, NoLocal: true}))
		other := p.d.Connect(p.b.URL())
		p.heard("no local of others", other.Session(jms.Auto).Consumer(
			jms.ConsumerOptions{Dest: dest, NoLocal: true}))
	}},
	{"what is recovered fits the prefetch", func(p *program) {
		dest := p.kept("always", "")
		p.send(dest, 3)
		s := p.session(jms.Client)
		c := p.pull(s, dest+"?consumer.prefetchSize=1")
		p.got("one at a time", c.Receive(3, patience))
		must(p.t, c.Ack())
		c = p.pull(s, dest+"?consumer.prefetchSize=0")
		p.got("pulled", c.Receive(3, patience))
	}},
	{"what is recovered is not expired", func(p *program) {
		dest := p.kept("always", "")
		p.session(jms.Auto).Send(jms.SendOptions{Dest: dest, Body: "short", TTL: 400 * time.Millisecond})
		p.send(dest, 1)
		p.got("at once", p.conn.Consumer(dest).Wait(2, patience))
		p.conn.Consumer(p.topic(".other")).Silent(600 * time.Millisecond)
		p.heard("later", p.conn.Consumer(dest))
	}},
	{"what is recovered was committed", func(p *program) {
		dest := p.kept("count", "")
		s := p.session(jms.Transacted)
		s.Send(jms.SendOptions{Dest: dest, N: 3, Body: "m{}"})
		p.heard("open", p.conn.Consumer(dest+retroactive))
		must(p.t, s.Commit())
		p.heard("committed", p.conn.Consumer(dest+retroactive))
		s.Send(jms.SendOptions{Dest: dest, N: 3, Body: "n{}"})
		must(p.t, s.Rollback())
		p.heard("rolled back", p.conn.Consumer(dest+retroactive))
	}},
	{"a durable subscription recovers when it becomes active", func(p *program) {
		for _, policy := range []string{"count", "always", "plain"} {
			dest := p.kept(policy, "")
			p.send(dest, 4)
			for _, o := range []string{"", retroactive} {
				conn := p.as("r")
				s := conn.Session(jms.Auto)
				c := s.Consumer(p.durable(dest + o))
				p.heard(policy+o+" new", c)
				must(p.t, c.Close())
				p.heard("again", s.Consumer(p.durable(dest+o)))
				must(p.t, conn.Close())
				p.conn.Send(dest, 3, "away{}")
				conn = p.as("r")
				s = conn.Session(jms.Auto)
				c = s.Consumer(p.durable(dest + o))
				p.heard("back", c)
				p.conn.Send(dest, 1, "new")
				p.heard("and new", c)
				must(p.t, c.Close())
				must(p.t, s.Unsubscribe("sub"))
				must(p.t, conn.Close())
			}
		}
	}},
	{"a retroactive durable subscription gets what is stored for others", func(p *program) {
		for _, policy := range []string{"plain", "count"} {
			dest := p.kept(policy, "")
			conn := p.as("other")
			conn.Session(jms.Auto).Consumer(p.durable(dest))
			must(p.t, conn.Close())
			p.send(dest, 4)
			conn = p.as("r")
			s := conn.Session(jms.Auto)
			c := s.Consumer(p.durable(dest + retroactive))
			p.heard(policy, c)
			must(p.t, c.Close())
			p.heard("again", s.Consumer(p.durable(dest+retroactive)))
			must(p.t, conn.Close())
		}
	}},
	{"a durable subscription recovers what is retained", func(p *program) {
		dest := p.kept("plain", "") + retroactive
		p.retain(dest, "first")
		try := func(what string, f func()) {
			conn := p.as("r")
			c := conn.Session(jms.Auto).Consumer(p.durable(dest))
			p.say("%s: %s", what, strings.Join(sorted(p.calm(c)), " "))
			f()
			must(p.t, conn.Close())
		}
		try("new", func() {})
		p.send(dest, 2)
		try("back with messages", func() {})
		p.retain(dest, "second")
		try("retained while away", func() {})
		try("again", func() {})
	}},
	{"the last image of the master is kept", func(p *program) {
		c := p.conn.Consumer("topic://ActiveMQ.Advisory.MasterBroker")
		p.heard("exact", c)
		for _, m := range c.Received() {
			var props []string
			for name := range m.Props {
				if strings.HasPrefix(name, "origin") {
					props = append(props, name)
				}
			}
			slices.Sort(props)
			p.say("%s type=%s priority=%d persistent=%t %v", m.Dest, m.Type, m.Priority,
				m.Persistent, props)
		}
		wild := p.calm(p.conn.Consumer("topic://ActiveMQ.Advisory.*"))
		p.say("pattern: %t", slices.ContainsFunc(wild, func(m jms.Msg) bool {
			return m.Dest == "topic://ActiveMQ.Advisory.MasterBroker"
		}))
		p.heard("two", p.conn.Consumer(p.topic(",ActiveMQ.Advisory.MasterBroker")))
	}},
}

func sorted(messages []jms.Msg) []string {
	bodies := jms.Bodies(messages)
	slices.Sort(bodies)
	return bodies
}

// TestARetroactiveConsumerRecoversOverABridge has a message of a kept come to b once for each time
// that b begins to have consumers, whatever crossed before, and whether b keeps it, too.
func TestARetroactiveConsumerRecoversOverABridge(t *testing.T) {
	for _, both := range []bool{false, true} {
		name := "a keeps"
		o := broker.Options{Name: "b"}
		if both {
			name, o.Policy = "both keep", recoveryPolicies
		}
		t.Run(name, func(t *testing.T) {
			mostPairs(t, func(t *testing.T, p pair) {
				b := broker.Start(t, p.b, o)
				a := broker.Start(t, p.a, broker.Options{Name: "a", Policy: recoveryPolicies,
					Connectors: []broker.Connector{{Name: "ab", URI: broker.Static(b) + quick}}})
				d := jms.Start(t, jms.V5)
				l := bridged{t, d.Connect(a.URL()), d.Connect(b.URL())}
				l.play("count", both)
				l.play("always", both)
			})
		})
	}
}

// bridged is a broker and the clients of it and of the one behind its bridge.
type bridged struct {
	t        *testing.T
	onA, onB *jms.Conn
}

func (l bridged) play(policy string, both bool) {
	l.t.Helper()
	topic := "topic://" + policy + ".T"
	l.onA.Send(topic, 5, "m{}")
	demand := l.onA.Consumer("topic://ActiveMQ.Advisory.Consumer.Topic." + policy + ".T")
	first := l.onB.Consumer(topic)
	l.await(demand, "1")
	l.onA.Send(topic, 1, "x")
	if policy == "always" {
		l.has("the first, ordinary", first, "m2 m3 m4 x")
	} else {
		l.has("the first, ordinary", first, "x")
	}
	second := l.onB.Consumer(topic + retroactive)
	switch { // a's demand is there already
	case !both:
		l.has("beside it", second, "")
	case policy == "always":
		l.has("beside it", second, "m3 m4 x")
	default:
		l.has("beside it", second, "x")
	}
	must(l.t, first.Close())
	must(l.t, second.Close())
	for range 2 {
		l.await(demand, "0")
		again := l.onB.Consumer(topic + retroactive)
		want := []string{"m3", "m4", "x"}
		if policy == "count" {
			want = want[1:]
		}
		l.await(demand, "1")
		if got := sorted(again.Wait(len(want), patience)); !slices.Equal(got, want) {
			l.t.Errorf("%s, anew: %v, want %v", policy, got, want)
		}
		again.Silent(300 * time.Millisecond)
		must(l.t, again.Close())
	}
}

func (l bridged) has(who string, c *jms.Consumer, want string) {
	l.t.Helper()
	n := len(strings.Fields(want))
	c.Wait(n, patience)
	c.Silent(300 * time.Millisecond)
	if got := strings.Join(jms.Bodies(c.Received()), " "); got != want {
		l.t.Errorf("%s: %q, want %q", who, got, want)
	}
}

// await waits until the last advisory about a topic's consumers says that there are so many.
func (l bridged) await(advisories *jms.Consumer, n string) {
	l.t.Helper()
	wait.For(l.t, patience, n+" consumers of the topic", func() (string, bool) {
		all := advisories.Received()
		if len(all) == 0 {
			return "no advisory", false
		}
		last := all[len(all)-1].Prop("consumerCount")
		return last, last == n
	})
}
