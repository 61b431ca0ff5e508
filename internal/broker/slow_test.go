package broker

import (
	"testing"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// slowly is strict, with advisories of slow consumers.
func slowly(o *Options) {
	strict(policy.AbortSlow, nil)(o)
	o.Policies.Default.Advisory.SlowConsumers = true
}

// toldSlow counts how often a guest heard of a consumer as slow.
func (g *guest) toldSlow(c message.ConsumerID) (n int) {
	for i, m := range g.heard {
		if id, _ := m.Property("consumerId"); g.told()[i] == "SlowConsumer" && id == c.String() {
			n++
		}
	}
	return n
}

// A consumer without room is slow when a copy waits that it would get, not by what others get.
func TestNobodyIsSlowForWhomNothingWaits(t *testing.T) {
	for _, c := range []struct {
		name, selector string
		sent           string // JMSTypes; the consumer gets the first
		slow           bool
	}{
		{"its own", "", "xx", true},
		{"another's", "JMSType = 'x'", "xy", false},
		{"its own behind another's", "JMSType = 'x'", "xyx", true},
	} {
		h := open(t, nil, slowly)
		l, g, p := h.listens(), h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		id := g.window("g", queueQ, 1, c.selector)
		for i, kind := range c.sent {
			p.do(p.typed("p", queueQ, int64(i+1), string(kind)))
		}
		h.pass(20 * time.Second)
		want := 0
		if c.slow {
			want = 1
		}
		if told, closes := l.toldSlow(id), g.toldToClose(id); told != want || closes != want {
			t.Errorf("%s: told of as slow %d times, to close %d times", c.name, told, closes)
		}
	}
}

func TestNobodyIsAbortedForWhatOthersTook(t *testing.T) {
	h := open(t, nil, slowly)
	l, g, p := h.listens(), h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
	id := g.window("g", queueQ, 1, "")
	p.produce("p", queueQ, 1)
	p.produce("p", queueQ, 2)
	h.pass(3 * time.Second)
	other := h.connect("o", "o", "", nil)
	other.window("o", queueQ, 10, "")
	if h.pass(20 * time.Second); len(other.got) != 1 || l.toldSlow(id) != 1 || g.toldToClose(id) != 0 {
		t.Errorf("the other has %d; told of as slow %d times, to close %d times", len(other.got),
			l.toldSlow(id), g.toldToClose(id))
	}
	other.Gone() // and what it had waits again
	if h.pass(3 * time.Second); l.toldSlow(id) != 2 || g.toldToClose(id) != 0 {
		t.Errorf("told of as slow %d times, to close %d times", l.toldSlow(id), g.toldToClose(id))
	}
	if h.pass(5 * time.Second); g.toldToClose(id) != 1 {
		t.Errorf("told to close %d times", g.toldToClose(id))
	}
}

// What a connection has no room for makes none of its consumers slow, which have some.
func TestAConsumerWithRoomIsNotSlow(t *testing.T) {
	h := open(t, nil, slowly)
	l, g, p := h.listens(), h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
	id := g.window("g", queueQ, 10, "")
	g.full = true
	for n := range int64(5) {
		p.produce("p", queueQ, n+1)
	}
	h.pass(20 * time.Second)
	if n := h.b.find(queueQ).queue.Pending(); n == 0 || l.toldSlow(id)+g.toldToClose(id) > 0 {
		t.Errorf("%d wait; told of as slow %d times, to close %d times", n, l.toldSlow(id),
			g.toldToClose(id))
	}
}

// A consumer of a topic and a queue that is slow at the topic is none at the queue.
func TestWhoIsSlowAtATopicHasRoomAtAQueue(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		slowly(o)
		e := o.Policies.Default
		e.Destination = queueQ
		o.Policies = &policy.Map{Default: policy.NewEntry(), Entries: []*policy.Entry{e}}
	})
	g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
	both, _ := message.ParseDestination("queue://q,topic://t", message.Queue)
	id := g.window("g", both, 2, "")
	for n := range int64(6) {
		p.produce("p", topicNamed("t"), n+1)
	}
	g.full = true
	p.produce("p", queueQ, 10)
	h.pass(20 * time.Second)
	if s := g.consumers[id]; s == nil || !s.slow || g.toldToClose(id) != 0 ||
		h.b.find(queueQ).queue.Pending() != 1 {
		t.Errorf("told to close %d times, slow: %t", g.toldToClose(id), s != nil && s.slow)
	}
}

func TestNobodyIsSlowForAnothersGroup(t *testing.T) {
	h := open(t, nil, slowly)
	l, g, p := h.listens(), h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
	a, b := g.window("g", queueQ, 1, ""), g.window("g", queueQ, 1, "")
	for i, group := range []string{"A", "B", "B"} {
		m := p.mail("p", queueQ, int64(i+1))
		m.GroupID = group
		p.do(m)
	}
	h.pass(5500 * time.Millisecond) // later the group is the other's
	if g.toldToClose(a) != 0 || g.toldToClose(b) != 1 || l.toldSlow(a) != 0 || l.toldSlow(b) != 1 {
		t.Errorf("told to close %d and %d times, of as slow %d and %d times", g.toldToClose(a),
			g.toldToClose(b), l.toldSlow(a), l.toldSlow(b))
	}
}

