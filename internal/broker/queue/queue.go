package queue

import (
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// Host is what a queue asks of its broker.
type Host interface {
	// Wake asks for a Dispatch at the end of this turn.
	Wake(q *Queue)
	// ReadPage asks for stored copies, from <= seq < to; Loaded answers.
	ReadPage(q *Queue, from, to uint64)
	// Expire takes a pending copy whose time is over; the host removes it.
	Expire(q *Queue, c *Copy)
	// RaiseMark asks for a durable mark above seq for the slot; Slot.SetMark answers.
	RaiseMark(s *Slot, seq uint64)
}

// Queue holds one queue's copies and offers them to its slots. All methods run on the loop.
type Queue struct {
	Destination message.Destination

	env  loop.Env
	host Host

	lanes    [laneCount]lane
	gaps     gaps // in the main lane
	gapCount int64
	reading  bool
	next     uint64 // the next sequence
	returns  uint64 // the next key of the returned lane
	out      map[uint64]*Copy
	resident int64 // bytes of the copies in memory, pending and out

	slots   []*Slot // all, in the order of attaching
	ready   []*Slot // those that may take copies, by (Priority descending, turn)
	turns   uint64
	waves   uint64 // number of waves begun
	held    bool   // a slot may wait for a commit
	times   timeHeap
	timer   loop.Timer
	timerAt time.Duration
	woken   bool
	paused  bool
}

// New makes an empty queue whose first sequence is first.
func New(d message.Destination, env loop.Env, host Host, first uint64) *Queue {
	return &Queue{Destination: d, env: env, host: host, next: max(1, first), returns: 1,
		out: map[uint64]*Copy{}}
}

// Restore tells a new queue of count stored copies, all with from <= seq < to, none in memory.
func (q *Queue) Restore(from, to uint64, count int64) {
	if count > 0 && from < to {
		q.gaps = q.gaps.add(from, to)
		q.gapCount += count
	}
	q.next = max(q.next, to)
	q.wake()
}

// NextSeq gives the sequence that the next copy will have.
func (q *Queue) NextSeq() uint64 { return q.next }

// Len is the number of copies: pending and out, in memory or not.
func (q *Queue) Len() int64 { return q.Pending() + int64(len(q.out)) }

// Pending is the number of copies that wait.
func (q *Queue) Pending() int64 {
	return int64(q.lanes[returned].len()+q.lanes[main].len()) + q.gapCount
}

// OutCount is the number of copies delivered or held, not settled.
func (q *Queue) OutCount() int { return len(q.out) }

// ResidentBytes is the size of the copies in memory.
func (q *Queue) ResidentBytes() int64 { return q.resident }

// Slots gives the slots in the order of attaching; it must not be changed.
func (q *Queue) Slots() []*Slot { return q.slots }

// Add makes the next copy and lets it wait.
func (q *Queue) Add(m *message.Message, now time.Duration) *Copy {
	c := &Copy{Seq: q.next, Message: m, Arrived: now, Redelivery: m.RedeliveryCounter}
	q.next++
	q.resident += m.Size()
	q.place(c, main, c.Seq)
	q.wake()
	return c
}

func (q *Queue) place(c *Copy, lane int8, key uint64) {
	c.lane, c.key, c.out = lane, key, false
	q.lanes[lane].add(key, c)
}

// Hold takes a pending copy out of its lane for owner.
func (q *Queue) Hold(c *Copy, owner any) {
	q.lanes[c.lane].remove(c.key)
	c.out, c.Owner = true, owner
	q.out[c.Seq] = c
}

// Outstanding gives the copy with that sequence if it is out.
func (q *Queue) Outstanding(seq uint64) *Copy { return q.out[seq] }

// EachOut calls f for all copies that are out, in no order.
func (q *Queue) EachOut(f func(*Copy)) {
	for _, c := range q.out {
		f(c)
	}
}

// Remove ends a copy, pending or out.
func (q *Queue) Remove(c *Copy) {
	if c.out {
		delete(q.out, c.Seq)
		c.out = false
	} else {
		q.lanes[c.lane].remove(c.key)
	}
	c.Owner = nil
	q.resident -= c.Message.Size()
}

// Return puts copies that are out back to wait, before all others, in the order given.
func (q *Queue) Return(copies []*Copy) {
	for _, c := range copies {
		if !c.out {
			continue
		}
		delete(q.out, c.Seq)
		c.Owner, c.Doubt = nil, ""
		q.place(c, returned, q.returns)
		q.returns++
	}
	q.wake()
}

// Pause stops or resumes all delivery from this queue.
func (q *Queue) Pause(on bool) {
	q.paused = on
	q.wake()
}

// Paused reports whether delivery is paused.
func (q *Queue) Paused() bool { return q.paused }

// Attach adds a subscription; the older of equals is served first.
func (q *Queue) Attach(sub Subscriber, t Traits) *Slot {
	q.turns++
	s := &Slot{Traits: t, Sub: sub, queue: q, turn: q.turns,
		consumers: [laneCount]uint64{noKey, noKey}}
	q.slots = append(q.slots, s)
	q.insertReady(s)
	q.consumersChanged(s)
	q.wake()
	return s
}

// Detach removes a subscription. Its copies that are out stay so until they are returned.
func (q *Queue) Detach(s *Slot) {
	q.removeReady(s)
	if s.gate != nil {
		s.gate.Stop()
	}
	for i, t := range q.slots {
		if t == s {
			q.slots = append(q.slots[:i], q.slots[i+1:]...)
			break
		}
	}
	s.queue = nil
	q.consumersChanged(s)
	q.wake()
}

// consumersChanged makes all other slots look again at what they refused because of the consumers.
func (q *Queue) consumersChanged(cause *Slot) {
	for _, s := range q.slots {
		if s == cause {
			continue
		}
		for l := range s.pos {
			s.pos[l] = min(s.pos[l], s.consumers[l])
			s.consumers[l] = noKey
		}
	}
}

// Committed tells that a stored copy is durable.
func (q *Queue) Committed(c *Copy) {
	c.Durable = true
	if !q.held {
		return
	}
	q.held = false
	for _, s := range q.slots {
		if s.block.Reason == message.Committing {
			s.Ready()
		}
	}
}

func (q *Queue) wake() {
	if !q.woken {
		q.woken = true
		q.host.Wake(q)
	}
}

// insertReady puts the slot into ready, in its order.
func (q *Queue) insertReady(s *Slot) {
	i := len(q.ready)
	for i > 0 && s.before(q.ready[i-1]) {
		i--
	}
	q.ready = append(q.ready, nil)
	copy(q.ready[i+1:], q.ready[i:])
	q.ready[i] = s
	s.ready = true
}

func (q *Queue) removeReady(s *Slot) {
	if !s.ready {
		return
	}
	s.ready = false
	for i, t := range q.ready {
		if t == s {
			q.ready = append(q.ready[:i], q.ready[i+1:]...)
			return
		}
	}
}

func (s *Slot) before(t *Slot) bool {
	if s.Priority != t.Priority {
		return s.Priority > t.Priority
	}
	return s.turn < t.turn
}
