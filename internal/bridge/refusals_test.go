package bridge

import (
	"testing"

	"hopwire/internal/message"
)

func farConsumer(n int64, dest message.Destination,
	path ...message.BrokerID) *message.ConsumerInfo {
	return &message.ConsumerInfo{ID: message.ConsumerID{Connection: "far", Session: 1, Value: n},
		Destination: dest, NetworkSubscription: true, BrokerPath: path}
}

// What consumerTTL keeps away is known by its nearest consumer, and as long as there is one.
func TestRefusedDemandIsRemembered(t *testing.T) {
	o := Options{Name: "nc", URIs: []string{"x"}, ConsumerTTL: 1, MessageTTL: 1}
	tb := newTable(&o, "me", "peer", nil)
	q, all := message.Destination{Kind: message.Queue, Name: "a.b"},
		message.Destination{Kind: message.Queue, Name: "a.>"}
	want := func(when string, hops int) {
		t.Helper()
		if got := tb.refusals.nearest(q); got != hops {
			t.Errorf("%s: nearest is %d, want %d", when, got, hops)
		}
	}
	want("at first", 0)
	tb.add(farConsumer(1, q, "y", "x"), "")
	want("one over two brokers", 3)
	tb.add(farConsumer(2, all, "x"), "")
	want("a nearer pattern", 2)
	tb.add(farConsumer(3, q, "me"), "")
	tb.remove(message.ConsumerID{Connection: "far", Session: 1, Value: 2})
	want("the pattern is gone", 3)
	tb.add(farConsumer(1, q), "")
	want("it came nearer and is let by", 0)

	d := farConsumer(4, q, "x")
	d.ClientID, d.SubscriptionName = "c", "s"
	tb.add(d, "")
	tb.remove(d.ID)
	want("a durable subscription whose consumer went", 2)
	tb.removeDurable("c", "s")
	want("a durable subscription that went", 0)
	if n, p := len(tb.refusals.of)+len(tb.refusals.at), len(tb.refusals.patterns); n+p > 0 {
		t.Errorf("%d entries and %d patterns stay behind", n, p)
	}
}

// A peer with more consumers than are remembered costs no more room.
func TestRefusedDemandIsBounded(t *testing.T) {
	o := Options{Name: "nc", URIs: []string{"x"}, ConsumerTTL: 1, MessageTTL: 1}
	tb := newTable(&o, "me", "peer", nil)
	q := message.Destination{Kind: message.Queue, Name: "q"}
	for i := range int64(refusalsKept + 10) {
		tb.add(farConsumer(i, q, "x"), "")
	}
	if n, m := len(tb.refusals.of), len(tb.refusals.at[q]); n != refusalsKept || m != n {
		t.Errorf("%d and %d are kept, want %d", n, m, refusalsKept)
	}
}
