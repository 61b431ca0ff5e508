package queue

import "time"

// run is the wave that is under way. Invariant: its members have looked at everything of its lane
// below at; where a member joined behind that, its own position says so.
type run struct {
	lane int8
	at   uint64
	left bool // a member left it, to look at something again
}

// position gives the key below which the slot has looked at everything of a lane.
func (s *Slot) position(l int8) uint64 {
	if s.wave && s.queue.run.lane == l {
		return max(s.pos[l], s.queue.run.at)
	}
	return s.pos[l]
}

// looked notes that the slot has looked at everything of a lane below key.
func (s *Slot) looked(l int8, key uint64) { s.pos[l] = max(s.pos[l], key) }

// lookFrom has the slot look at everything of a lane from key on again. It leaves the wave over
// that lane, which would take it past that; also when that is at key, where it may have looked.
func (s *Slot) lookFrom(l int8, key uint64) {
	if key > s.position(l) {
		return
	}
	if s.wave && s.queue.run.lane == l {
		s.leave()
		s.queue.run.left = true
	}
	s.pos[l] = key
}

// leave takes the slot out of the wave, at the place where that is.
func (s *Slot) leave() {
	if s.wave {
		s.wave = false
		s.looked(s.queue.run.lane, s.queue.run.at)
	}
}

// wave looks at the copies of one lane in order. A member whose position is higher has looked at
// the copy already; one that comes to a gap waits there, and the others go on behind it.
func (q *Queue) wave(l int8, now time.Duration, slice *Slice) {
	joined := q.join(l)
	for joined && len(q.ready) > 0 && !slice.Over() {
		c := q.lanes[l].next(q.run.at)
		if l == main {
			if g, ok := q.gaps.next(q.run.at); ok && (c == nil || g.from < c.key) {
				joined = q.waitAt(g.from)
				continue
			}
		}
		if c == nil {
			q.run.at = q.next
			break
		}
		slice.next()
		key := c.key
		q.run.at = key
		if q.expired(c) {
			continue
		}
		q.offerRing(c, now, slice)
		if q.unknown {
			break
		}
		q.run.at = key + 1
		if q.run.left {
			joined = q.join(l)
		}
	}
	q.endWave()
}

// join begins a wave at the lowest position of the ready slots, which are its members, instead of
// the one before. A slot that becomes ready while it runs waits for the next one.
func (q *Queue) join(l int8) bool {
	q.endWave()
	q.run = run{lane: l, at: noKey}
	for _, s := range q.ready {
		q.run.at = min(q.run.at, s.pos[l])
	}
	for _, s := range q.ready {
		s.wave = true
	}
	return len(q.ready) > 0
}

func (q *Queue) endWave() {
	for _, s := range q.ready {
		s.leave()
	}
}

// waitAt takes the members that are at a gap out of the wave; the page there is wanted. The wave
// goes on at the lowest position of the others; false means that there are none.
func (q *Queue) waitAt(key uint64) bool {
	low := noKey
	for _, s := range q.ready {
		switch {
		case !s.wave:
		case s.pos[main] <= key:
			q.want(&s.reader, key)
			s.leave()
			s.looked(main, key)
		default:
			low = min(low, s.pos[main])
		}
	}
	q.run.at = low
	return low != noKey
}

// offerRing offers the copy at which the wave is to the members that have not looked at it, in
// their order, until one takes it.
func (q *Queue) offerRing(c *Copy, now time.Duration, slice *Slice) {
	q.fewest(c)
	looks := 0
	for ; looks < len(q.ready); looks++ {
		s := q.ready[looks]
		if s.wave && s.pos[c.lane] <= c.key && (q.offer(s, c, now) || q.unknown) {
			break
		}
	}
	slice.look(looks + 1)
}
