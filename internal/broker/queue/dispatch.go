package queue

import (
	"time"

	"hopwire/internal/message"
)

// Dispatch offers pending copies to the ready slots until nobody takes more, everything was
// looked at, or the turn's slice is used up (it then wakes itself again); and asks for a page, if
// one is wanted.
func (q *Queue) Dispatch(slice *Slice) {
	q.woken = false
	slice.look(1)
	q.offerAll(slice)
	q.read()
}

func (q *Queue) offerAll(slice *Slice) {
	now := q.env.Mono()
	q.dueTimes(now)
	q.deliverClaims(now)
	if q.unknown {
		return
	}
	q.askGates(now)
	for i := 0; i < len(q.ready) && !slice.Over() && !q.unknown; {
		s := q.ready[i]
		waits := q.lookAgain(s, now, slice)
		if i < len(q.ready) && q.ready[i] == s && (waits || len(s.again) == 0) {
			i++
		}
	}
	for l := int8(returned); l < laneCount && !slice.Over() && !q.unknown; l++ {
		q.wave(l, now, slice)
	}
	if slice.Over() {
		q.wake()
	}
}

// askGates takes slots whose gate is shut out of the ring.
func (q *Queue) askGates(now time.Duration) {
	for i := 0; i < len(q.ready); {
		s := q.ready[i]
		v := q.gate(s, now)
		if v.Outcome == message.Deliver {
			i++
			continue
		}
		q.blockSlot(s, v)
	}
}

// blockSlot takes the slot out of the ring until the verdict's wake.
func (q *Queue) blockSlot(s *Slot, v message.Verdict) {
	q.removeReady(s)
	s.leave()
	s.block = v
	if v.Wake == message.WakeAt {
		s.gate = q.env.After(max(0, v.At-q.env.Mono()), func() {
			s.gate = nil
			s.Ready()
		})
	}
}

// lookAgain lets one slot look at the places on its list. It reports whether the first of them
// waits for its page.
func (q *Queue) lookAgain(s *Slot, now time.Duration, slice *Slice) (waits bool) {
	for len(s.again) > 0 && s.ready && !slice.Over() && !q.unknown {
		p := s.again[0]
		c := q.lanes[p.lane].get(p.key)
		if c == nil {
			if p.lane == main && q.gaps.has(p.key) {
				q.want(&s.reader, p.key)
				return true
			}
			s.again = s.again[1:]
			continue
		}
		slice.next()
		s.again = s.again[1:]
		if q.expired(c) {
			continue
		}
		slice.look(1)
		q.offer(s, c, now)
		if q.unknown {
			s.lookAgain(p)
		}
	}
	return false
}

// offer gives the copy to the slot if its verdict says so.
func (q *Queue) offer(s *Slot, c *Copy, now time.Duration) bool {
	v := q.verdict(s, c, now)
	if v.Outcome != message.Deliver {
		q.refused(s, c, v)
		return false
	}
	if c.Stored && !s.Network && !q.host.Deliverable(s, c) {
		q.unknown = true
		return false
	}
	q.joinGroup(s, c)
	q.Hold(c, s)
	q.turns++
	q.removeReady(s)
	s.turn = q.turns
	more := s.held(c) && q.claim(s, c) || !s.held(c) && s.Sub.Take(c)
	switch {
	case s.queue == nil || s.ready: // it ended, or was told meanwhile that there is room
	case more:
		q.insertReady(s)
	default:
		q.blockSlot(s, message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
			Reason: message.WindowFull})
	}
	return true
}

// refused remembers what a refusal needs to be looked at again.
func (q *Queue) refused(s *Slot, c *Copy, v message.Verdict) {
	q.passOn(s, c)
	switch v.Wake {
	case message.WakeConsumers:
		mark := q.consumersMark(s, c, v)
		*mark = min(*mark, c.key)
	case message.WakeAt:
		q.lookAt(v.At, s, place{c.lane, c.key})
	}
}

// consumersMark is where it is kept what a slot refused until the consumers change: with the group
// of the copy, or with the slot.
func (q *Queue) consumersMark(s *Slot, c *Copy, v message.Verdict) *uint64 {
	if v.Reason == message.GroupOwned {
		return q.groups.refused(c)
	}
	return &s.consumers[c.lane]
}

// expired hands an expired copy to the host.
func (q *Queue) expired(c *Copy) bool {
	if c.Message.Expiration == 0 || !c.Message.Expired(q.env.Wall()) {
		return false
	}
	q.host.Expire(q, c)
	return true
}
