package broker

import (
	"fmt"
	"strings"
	"testing"

	"hopwire/internal/message"
)

// purge purges a queue and gives what came of it, once all is durable.
func (h *house) purge(d message.Destination) (out Purged) {
	h.t.Helper()
	answers := 0
	h.b.Purge(d, "root", func(p Purged, err error) {
		out = p
		if answers++; err != nil {
			h.t.Error(err)
		}
	})
	h.turn()
	if answers != 1 {
		h.t.Errorf("the purge of %s is answered %d times", d, answers)
	}
	return out
}

// has fails unless a queue has so many copies, now and after a crash, and nothing is left in
// its accounts when it has none.
func (h *house) has(d message.Destination, want int64) {
	h.t.Helper()
	x := h.b.find(d)
	if n := x.queue.Len(); n != want {
		h.t.Errorf("%s has %d messages, want %d", d, n, want)
	}
	if want == 0 && (x.usage.Used() != 0 || x.stored != 0 || x.storedBytes != 0) {
		h.t.Errorf("of an empty %s %d bytes are in memory, %d messages with %d bytes in the store", d,
			x.usage.Used(), x.stored, x.storedBytes)
	}
	if err := x.queue.Check(); err != nil {
		h.t.Error(err)
	}
	again := h.again().b.find(d)
	if again == nil {
		if want > 0 {
			h.t.Errorf("%s is gone after a crash", d)
		}
		return
	}
	if n := again.queue.Len() + again.queue.Withheld(); n != want {
		h.t.Errorf("%s has %d messages after a crash, want %d", d, n, want)
	}
}

