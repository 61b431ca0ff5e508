package queue

import (
	"fmt"
	"slices"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// clock is an Env whose time the test moves.
type clock struct {
	now    time.Duration
	timers []*testTimer
}

type testTimer struct {
	at   time.Duration
	f    func()
	done bool
}

func (t *testTimer) Stop() { t.done = true }

func (c *clock) Wall() int64         { return int64(c.now / time.Millisecond) }
func (c *clock) Mono() time.Duration { return c.now }
func (c *clock) Soon(f func())       { f() }
func (c *clock) Rand() uint64        { return 4 }

func (c *clock) After(d time.Duration, f func()) loop.Timer {
	t := &testTimer{at: c.now + d, f: f}
	c.timers = append(c.timers, t)
	return t
}

// advance moves the time and runs what is due, in order.
func (c *clock) advance(d time.Duration) {
	end := c.now + d
	for {
		sort.SliceStable(c.timers, func(i, j int) bool { return c.timers[i].at < c.timers[j].at })
		for len(c.timers) > 0 && c.timers[0].done {
			c.timers = c.timers[1:]
		}
		if len(c.timers) == 0 || c.timers[0].at > end {
			break
		}
		t := c.timers[0]
		c.timers = c.timers[1:]
		c.now = t.at
		t.f()
	}
	c.now = end
}

// testHost keeps stored copies and answers page reads when it is told to.
type testHost struct {
	q       *Queue
	woken   bool
	stored  map[uint64]*Copy // as they were added
	reads   []gap
	expired int
	known   uint64 // copies below it may go to clients
	asked   uint64 // and below it, when it is told that they are known
}

func (h *testHost) Wake(*Queue)                        { h.woken = true }
func (h *testHost) ReadPage(_ *Queue, from, to uint64) { h.reads = append(h.reads, gap{from, to}) }
func (h *testHost) RaiseMark(s *Slot, seq uint64)      { s.SetMark(seq + 3) }
func (h *testHost) Deliverable(_ *Slot, c *Copy) bool {
	if c.Seq < h.known {
		return true
	}
	h.asked = c.Seq + 1
	return false
}
func (h *testHost) Expire(q *Queue, c *Copy) { h.expired++; q.Remove(c) }

// settle runs everything that can run without time passing.
func (h *testHost) settle() {
	for h.woken || len(h.reads) > 0 || h.asked > h.known {
		if h.woken {
			h.woken = false
			h.q.Dispatch()
			continue
		}
		if h.asked > h.known {
			h.known = h.asked + 2
			h.q.Known()
			continue
		}
		g := h.reads[0]
		h.reads = h.reads[1:]
		h.load(g)
	}
}

func (h *testHost) load(g gap) {
	var seqs []uint64
	for s := range h.stored {
		if s >= g.from && s < g.to {
			seqs = append(seqs, s)
		}
	}
	slices.Sort(seqs)
	if len(seqs) > 3 { // small pages, so that several are needed
		seqs = seqs[:3]
	}
	complete := g.to
	var copies []*Copy
	for _, s := range seqs {
		copies = append(copies, &Copy{Seq: s, Message: h.stored[s].Message,
			Arrived: h.stored[s].Arrived})
		complete = s + 1
	}
	h.q.Loaded(g.from, complete, copies)
}

// testSub takes copies whose sequence is a multiple of step, from delay after their arrival on.
type testSub struct {
	step     uint64
	delay    time.Duration
	consumer bool // refuse until the consumers change
	room     int
	slot     *Slot
	took     []*Copy
}

func (s *testSub) Gate(time.Duration) message.Verdict {
	if s.room == 0 {
		return message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
			Reason: message.WindowFull}
	}
	return message.Verdict{}
}

func (s *testSub) Verdict(c *Copy, now time.Duration) message.Verdict {
	if c.Seq%s.step != 0 {
		return message.Refused(message.SelectorNoMatch)
	}
	if at := c.Arrived + s.delay; now < at {
		return message.RefusedUntil(message.ReplayDelay, at)
	}
	if s.consumer && len(s.slot.queue.slots) > 1 {
		return message.Verdict{Outcome: message.Refuse, Wake: message.WakeConsumers,
			Reason: message.LocalConsumerPresent}
	}
	return message.Verdict{}
}

func (s *testSub) Take(c *Copy) bool {
	s.took = append(s.took, c)
	s.room--
	return s.room > 0
}

