package queue

import (
	"sort"
	"strconv"
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/policy"
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
	// Deliverable is asked before a client gets a stored copy: whether the store will know after a
	// crash that one got it. If not yet, Queue.Known follows.
	Deliverable(s *Slot, c *Copy) bool
}

// Queue holds one queue's copies and offers them to its slots. All methods run on the loop.
type Queue struct {
	Destination message.Destination

	env  loop.Env
	host Host

	lanes    [laneCount]lane
	gaps     gaps // in the main lane
	gapCount int64
	spooled  int64 // of gapCount: those that are in the spool; see spooled.go
	withheld withheld
	damage   damage
	reading  bool   // a page is on its way
	page     uint64 // where that begins
	pages    uint64 // number of pages asked for
	wanted   wish   // the page to ask for next
	reader   reader // the host's wants
	// unread are the sequences where a page begins that could not be read less than a second ago.
	unread   map[uint64]bool
	shedNext int // copies in the main lane from which on shed looks at them
	// taken are the sequences that TakeStored took, while their records may be read again; true is
	// erased: only a read that is on its way may have it.
	taken    map[uint64]bool
	erased   bool   // one of taken is erased
	asides   int    // reads of others that are on their way
	next     uint64 // the next sequence
	out      map[uint64]*Copy
	outside  lane  // stored copies that are out or returned, by sequence
	passing  lane  // the same of those that are not stored
	resident int64 // bytes of the copies in memory, pending and out

	slots   []*Slot // all, in the order of attaching
	owner   *Slot   // an exclusive one that has the queue for itself
	groups  groups
	start   start
	ready   []*Slot // those that may take copies, by (Priority descending, turn)
	turns   uint64
	run     run
	times   timeHeap
	timer   loop.Timer
	timerAt time.Duration
	woken   bool
	// unknown: a client's turn came for a copy that the store does not know to be delivered yet.
	// Nothing is offered meanwhile, as the order among the slots is kept.
	unknown bool
}

// New makes an empty queue whose first sequence is first.
func New(d message.Destination, env loop.Env, host Host, first uint64) *Queue {
	return &Queue{Destination: d, env: env, host: host, next: max(1, first),
		out: map[uint64]*Copy{}, groups: newGroups(policy.NewGroups(policy.GroupsCached))}
}

