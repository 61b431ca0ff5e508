package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
	"hopwire/test/need"
	"hopwire/test/wait"
)

// way is who makes the bridge over which a's messages reach b.
type way int

const (
	oneWay    way = iota // a, for this direction alone
	duplexA              // a, for both directions
	duplexB              // b, for both directions
	twoOneWay            // both, each for its own direction
)

func (w way) String() string {
	return [...]string{"one way", "duplex from a", "duplex from b", "two one way"}[w]
}

// quick has bridges come back soon.
const quick = "?initialReconnectDelay=200&maxReconnectDelay=200&useExponentialBackOff=false"

// linked starts the two brokers of a scenario with a bridge between them.
func linked(t *testing.T, p pair, w way, o broker.Options,
	attributes string) (a, b *broker.Broker) {
	t.Helper()
	o.Compat = p.compat()
	oa, ob := o, o
	oa.Name, ob.Name = "a", "b"
	link := broker.Connector{Name: "link", Attributes: attributes}
	if w == duplexA || w == duplexB {
		link.Attributes += ` duplex="true"`
	}
	if w == twoOneWay {
		oa.Port = broker.FreePort(t)
	}
	if w == duplexB {
		a = broker.Start(t, p.a, oa)
		link.URI = broker.Static(a) + quick
		ob.Connectors = []broker.Connector{link}
		return a, broker.Start(t, p.b, ob)
	}
	if w == twoOneWay {
		back := link
		back.URI = fmt.Sprintf("static:(tcp://127.0.0.1:%d)", oa.Port) + quick
		ob.Connectors = []broker.Connector{back}
	}
	b = broker.Start(t, p.b, ob)
	link.URI = broker.Static(b) + quick
	oa.Connectors = []broker.Connector{link}
	return broker.Start(t, p.a, oa), b
}

// eachWay plays a scenario with every mixture and some ways to link the two.
func eachWay(t *testing.T, ways []way, play func(t *testing.T, p pair, w way)) {
	t.Helper()
	eachPair(t, func(t *testing.T, p pair) {
		for _, w := range ways {
			t.Run(w.String(), func(t *testing.T) { play(t, p, w) })
		}
	})
}

// replaying lets messages go back to where they came from when nobody consumes here.
func replaying(delay time.Duration) string {
	return fmt.Sprintf(`<policyEntry queue=">" enableAudit="false" expireMessagesPeriod="0">`+
		`<networkBridgeFilterFactory><conditionalNetworkBridgeFilterFactory `+
		`replayWhenNoConsumers="true" replayDelay="%d"/></networkBridgeFilterFactory></policyEntry>`,
		delay.Milliseconds())
}

func TestN030MessagesFollowTheirConsumerBack(t *testing.T) {
	eachWay(t, []way{duplexA, duplexB, twoOneWay}, func(t *testing.T, p pair, w way) {
		if p.a.Real() && p.b.Real() {
			t.Skip("two real brokers lose some of them: a late acknowledgement meets the returned copy")
		}
		if p.newer() && w == twoOneWay {
			need.Soak(t)
		}
		a, b := linked(t, p, w, broker.Options{Persistent: true, Policy: replaying(0)},
			`networkTTL="5"`)
		hop{total: 200, early: 50}.play(t, a, b)
	})
}

func TestN033ReplayDelayEndsByItself(t *testing.T) {
	const delay = 3 * time.Second
	eachWay(t, []way{duplexA, duplexB}, func(t *testing.T, p pair, w way) {
		if p.b.Real() {
			t.Skip("a real holder looks at a refused message only when something else happens")
		}
		if p.newer() {
			need.Soak(t)
		}
		a, b := linked(t, p, w, broker.Options{Persistent: true, Policy: replaying(delay)},
			`networkTTL="5"`)
		arrived, first, last := hop{total: 60, early: 20}.play(t, a, b)
		if first.Before(arrived.Add(-time.Second)) || last.After(arrived.Add(delay+5*time.Second)) {
			t.Errorf("the first came back after %v, the last after %v, with a delay of %v",
				first.Sub(arrived), last.Sub(arrived), delay)
		}
	})
}

// hop is a consumer that takes some messages on b and the rest on a, where they were sent.
type hop struct{ total, early int }

func (h hop) play(t *testing.T, a, b *broker.Broker) (arrived, first, last time.Time) {
	t.Helper()
	const queue = "Q.HOP"
	d := jms.Start(t, jms.V5)
	onA, onB := d.Connect(a.URL()), d.Connect(b.URL())
	before := onB.Session(jms.Auto).Consumer(
		jms.ConsumerOptions{Dest: "queue://" + queue + "?consumer.prefetchSize=1", Pull: true})
	a.WaitConsumers(queue, 1, patience)
	s := onA.Session(jms.Transacted)
	s.Send(jms.SendOptions{Dest: "queue://" + queue, N: h.total, Body: "{}"})
	must(t, s.Commit())
	before.Receive(h.early, patience)
	a.WaitQueue(queue, patience, "empty", empty)
	arrived = time.Now()
	must(t, before.Close())
	a.WaitConsumers(queue, 0, patience)
	after := onA.Session(jms.Auto).Consumer(
		jms.ConsumerOptions{Dest: "queue://" + queue + "?consumer.prefetchSize=1"})
	got := after.Wait(h.total-h.early, patience)
	first, last = got[0].At, got[len(got)-1].At
	after.Silent(200 * time.Millisecond)
	once(t, h.total, before, after)
	a.WaitQueue(queue, patience, "empty", empty)
	b.WaitQueue(queue, patience, "empty", empty)
	return arrived, first, last
}