func (s *testSub) Claim(*Copy) bool { s.room--; return s.room > 0 }

func (s *testSub) Unclaim(*Copy) { s.room++ }

type world struct {
	clock
	testHost
	subs []*testSub
	seq  int
}

func newWorld() *world {
	w := &world{}
	w.stored = map[uint64]*Copy{}
	w.q = New(message.Destination{Kind: message.Queue, Name: "q"}, &w.clock, &w.testHost, 1)
	return w
}

func (w *world) add(stored bool) *Copy {
	w.seq++
	m := &message.Message{ID: message.MessageID{Sequence: int64(w.seq)}, Persistent: stored}
	c := w.q.Add(m, w.now)
	if stored {
		c.Stored = true
		w.stored[c.Seq] = c
	}
	return c
}

func (w *world) attach(s *testSub, t Traits) *testSub {
	if s.step == 0 {
		s.step = 1
	}
	w.subs = append(w.subs, s)
	s.slot = w.q.Attach(s, t)
	return s
}

func seqsOf(copies []*Copy) string {
	var out []uint64
	for _, c := range copies {
		out = append(out, c.Seq)
	}
	return fmt.Sprint(out)
}

func TestEqualSubscriptionsTakeTurnsTheOlderFirst(t *testing.T) {
	w := newWorld()
	a := w.attach(&testSub{room: 99}, Traits{})
	b := w.attach(&testSub{room: 99}, Traits{})
	for range 5 {
		w.add(false)
	}
	w.settle()
	if got := seqsOf(a.took) + seqsOf(b.took); got != "[1 3 5][2 4]" {
		t.Errorf("took %s", got)
	}
}

func TestHigherPriorityIsServedUntilItIsFull(t *testing.T) {
	w := newWorld()
	low := w.attach(&testSub{room: 99}, Traits{Priority: -5})
	high := w.attach(&testSub{room: 2}, Traits{})
	for range 4 {
		w.add(false)
	}
	w.settle()
	if got := seqsOf(high.took) + seqsOf(low.took); got != "[1 2][3 4]" {
		t.Errorf("took %s", got)
	}
}

func TestAMatchBehindManyOthersIsDelivered(t *testing.T) {
	w := newWorld()
	s := w.attach(&testSub{step: 100_001, room: 1}, Traits{})
	for range 100_001 {
		w.add(false)
	}
	w.settle()
	if got := seqsOf(s.took); got != "[100001]" {
		t.Errorf("took %s", got)
	}
}

func TestADelayedCopyIsDeliveredWhenTheDelayIsOver(t *testing.T) {
	w := newWorld()
	s := w.attach(&testSub{delay: 3 * time.Second, room: 9}, Traits{Network: true})
	w.add(false)
	w.settle()
	w.advance(2999 * time.Millisecond)
	w.settle()
	if len(s.took) != 0 {
		t.Fatal("delivered too early")
	}
	w.advance(time.Millisecond)
	w.settle()
	if len(s.took) != 1 {
		t.Fatal("not delivered when the delay was over")
	}
}

func TestANetworkSubscriptionWaitsForTheCommit(t *testing.T) {
	w := newWorld()
	s := w.attach(&testSub{room: 9}, Traits{Network: true, Mark: true})
	c := w.add(true)
	w.settle()
	if len(s.took) != 0 {
		t.Fatal("delivered before it was durable")
	}
	w.q.Committed(c)
	w.settle()
	if len(s.took) != 1 {
		t.Fatal("not delivered when it was durable")
	}
}

func TestReturnedCopiesComeFirstAndInOrder(t *testing.T) {
	w := newWorld()
	a := w.attach(&testSub{room: 2}, Traits{})
	for range 4 {
		w.add(false)
	}
	w.settle()
	w.q.Detach(a.slot)
	w.q.Return(a.took)
	b := w.attach(&testSub{room: 9}, Traits{})
	w.settle()
	if got := seqsOf(b.took); got != "[1 2 3 4]" {
		t.Errorf("took %s", got)
	}
}

func TestACopyPlacedLateIsOfferedInItsOrder(t *testing.T) {
	w := newWorld()
	s := w.attach(&testSub{room: 1}, Traits{})
	held := w.q.Reserve(&message.Message{}, 0, "transaction")
	w.add(false)
	w.add(false)
	w.settle()
	w.q.Place(held)
	s.room = 9
	s.slot.Ready()
	w.settle()
	if got := seqsOf(s.took); got != "[2 1 3]" {
		t.Errorf("took %s", got)
	}
}

