package queue

import (
	"sort"
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// Subscriber is a subscription as a queue sees it.
type Subscriber interface {
	// Gate is asked before copies are looked at: a refusal keeps the whole subscription away until
	// its wake (WakeEvent: the subscriber calls Slot.Ready).
	Gate(now time.Duration) message.Verdict
	// Verdict decides for one copy; it is pure.
	Verdict(c *Copy, now time.Duration) message.Verdict
	// Take delivers the copy, which is out from now on. It reports whether there is room for more.
	Take(c *Copy) bool
}

// Traits are the fixed properties of a slot.
type Traits struct {
	Priority  int  // higher first
	Network   bool // counts for no local consumer; takes persistent copies when they are durable
	Ahead     bool // a network subscription that takes copies before they are durable
	Mark      bool // may only take stored copies below a mark (Slot.Mark)
	Exclusive Exclusive
}

// Slot is one subscription's place in one queue.
type Slot struct {
	Traits
	Sub   Subscriber
	queue *Queue

	turn  uint64 // among slots of one priority the lowest turn is served first
	ready bool   // in queue.ready
	wave  bool   // it is a member of the wave that is under way
	block message.Verdict
	gate  loop.Timer
	mark  uint64 // Mark: stored copies at or above it are not taken

	groups  int     // message groups that it has
	claims  []*Copy // taken for the slot, not durable or not below the mark yet
	claimed int64   // bytes of claims
	raising uint64  // a mark above the copies below it was asked for

	pos       [laneCount]uint64 // see position, looked and lookFrom
	consumers [laneCount]uint64 // lowest key refused until the consumers change; none = noKey
	again     []place           // to look at again, ascending
	times     map[place]*timed  // to look at again at a time; all are in queue.times
	reader    reader
}

// place is a position in a lane.
type place struct {
	lane int8
	key  uint64
}

const noKey = ^uint64(0)

func (p place) before(q place) bool {
	if p.lane != q.lane {
		return p.lane < q.lane
	}
	return p.key < q.key
}

// Ready tells the queue that the subscription may have room or an open gate again.
func (s *Slot) Ready() {
	if s.queue == nil || s.ready {
		return
	}
	s.block = message.Verdict{}
	if s.gate != nil {
		s.gate.Stop()
		s.gate = nil
	}
	s.queue.insertReady(s)
	s.queue.wake()
}

// Rescan makes the subscription look at every pending copy again: its rules changed.
func (s *Slot) Rescan() {
	if s.queue == nil {
		return
	}
	s.queue.forgetTimes(s)
	for l := range s.pos {
		s.lookFrom(int8(l), 0)
	}
	s.again = s.again[:0]
	s.consumers = [laneCount]uint64{noKey, noKey}
	s.Ready()
	s.queue.wake()
}

// SetMark raises the sequence below which stored copies may be taken.
func (s *Slot) SetMark(seq uint64) {
	if seq > s.mark {
		s.mark = seq
		if len(s.claims) > 0 && s.queue != nil {
			s.queue.wake()
		}
	}
}

// lookAgain puts a place on the slot's list of places to look at again, in order.
func (s *Slot) lookAgain(p place) {
	i := len(s.again)
	for i > 0 && p.before(s.again[i-1]) {
		i--
	}
	if i > 0 && s.again[i-1] == p {
		return
	}
	s.again = append(s.again, place{})
	copy(s.again[i+1:], s.again[i:])
	s.again[i] = p
}

// hasAgain reports whether a place is on the slot's list.
func (s *Slot) hasAgain(p place) bool {
	i := sort.Search(len(s.again), func(i int) bool { return !s.again[i].before(p) })
	return i < len(s.again) && s.again[i] == p
}

// held reports whether the queue's own rules keep a copy from a network subscription: a persistent
// one crosses when it is durable and below the mark.
func (s *Slot) held(c *Copy) bool {
	if !s.Network || !c.Stored || s.Ahead {
		return false
	}
	return !c.Durable || s.Mark && c.Seq >= s.mark
}
