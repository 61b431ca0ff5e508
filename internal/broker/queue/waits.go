package queue

import "hopwire/internal/message"

// Waits reports whether a copy waits that the slot would take if it had room; unread, that one of
// those may that are in the store alone. It looks at so many copies at most. What the slot refuses
// counts as looked at, as in a dispatch, so that a later call goes on behind that.
func (s *Slot) Waits(looks int) (some, unread bool) {
	q := s.queue
	if q == nil || q.owner != nil && q.owner != s {
		return false, false
	}
	now, wall := q.env.Mono(), q.env.Wall()
	for _, p := range s.again {
		c := q.lanes[p.lane].get(p.key)
		switch {
		case c != nil && !c.Message.Expired(wall) &&
			q.verdict(s, c, now).Outcome == message.Deliver:
			return true, false
		case c == nil && p.lane == main && q.gaps.has(p.key):
			unread = true
		}
		if looks--; looks <= 0 {
			return false, unread
		}
	}
	for l := range int8(laneCount) {
		at := s.position(l)
		for passes := true; looks > 0; looks-- {
			c := q.lanes[l].next(at)
			if g, ok := q.gaps.next(at); ok && l == main && (c == nil || g.from < c.key) {
				unread, passes = true, false
			}
			if c == nil {
				break
			}
			at = c.key + 1
			if c.Message.Expired(wall) {
				passes = false // a dispatch ends it
				continue
			}
			v := q.verdict(s, c, now)
			if v.Outcome == message.Deliver {
				return true, false
			}
			if passes {
				s.looked(l, at)
				q.refused(s, c, v)
			}
		}
	}
	return false, unread
}
