package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// keeping gives all topics of a broker a recovery policy.
func keeping(r policy.Recovery, change func(*Options, *policy.Entry)) func(*Options) {
	return func(o *Options) {
		e := policy.NewEntry()
		e.Recovery = r
		o.Policies = &policy.Map{Default: e}
		if change != nil {
			change(o, e)
		}
	}
}

func last(n int) policy.Recovery {
	return policy.Recovery{Kind: policy.RecoverFixedCount, MaxMessages: n}
}

func retro(c *message.ConsumerInfo) { c.Retroactive = true }

// latecomer is a new client with one consumer; what it got is in bodies.
func (h *house) latecomer(topics string, change func(*message.ConsumerInfo)) *reader {
	h.t.Helper()
	id := fmt.Sprint("late", len(h.b.connOrder), h.rnd)
	h.Rand()
	r := &reader{guest: h.connect(id, id, "", nil)}
	if e := r.subscribe("", topics, change); e != nil {
		h.t.Fatal(e)
	}
	return r
}

// drain takes and acknowledges one after the other, and gives all.
func (r *reader) drain() string {
	var out []string
	for len(r.got) > 0 {
		id := r.got[0]
		r.got = r.got[1:]
		out = append(out, fmt.Sprint(id.Sequence))
		r.do(&message.MessageAck{Consumer: r.id, Destination: r.from[id], Last: id, HasLast: true,
			Count: 1, Type: message.StandardAck})
	}
	return strings.Join(out, " ")
}

// recalls compares what a new consumer gets.
func (h *house) recalls(topics string, change func(*message.ConsumerInfo), want string) {
	h.t.Helper()
	r := h.latecomer(topics, change)
	if got := r.bodies(); got != want {
		h.t.Errorf("a consumer of %s that comes late gets %q, want %q", topics, got, want)
	}
	r.leave()
}

// accounts compares what is charged with what the topics keep, when nobody has anything else.
func (h *house) accounts(when string) {
	h.t.Helper()
	sum := int64(0)
	for _, d := range h.b.order {
		if d.memory != nil {
			sum += d.memory.Bytes()
			if d.usage.Used() != d.memory.Bytes() {
				h.t.Errorf("%s: %s is charged %d bytes, %d are kept", when, d.name, d.usage.Used(),
					d.memory.Bytes())
			}
		}
	}
	if h.b.keptBytes != sum || h.b.memory.Used() != sum {
		h.t.Errorf("%s: %d bytes are counted as kept, %d are charged, %d are there", when,
			h.b.keptBytes, h.b.memory.Used(), sum)
	}
}

func TestARetroactiveConsumerGetsWhatItsTopicsKeepBeforeAnythingNew(t *testing.T) {
	h := open(t, nil, keeping(last(2), nil))
	h.publish("T.a", 1, 3)
	h.publish("T.b", 4, 6)
	h.recalls("T.a", nil, "")
	h.recalls("T.a", retro, "2 3")
	h.recalls("T.*", retro, "2 3 5 6")
	h.recalls("T.b,T.a", retro, "5 6 2 3")
	h.recalls("T.a", func(c *message.ConsumerInfo) { retro(c); c.PrefetchSize = 1 }, "2")
	r := h.latecomer("T.a", func(c *message.ConsumerInfo) { retro(c); c.PrefetchSize = 1 })
	h.publish("T.a", 7, 7)
	if got := r.drain(); got != "2 3 7" {
		t.Errorf("with a window of one %q comes", got)
	}
	r.leave()
	h.accounts("at the end")
}

func TestATopicWithoutAPolicyKeepsNothingButWhatIsRetained(t *testing.T) {
	h := open(t, nil, nil)
	h.publish("T", 1, 3)
	if h.b.find(topicNamed("T")).memory != nil {
		t.Error("it has a memory")
	}
	h.recalls("T", retro, "")
	g := h.connect("g", "g", "", nil)
	m := g.mail("g", topicNamed("T"), 4)
	m.Content = []byte("x")
	if err := m.SetProperties(message.Property{Name: "ActiveMQ.Retain", Value: true}); err != nil {
		t.Fatal(err)
	}
	there := h.latecomer("T", nil)
	g.do(m)
	if there.bodies() != "4" {
		t.Errorf("who is there gets %q", there.bodies())
	}
	there.ackAll()
	h.publish("T", 5, 5)
	there.ackAll()
	h.recalls("T", retro, "4")
	h.recalls("T", nil, "")
	h.accounts("retained")
	m = m.Clone()
	m.ID.Sequence, m.Content = 6, nil
	g.do(m)
	there.ackAll()
	h.recalls("T", retro, "")
	h.accounts("cleared")
}