// Follow has the queue follow a policy: how owners of message groups are remembered, and what its
// first dispatch waits for. It is called before there are consumers.
func (q *Queue) Follow(e *policy.Entry) {
	q.groups = newGroups(e.Groups)
	q.start = start{consumers: e.Dispatch.ConsumersBeforeStart, time: e.Dispatch.TimeBeforeStart}
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

// Len is the number of copies: pending and out, in memory or not. Withheld ones do not count.
func (q *Queue) Len() int64 { return q.Pending() + int64(len(q.out)) }

// Pending is the number of copies that wait.
func (q *Queue) Pending() int64 {
	return int64(q.lanes[returned].len()+q.lanes[main].len()) + q.gapCount
}

// Resident is the number of copies in memory.
func (q *Queue) Resident() int64 { return q.Len() - q.gapCount }

// StoredOnly is the number of pending copies that are not in memory.
func (q *Queue) StoredOnly() int64 { return q.gapCount }

// OutCount is the number of copies delivered or held, not settled.
func (q *Queue) OutCount() int { return len(q.out) }

// ResidentBytes is the size of the copies in memory.
func (q *Queue) ResidentBytes() int64 { return q.resident }

// Slots gives the slots in the order of attaching; it must not be changed.
func (q *Queue) Slots() []*Slot { return q.slots }

// AddAs is Add for a copy whose sequence is given, at or above NextSeq.
func (q *Queue) AddAs(seq uint64, m *message.Message, now time.Duration) *Copy {
	q.skip(seq)
	return q.Add(m, now)
}

// ReserveAs is Reserve for a copy whose sequence is given, at or above NextSeq.
func (q *Queue) ReserveAs(seq uint64, m *message.Message, now time.Duration, owner any) *Copy {
	q.skip(seq)
	return q.Reserve(m, now, owner)
}

// skip makes seq the next sequence.
func (q *Queue) skip(seq uint64) {
	if seq < q.next {
		panic("queue: sequence " + strconv.FormatUint(seq, 10) + " of " + q.Destination.String() +
			" was given before")
	}
	q.next = seq
}

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

// unplace takes a pending copy out of its lane.
func (q *Queue) unplace(c *Copy) {
	q.lanes[c.lane].remove(c.key)
	if len(q.times) > 0 {
		q.forgetPlace(place{c.lane, c.key})
	}
}

// Hold takes a pending copy out of its lane for owner.
func (q *Queue) Hold(c *Copy, owner any) {
	q.unplace(c)
	q.hold(c, owner)
}

func (q *Queue) hold(c *Copy, owner any) {
	c.out, c.Owner = true, owner
	q.out[c.Seq] = c
	switch {
	case c.lane != main: // it is there already
	case c.Stored:
		q.outside.add(c.Seq, c)
	default:
		q.passing.add(c.Seq, c)
	}
}

// Reserve makes the next copy as one that is out already, for owner: it takes its place in the
// order of arrival now and waits to be put there.
func (q *Queue) Reserve(m *message.Message, now time.Duration, owner any) *Copy {
	c := &Copy{Seq: q.next, Message: m, Arrived: now, Redelivery: m.RedeliveryCounter, lane: main}
	q.next++
	q.resident += m.Size()
	c.out, c.Owner = true, owner
	q.out[c.Seq] = c
	q.outside.add(c.Seq, c)
	return c
}

// Place puts a copy that is out into its place in the order of arrival. Slots that looked beyond
// it look again.
func (q *Queue) Place(c *Copy) {
	if !c.out {
		return
	}
	q.placeBut(c, nil)
}

// placeBut is Place, but one slot does not look again.
func (q *Queue) placeBut(c *Copy, but *Slot) {
	delete(q.out, c.Seq)
	q.beside(c)
	c.Owner, c.Tx, c.Doubts, c.Raised = nil, nil, nil, false
	q.place(c, main, c.Seq)
	for _, s := range q.slots {
		if s != but && s.position(main) > c.key {
			s.lookAgain(place{main, c.key})
		}
	}
	q.wake()
}

// beside takes a copy out of those that are out or returned. It may be stored no more, or be stored
// since.
func (q *Queue) beside(c *Copy) {
	q.outside.remove(c.Seq)
	q.passing.remove(c.Seq)
}

// OldestStored gives a sequence that no stored copy is below: where a read of the whole queue may
// begin.
func (q *Queue) OldestStored() uint64 {
	low := q.next
	if len(q.gaps) > 0 {
		low = min(low, q.gaps[0].from)
	}
	for _, g := range []gaps{q.withheld.seqs, q.damage.ranges} {
		if len(g) > 0 {
			low = min(low, g[0].from)
		}
	}
	if l := &q.lanes[main]; l.live > 0 {
		low = min(low, l.entries[l.start].key)
	}
	if l := &q.outside; l.live > 0 {
		low = min(low, l.entries[l.start].key)
	}
	return low
}

// OldestResident gives a sequence that no stored copy in memory is below.
func (q *Queue) OldestResident() uint64 {
	low := q.next
	for _, l := range []*lane{&q.lanes[main], &q.outside} {
		if l.live > 0 {
			low = min(low, l.entries[l.start].key)
		}
	}
	return low
}

// Outstanding gives the copy with that sequence if it is out.
func (q *Queue) Outstanding(seq uint64) *Copy { return q.out[seq] }

// EachOut calls f for all copies that are out, in no order.
func (q *Queue) EachOut(f func(*Copy)) {
	for _, c := range q.out {
		f(c)
	}
}

// OutOf gives the copies that owner has, in the order of their sequences.
func (q *Queue) OutOf(owner any) []*Copy {
	var list []*Copy
	for _, c := range q.out {
		if c.Owner == owner {
			list = append(list, c)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Seq < list[j].Seq })
	return list
}

// Gap gives the first sequence at or above seq that may be a stored copy not in memory.
func (q *Queue) Gap(seq uint64) (uint64, bool) {
	g, ok := q.gaps.next(seq)
	return g.from, ok
}

// Remove ends a copy, pending or out.
func (q *Queue) Remove(c *Copy) {
	if c.out {
		delete(q.out, c.Seq)
		c.out = false
	} else {
		q.unplace(c)
	}
	q.beside(c)
	c.Owner, c.Tx, c.ended = nil, nil, true
	q.resident -= c.Message.Size()
}

// Return puts copies that are out back to wait, before all others, in the order of arrival.
func (q *Queue) Return(copies []*Copy) {
	for _, c := range copies {
		if !c.out {
			continue
		}
		delete(q.out, c.Seq)
		c.Owner, c.Tx, c.Doubts, c.Raised = nil, nil, nil, false
		q.place(c, returned, c.Seq)
		for _, s := range q.slots {
			s.lookFrom(returned, c.Seq) // what came back before is few
		}
	}
	q.wake()
}

// EachPending calls f for every pending copy in memory until f returns false.
func (q *Queue) EachPending(f func(*Copy) bool) {
	for i := range q.lanes {
		q.lanes[i].each(0, f)
	}
}

// Cursor is a place in a walk over the pending copies in memory; the zero value is its begin.
type Cursor struct {
	lane int8
	key  uint64
}

// Scan calls f, which changes nothing, for at most n pending copies in memory. It tells where to go
// on, how many of n are left, and whether there are more copies.
func (q *Queue) Scan(at Cursor, n int, f func(*Copy)) (next Cursor, left int, more bool) {
	for ; at.lane < laneCount && !more; at.lane, at.key = at.lane+1, 0 {
		q.lanes[at.lane].each(at.key, func(c *Copy) bool {
			if n == 0 {
				next, more = Cursor{c.lane, c.key}, true
				return false
			}
			n--
			f(c)
			return true
		})
	}
	return next, n, more
}

// HasReady reports whether some subscription could take a copy now.
func (q *Queue) HasReady() bool { return len(q.ready) > 0 }

// Attach adds a subscription; the older of equals is served first.
func (q *Queue) Attach(sub Subscriber, t Traits) *Slot {
	q.turns++
	s := &Slot{Traits: t, Sub: sub, queue: q, turn: q.turns,
		consumers: [laneCount]uint64{noKey, noKey}}
	q.slots = append(q.slots, s)
	q.own(s)
	q.insertReady(s)
	q.arrived()
	q.consumersChanged(s)
	q.wake()
	return s
}

// Detach removes a subscription. Its copies that are out stay so until they are returned.
func (q *Queue) Detach(s *Slot) {
	q.Unclaim(s)
	q.removeReady(s)
	q.forgetTimes(s)
	if s.gate != nil {
		s.gate.Stop()
	}
	for i, t := range q.slots {
		if t == s {
			q.slots = append(q.slots[:i], q.slots[i+1:]...)
			break
		}
	}
	s.queue, s.wave = nil, false
	q.disown(s)
	q.groups.leave(s)
	q.regroup()
	q.left()
	q.consumersChanged(s)
	q.wake()
}

// consumersChanged makes all other slots look again at what they refused because of the consumers.
func (q *Queue) consumersChanged(cause *Slot) {
	for _, s := range q.slots {
		if s == cause {
			continue
		}
		for l, key := range s.consumers {
			s.consumers[l] = noKey
			s.lookFrom(int8(l), key)
		}
	}
}

// Committed tells that a stored copy is durable.
func (q *Queue) Committed(c *Copy) {
	c.Durable = true
	if _, claimed := c.Owner.(*Slot); claimed {
		q.wake()
	}
}

// Known tells that what Deliverable refused may be delivered now.
func (q *Queue) Known() {
	q.unknown = false
	q.wake()
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
