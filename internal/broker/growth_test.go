package broker

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// Limits in here are ten times what two slow cores need, or more: they catch a cost that grows with
// the wrong thing.

// longest runs f and fails when that takes more of the processors than the limit: others may use
// the machine, too, so that no clock tells what it cost.
func longest(t *testing.T, what string, limit time.Duration, f func()) {
	t.Helper()
	began := used(t)
	f()
	took := used(t) - began
	t.Logf("%s: %v", what, took)
	if took > limit {
		t.Errorf("%s took %v, the limit is %v", what, took, limit)
	}
}

// used is how long the process has used processors.
func used(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// quick is a house whose disk is not checked after each batch.
func quick(t *testing.T, change func(*Options)) *house {
	h := open(t, nil, change)
	h.unchecked = true
	return h
}

func TestAnAcknowledgementOfAPatternsDurableLooksAtItsTopicAlone(t *testing.T) {
	few, many := ackTime(t, 200), ackTime(t, 20_000)
	t.Logf("100 acknowledgements: %v with 200 topics, %v with 20,000", few, many)
	if many > 20*few {
		t.Errorf("they take %v with a hundred times the topics, %v without", many, few)
	}
}

// ackTime gives the time of 100 acknowledgements, each of its turn, by a durable of all of so many
// topics: the best of ten, as others may use the machine.
func ackTime(t *testing.T, topics int64) time.Duration {
	t.Helper()
	h := quick(t, nil)
	a := h.subscribe("a", "s", ">", func(c *message.ConsumerInfo) { c.PrefetchSize = 30_000 })
	g := h.connect("g", "g", "", nil)
	for n := range topics {
		g.Handle(g.mail("g", topicNamed(fmt.Sprint("T.", n)), n+1))
	}
	h.turn()
	a.do(&message.MessageAck{Consumer: a.id, Destination: topicNamed(fmt.Sprint("T.", topics-1)),
		Last: a.got[topics-1], HasLast: true, Count: int32(topics), Type: message.StandardAck})
	const acknowledged = 1000
	for n := range int64(acknowledged) {
		g.Handle(g.mail("g", topicNamed("T.0"), topics+n+1))
	}
	h.turn()
	best := time.Hour
	for acks := range slices.Chunk(a.got[topics:], acknowledged/10) {
		began := time.Now()
		for _, id := range acks {
			a.Handle(&message.MessageAck{Consumer: a.id, Destination: topicNamed("T.0"), Last: id,
				HasLast: true, Count: 1, Type: message.IndividualAck})
			h.turn()
		}
		best = min(best, time.Since(began))
	}
	return best
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
	// Were each looked at with each, as once, the second would take 20 s or more.
	const many, limit = 20_000, 15 * time.Second
	for _, c := range []struct {
		what   string
		topics int
		of     func(n int) string
		count  int64
	}{
		{"idle durables of one topic", 1, one, 0},
		{"idle durables of a topic each", many, own, 0},
		{"durables of a topic each, not idle", many, own, 5},
		{"idle durables of all of 100 topics", 100, all, 0},
		{"durables of all of 100 topics, not idle", 100, all, 5},
	} {
		list, h := headers(many, c.topics, c.of, c.count), quick(t, nil)
		longest(t, c.what, limit, func() {
			h.b = New(h, h, list, Options{Name: "b", ID: "ID:b", Persistent: true})
			h.b.EndTurn()
		})
	}
}

// stepped lets everything happen and gives the longest time for which the loop was held.
func (h *house) stepped() (most time.Duration) {
	timed := func(f func()) {
		began := time.Now()
		f()
		most = max(most, time.Since(began))
	}
	h.answers = timed
	defer func() { h.answers = nil }()
	for {
		timed(h.b.EndTurn)
		switch {
		case len(h.soon) > 0:
			f := h.soon[0]
			h.soon = h.soon[1:]
			timed(f)
		case len(h.jobs) > 0:
			f := h.jobs[0]
			h.jobs = h.jobs[1:]
			f()
		default:
			return most
		}
	}
}

func TestAMessageToManyDurablesHoldsTheLoopForAShortTime(t *testing.T) {
	for _, active := range []bool{false, true} {
		h := quick(t, nil)
		began := time.Now()
		h.mono = func() time.Duration { return time.Since(began) }
		const many = 10_000
		var readers []*reader
		for n := range many {
			r := h.subscribe(fmt.Sprint("c", n), "s", "T", nil)
			if readers = append(readers, r); !active {
				r.leave()
			}
		}
		g := h.connect("g", "g", "", nil)
		g.do(&message.ProducerInfo{ID: message.ProducerID{Connection: "g", Session: 1, Value: 1}})
		var sends, pieces []time.Duration
		for n := range int64(21) {
			m := g.mail("g", topicNamed("T"), n+1)
			began := time.Now()
			g.Handle(m)
			sends = append(sends, time.Since(began))
			pieces = append(pieces, h.stepped())
		}
		// The best of them: others may use the machine.
		send, piece := slices.Min(sends), slices.Min(pieces)
		t.Logf("a send %v, the longest piece behind it %v; consumers there: %v", send, piece, active)
		if send > 500*time.Millisecond || piece > 500*time.Millisecond {
			t.Errorf("the loop is held for %v and %v", send, piece)
		}
		if !active {
			continue
		}
		longest(t, "10,000 acknowledgements in 100 turns", 10*time.Second, func() {
			for n, r := range readers {
				r.Handle(&message.MessageAck{Consumer: r.id, Destination: topicNamed("T"),
					Last: r.got[0], HasLast: true, Count: 1, Type: message.StandardAck})
				if n%100 == 99 {
					h.turn()
				}
			}
		})
	}
}

func TestQueuesThatOneMessageWakesDoNotDeliverInOneTurn(t *testing.T) {
	h := open(t, nil, nil)
	const many = 300
	var readers []*reader
	for n := range many {
		readers = append(readers, h.subscribe(fmt.Sprint("c", n), "s", "T", nil))
	}
	now := h.now
	h.mono = func() time.Duration { now += time.Millisecond / 4; return now }
	g := h.connect("g", "g", "", nil)
	first, second := g.mail("g", topicNamed("T"), 1), g.mail("g", topicNamed("T"), 2)
	got := func() (n int) {
		for _, r := range readers {
			n += len(r.got)
		}
		return n
	}
	g.Handle(first)
	h.b.EndTurn()
	if n := got(); n == 0 || n == many {
		t.Errorf("%d of %d have it after a turn", n, many)
	}
	g.Handle(second) // what comes meanwhile wakes nobody twice
	h.turn()
	for n, r := range readers {
		if r.bodies() != "1 2" {
			t.Fatalf("client %d has %q", n, r.bodies())
		}
	}
}