// TestEveryPendingCopyIsRefusedForAReasonThatCanStillWake is the promise that nothing is stuck:
// whatever happened before, a queue at rest has no copy that a subscription would take.
func TestEveryPendingCopyIsRefusedForAReasonThatCanStillWake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "n") {
					c := w.add(rapid.Bool().Draw(t, "stored"))
					if c.Stored && rapid.Bool().Draw(t, "durable") {
						w.q.Committed(c)
					}
				}
			},
			"commit": func(*rapid.T) {
				w.q.Walk(0, 1<<30, func(c *Copy) {
					if c.Stored && !c.Durable {
						w.q.Committed(c)
					}
				})
			},
			"evict": func(*rapid.T) { w.evictAll() },
			"attach": func(t *rapid.T) {
				w.attach(&testSub{
					step:     rapid.Uint64Range(1, 4).Draw(t, "step"),
					delay:    time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * time.Second,
					consumer: rapid.Bool().Draw(t, "consumer"),
					room:     rapid.IntRange(0, 5).Draw(t, "room"),
				}, Traits{Priority: rapid.IntRange(-1, 1).Draw(t, "priority"),
					Network: rapid.Bool().Draw(t, "network"), Mark: rapid.Bool().Draw(t, "mark")})
			},
			"detach": func(t *rapid.T) {
				if s := w.any(t); s != nil {
					w.q.Detach(s.slot)
					w.q.Return(s.took)
					w.drop(s)
				}
			},
			"ack": func(t *rapid.T) {
				if s := w.any(t); s != nil && len(s.took) > 0 {
					c := s.took[0]
					s.took = s.took[1:]
					delete(w.stored, c.Seq)
					w.q.Remove(c)
					s.room++
					s.slot.Ready()
				}
			},
			"place back": func(t *rapid.T) {
				if s := w.any(t); s != nil && len(s.took) > 0 {
					c := s.took[0]
					s.took = s.took[1:]
					w.q.Place(c)
				}
			},
			"rescan": func(t *rapid.T) {
				if s := w.any(t); s != nil {
					s.step = rapid.Uint64Range(1, 4).Draw(t, "step")
					s.slot.Rescan()
				}
			},
			"settle":  func(*rapid.T) { w.settle() },
			"advance": func(*rapid.T) { w.advance(700 * time.Millisecond) },
			"":        func(t *rapid.T) { w.checkRest(t) },
		})
	})
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

// evictAll drops from memory what may be dropped, also the first page.
func (w *world) evictAll() {
	l := &w.q.lanes[main]
	for _, e := range append([]entry(nil), l.entries[l.start:]...) {
		if c := e.copy; c != nil && c.Durable {
			l.remove(c.key)
			w.q.gaps = w.q.gaps.add(c.Seq, c.Seq+1)
			w.q.gapCount++
			w.q.resident -= c.Message.Size()
		}
	}
}

func (w *world) checkRest(t *rapid.T) {
	w.settle()
	w.checkView(t)
	if w.q.gapCount < 0 || (len(w.q.gaps) == 0) != (w.q.gapCount == 0) {
		t.Fatalf("gaps %v with %d copies", w.q.gaps, w.q.gapCount)
	}
	inGap := int64(0)
	pending := map[uint64]bool{}
	for seq := range w.stored {
		if w.q.gaps.has(seq) {
			inGap++
			pending[seq] = true
		}
	}
	if inGap != w.q.gapCount {
		t.Fatalf("%d stored copies in the gaps %v, counted %d", inGap, w.q.gaps, w.q.gapCount)
	}
	w.q.EachPending(func(c *Copy) bool {
		w.q.Refusals(c, func(s *Slot, v message.Verdict) {
			if v.Outcome == message.Deliver {
				t.Fatalf("copy %d waits although %+v would take it", c.Seq, s.Traits)
			}
			if v.Wake == message.WakeAt && w.q.timer == nil {
				t.Fatalf("copy %d waits for a time without a timer", c.Seq)
			}
		})
		return true
	})
	for _, s := range w.subs {
		if s.room == 0 || s.slot.Network {
			continue
		}
		for seq := range pending {
			if seq%s.step == 0 && s.delay == 0 && !s.consumer {
				t.Fatalf("stored copy %d waits although a subscription would take it", seq)
			}
		}
	}
}