func TestTopicsKeepNoMoreThanHalfOfTheMemory(t *testing.T) {
	const size = 1025 // of one message
	h := open(t, nil, keeping(last(1000), func(o *Options, e *policy.Entry) {
		o.MemoryLimitBytes, e.Memory.LimitBytes = 100*size, 40*size
	}))
	h.publish("T", 1, 9)
	h.publish("U", 1, 9)
	h.publish("V", 1, 9)
	h.accounts("below the limits")
	d := h.b.find(topicNamed("T"))
	h.publish("T", 10, 30) // the topic's own limit
	if got := d.memory.Bytes(); got > 20*size || got < 19*size || d.reasons[message.MemoryFull] == 0 {
		t.Errorf("%d messages are kept, %d given up", got/size, d.reasons[message.MemoryFull])
	}
	h.publish("U", 10, 30) // and the broker's
	h.publish("V", 10, 30)
	if h.b.keptBytes > 50*size || h.b.keptBytes < 45*size {
		t.Errorf("all topics keep %d messages", h.b.keptBytes/size)
	}
	told, counted := int64(0), int64(0)
	for _, e := range h.events {
		if e.Kind == MessageDropped && e.Reason == message.MemoryFull {
			told += e.Count
		}
	}
	for _, name := range []string{"T", "U", "V"} {
		d := h.b.find(topicNamed(name))
		counted += d.reasons[message.MemoryFull]
		if n := d.memory.Len(); n < 14 {
			t.Errorf("%s keeps %d", name, n)
		}
	}
	if kept := h.b.keptBytes / size; told != 90-kept || counted != told ||
		h.b.counts.Reasons[message.MemoryFull] != told {
		t.Errorf("%d are kept, %d told to be given up, %d counted, %d by the broker", kept, told,
			counted, h.b.counts.Reasons[message.MemoryFull])
	}
	h.accounts("at the limits")
	h.recalls("V", retro, "12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30")
}

func TestAMessageThatIsMoreThanHalfOfTheMemoryIsPublishedAndNotKept(t *testing.T) {
	h := open(t, nil, keeping(last(10), func(_ *Options, e *policy.Entry) {
		e.Memory.LimitBytes = 10_000
	}))
	r := h.latecomer("T", nil)
	g := h.connect("g", "g", "", nil)
	for n := range int64(3) {
		m := g.mail("g", topicNamed("T"), n+1)
		m.Content = make([]byte, 6000)
		g.do(m)
		r.ackAll()
	}
	h.recalls("T", retro, "")
	h.accounts("at the end")
	if d := h.b.find(topicNamed("T")); d.reasons[message.MemoryFull] != 3 ||
		d.counts.Enqueued != 3 || d.parkedCount() != 0 {
		t.Errorf("%+v, %v", d.counts, d.reasons)
	}
}

func TestWhatIsKeptForATimeEndsWithoutAnybodyAsking(t *testing.T) {
	h := open(t, nil, keeping(policy.Recovery{Kind: policy.RecoverTimed,
		Duration: 10 * time.Second}, nil))
	h.publish("T", 1, 2)
	h.pass(5 * time.Second)
	h.publish("T", 3, 3)
	h.recalls("T", retro, "1 2 3")
	h.pass(5 * time.Second)
	h.recalls("T", retro, "3")
	h.accounts("after ten seconds")
	h.pass(6 * time.Second)
	h.accounts("after sixteen seconds")
	if h.b.keptBytes != 0 {
		t.Errorf("%d bytes are kept", h.b.keptBytes)
	}
	h.publish("T", 4, 4)
	h.recalls("T", retro, "4")
	h.pass(time.Minute)
	if h.b.keptBytes != 0 {
		t.Errorf("%d bytes are kept again", h.b.keptBytes)
	}
}

func TestWhatExpiredIsNotRecalled(t *testing.T) {
	h := open(t, nil, keeping(last(5), nil))
	g := h.connect("g", "g", "", nil)
	for n := range int64(4) {
		m := g.mail("g", topicNamed("T"), n+1)
		if n%2 == 0 {
			m.Expiration = h.Wall() + 1000
		}
		g.do(m)
	}
	h.pass(2 * time.Second)
	for range 2 {
		h.recalls("T", retro, "2 4")
	}
	if n := h.b.counts.Reasons[message.Expired]; n != 2 {
		t.Errorf("%d are counted", n)
	}
	h.accounts("at the end")
}

