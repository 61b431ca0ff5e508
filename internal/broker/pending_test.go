package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// losing gives all destinations of a broker a pending message limit.
func losing(most int, kind policy.EvictionKind) func(*Options) {
	return func(o *Options) {
		e := policy.NewEntry()
		e.PendingLimit = policy.PendingLimit{Kind: policy.PendingConstant, Limit: most}
		e.Eviction = policy.NewEviction(kind)
		e.Eviction.Property = "k"
		o.Policies = &policy.Map{Default: e}
	}
}

// issue publishes a message with a priority and a value of the property k.
func (g *guest) issue(id string, d message.Destination, n int64, priority uint8, k any) {
	g.h.t.Helper()
	m := g.mail(id, d, n)
	m.Priority, m.Timestamp, m.Persistent = priority, n, false
	m.Content = fmt.Append(nil, n)
	if k != nil {
		if err := m.SetProperties(message.Property{Name: "k", Value: k}); err != nil {
			g.h.t.Fatal(err)
		}
	}
	g.do(m)
}

func TestWhatWaitsForASlowConsumerOfATopicHasALimit(t *testing.T) {
	none := []any{nil, nil, nil, nil, nil, nil, nil, nil, nil}
	for _, c := range []struct {
		name string
		most int
		kind policy.EvictionKind
		own  int32
		k    []any
		want string
		lost int64
	}{
		{"none", -1, policy.EvictOldest, 0, none, "1 2 3 4 5 6 7 8 9", 0},
		{"a number", 3, policy.EvictOldest, 0, none, "1 2 7 8 9", 4},
		{"its own is less", 3, policy.EvictOldest, 2, none, "1 2 8 9", 5},
		{"its own is more", 3, policy.EvictOldest, 4, none, "1 2 7 8 9", 4},
		{"its own alone", -1, policy.EvictOldest, 4, none, "1 2 6 7 8 9", 3},
		{"nothing", 0, policy.EvictOldest, 0, none, "1 2", 7},
		// The priority of a message is its number modulo 5.
		{"by priority", 3, policy.EvictLowestPriority, 0, none, "1 2 4 8 9", 4},
		{"by a property that none has", 3, policy.EvictUniqueProperty, 0, none, "1 2 7 8 9", 4},
		{"by a property", 3, policy.EvictUniqueProperty, 0,
			[]any{"x", "x", "a", "b", "a", "a", "b", nil, "c"}, "1 2 6 7 9", 4},
		{"by a property of values that cannot be compared", 3, policy.EvictUniqueProperty, 0,
			[]any{"x", "x", []byte("a"), []byte("a"), []byte("a"), []byte("a"), nil, nil, nil}, "1 2 7 8 9",
			4},
	} {
		h := open(t, nil, losing(c.most, c.kind))
		d := topicNamed("t")
		r := &reader{guest: h.connect("c", "c", "", nil)}
		if e := r.subscribe("", "t", func(i *message.ConsumerInfo) {
			i.PrefetchSize, i.MaximumPendingMessageLimit = 2, c.own
		}); e != nil {
			t.Fatal(e)
		}
		p := h.connect("p", "p", "", nil)
		for i, k := range c.k {
			p.issue("p", d, int64(i+1), uint8((i+1)%5), k)
		}
		h.dropped(message.PendingLimit, c.lost)
		waits := int64(0)
		if x := h.explain(d); len(x.Rows) > 0 {
			waits = x.Rows[0].Count
			if x.Rows[0].Reason != message.WindowFull || !strings.Contains(x.Rows[0].Who, "client c") {
				t.Errorf("%s: explained as %+v", c.name, x.Rows[0])
			}
		}
		if want := 7 - c.lost; waits != want {
			t.Errorf("%s: %d are explained to wait, want %d", c.name, waits, want)
		}
		if got := r.drain(); got != c.want {
			t.Errorf("%s: it gets %q, want %q", c.name, got, c.want)
		}
		for _, e := range h.events {
			if e.Reason == message.PendingLimit && !strings.Contains(e.Text, "client c") {
				t.Errorf("%s: told as %q", c.name, e.Text)
			}
		}
		if used := h.b.memory.Used(); used != 0 {
			t.Errorf("%s: %d bytes stay charged", c.name, used)
		}
	}
}

// Expired messages go before those that are not, once more wait than the limit or the high water.
func TestExpiredMessagesGoBeforeThePendingLimit(t *testing.T) {
	for _, c := range []struct {
		highWater     int
		expired, lost int64
	}{{1000, 2, 1}, {2, 2, 1}, {0, 2, 1}} {
		h := open(t, nil, func(o *Options) {
			losing(4, policy.EvictOldest)(o)
			o.Policies.Default.Eviction.ExpiredHighWater = c.highWater
		})
		r := &reader{guest: h.connect("c", "c", "", nil)}
		if e := r.subscribe("", "t", func(i *message.ConsumerInfo) { i.PrefetchSize = 1 }); e != nil {
			t.Fatal(e)
		}
		p := h.connect("p", "p", "", nil)
		for n := range int64(8) {
			m := p.mail("p", topicNamed("t"), n+1)
			switch n {
			case 2, 3:
				m.Expiration = h.Wall() + 1000
			case 4:
				m.Expiration = h.Wall() + 100_000
			case 5: // five wait
				h.pass(2 * time.Second)
			}
			p.do(m)
		}
		if got := r.drain(); got != "1 5 6 7 8" {
			t.Errorf("%d: it gets %q", c.highWater, got)
		}
		h.dropped(message.PendingLimit, c.lost)
		if n := h.b.counts.Expired; n != c.expired {
			t.Errorf("%d: %d are expired, want %d", c.highWater, n, c.expired)
		}
	}
}