func TestAPurgeDropsAllThatWaits(t *testing.T) {
	q := queueNamed("q")
	for name, h := range map[string]*house{
		"in memory":    stocked(t, q, 700),
		"in the store": filled(t, q, 5000),
	} {
		got := h.purge(q)
		if want := (Purged{Dropped: h.b.find(q).counts.Dequeued}); got != want || got.Dropped < 700 {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		for _, n := range []int64{h.b.counts.Reasons[message.Purged],
			h.b.find(q).reasons[message.Purged]} {
			if n != got.Dropped {
				t.Errorf("%s: %d of %d are counted", name, n, got.Dropped)
			}
		}
		h.has(q, 0)
		p := h.connect("n", "n", "", nil)
		p.produce("n", q, 1)
		p.consume("n", q)
		if len(p.got) != 1 {
			t.Errorf("%s: %d messages come after it", name, len(p.got))
		}
	}
}

// What somebody has stays, and is told; what comes meanwhile stays, too.
func TestAPurgeLeavesWhatSomebodyHas(t *testing.T) {
	q := queueNamed("q")
	h := stocked(t, q, 600)
	c := h.connect("c", "c", "", nil)
	id := c.window("c", q, 10, "")
	tx := c.begin("c", 1)
	c.ack(id, q, c.got[0], message.StandardAck, tx)
	p := h.connect("x", "x", "", nil)
	p.walk(xid(1), begin, "ok")
	p.sendTx(xid(1), q, 1)
	p.walk(xid(1), prepare, "vote 0")
	var got Purged
	h.b.Purge(q, "root", func(p Purged, _ error) { got = p })
	p.produce("x", q, 2) // the purge has only begun
	h.turn()
	if want := (Purged{Dropped: 600 - 11, InFlight: 10, Transacted: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if n := h.b.find(q).queue.Len(); n != 12 {
		t.Errorf("%d messages are left, want 12", n)
	}
	if e := c.finish(tx, message.Rollback); e != nil {
		t.Error(e)
	}
	p.walk(xid(1), commit2, "ok")
	h.has(q, 13)
}

// A prepared branch keeps what it acknowledged before the broker's start.
func TestAPurgeLeavesWhatABranchKeepsOverARestart(t *testing.T) {
	h, _ := branched(t)
	h = h.again()
	in := queueNamed("in")
	if got, want := h.purge(in), (Purged{Dropped: 1, Transacted: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	h.connect("m", "m", "", nil).walk(xid(1), rollback, "ok")
	h.has(in, 2)
}

// A copy that a peer may have stays until that is known.
func TestAPurgeLeavesWhatIsInDoubt(t *testing.T) {
	for _, loaded := range []bool{false, true} {
		q := queueNamed("q")
		h := stocked(t, q, 3000)
		h.b.find(q).marks = map[message.BrokerID]uint64{"ID:peer": 1200}
		h.b.journal.touch(h.b.find(q))
		h.b.see("ID:peer")
		h.turn()
		h = h.again()
		if loaded {
			g := h.connect("g", "g", "", nil)
			g.window("g", q, 1, "")
			h.turn()
		}
		got := h.purge(q)
		want := Purged{Dropped: 3000 - 1199, InDoubt: 1199}
		if loaded {
			want.Dropped, want.InFlight = want.Dropped-1, 1
		}
		if got != want {
			t.Errorf("loaded %v: %+v, want %+v", loaded, got, want)
		}
	}
}

func TestNothingIsPurgedThatIsNoQueue(t *testing.T) {
	h := open(t, nil, nil)
	h.subscribe("c", "s", "T", nil)
	for d, kind := range map[message.Destination]message.ErrorKind{
		queueNamed("none"): message.NotFound, topicNamed("T"): message.IllegalState,
		topicNamed("none"): message.IllegalState,
	} {
		h.b.Purge(d, "root", func(_ Purged, err error) {
			if message.KindOf(err) != kind {
				t.Errorf("%s: %v", d, err)
			}
		})
	}
}

// A client may send to a name that is a pattern for consumers. What is done by hand is done to the
// destination of that very name, and to no others.
func TestAPatternNamesOneDestinationToWhoDoesSomethingByHand(t *testing.T) {
	h := open(t, nil, nil)
	g, q := h.connect("g", "g", "", nil), queueNamed("a.>")
	g.produce("g", queueNamed("a.b"), 1)
	h.b.Purge(q, "root", func(_ Purged, err error) {
		if message.KindOf(err) != message.NotFound || !strings.Contains(err.Error(), "that very name") {
			t.Errorf("before it is there: %v", err)
		}
	})
	g.produce("g", q, 2)
	if got := h.purge(q); got.Dropped != 1 {
		t.Errorf("%+v", got)
	}
	h.has(queueNamed("a.b"), 1)
	var failed error
	h.b.Remove(q, "root", func(_ Removed, err error) { failed = err })
	h.turn()
	if failed != nil || h.b.find(q) != nil {
		t.Errorf("it is there still: %v", failed)
	}
}

// No turn of a purge, but for others, ends more than its slice, however much there is.
func TestAPurgeGoesInSlices(t *testing.T) {
	q := queueNamed("q")
	for name, h := range map[string]*house{
		"in memory": stocked(t, q, 3000), "in the store": filled(t, q, 3000),
	} {
		d, done := h.b.find(q), false
		h.b.Purge(q, "root", func(Purged, error) { done = true })
		for before := d.counts.Dequeued; !done; before = d.counts.Dequeued {
			if !h.step() && !done {
				t.Fatalf("%s: it does not end", name)
			}
			if n := d.counts.Dequeued - before; n > purgeSlice {
				t.Fatalf("%s: one turn ends %d", name, n)
			}
		}
		h.has(q, 0)
	}
}

// A purge that the stop leaves no time tells what it dropped: that is gone, and nothing else.
func TestAPurgeThatTheStopCutsOffTellsWhatItDropped(t *testing.T) {
	q := queueNamed("q")
	const all = 3000
	live := open(t, nil, nil)
	p := live.connect("p", "p", "", nil)
	for n := range int64(all) {
		p.produce("p", q, n+1)
	}
	p.Gone()
	for name, h := range map[string]*house{"in memory": live, "in the store": filled(t, q, all)} {
		var out Purged
		var err error
		h.b.Purge(q, "root", func(p Purged, e error) { out, err = p, e })
		for h.b.find(q).counts.Dequeued == 0 && h.step() {
		}
		h.events = nil
		ended := false
		for h.b.Stop(func() {}, func() { ended = true }); !ended; {
			h.b.EndTurn()
			list := &h.jobs // the store is fast
			if len(h.jobs) == 0 {
				list = &h.soon
			}
			f := (*list)[0]
			*list = (*list)[1:]
			f()
		}
		h.turn()
		if message.KindOf(err) != message.Unavailable || out.Dropped == 0 || out.Dropped >= all {
			t.Fatalf("%s: %+v is answered, %v", name, out, err)
		}
		want := fmt.Sprintf("purged: %d messages dropped; cut off by the stop of the broker, and the"+
			" rest is there", out.Dropped)
		if err.Error() != "queue://q "+want {
			t.Errorf("%s: answered %v", name, err)
		}
		told := 0
		for _, e := range h.events {
			if e.Kind == ByHand && e.Text == want && e.Count == out.Dropped && e.By == "root" {
				told++
			}
		}
		if told != 1 || h.b.counts.Reasons[message.Purged] != out.Dropped {
			t.Errorf("%s: told %d times, want once: %s; counted %v", name, told, want,
				h.b.counts.Reasons)
		}
		if n := h.again().b.find(q).queue.Len(); n != all-out.Dropped {
			t.Errorf("%s: %d are left after %+v", name, n, out)
		}
		h.b.Purge(q, "root", func(_ Purged, e error) { err = e })
		if message.KindOf(err) != message.Unavailable || len(h.b.purges) > 0 {
			t.Errorf("%s: a purge after the stop is answered %v", name, err)
		}
	}
}

// What is brought to memory while the purge reads it is purged there. No consumer has it yet: the
// store does not know of that.
func TestAPurgeMeetsWhatIsReadForAConsumerMeanwhile(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 4000)
	c := h.connect("c", "c", "", nil)
	c.hand(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "c", Session: 1},
		Destination: q, PrefetchSize: 100})
	h.b.EndTurn()
	h.b.EndTurn() // its page is on the way
	if got := h.purge(q); got != (Purged{Dropped: 4000}) || len(c.got) > 0 {
		t.Errorf("%+v and %d messages", got, len(c.got))
	}
	h.has(q, 0)
}

// A send whose message is purged before it is durable is answered.
func TestAPurgeAnswersWhoSentWhatItEnds(t *testing.T) {
	q := queueNamed("q")
	h := open(t, nil, nil)
	p := h.connect("p", "p", "", nil)
	n := p.hand(p.mail("p", q, 1))
	if got := h.purge(q); got.Dropped != 1 {
		t.Errorf("%+v", got)
	}
	if p.answer(n) == nil {
		t.Error("the send is not answered")
	}
	h.has(q, 0)
}

// A queue whose consumers take from it while it is purged ends each message once.
func TestAPurgeAndConsumersEndEachMessageOnce(t *testing.T) {
	for seed := range 15 {
		q := queueNamed("q")
		h := filled(t, q, 4000)
		h.broken = seed % 3 // so many reads fail
		c := h.connect("c", "c", "", nil)
		id := c.window("c", q, 100, "")
		var got Purged
		answered := false
		for range seed * 7 {
			h.step()
		}
		h.b.Purge(q, "root", func(p Purged, _ error) { got, answered = p, true })
		acked := 0
		for i := 0; !answered; i++ {
			if i%(2+seed%5) == 0 && acked < len(c.got) {
				c.Handle(&message.MessageAck{Consumer: id, Destination: q, Count: 1, HasLast: true,
					Type: message.IndividualAck, First: c.got[acked], Last: c.got[acked]})
				acked++
			}
			if !h.step() {
				h.pass(2e9)
			}
		}
		for h.turn(); acked < len(c.got); acked++ {
			c.ack(id, q, c.got[acked], message.IndividualAck, message.TransactionID{})
		}
		if n := int64(acked) + got.Dropped; n != 4000 {
			t.Errorf("seed %d: %d consumed and %d dropped of 4000", seed, acked, got.Dropped)
		}
		h.has(q, 0)
	}
}

func TestWhatIsRemovedByHandIsToldAndCounted(t *testing.T) {
	q, topic := queueNamed("q"), topicNamed("T")
	h := stocked(t, q, 5)
	remove := func(d message.Destination) (text string) {
		h.b.Remove(d, "root", func(r Removed, err error) { text = fmt.Sprint(r.Dropped, " ", err) })
		h.turn()
		return text
	}
	g := h.connect("g", "g", "", nil)
	id := g.consume("g", q)
	if got := remove(q); got != "0 queue://q is not removed: it has 1 consumer and 0"+
		" subscriptions of bridges" {
		t.Error(got)
	}
	g.do(&message.RemoveInfo{Object: id, LastDelivered: message.LastDeliveredUnset})
	if got := remove(q); got != "5 <nil>" || h.b.find(q) != nil ||
		h.b.counts.Reasons[message.DestinationRemoved] != 5 {
		t.Errorf("%s, %v", got, h.b.counts.Reasons)
	}
	s := h.subscribe("c", "s", "T", nil)
	s.leave()
	h.publish("T", 1, 3)
	if got := remove(topic); got != "0 topic://T is not removed: it has 1 durable subscription,"+
		" first s of client c" {
		t.Error(got)
	}
	end := func(client, name string) (text string) {
		h.b.RemoveSubscription(client, name, "root", func(r Removed, err error) {
			text = fmt.Sprint(r.Dropped, " ", message.KindOf(err))
		})
		h.turn()
		return text
	}
	if got := end("c", "x"); got != fmt.Sprint("0 ", message.NotFound) {
		t.Error(got)
	}
	s = h.subscribe("c", "s", "T", nil)
	if got := end("c", "s"); got != fmt.Sprint("0 ", message.IllegalState) {
		t.Error(got)
	}
	s.leave()
	if got := end("c", "s"); got != fmt.Sprint("3 ", message.ErrorKind(0)) ||
		h.b.counts.Reasons[message.Unsubscribed] != 3 {
		t.Errorf("%s, %v", got, h.b.counts.Reasons)
	}
	if got := remove(topic); got != "0 <nil>" {
		t.Error(got)
	}
	if len(headersOf(t, h)) != 0 {
		t.Errorf("the store has %v", headersOf(t, h))
	}
}

func TestEachThatIsDoneByHandIsToldOnceWithItsNumberAndByWhom(t *testing.T) {
	q, empty := queueNamed("q"), queueNamed("empty")
	h := stocked(t, q, 5)
	h.b.destination(empty)
	s := h.subscribe("c", "s", "T", nil)
	s.leave()
	for _, x := range []struct {
		do   func()
		want string
	}{
		{func() { h.b.Purge(q, "root", func(Purged, error) {}) }, "queue://q purged: 5 messages dropped"},
		{func() { h.b.Purge(q, "root", func(Purged, error) {}) }, "queue://q purged: 0 messages dropped"},
		{func() {
			h.connect("n", "n", "", nil).produce("n", q, 1)
			h.b.Remove(q, "root", func(Removed, error) {})
		}, "queue://q deleted: 1 message dropped"},
		{func() { h.b.Remove(empty, "root", func(Removed, error) {}) },
			"queue://empty deleted: 0 messages dropped"},
		{func() { h.b.RemoveSubscription("c", "s", "root", func(Removed, error) {}) },
			"topic://T durable subscription s of client c removed: 0 messages dropped"},
	} {
		h.events = nil
		x.do()
		h.turn()
		var got []string
		for _, e := range h.events {
			if e.Kind == ByHand || e.Kind == MessageDropped || e.Kind == SubscriptionRemoved {
				got = append(got, e.Dest.String()+" "+e.Text+" by "+e.By)
			}
		}
		if want := x.want + " by root"; len(got) != 1 || got[0] != want {
			t.Errorf("told as %q, want %q", got, want)
		}
	}
}