func TestATopicThatIsRemovedForgets(t *testing.T) {
	h := open(t, nil, keeping(last(5), nil))
	h.publish("T", 1, 3)
	h.publish("U", 4, 5)
	if err := h.b.removeDestination(h.b.find(topicNamed("T")), false); err != nil {
		t.Fatal(err)
	}
	h.accounts("removed")
	h.recalls("T", retro, "")
	h.publish("T", 6, 6)
	h.recalls(">", retro, "4 5 6")
	h.accounts("at the end")
}

func TestRecalledMessagesHaveToFitTheConsumer(t *testing.T) {
	h := open(t, nil, keeping(last(5), func(_ *Options, e *policy.Entry) {
		e.AlwaysRetroactive = true
	}))
	g := h.connect("g", "g", "", nil)
	for n := range int64(4) {
		m := g.mail("g", topicNamed("T"), n+1)
		m.Priority = uint8(n)
		g.do(m)
	}
	h.recalls("T", nil, "1 2 3 4")
	h.recalls("T", func(c *message.ConsumerInfo) { c.Selector = "JMSPriority > 1" }, "3 4")
	r := &reader{guest: g}
	if e := r.subscribe("", "T", func(c *message.ConsumerInfo) { c.NoLocal = true }); e != nil {
		t.Fatal(e)
	}
	if r.bodies() != "" {
		t.Errorf("its own connection is given %q", r.bodies())
	}
}

func TestADurableSubscriptionRecallsWhenItHasNothing(t *testing.T) {
	h := open(t, nil, keeping(last(2), func(_ *Options, e *policy.Entry) {
		e.AlwaysRetroactive = true // counts for others
	}))
	h.publish("T", 1, 3)
	a := h.subscribe("a", "s", "T", nil)
	if a.bodies() != "" {
		t.Errorf("one that does not ask gets %q", a.bodies())
	}
	a.leave()
	a = h.subscribe("r", "s", "T", retro)
	if a.bodies() != "2 3" || len(h.storedOf("r")) != 0 {
		t.Errorf("a new one gets %q, %d are stored", a.bodies(), len(h.storedOf("r")))
	}
	a.leave() // nothing was acknowledged
	a = h.subscribe("r", "s", "T", retro)
	if a.bodies() != "2 3" {
		t.Errorf("when it has them still it gets %q", a.bodies())
	}
	a.ackAll()
	a.leave()
	a = h.subscribe("r", "s", "T", retro)
	if a.bodies() != "2 3" {
		t.Errorf("when it has nothing it gets %q", a.bodies())
	}
	a.ackAll()
	a.leave()
	h.publish("T", 4, 6)
	a = h.subscribe("r", "s", "T", retro)
	if a.bodies() != "4 5 6" {
		t.Errorf("when it kept some it gets %q", a.bodies())
	}
	a.ackAll()
	a.leave()
	if err := h.b.Check(); err != nil {
		t.Error(err)
	}
}

func TestANewRetroactiveDurableSubscriptionGetsWhatIsStoredForOthers(t *testing.T) {
	h := open(t, nil, keeping(last(2), nil))
	a := h.subscribe("a", "s", "T", nil)
	h.publish("T", 1, 5)
	a.ackAll()
	a.leave()
	h.publish("T", 6, 300)
	h.publish("U", 301, 301)
	h.publish("T", 302, 310)
	var want []string
	for n := 6; n <= 310; n++ {
		if n < 301 || n > 301 {
			want = append(want, fmt.Sprint(n))
		}
	}
	took := func(client string) {
		t.Helper()
		r := h.subscribe(client, "s", "T", retro)
		if got := r.drain(); got != strings.Join(want, " ") {
			t.Errorf("%s gets %v", client, got)
		}
		r.leave()
	}
	took("b")
	// What is stored alone is read, and what is given is stored.
	h.subscribe("c", "s", "T", retro).leave()
	h = open(t, h.disk, nil)
	took("d")
	h = open(t, h.disk, nil)
	took("c")
	if n := h.subscribe("e", "s", "T", nil).bodies(); n != "" {
		t.Errorf("one that is not retroactive gets %q", n)
	}
	h.subscribe("a", "s", "T", nil).drain()
	for _, client := range []string{"b", "d"} {
		h.subscribe(client, "s", "T", nil).drain()
	}
	for _, s := range h.b.durables.list {
		if s.dest.queue.Len() != 0 {
			t.Errorf("%s keeps %d", s, s.dest.queue.Len())
		}
	}
	h.publish("T", 311, 311)
	if n := h.loggedOf("T"); n > 257 { // the head is that far behind
		t.Errorf("%d messages stay in the log", n)
	}
}

