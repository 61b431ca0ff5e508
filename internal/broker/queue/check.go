package queue

import (
	"fmt"
	"time"

	"hopwire/internal/message"
)

// Check reports the first pending copy that is stuck: one that a subscription would take now and
// nobody will offer it, or one that is refused for a reason whose wake is not registered; and
// counts below zero. It is meant for moments when nothing waits on the loop, and costs a verdict
// per copy and subscription.
func (q *Queue) Check() error {
	if q.gapCount < 0 || q.resident < 0 {
		return fmt.Errorf("%s: %d copies wait in the store, %d bytes are in memory",
			q.Destination, q.gapCount, q.resident)
	}
	if q.woken || q.unknown {
		return nil
	}
	now := q.env.Mono()
	for _, s := range q.slots {
		if err := q.checkSlot(s, now); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) checkSlot(s *Slot, now time.Duration) error {
	v := q.gate(s, now)
	switch {
	case !s.ready && s.sated():
		return nil
	case !s.ready && v.Outcome == message.Deliver && q.Pending() > 0:
		return fmt.Errorf("%s: a subscription (priority %d, network %v) is out of the ring (%s)"+
			" though its gate is open, %d pending", q.Destination, s.Priority, s.Network,
			s.block.Reason, q.Pending())
	case !s.ready && s.block.Wake == message.WakeAt && s.gate == nil:
		return fmt.Errorf("%s: a gate shut for %s has no timer", q.Destination, s.block.Reason)
	case !s.ready:
		return nil
	case s.ready && v.Outcome != message.Deliver:
		return nil // it is asked at the next dispatch
	}
	if g, ok := q.gaps.next(s.position(main)); ok && !q.reading && !q.unread[g.from] {
		return fmt.Errorf("%s: stored copies from %d on wait and no page is asked for",
			q.Destination, g.from)
	}
	for l := range q.lanes {
		if err := q.checkLane(s, int8(l), now); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) checkLane(s *Slot, l int8, now time.Duration) (err error) {
	q.lanes[l].each(0, func(c *Copy) bool {
		if c.Message.Expired(q.env.Wall()) {
			return true
		}
		err = q.checkPair(s, c, now)
		return err == nil
	})
	return err
}

// checkPair checks one copy and one subscription that is in the ring with an open gate.
func (q *Queue) checkPair(s *Slot, c *Copy, now time.Duration) error {
	p := place{c.lane, c.key}
	if q.waitsBefore(s, p) {
		return nil
	}
	if s.position(c.lane) <= c.key || s.hasAgain(p) {
		return fmt.Errorf("%s: copy %d waits for a look (network %v) and no dispatch is asked for",
			q.Destination, c.Seq, s.Network)
	}
	v := q.verdict(s, c, now)
	if v.Reason == message.GroupOwned && *q.groups.refused(c) > c.key {
		v = s.Sub.Verdict(c, now) // it was refused before somebody had the group
	}
	switch {
	case v.Outcome == message.Deliver && !q.timed(s, p):
		return fmt.Errorf("%s: copy %d could be delivered (network %v) and was passed over",
			q.Destination, c.Seq, s.Network)
	case v.Outcome == message.Deliver:
		return nil
	case v.Wake == message.WakeAt && !q.timed(s, p):
		return fmt.Errorf("%s: copy %d is refused for %s and no time is set to look again",
			q.Destination, c.Seq, v.Reason)
	case v.Wake == message.WakeConsumers && *q.consumersMark(s, c, v) > c.key && !q.timed(s, p):
		return fmt.Errorf("%s: copy %d is refused for %s and no change of consumers will tell"+
			" (lane %d key %d position %d)", q.Destination, c.Seq, v.Reason, c.lane, c.key,
			s.position(c.lane))
	}
	return nil
}

// waitsBefore reports whether the slot waits for a page before it looks at the place: at its
// position, or at the first place that it looks at again. Who is woken by the page looks on.
func (q *Queue) waitsBefore(s *Slot, p place) bool {
	if s.hasAgain(p) {
		return q.gaps.has(s.again[0].key)
	}
	at := s.position(main)
	return p.lane == main && at < p.key && q.gaps.has(at)
}

// timed reports whether a time is set at which the slot looks at the place again.
func (q *Queue) timed(s *Slot, p place) bool {
	return s.times[p] != nil && q.timer != nil
}
