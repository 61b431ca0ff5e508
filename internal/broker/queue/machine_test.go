package queue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// anyPolicy draws what a queue follows.
func anyPolicy(t *rapid.T) *policy.Entry {
	e := policy.NewEntry()
	e.Groups = rapid.SampledFrom([]policy.Groups{
		policy.NewGroups(policy.GroupsSimple),
		{Kind: policy.GroupsCached, CacheSize: 1},
		{Kind: policy.GroupsCached, CacheSize: 2},
		{Kind: policy.GroupsBucket, Buckets: 2, CacheSize: 2},
	}).Draw(t, "groups")
	e.Dispatch.ConsumersBeforeStart = rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "consumers")
	e.Dispatch.TimeBeforeStart = rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(t, "time")
	return e
}

// kinds are what a run has: what it has none of does not hide what the rest does.
type kinds struct {
	groups []string
	delay  int // the longest, in seconds
	alone  bool
}

func anyKinds(t *rapid.T) kinds {
	k := kinds{groups: []string{""}, alone: rapid.Bool().Draw(t, "alone")}
	if rapid.Bool().Draw(t, "groups") {
		k.groups = []string{"G", "G", "H", ""}
	}
	if rapid.Bool().Draw(t, "delays") {
		k.delay = 3
	}
	return k
}

func (k kinds) message(t *rapid.T) *message.Message {
	return &message.Message{Persistent: rapid.Bool().Draw(t, "stored"),
		GroupID:       rapid.SampledFrom(k.groups).Draw(t, "group"),
		GroupSequence: rapid.SampledFrom([]int32{0, 0, 0, 1, -1}).Draw(t, "number")}
}

func (k kinds) sub(t *rapid.T) (*testSub, Traits) {
	return &testSub{
			step:     rapid.Uint64Range(1, 4).Draw(t, "step"),
			delay:    time.Duration(rapid.IntRange(0, k.delay).Draw(t, "delay")) * time.Second,
			consumer: rapid.Bool().Draw(t, "consumer"),
			room:     rapid.IntRange(0, 5).Draw(t, "room"),
		}, Traits{Priority: rapid.IntRange(-1, 1).Draw(t, "priority"),
			Network: rapid.Bool().Draw(t, "network"), Mark: rapid.Bool().Draw(t, "mark"),
			Exclusive: Exclusive{On: rapid.IntRange(0, 2).Draw(t, "wants") == 0 && k.alone,
				Priority: rapid.SampledFrom([]int{0, 1, takesOver}).Draw(t, "right")}}
}

// TestEveryPendingCopyIsRefusedForAReasonThatCanStillWake is the promise that nothing is stuck:
// whatever happened before, a queue at rest has no copy that a subscription would take.
func TestEveryPendingCopyIsRefusedForAReasonThatCanStillWake(t *testing.T) {
	spooled := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		defer func() { spooled += w.spooled }()
		w.q.Follow(anyPolicy(t))
		k := anyKinds(t)
		t.Repeat(map[string]func(*rapid.T){
			"send":       func(t *rapid.T) { w.send(t, k) },
			"commit":     func(*rapid.T) { w.commit() },
			"evict":      func(*rapid.T) { w.evictAll() },
			"spool":      func(t *rapid.T) { w.spool(rapid.IntRange(1, 8).Draw(t, "n")) },
			"spooled":    func(*rapid.T) { w.arrives() },
			"take":       func(t *rapid.T) { w.take(t) },
			"attach":     func(t *rapid.T) { w.attach(k.sub(t)) },
			"detach":     func(t *rapid.T) { w.detach(t) },
			"ack":        func(t *rapid.T) { w.ack(t) },
			"place back": func(t *rapid.T) { w.placeBack(t) },
			"rescan":     func(t *rapid.T) { w.rescan(t) },
			"break": func(t *rapid.T) {
				if w.seq > 0 {
					w.bad[rapid.Uint64Range(1, uint64(w.seq)).Draw(t, "bad")] = true
				}
			},
			"mend": func(*rapid.T) {
				clear(w.bad)
				w.advance(time.Second)
			},
			"waits": func(t *rapid.T) {
				if s := w.any(t); s != nil {
					s.slot.Waits(rapid.IntRange(1, 9).Draw(t, "looks"))
				}
			},
			"settle":  func(*rapid.T) { w.settle() },
			"advance": func(*rapid.T) { w.advance(700 * time.Millisecond) },
			"":        func(t *rapid.T) { w.checkRest(t) },
		})
	})
	if spooled == 0 && !testing.Short() { // few rounds are not sure to
		t.Error("nothing was ever spooled")
	}
}

func (w *world) send(t *rapid.T, k kinds) {
	for range rapid.IntRange(1, 8).Draw(t, "n") {
		c := w.addAs(k.message(t))
		if c.Stored && rapid.Bool().Draw(t, "durable") {
			w.q.Committed(c)
		}
	}
}

func (w *world) commit() {
	w.q.Walk(0, 1<<30, func(c *Copy) {
		if c.Stored && !c.Durable {
			w.q.Committed(c)
		}
	})
}

func (w *world) detach(t *rapid.T) {
	if s := w.any(t); s != nil {
		w.q.Detach(s.slot)
		w.q.Return(s.took)
		w.drop(s)
	}
}