func TestWhatIsStoredForOthersComesInItsOrderAndInsteadOfWhatIsKept(t *testing.T) {
	h := open(t, nil, nil)
	h.subscribe("a", "s", "T", nil).leave()
	h.publish("T", 1, 3)
	h = open(t, h.disk, keeping(last(5), nil)) // what a has is in the store alone
	h.publish("T", 4, 5)
	g := h.connect("g", "g", "", nil)
	m := g.mail("g", topicNamed("T"), 6)
	m.Persistent = false
	g.do(m)
	r := h.subscribe("b", "s", "T", retro)
	if got := r.drain(); got != "1 2 3 4 5" {
		t.Errorf("got %s", got)
	}
	r.leave()
	r = h.subscribe("b", "s", "T", retro)
	if got := r.drain(); got != "4 5 6" {
		t.Errorf("when it is back it gets %s", got)
	}
	if err := h.b.Check(); err != nil {
		t.Error(err)
	}
}

func TestABridgeOfARetroactiveConsumerIsGivenWhatIsKept(t *testing.T) {
	h := open(t, nil, keeping(last(2), nil))
	h.publish("T", 1, 3)
	for _, c := range []struct {
		retroactive, renewed bool
		want                 int
	}{{false, false, 0}, {true, false, 2}, {true, true, 0}} {
		e := &bridgeEnd{}
		id := message.ConsumerID{Connection: "n", Value: int64(h.Rand())}
		if err := h.b.Subscribe(&network.Subscription{Peer: "ID:a", Filter: e, Sink: e,
			Renewed: c.renewed, Info: &message.ConsumerInfo{ID: id, Destination: topicNamed("T"),
				PrefetchSize: 10, Retroactive: c.retroactive}}); err != nil {
			t.Fatal(err)
		}
		if len(e.got) != c.want {
			t.Errorf("retroactive %t, renewed %t: %d cross", c.retroactive, c.renewed, len(e.got))
		}
		h.b.Settle(id, e.got, network.Acked)
		h.b.Unsubscribe(id)
	}
	h.accounts("at the end")
}

func TestWhatAPeerSendsAgainIsForThoseWhoCameSince(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		h := open(t, nil, nil)
		if keeps {
			h = open(t, nil, keeping(last(5), nil))
		}
		p := network.Peer{ID: "ID:p", Hopwire: true, Prefetch: 1000}
		again := func() {
			m := &message.Message{Destination: topicNamed("T"), BrokerPath: []message.BrokerID{p.ID},
				ID: message.MessageID{Producer: message.ProducerID{Connection: "x"}, Sequence: 7}}
			answers := 0
			h.b.Receive(m, p, func(error) { answers++ })
			h.turn()
			if answers != 1 {
				t.Errorf("%d answers", answers)
			}
		}
		there := h.latecomer("T", nil)
		again()
		again()
		late := h.latecomer("T", retro)
		e := &bridgeEnd{}
		h.bridge("ID:q", topicNamed("T"), e)
		again()
		again()
		later := h.latecomer("T", nil)
		again()
		if there.bodies() != "7" || late.bodies() != "7" || later.bodies() != "7" || len(e.got) != 1 {
			t.Errorf("keeps %t: there %q, late %q, later %q, over the bridge %d", keeps,
				there.bodies(), late.bodies(), later.bodies(), len(e.got))
		}
		if n := h.b.counts.Duplicates; n != 2 {
			t.Errorf("keeps %t: %d duplicates", keeps, n)
		}
	}
}

func TestWhoAsksForTheMasterIsToldOfIt(t *testing.T) {
	h := open(t, nil, nil)
	for topics, want := range map[string]int{
		"ActiveMQ.Advisory.MasterBroker":   1,
		"T,ActiveMQ.Advisory.MasterBroker": 1,
		"ActiveMQ.Advisory.Master.>":       0,
		"T":                                0,
	} {
		r := h.latecomer(topics, nil)
		if len(r.got) != want {
			t.Errorf("%s: %d advisories, want %d", topics, len(r.got), want)
		}
		r.leave()
	}
}
