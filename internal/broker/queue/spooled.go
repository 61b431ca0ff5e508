package queue

// Copies that are not stored may have a record in the spool, a second store that lasts as long as
// the broker runs. Such a copy may leave memory, and is in a gap then as a durable one is; all else
// of it is as of copies that are not stored. Invariant: 0 <= spooled <= gapCount.

// toGap counts a copy that leaves memory.
func (q *Queue) toGap(c *Copy) {
	q.gaps = q.gaps.add(c.Seq, c.Seq+1)
	q.gapCount++
	if c.Spooled {
		q.spooled++
	}
	q.resident -= c.Message.Size()
}

// unGap counts a copy that is in a gap no more.
func (q *Queue) unGap(spooled bool) {
	q.gapCount--
	if spooled {
		q.spooled--
	}
	q.spooled = max(0, min(q.spooled, q.gapCount)) // what was lost need not be of where it was counted
}

// SpooledOnly is the number of pending copies that are in the spool and not in memory.
func (q *Queue) SpooledOnly() int64 { return q.spooled }

// Spoolable gives pending copies that cannot leave memory as no record of them is anywhere, the
// last first, until f reports false: all but the first page, as for Evict, and those of which a
// record is on its way.
func (q *Queue) Spoolable(page int64, f func(*Copy) bool) {
	l := &q.lanes[main]
	floor := q.floor(page)
	for i := len(l.entries) - 1; i >= l.start; i-- {
		c := l.entries[i].copy
		switch {
		case c == nil:
		case c.key < floor:
			return
		case c.Stored, c.Spooled, c.Put != nil, c.Redelivery != 0:
		case !f(c):
			return
		}
	}
}

// floor is the key below which copies of the main lane do not leave memory: the first page stays
// while there are consumers.
func (q *Queue) floor(page int64) uint64 {
	if len(q.slots) == 0 {
		return 0
	}
	return q.pageEnd(page)
}