func (w *world) ack(t *rapid.T) {
	if s := w.any(t); s != nil && len(s.took) > 0 {
		c := s.took[0]
		s.took = s.took[1:]
		delete(w.stored, c.Seq)
		w.q.Remove(c)
		s.room++
		s.slot.Ready()
	}
}

func (w *world) placeBack(t *rapid.T) {
	if s := w.any(t); s != nil && len(s.took) > 0 {
		c := s.took[0]
		s.took = s.took[1:]
		w.q.Place(c)
	}
}

func (w *world) rescan(t *rapid.T) {
	if s := w.any(t); s != nil {
		s.step = rapid.Uint64Range(1, 4).Draw(t, "step")
		s.slot.Rescan()
	}
}

// arrives makes the records of copies on their way.
func (w *world) arrives() {
	for _, c := range w.onItsWay {
		if c.Put = nil; !c.Ended() {
			c.Spooled = true
			w.stored[c.Seq] = c
			w.spooled++
		}
	}
	w.onItsWay = nil
}

func (w *world) any(t *rapid.T) *testSub {
	if len(w.subs) == 0 {
		return nil
	}
	return rapid.SampledFrom(w.subs).Draw(t, "sub")
}

func (w *world) drop(s *testSub) {
	for i, o := range w.subs {
		if o == s {
			w.subs = append(w.subs[:i], w.subs[i+1:]...)
			return
		}
	}
}

// spool has records of some copies on their way.
func (w *world) spool(n int) {
	w.q.Spoolable(PageBytes, func(c *Copy) bool {
		c.Put = w
		w.onItsWay = append(w.onItsWay, c)
		n--
		return n > 0
	})
}

// take ends a copy that is in no memory, read or unreadable.
func (w *world) take(t *rapid.T) {
	var in []uint64
	for seq := range w.stored {
		if w.q.gaps.has(seq) {
			in = append(in, seq)
		}
	}
	if len(in) == 0 {
		return
	}
	slices.Sort(in)
	c := w.stored[rapid.SampledFrom(in).Draw(t, "taken")]
	delete(w.stored, c.Seq)
	if rapid.Bool().Draw(t, "lost") {
		if !w.q.Lose(c.Seq, c.Spooled) {
			t.Fatalf("copy %d cannot be lost", c.Seq)
		}
	} else {
		x := &Copy{Seq: c.Seq, Message: c.Message, Spooled: c.Spooled}
		if !w.q.TakeStored(x, w) || x.Stored == x.Spooled || x.Durable != x.Stored {
			t.Fatalf("copy %d cannot be taken, or not as what it is: %+v", c.Seq, x)
		}
		w.q.Remove(x)
	}
	w.q.Erased(c.Seq)
}

// evictAll drops from memory what may be dropped, also the first page.
func (w *world) evictAll() {
	l := &w.q.lanes[main]
	for _, e := range append([]entry(nil), l.entries[l.start:]...) {
		if c := e.copy; c != nil && (c.Durable || c.Spooled) {
			l.remove(c.key)
			w.q.toGap(c)
		}
	}
}

func (w *world) checkRest(t *rapid.T) {
	w.settle()
	w.checkView(t)
	if w.q.gapCount < 0 || len(w.q.gaps) == 0 && w.q.gapCount != 0 { // what is taken leaves its gap
		t.Fatalf("gaps %v with %d copies", w.q.gaps, w.q.gapCount)
	}
	inGap, spooled := int64(0), int64(0)
	pending := map[uint64]bool{}
	for seq := range w.stored {
		if w.q.gaps.has(seq) {
			inGap++
			pending[seq] = true
			if w.stored[seq].Spooled {
				spooled++
			}
		}
	}
	if inGap != w.q.gapCount {
		t.Fatalf("%d stored copies in the gaps %v, counted %d", inGap, w.q.gaps, w.q.gapCount)
	}
	if n := w.q.SpooledOnly(); spooled != n {
		t.Fatalf("%d of those in gaps are in the spool, counted %d", spooled, n)
	}
	w.q.Scan(Cursor{}, 1<<30, func(c *Copy) {
		w.q.Refusals(c, func(s *Slot, v message.Verdict) {
			if v.Outcome == message.Deliver && !w.waitsBefore(s, c.lane, c.key) {
				t.Fatalf("copy %d waits although %+v would take it", c.Seq, s.Traits)
			}
			if v.Wake == message.WakeAt && w.q.timer == nil && !w.waitsBefore(s, c.lane, c.key) {
				t.Fatalf("copy %d waits for a time without a timer", c.Seq)
			}
		})
	})
	for _, s := range w.subs {
		for seq := range pending {
			open := w.q.gate(s.slot, w.now).Outcome == message.Deliver && !s.slot.sated()
			if open && w.q.verdict(s.slot, w.stored[seq], w.now).Outcome == message.Deliver &&
				!w.waitsBefore(s.slot, main, seq) {
				t.Fatalf("stored copy %d waits although a subscription would take it", seq)
			}
		}
	}
	if err := w.q.Check(); err != nil {
		t.Fatal(err)
	}
}

// waitsBefore reports whether the slot waits for a page that cannot be read before it looks at the
// place.
func (w *world) waitsBefore(s *Slot, l int8, key uint64) bool {
	unreadable := func(seq uint64) bool { return w.q.unread[seq] && w.q.gaps.has(seq) }
	if s.hasAgain(place{l, key}) {
		return unreadable(s.again[0].key)
	}
	return l == main && s.pos[main] <= key && unreadable(s.pos[main])
}
