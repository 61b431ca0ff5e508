package queue

import (
	"maps"

	"hopwire/internal/message"
)

// PageCopies and PageBytes bound one page: what a queue with a ready subscription may hold in
// memory whatever the limits say.
const (
	PageCopies = 200
	PageBytes  = 1 << 20
)

// Loaded answers ReadPage: the copies found with from <= seq, and the sequence up to which they
// are complete. No copies mean that nothing is stored there.
func (q *Queue) Loaded(from, complete uint64, copies []*Copy) {
	q.reading = false
	q.shed()
	before := q.gaps.covered(from, complete)
	q.gaps = q.gaps.cut(from, complete)
	for _, c := range copies {
		if _, taken := q.taken[c.Seq]; taken || !before.has(c.Seq) {
			continue // it was taken or told absent while the page was read
		}
		q.unGap(c.Spooled)
		c.read()
		q.resident += c.Message.Size()
		if len(c.Doubts) > 0 {
			c.lane = main
			q.hold(c, nil)
			continue
		}
		q.place(c, main, c.Seq)
		q.healed(c)
	}
	q.damage.tried = q.damage.tried.cut(from, complete)
	q.settle()
	q.forgetErased()
	q.healNext()
	q.wake()
}

// Aside tells that somebody reads stored copies for himself, to take them by TakeStored; he calls
// through when he is done with what he read.
func (q *Queue) Aside() (through func()) {
	q.asides++
	return func() {
		q.asides--
		q.forgetErased()
	}
}

// TakeStored takes a stored copy that somebody read for himself out of the stored ones that wait,
// for owner, who tells by Erased when its record is gone. It reports false when that copy is in
// memory already, was there meanwhile or was taken before. The gap stays as it is: a cut for each
// copy would leave pieces without end.
func (q *Queue) TakeStored(c *Copy, owner any) bool {
	if _, again := q.taken[c.Seq]; again || !q.gaps.has(c.Seq) {
		return false
	}
	q.take(c.Seq, c.Spooled)
	c.read()
	c.lane = main
	q.resident += c.Message.Size()
	q.hold(c, owner)
	return true
}

// Lose takes a stored, or spooled, copy that cannot be read out of those that wait. It is taken as
// by TakeStored, and Erased follows.
func (q *Queue) Lose(seq uint64, spooled bool) bool {
	if _, again := q.taken[seq]; again || !q.gaps.has(seq) {
		return false
	}
	q.take(seq, spooled)
	return true
}

func (q *Queue) take(seq uint64, spooled bool) {
	if q.taken == nil {
		q.taken = map[uint64]bool{}
	}
	q.taken[seq] = false
	q.unGap(spooled)
}

// Erased tells that the record of a copy that TakeStored took is gone: no read that begins from now
// on finds it.
func (q *Queue) Erased(seq uint64) {
	if _, ok := q.taken[seq]; !ok {
		return
	}
	if !q.reading && q.asides == 0 {
		delete(q.taken, seq)
		return
	}
	q.taken[seq], q.erased = true, true
}

// forgetErased forgets what was taken and is in no read that is still on its way.
func (q *Queue) forgetErased() {
	if !q.erased || q.reading || q.asides > 0 {
		return
	}
	q.erased = false
	maps.DeleteFunc(q.taken, func(_ uint64, erased bool) bool { return erased })
}

// Absent tells that no copy from <= seq < to is stored that is not in memory, but for those that
// cannot be read.
func (q *Queue) Absent(from, to uint64) {
	q.gaps = q.gaps.cut(from, to)
	q.settle()
}

// Evict drops pending copies from memory that are durable or in the spool, the last first, until at
// most keep bytes of them stay, and reports how many bytes were freed. The first page, of so many
// bytes, stays while there are consumers.
func (q *Queue) Evict(keep, page int64) int64 {
	freed := int64(0)
	l := &q.lanes[main]
	floor := q.floor(page)
	for i := len(l.entries) - 1; i >= l.start && q.resident > keep; i-- {
		c := l.entries[i].copy
		if c == nil {
			continue
		}
		if c.key < floor {
			break
		}
		if !c.kept() {
			continue
		}
		l.remove(c.key)
		i = min(i, len(l.entries))
		q.toGap(c)
		freed += c.Message.Size()
	}
	return freed
}

// shed drops from memory what all subscriptions looked at and left, but for the first page: nobody
// looks at it again until the rules, the consumers or a time change, and then it is read again. It
// runs when a page comes, so that a search for a match behind many copies keeps no more than some
// pages; the page itself stays. A walk over what cannot go is not repeated before as much came
// again.
func (q *Queue) shed() {
	l := &q.lanes[main]
	if len(q.slots) == 0 || l.live < q.shedNext {
		return
	}
	below := noKey
	for _, s := range q.slots {
		if len(s.again) > 0 && !q.gaps.has(s.again[0].key) {
			return // it wants what was read for it
		}
		below = min(below, s.position(main))
	}
	for i := l.find(q.pageEnd(PageBytes)); i < len(l.entries) && l.entries[i].key < below; i++ {
		if c := l.entries[i].copy; c != nil && c.kept() {
			l.entries[i].copy = nil
			l.live--
			q.toGap(c)
		}
	}
	l.compact()
	q.shedNext = 2*l.live + PageCopies
}

// pageEnd is the key behind the first page of the main lane that stays in memory, of so many bytes.
func (q *Queue) pageEnd(bytes int64) uint64 {
	n, size, end := 0, int64(0), uint64(0)
	q.lanes[main].each(0, func(c *Copy) bool {
		n++
		size += c.Message.Size()
		end = c.key + 1
		return n < PageCopies && size < bytes
	})
	return end
}

// covered gives the parts of the gaps inside [from, to).
func (g gaps) covered(from, to uint64) gaps {
	var out gaps
	for _, r := range g {
		if a, b := max(r.from, from), min(r.to, to); a < b {
			out = append(out, gap{a, b})
		}
	}
	return out
}

// has reports whether the sequence is in a gap.
func (g gaps) has(seq uint64) bool {
	r, ok := g.next(seq)
	return ok && r.from == seq
}

// Oldest calls f for the first pending copies in memory, n at most, in the order of dispatch.
func (q *Queue) Oldest(n int, f func(*Copy)) {
	for _, l := range []int8{returned, main} {
		q.lanes[l].each(0, func(c *Copy) bool {
			if n--; n >= 0 {
				f(c)
			}
			return n > 0
		})
	}
}

// Doubted reports whether a copy is out because a peer may have it.
func (q *Queue) Doubted() bool {
	for _, c := range q.out {
		if len(c.Doubts) > 0 {
			return true
		}
	}
	return false
}

// Refusals evaluates a copy against every slot: the same decision that Dispatch obeys, but that a
// slot which takes nothing now is asked whether it ever takes this one.
func (q *Queue) Refusals(c *Copy, f func(s *Slot, v message.Verdict)) {
	now := q.env.Mono()
	for _, s := range q.slots {
		v := q.gate(s, now)
		switch {
		case v.Outcome != message.Deliver:
			if x := q.verdict(s, c, now); x.Outcome == message.Refuse && x.Wake == message.WakeNever {
				v = x
			}
		case s.sated():
			v = message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
				Reason: message.Committing}
		default:
			v = q.verdict(s, c, now)
		}
		f(s, v)
	}
}
