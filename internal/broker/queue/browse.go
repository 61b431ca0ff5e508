package queue

// following gives the first copy in memory, pending or out, whose sequence is at least seq. The
// main lane and the copies beside it are in the order of their sequences.
func (q *Queue) following(seq uint64) *Copy {
	first := q.lanes[main].next(seq)
	for _, l := range []*lane{&q.outside, &q.passing} {
		if c := l.next(seq); c != nil && (first == nil || c.Seq < first.Seq) {
			first = c
		}
	}
	return first
}

// View is a walk through a queue, for browsers: copies in memory one by one, stored ones page by
// page, in the order of their sequences. It sees what came before it began and is there when it
// comes to it.
type View struct {
	queue    *Queue
	from, to uint64 // what is not seen yet
}

// View begins a walk.
func (q *Queue) View() *View { return &View{q, 0, q.next} }

// Next gives the next copy in memory, or the range of stored copies that comes before it; both
// empty means the end.
func (v *View) Next() (c *Copy, from, to uint64) {
	c = v.queue.following(v.from)
	if c != nil && c.Seq >= v.to {
		c = nil
	}
	if from, to := v.NextStored(); to > 0 && (c == nil || from < c.Seq) {
		return nil, from, to
	}
	if c == nil {
		return nil, 0, 0
	}
	v.from = c.Seq + 1
	return c, 0, 0
}

// NextStored gives the next range of stored copies; empty means the end.
func (v *View) NextStored() (from, to uint64) {
	if g, ok := v.queue.gaps.next(v.from); ok && g.from < v.to {
		return g.from, min(g.to, v.to)
	}
	return 0, 0
}

// Read tells that the stored copies below complete were seen.
func (v *View) Read(complete uint64) { v.from = max(v.from, complete) }

// Walk calls f for at most n copies in memory, pending and out, in the order of their sequences
// from a sequence on. It gives where to go on, 0 at the end.
func (q *Queue) Walk(from uint64, n int, f func(*Copy)) (next uint64) {
	for ; n > 0; n-- {
		c := q.following(from)
		if c == nil {
			return 0
		}
		from = c.Seq + 1
		f(c)
	}
	return from
}

// InMemory gives the copy of a sequence, pending or out, nil when none is in memory.
func (q *Queue) InMemory(seq uint64) *Copy {
	if c := q.following(seq); c != nil && c.Seq == seq {
		return c
	}
	return nil
}

// InStore reports whether a copy of that sequence may wait in the store alone.
func (q *Queue) InStore(seq uint64) bool {
	_, taken := q.taken[seq]
	return !taken && q.gaps.has(seq)
}