// What a bridge has no room for makes it late, not what it does not take.
func TestABridgeIsLateForWhatItTakesAlone(t *testing.T) {
	for _, takes := range []int64{2, 3} { // of three messages
		h := open(t, nil, strict(policy.AbortSlow, func(s *policy.SlowConsumer) {
			s.IgnoreNetworkConsumers = false
		}))
		e := &narrow{window: 2}
		e.verdict = func(c network.Candidate) message.Verdict {
			if c.Message().ID.Sequence > takes {
				return message.Refused(message.SelectorNoMatch)
			}
			return message.Verdict{}
		}
		id, g := h.netSub(queueQ, e), h.connect("g", "g", "", nil)
		for n := range int64(3) {
			g.produce("g", queueQ, n+1)
		}
		h.pass(20 * time.Second)
		if stays := h.b.networks.subs[id] != nil; len(e.got) != 2 || stays != (takes == 2) {
			t.Errorf("it takes %d and has %d: it stays %t", takes, len(e.got), stays)
		}
	}
}

// What is in the store alone waits for a consumer that takes everything, and for bridges; what a
// selector makes of it is not known.
func TestWhatIsInTheStoreWaitsForWhoTakesEverything(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*message.ConsumerInfo)
		want   bool
	}{
		"all":        {func(*message.ConsumerInfo) {}, true},
		"a selector": {func(i *message.ConsumerInfo) { i.Selector = "x = 1 OR 1 = 1" }, false},
		"not local":  {func(i *message.ConsumerInfo) { i.NoLocal = true }, false},
		"durable": {func(i *message.ConsumerInfo) {
			i.Destination, i.SubscriptionName, i.NoLocal = topicNamed("t"), "s", true
		}, true},
	} {
		h := open(t, nil, nil)
		p, g := h.connect("q", "q", "", nil), h.connect("g", "g", "", nil)
		id := message.ConsumerID{Connection: g.id, Session: 1, Value: 1}
		info := &message.ConsumerInfo{ID: id, Destination: queueQ, PrefetchSize: 1}
		if c.change(info); g.do(info) != nil {
			t.Fatal(name)
		}
		for n := range int64(6) {
			p.produce("q", info.Destination, n+1)
		}
		s := g.consumers[id]
		q := s.slots[0].dest.queue
		q.Detach(s.slots[0].slot)
		q.Evict(0, 0)
		s.slots[0].slot = q.Attach(s, queue.Traits{})
		if n := q.StoredOnly(); n != 5 || s.waits(s.slots[0]) != c.want {
			t.Errorf("%s: %d are in the store alone, and some wait for it: %t", name, n, !c.want)
		}
		n := &netSub{b: h.b, sub: &network.Subscription{Filter: &bridgeEnd{}}}
		if !n.waits(consumerSlot{slot: q.Attach(n, queue.Traits{})}) {
			t.Errorf("%s: nothing waits for a bridge", name)
		}
	}
}

// The queue of a durable subscription has one consumer, whose policy is the topic's.
func TestADurableSubscriptionsConsumerIsSlow(t *testing.T) {
	h := open(t, nil, slowly)
	l := h.listens()
	r := h.subscribe("a", "s", "t", func(i *message.ConsumerInfo) { i.PrefetchSize = 2 })
	gone := h.subscribe("b", "s", "t", nil)
	gone.leave()
	h.publish("t", 1, 2)
	if n := l.toldSlow(r.id); n != 0 {
		t.Errorf("it has all and is told of as slow %d times", n)
	}
	h.publish("t", 3, 4)
	if n := l.toldSlow(r.id); n != 1 {
		t.Errorf("told of as slow %d times", n)
	}
	if h.pass(20 * time.Second); r.toldToClose(r.id) != 1 {
		t.Errorf("told to close %d times", r.toldToClose(r.id))
	}
}

// A queue with a consumer that has no room, and that nothing waits for, is looked at again in a
// while alone, however much is dispatched; then it is, though nothing comes.
func TestItIsNotLookedForSlowConsumersAtEachDispatch(t *testing.T) {
	h := open(t, nil, slowly)
	l, g, p := h.listens(), h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
	id := g.window("g", queueQ, 1, "JMSType = 'x'")
	for i, kind := range "xyx" {
		p.do(p.typed("p", queueQ, int64(i+1), string(kind)))
		h.turn()
	}
	if n := l.toldSlow(id); n != 0 {
		t.Errorf("told of as slow %d times at once", n)
	}
	if h.pass(slowLooks); l.toldSlow(id) != 1 {
		t.Errorf("told of as slow %d times", l.toldSlow(id))
	}
}
