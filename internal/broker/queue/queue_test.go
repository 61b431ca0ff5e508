package queue

import (
	"fmt"
	"slices"
	"sort"
	"testing"
	"time"

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
	bad     map[uint64]bool // cannot be read
	known   uint64          // copies below it may go to clients
	asked   uint64          // and below it, when it is told that they are known
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
			h.q.Dispatch(NewSlice(h.q.env))
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
		if h.bad[s] {
			h.q.LoadFailed(func() {})
			return
		}
		copies = append(copies, &Copy{Seq: s, Message: h.stored[s].Message,
			Arrived: h.stored[s].Arrived, Spooled: h.stored[s].Spooled})
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

	onItsWay []*Copy // to the spool
	spooled  int     // copies ever spooled
}

func newWorld() *world {
	w := &world{}
	w.stored, w.bad = map[uint64]*Copy{}, map[uint64]bool{}
	w.q = New(message.Destination{Kind: message.Queue, Name: "q"}, &w.clock, &w.testHost, 1)
	return w
}

func (w *world) add(stored bool) *Copy {
	return w.addAs(&message.Message{Persistent: stored})
}

// addAs adds a message; a persistent one is stored.
func (w *world) addAs(m *message.Message) *Copy {
	w.seq++
	m.ID = message.MessageID{Sequence: int64(w.seq)}
	c, stored := w.q.Add(m, w.now), m.Persistent
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
