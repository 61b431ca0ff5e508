package broker

import (
	"fmt"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// Limits in here are about ten times what two slow cores need: they catch a cost that grows with
// the wrong thing.

// longest runs f and fails when it takes longer than the limit.
func longest(t *testing.T, what string, limit time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	took := time.Since(began)
	t.Logf("%s: %v", what, took)
	if took > limit {
		t.Errorf("%s took %v, the limit is %v", what, took, limit)
	}
}

// quick is a house whose disk is not checked after each batch.
func quick(t *testing.T, change func(*Options)) *house {
	h := open(t, nil, change)
	h.unchecked = true
	return h
}

func TestAnAcknowledgementOfAPatternsDurableLooksAtItsTopicAlone(t *testing.T) {
	h := quick(t, nil)
	a := h.subscribe("a", "s", ">", func(c *message.ConsumerInfo) { c.PrefetchSize = 20_000 })
	g := h.connect("g", "g", "", nil)
	const topics = 5000
	for n := range int64(topics) {
		g.Handle(g.mail("g", topicNamed(fmt.Sprint("T.", n)), n+1))
	}
	h.turn()
	for n := range int64(1000) {
		g.Handle(g.mail("g", topicNamed("T.0"), topics+n+1))
	}
	h.turn()
	acks := a.got[topics:]
	longest(t, "1000 acknowledgements, each of its turn", 500*time.Millisecond, func() {
		for _, id := range acks {
			a.Handle(&message.MessageAck{Consumer: a.id, Destination: topicNamed("T.0"), Last: id,
				HasLast: true, Count: 1, Type: message.IndividualAck})
			h.turn()
		}
	})
}

// headers makes what a store has of durable subscriptions and of topics with logs.
func headers(subs, topics int, of func(n int) string, count int64) (list []store.Header) {
	for n := range topics {
		list = append(list, store.Header{ID: store.DestID(len(list) + 1), Reserved: 1000, Head: 1,
			Destination: topicNamed(fmt.Sprint("T.", n)), Count: 1})
	}
	for n := range subs {
		list = append(list, store.Header{ID: store.DestID(len(list) + 1), Reserved: 1000, Head: 1,
			Destination: topicNamed(of(n)), Count: count, Bytes: 100 * count,
			Subscription: &store.Subscription{ClientID: fmt.Sprint("c", n), Name: "s"}})
	}
	return list
}

func TestAStartLooksAtEachSubscriptionOnce(t *testing.T) {
	one := func(int) string { return "T.0" }
	own := func(n int) string { return fmt.Sprint("T.", n) }
	all := func(int) string { return ">" }
	for _, c := range []struct {
		what    string
		headers []store.Header
		limit   time.Duration
	}{
		{"10,000 idle durables of one topic", headers(10_000, 1, one, 0), time.Second},
		{"10,000 idle durables of a topic each", headers(10_000, 10_000, own, 0), 2 * time.Second},
		{"10,000 durables of a topic each, not idle", headers(10_000, 10_000, own, 5),
			2 * time.Second},
		{"1,000 idle durables of 1,000 topics", headers(1000, 1000, all, 0), 5 * time.Second},
		{"1,000 durables of 1,000 topics, not idle", headers(1000, 1000, all, 5), 10 * time.Second},
	} {
		h := quick(t, nil)
		longest(t, c.what, c.limit, func() {
			h.b = New(h, h, c.headers, Options{Name: "b", ID: "ID:b", Persistent: true})
			h.b.EndTurn()
		})
	}
}
