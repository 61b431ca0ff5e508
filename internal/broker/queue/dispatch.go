package queue

import (
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// A Dispatch yields the loop when it looked at so many copies, or for so long, as selectors can be
// many: time is looked at once in sliceStep copies.
const (
	sliceCopies = 2000
	sliceTime   = time.Millisecond
	sliceStep   = 16
)

// Dispatch offers pending copies to the ready slots until nobody takes more, everything was
// looked at, or the slice is used up (it then wakes itself again).
func (q *Queue) Dispatch() {
	q.woken = false
	now := q.env.Mono()
	q.dueTimes(now)
	q.deliverClaims(now)
	if q.unknown {
		return
	}
	q.askGates(now)
	budget := slice{left: sliceCopies, until: now + sliceTime, env: q.env}
	for i := 0; i < len(q.ready) && budget.left > 0 && !q.unknown; {
		s := q.ready[i]
		q.lookAgain(s, now, &budget)
		if i < len(q.ready) && q.ready[i] == s && (len(s.again) == 0 || q.reading) {
			i++
		}
	}
	for l := int8(returned); l < laneCount && budget.left > 0 && !q.unknown; l++ {
		q.wave(l, now, &budget)
	}
	if budget.left <= 0 {
		q.wake()
	}
}

// slice is what is left of one Dispatch.
type slice struct {
	left  int
	until time.Duration
	env   loop.Env
}

// look counts a copy that is looked at.
func (s *slice) look() {
	s.left--
	if s.left%sliceStep == 0 && s.env.Mono() >= s.until {
		s.left = 0
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
	s.block, s.wave = v, 0
	if v.Wake == message.WakeAt {
		s.gate = q.env.After(max(0, v.At-q.env.Mono()), func() {
			s.gate = nil
			s.Ready()
		})
	}
}

// lookAgain lets one slot look at the places on its list.
func (q *Queue) lookAgain(s *Slot, now time.Duration, budget *slice) {
	for len(s.again) > 0 && s.ready && budget.left > 0 && !q.unknown {
		p := s.again[0]
		c := q.lanes[p.lane].get(p.key)
		if c == nil {
			if g, ok := q.gaps.next(p.key); ok && p.lane == main && g.from == p.key {
				q.read(g)
				return
			}
			s.again = s.again[1:]
			continue
		}
		budget.look()
		s.again = s.again[1:]
		if q.expired(c) {
			continue
		}
		q.offer(s, c, now)
		if q.unknown {
			s.lookAgain(p)
		}
	}
}

// wave looks at the copies of one lane in order. A slot whose position is higher has looked at
// the copy already.
func (q *Queue) wave(l int8, now time.Duration, budget *slice) {
	cur, joined := q.join(l)
	for joined && len(q.ready) > 0 && budget.left > 0 {
		c := q.lanes[l].next(cur)
		if l == main {
			if g, ok := q.gaps.next(cur); ok && (c == nil || g.from < c.key) {
				cur = g.from
				q.read(g)
				break
			}
		}
		if c == nil {
			cur = q.next
			break
		}
		budget.look()
		cur = c.key
		if q.expired(c) {
			continue
		}
		q.offerRing(c, l, now)
		if q.unknown {
			break
		}
		cur = c.key + 1
	}
	if joined {
		for _, s := range q.ready {
			if s.wave == q.waves {
				s.pos[l] = max(s.pos[l], cur)
			}
		}
	}
}

// join makes the ready slots members of a new wave and gives the lowest of their positions. A slot
// that becomes ready while the wave runs waits for the next one.
func (q *Queue) join(l int8) (uint64, bool) {
	q.waves++
	low := noKey
	for _, s := range q.ready {
		s.wave = q.waves
		low = min(low, s.pos[l])
	}
	return low, len(q.ready) > 0
}

// offerRing offers a copy to the ready slots that have not looked at it, in their order, until one
// takes it.
func (q *Queue) offerRing(c *Copy, l int8, now time.Duration) {
	q.fewest(c)
	for i := 0; i < len(q.ready); {
		s := q.ready[i]
		if s.pos[l] > c.key || s.wave != q.waves {
			i++
			continue
		}
		key := c.key
		if q.offer(s, c, now) {
			// The slot has looked at everything below and at this copy.
			s.pos[l] = max(s.pos[l], key+1)
			return
		}
		if q.unknown {
			return
		}
		i++
	}
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
	if s.held(c) && q.claim(s, c) || !s.held(c) && s.Sub.Take(c) {
		q.insertReady(s)
		return true
	}
	q.blockSlot(s, message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
		Reason: message.WindowFull})
	return true
}

// refused remembers what a refusal needs to be looked at again.
func (q *Queue) refused(s *Slot, c *Copy, v message.Verdict) {
	switch v.Wake {
	case message.WakeConsumers:
		s.consumers[c.lane] = min(s.consumers[c.lane], c.key)
	case message.WakeAt:
		q.lookAt(v.At, s, place{c.lane, c.key})
	}
}

// expired hands an expired copy to the host.
func (q *Queue) expired(c *Copy) bool {
	if c.Message.Expiration == 0 || !c.Message.Expired(q.env.Wall()) {
		return false
	}
	q.host.Expire(q, c)
	return true
}
