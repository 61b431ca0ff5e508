package queue

import (
	"time"

	"hopwire/internal/message"
)

// Exclusive is the trait of a slot that wants a queue for itself.
type Exclusive struct {
	On       bool
	Priority int // of two that want it the higher one has the queue; takesOver comes last and has it
}

// takesOver is the priority with which a later consumer takes a queue from whoever has it.
const takesOver = 127

// gate asks whether a slot may look at copies: another's queue is no queue for it, and none is
// before its start.
func (q *Queue) gate(s *Slot, now time.Duration) message.Verdict {
	if q.owner != nil && q.owner != s {
		return message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
			Reason: message.ExclusiveOwned}
	}
	if v := q.start.waits(); v.Outcome != message.Deliver {
		return v
	}
	return s.Sub.Gate(now)
}

// own gives the queue to a new slot, if it wants it and has the better right. What others claimed
// and did not get is the owner's now.
func (q *Queue) own(s *Slot) {
	if !s.Exclusive.On {
		return
	}
	if o := q.owner; o != nil && s.Exclusive.Priority <= o.Exclusive.Priority &&
		s.Exclusive.Priority != takesOver {
		return
	}
	q.owner = s
	for _, o := range q.slots {
		if o != s {
			q.Unclaim(o)
		}
	}
}

// disown passes the queue on when its owner goes: to the slot with the highest priority, the oldest
// of equals, else to everybody.
func (q *Queue) disown(s *Slot) {
	if q.owner != s {
		return
	}
	q.owner = nil
	for _, o := range q.slots {
		if o.Exclusive.On && (q.owner == nil ||
			o.Exclusive.Priority > q.owner.Exclusive.Priority) {
			q.owner = o
		}
	}
	for _, o := range q.slots {
		if q.owner == nil || q.owner == o {
			o.Ready()
		}
	}
	if o := q.owner; o != nil { // what it refused because of groups is its own now
		for l := range int8(laneCount) {
			o.lookFrom(l, 0)
		}
	}
}