// Of many that wait, what is expired among them is found before many others went.
func TestWhatIsExpiredAmongManyIsFoundSoon(t *testing.T) {
	h := open(t, nil, losing(160, policy.EvictOldest))
	g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
	g.window("g", topicNamed("t"), 1, "")
	for n := range int64(190) {
		m := p.mail("p", topicNamed("t"), n+1)
		if n >= 80 && n < 110 {
			m.Expiration = h.Wall() + 1000
		}
		if n == 161 {
			h.pass(2 * time.Second)
		}
		p.do(m)
	}
	if lost := h.b.counts.Reasons[message.PendingLimit]; h.b.counts.Expired != 30 || lost > 10 {
		t.Errorf("%d are expired, and %d went", h.b.counts.Expired, lost)
	}
}

// What goes by the limit is told of as discarded, what was expired as expired; of a limit of 0,
// which keeps nothing, nothing is told.
func TestWhatAPendingLimitTakesIsToldOf(t *testing.T) {
	for _, c := range []struct {
		most            int
		discards, lapse int
	}{{4, 1, 2}, {0, 0, 0}} {
		h := open(t, nil, func(o *Options) {
			losing(c.most, policy.EvictOldest)(o)
			o.Policies.Default.Advisory.Discarding = true
		})
		l := h.listens()
		l.consume("l", topicNamed("ActiveMQ.Advisory.Expired.>"))
		g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		g.window("g", topicNamed("t"), 1, "")
		for n := range int64(8) {
			m := p.mail("p", topicNamed("t"), n+1)
			switch n {
			case 2, 3:
				m.Expiration = h.Wall() + 1000
			case 5:
				h.pass(2 * time.Second)
			}
			p.do(m)
		}
		told := map[string]int{}
		for _, kind := range l.told() {
			told[kind]++
		}
		if len(told) > 2 || told["MessageDiscarded"] != c.discards || told["Expired"] != c.lapse {
			t.Errorf("limit %d: told %v", c.most, told)
		}
	}
}

// Where many wait, it is not looked at all of them for each that comes; what goes and is expired
// counts so.
func TestAMessageCostsNoMoreWhereManyWait(t *testing.T) {
	const most, more = 50_000, 2000
	for _, c := range []struct {
		name    string
		kind    policy.EvictionKind
		lives   func(n int64) int64 // ms; 0 for ever
		expired int64               // at least
	}{
		{"one expires each ms", policy.EvictOldest, func(int64) int64 { return most - 10 }, more - 10},
		{"few expire each ms", policy.EvictOldest, func(n int64) int64 {
			return (n%2 + 1) * most * 9 / 10
		}, 1},
		{"a property", policy.EvictUniqueProperty, func(int64) int64 { return 0 }, 0},
	} {
		h := quick(t, losing(most, c.kind))
		g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		g.window("g", topicNamed("t"), 1, "")
		d := h.b.find(topicNamed("t"))
		first := p.mail("p", topicNamed("t"), 0)
		send := func(n int64) {
			h.now += time.Millisecond
			m := first.Clone()
			m.Persistent, m.BrokerSequence = false, n
			if ms := c.lives(n); ms > 0 {
				m.Expiration = h.Wall() + ms
			}
			if err := m.SetProperties(message.Property{Name: "k", Value: n % 40_000}); err != nil {
				t.Fatal(err)
			}
			h.b.publish(d, m)
		}
		for n := range int64(most + 1) {
			send(n + 1)
		}
		longest(t, c.name, 2*time.Second, func() {
			for n := range int64(more) {
				send(most + n + 2)
			}
		})
		if n := h.b.counts.Expired; n < c.expired {
			t.Errorf("%s: %d are expired", c.name, n)
		}
	}
}

// What a peer's bridge has no room for yet waits, however much the policy lets wait: nobody there
// is slow.
func TestABridgeHasNoPendingLimit(t *testing.T) {
	h := open(t, nil, losing(1, policy.EvictOldest))
	b := h.connect("b", "b", "", &message.BrokerInfo{ID: "ID:peer", Name: "peer",
		NetworkConnection: true})
	b.window("b", topicNamed("t"), 2, "")
	h.publish("t", 1, 9)
	h.dropped(message.PendingLimit, 0)
	if n := h.b.memory.Used(); n == 0 {
		t.Error("nothing waits")
	}
}

// Dead letters on a topic may come to the same slow consumer, which loses some of those as well.
func TestDeadLettersOfASlowConsumerMayComeToItself(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		losing(3, policy.EvictOldest)(o)
		e := o.Policies.Default
		e.DeadLetter = policy.NewDeadLetter(policy.DeadLetterIndividual)
		e.DeadLetter.UseQueueForTopicMessages = false
	})
	r := &reader{guest: h.connect("c", "c", "", nil)}
	if e := r.subscribe("", ">", func(i *message.ConsumerInfo) { i.PrefetchSize = 2 }); e != nil {
		t.Fatal(e)
	}
	h.publish("t", 1, 30)
	r.drain()
	if used := h.b.memory.Used(); used != 0 {
		t.Errorf("%d bytes stay charged", used)
	}
	if n := h.b.counts.DeadLetters; n < 20 || n > 60 {
		t.Errorf("%d dead letters", n)
	}
}
