package broker

import (
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// strict has a broker abort consumers that are slow for 5 s, looked for each second.
func strict(kind policy.SlowConsumerKind, change func(*policy.SlowConsumer)) func(*Options) {
	return func(o *Options) {
		e := policy.NewEntry()
		e.SlowConsumer = policy.NewSlowConsumer(kind)
		s := &e.SlowConsumer
		s.MaxSlowDuration, s.CheckPeriod = 5*time.Second, time.Second
		s.MaxTimeSinceLastAck = 10 * time.Second
		if change != nil {
			change(s)
		}
		o.Policies = &policy.Map{Default: e}
	}
}

// toldToClose counts how often the guest was told to close a consumer.
func (g *guest) toldToClose(c message.ConsumerID) (n int) {
	for _, x := range g.sent {
		if x, ok := x.(*message.ConsumerControl); ok && x.Close && x.Consumer == c {
			n++
		}
	}
	return n
}

func TestASlowConsumerEndsAfterItsTime(t *testing.T) {
	type slow = policy.SlowConsumer
	for _, c := range []struct {
		name   string
		kind   policy.SlowConsumerKind
		change func(*slow)
		d      message.Destination
		does   string        // what the consumer does each second
		ends   time.Duration // 0: it stays
	}{
		{"no room", policy.AbortSlow, nil, queueQ, "", 5 * time.Second},
		{"no room, topic", policy.AbortSlow, nil, topicNamed("T"), "", 5 * time.Second},
		{"never by time", policy.AbortSlow, func(s *slow) { s.MaxSlowDuration = 0 }, queueQ, "", 0},
		{"once", policy.AbortSlow, func(s *slow) { s.MaxSlowDuration, s.MaxSlowCount = -1, 1 }, queueQ,
			"", time.Second},
		{"makes room", policy.AbortSlow, nil, queueQ, "acknowledges", 0},
		{"acknowledges nothing", policy.AbortSlowAck, nil, queueQ, "", 15 * time.Second},
		{"acknowledges nothing, topic", policy.AbortSlowAck, nil, topicNamed("T"), "",
			15 * time.Second},
		{"found slow three times", policy.AbortSlowAck, func(s *slow) { s.MaxSlowCount = 3 }, queueQ, "",
			13 * time.Second},
		{"acknowledges", policy.AbortSlowAck, nil, queueQ, "acknowledges", 0},
		{"has nothing", policy.AbortSlowAck, nil, queueNamed("empty"), "", 0},
		{"has nothing, and must", policy.AbortSlowAck, func(s *slow) { s.IgnoreIdleConsumers = false },
			queueNamed("empty"), "", 15 * time.Second},
		{"no limit", policy.AbortSlowAck, func(s *slow) { s.MaxTimeSinceLastAck = -1 }, queueQ, "", 0},
		{"no strategy", policy.SlowConsumersStay, nil, queueQ, "", 0},
	} {
		h := open(t, nil, strict(c.kind, c.change))
		g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		id := g.window("g", c.d, 2, "")
		for n := range int64(60) {
			if c.d.Name != "empty" {
				p.produce("p", c.d, n+1)
			}
		}
		h.turn()
		began := h.now
		for range 40 {
			if h.pass(500 * time.Millisecond); g.consumers[id] == nil || g.toldToClose(id) > 0 {
				break
			}
			if c.does == "acknowledges" {
				g.do(&message.MessageAck{Consumer: id, Destination: c.d, Last: g.got[len(g.got)-1],
					HasLast: true, Count: 1, Type: message.IndividualAck})
			}
		}
		took := h.now - began
		if c.ends == 0 && g.toldToClose(id) > 0 ||
			c.ends > 0 && (g.toldToClose(id) != 1 || took < c.ends || took > c.ends+2*time.Second) {
			t.Errorf("%s: told to close %d times, after %v", c.name, g.toldToClose(id), took)
		}
	}
}

// A client that does not close its consumer at once is told once.
func TestAConsumerIsToldToCloseOnce(t *testing.T) {
	h := open(t, nil, strict(policy.AbortSlowAck, func(s *policy.SlowConsumer) {
		s.CheckPeriod = abortGrace / 10
	}))
	g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
	id := g.window("g", queueQ, 2, "")
	p.produce("p", queueQ, 1)
	h.pass(20 * time.Second)
	if n := h.b.counts.Reasons[message.SlowConsumer]; g.toldToClose(id) != 1 || n != 1 {
		t.Errorf("told %d times, counted %d", g.toldToClose(id), n)
	}
}

// The consumer of a peer that connected, and one that a client has for another broker, are
// subscriptions of the network.
func TestAPeersSlowConsumerStaysUnlessThePolicySaysOtherwise(t *testing.T) {
	for _, ignored := range []bool{true, false} {
		for _, peer := range []*message.BrokerInfo{nil,
			{ID: "ID:p", Name: "p", NetworkConnection: true}} {
			h := open(t, nil, strict(policy.AbortSlowAck, func(s *policy.SlowConsumer) {
				s.IgnoreNetworkConsumers = ignored
			}))
			g, p := h.connect("g", "g", "", peer), h.connect("p", "p", "", nil)
			id := message.ConsumerID{Connection: "g", Session: 1, Value: 7}
			g.do(&message.ConsumerInfo{ID: id, Destination: queueQ, PrefetchSize: 2,
				NetworkSubscription: peer == nil})
			p.produce("p", queueQ, 1)
			h.pass(20 * time.Second)
			if n := g.toldToClose(id); len(g.got) != 1 || (n == 0) != ignored {
				t.Errorf("ignored %t, peer %t: told to close %d times", ignored, peer != nil, n)
			}
		}
	}
}

// What a consumer was found for counts from its last answer on.
func TestHowOftenAConsumerWasSlowIsForgottenWhenItIsNot(t *testing.T) {
	for _, kind := range []policy.SlowConsumerKind{policy.AbortSlow, policy.AbortSlowAck} {
		h := open(t, nil, strict(kind, func(s *policy.SlowConsumer) {
			s.MaxSlowDuration, s.MaxSlowCount = -1, 3
		}))
		g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		id := g.window("g", queueQ, 1, "")
		for n := range int64(5) {
			p.produce("p", queueQ, 2*n+1)
			p.produce("p", queueQ, 2*n+2)
			if h.pass(time.Second); kind == policy.AbortSlowAck {
				h.pass(11 * time.Second)
			}
			for range 2 {
				g.ack(id, queueQ, g.got[len(g.got)-1], message.StandardAck,
					message.TransactionID{})
			}
			h.pass(2 * time.Second)
		}
		if n := g.toldToClose(id); n != 0 || len(g.got) != 10 {
			t.Errorf("%v: it has %d and is told to close %d times", kind, len(g.got), n)
		}
	}
}

// An aborted consumer's copies go to others, whether its client closes it or not.
func TestWhatAnAbortedConsumerHasGoesToOthers(t *testing.T) {
	for _, obeys := range []bool{false, true} {
		h := open(t, nil, strict(policy.AbortSlowAck, nil))
		g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		id := g.window("g", queueQ, 2, "")
		for n := range int64(3) {
			p.produce("p", queueQ, n+1)
		}
		h.pass(15500 * time.Millisecond)
		if obeys {
			g.do(&message.RemoveInfo{Object: id, LastDelivered: message.LastDeliveredUnset})
		}
		h.pass(3 * time.Second)
		other := h.connect("o", "o", "", nil)
		other.consume("o", queueQ)
		want := int32(1) // the application may have seen it
		if obeys {
			want = 0
		}
		if len(other.got) != 3 || other.counts[0] != want || other.counts[1] != want {
			t.Errorf("obeys %t: %d messages, redelivered %v", obeys, len(other.got), other.counts)
		}
		aborted := 0
		for _, e := range h.events {
			if e.Kind == ConsumerAborted && e.Reason == message.SlowConsumer && e.Dest == queueQ &&
				strings.Contains(e.Text, "client g") && strings.Contains(e.Text, "2 messages") {
				aborted++
			}
		}
		if n := h.b.counts.Reasons[message.SlowConsumer]; n != 1 || aborted != 1 ||
			g.toldToClose(id) != 1 || g.gone {
			t.Errorf("counted %d, told %d times: %v", n, aborted, h.events)
		}
	}
}

func TestASlowConsumersConnectionEnds(t *testing.T) {
	h := open(t, nil, strict(policy.AbortSlowAck, func(s *policy.SlowConsumer) {
		s.AbortConnection = true
	}))
	g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
	g.window("g", queueQ, 2, "")
	g.window("g", queueQ, 2, "")
	p.produce("p", queueQ, 1)
	h.pass(20 * time.Second)
	if !strings.Contains(g.closed, "slowConsumerStrategy") || p.gone {
		t.Errorf("closed: %q", g.closed)
	}
	if n := h.b.find(queueQ).queue.Pending(); n != 1 {
		t.Errorf("%d messages wait", n)
	}
}

// A bridge's subscription ends only when the policy does not ignore it.
func TestASlowBridgeStaysUnlessThePolicySaysOtherwise(t *testing.T) {
	for _, kind := range []policy.SlowConsumerKind{policy.AbortSlow, policy.AbortSlowAck} {
		for _, ignored := range []bool{true, false} {
			h := open(t, nil, strict(kind, func(s *policy.SlowConsumer) {
				s.IgnoreNetworkConsumers = ignored
			}))
			silent, quick := &narrow{window: 2}, &narrow{window: 2}
			lazy := h.netSub(queueQ, silent)
			answers := h.netSub(queueNamed("other"), quick)
			g := h.connect("g", "g", "", nil)
			for n := range int64(3) {
				g.produce("g", queueQ, n+1)
			}
			for n := range int64(30) {
				g.produce("g", queueNamed("other"), 100+n)
				h.pass(time.Second)
				if got := len(quick.got); got > 1 { // one is always on its way
					quick.inFlight = 1
					h.b.Settle(answers, quick.got[:got-1], network.Acked)
				}
				h.turn()
			}
			if there := h.b.networks.subs[lazy] != nil; there != ignored ||
				(silent.closed == "") != ignored || quick.closed != "" {
				t.Errorf("%v ignored %t: it is there %t, closed %q, the other %q", kind, ignored, there,
					silent.closed, quick.closed)
			}
		}
	}
}

// netSub is a bridge's subscription with a window of two.
func (h *house) netSub(d message.Destination, e *narrow) message.ConsumerID {
	h.t.Helper()
	id := message.ConsumerID{Connection: "n", Value: int64(h.Rand())}
	if err := h.b.Subscribe(&network.Subscription{Peer: "ID:p", Filter: e, Sink: e,
		Info: &message.ConsumerInfo{ID: id, Destination: d, PrefetchSize: 2,
			NetworkSubscription: true}}); err != nil {
		h.t.Fatal(err)
	}
	h.turn()
	return id
}

// What is told of an aborted consumer is how many messages it has, of a topic as of a queue.
func TestAnAbortedConsumerIsToldWithWhatItHas(t *testing.T) {
	for _, d := range []message.Destination{queueQ, topicNamed("T")} {
		h := open(t, nil, strict(policy.AbortSlowAck, nil))
		g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		g.window("g", d, 2, "")
		for n := range int64(5) {
			p.produce("p", d, n+1)
		}
		h.pass(20 * time.Second)
		text := ""
		for _, e := range h.events {
			if e.Kind == ConsumerAborted {
				text = e.Text
			}
		}
		if !strings.HasSuffix(text, " has 2 messages") {
			t.Errorf("%v: %q", d, text)
		}
	}
}