// once asks that consumers got the bodies 0 to n-1 between them, each once.
func once(t *testing.T, n int, consumers ...*jms.Consumer) {
	t.Helper()
	lost, twice := tally(t, n, consumers...)
	if len(lost)+len(twice) > 0 {
		t.Errorf("of %d messages %d are lost %v and %d came twice %v", n, len(lost), few(lost),
			len(twice), few(twice))
	}
}

// tally lists which of the bodies 0 to n-1 consumers did not get between them, and which they got
// more than once.
func tally(t *testing.T, n int, consumers ...*jms.Consumer) (lost, twice []int) {
	t.Helper()
	counts := make([]int, n)
	for _, c := range consumers {
		for _, m := range c.Received() {
			digits, _, _ := strings.Cut(m.Body, " ")
			counts[number(t, digits)]++
		}
	}
	for i, count := range counts {
		if count == 0 {
			lost = append(lost, i)
		}
		if count > 1 {
			twice = append(twice, i)
		}
	}
	return lost, twice
}

func few(list []int) []int { return list[:min(len(list), 20)] }

func TestN001DuplexBridgesShareAsOneWayOnes(t *testing.T) {
	eachWay(t, []way{duplexA, duplexB}, func(t *testing.T, p pair, w way) {
		const queue, n = "Q.TEST", 30
		a, b := linked(t, p, w, broker.Options{}, `decreaseNetworkConsumerPriority="false"`)
		d := jms.Start(t, jms.V6)
		onA, onB := d.Connect(a.URL()), d.Connect(b.URL())
		local := onA.Consumer("queue://" + queue)
		a.WaitConsumers(queue, 1, patience)
		b.WaitConsumers(queue, 1, patience)
		one := onB.Consumer("queue://" + queue)
		a.WaitConsumers(queue, 2, patience)
		two := onB.Consumer("queue://" + queue)
		b.WaitConsumers(queue, 3, patience)
		onA.Send("queue://"+queue, n, "{}")
		jms.WaitTotal(t, n, patience, local, one, two)
		counts := []int{one.Count(), two.Count()}
		slices.Sort(counts)
		if local.Count() != 15 || !slices.Equal(counts, []int{7, 8}) {
			t.Errorf("local %d, remote %v", local.Count(), counts)
		}
		once(t, n, local, one, two)
	})
}

func TestN070RepliesCrossTheBridge(t *testing.T) {
	eachWay(t, []way{twoOneWay, duplexA, duplexB}, func(t *testing.T, p pair, w way) {
		a, b := linked(t, p, w, broker.Options{}, "")
		if w == twoOneWay && p.b != broker.Hopwire {
			asksAgain(t, a, b)
			return
		}
		asks(t, a, b)
	})
}

func TestN070RepliesCrossThreeBrokers(t *testing.T) {
	c := broker.Start(t, broker.Hopwire, broker.Options{Name: "c"})
	to := func(peer *broker.Broker) []broker.Connector {
		return []broker.Connector{{Name: "link", URI: broker.Static(peer) + quick,
			Attributes: `duplex="true" networkTTL="3"`}}
	}
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b", Connectors: to(c)})
	a := broker.Start(t, broker.Hopwire, broker.Options{Name: "a", Connectors: to(b)})
	asks(t, a, c)
}

// asks has a requester on a and a server on b. Every request has a temporary queue of its own.
func asks(t *testing.T, a, b *broker.Broker) {
	t.Helper()
	serve(t, a, b)
	for _, v := range []jms.Version{jms.V5, jms.V6} {
		conn := jms.Start(t, v).Connect(a.URL())
		for range 5 {
			got := conn.Request(jms.SendOptions{Dest: asked, Body: "?"}, 1, patience)
			if len(got) != 1 || got[0].Body != "reply to "+got[0].CorrelationID {
				t.Fatalf("replies %+v", got)
			}
		}
	}
}

// asksAgain is asks over two bridges. The first question may come to b before b's own bridge has
// heard of the temporary queue, and ActiveMQ refuses its reply then; so it is asked until it is
// answered.
func asksAgain(t *testing.T, a, b *broker.Broker) {
	t.Helper()
	serve(t, a, b)
	s := jms.Start(t, jms.V5).Connect(a.URL()).Session(jms.Auto)
	temp, err := s.Temporary(false)
	must(t, err)
	c := s.Consumer(jms.ConsumerOptions{Dest: temp})
	question := jms.SendOptions{Dest: asked, Body: "?", ReplyTo: temp}
	next := time.Now()
	wait.For(t, patience, "answered", func() (string, bool) {
		if c.Count() == 0 && time.Now().After(next) {
			s.Send(question)
			next = time.Now().Add(time.Second)
		}
		return "no reply", c.Count() > 0
	})
	n := c.Count()
	ids := s.Send(jms.SendOptions{Dest: asked, N: 5, Body: "?", ReplyTo: temp})
	for i, m := range c.Wait(n+5, patience)[n:] {
		if m.CorrelationID != ids[i] {
			t.Errorf("reply %d is to %s, want %s", i, m.CorrelationID, ids[i])
		}
	}
}

const asked = "queue://Q.ASK"

// serve has a server on b, and waits until there is a way there from a and one back.
func serve(t *testing.T, a, b *broker.Broker) {
	t.Helper()
	d := jms.Start(t, jms.V5)
	d.Connect(b.URL()).Session(jms.Auto).Consumer(jms.ConsumerOptions{Dest: asked, Reply: true})
	a.WaitConsumers("Q.ASK", 1, patience)
	d.Connect(a.URL()).Consumer("queue://Q.BACK")
	b.WaitConsumers("Q.BACK", 1, patience)
}
