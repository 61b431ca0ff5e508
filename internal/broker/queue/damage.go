package queue

import "time"

// healEvery is how often what cannot be read is tried again.
const healEvery = 30 * time.Second

// damage are stored copies that wait, are not in memory and cannot be read. They are in no gap, and
// they count among those that are in the store alone. How many there are of them in a range is not
// known: of all, it is known when the gaps are read.
type damage struct {
	ranges gaps
	told   gaps // the host knows of them
	trying bool // a timer, or a walk through the ranges, is under way
	at     uint64
	tried  gaps // are read once more: slots may be beyond them
}

// Damage is what is known of the copies that cannot be read.
type Damage struct {
	Count    int64 // how many there are, or at most
	Sure     bool  // there are so many
	From, To uint64
	Places   int // ranges between From and To
}

// Unreadable takes what waits of a range that cannot be read, from <= seq < to, out of the gaps, so
// that nobody waits for it. It reports whether that is new.
func (q *Queue) Unreadable(from, to uint64) (news bool) {
	for _, g := range q.gaps.covered(from, to) {
		q.damage.ranges = q.damage.ranges.add(g.from, g.to)
		if old, ok := q.damage.told.next(g.from); !ok || old.from > g.from || old.to < g.to {
			q.damage.told = q.damage.told.add(g.from, g.to)
			news = true
		}
	}
	q.gaps = q.gaps.cut(from, to)
	q.damage.tried = q.damage.tried.cut(from, to)
	q.settle()
	if len(q.damage.ranges) > 0 && !q.damage.trying {
		q.damage.trying = true
		q.env.After(healEvery, q.heal)
	}
	return news
}

// settle compares what is counted with what may be there, when no gap is left.
func (q *Queue) settle() {
	if len(q.gaps) == 0 && q.gapCount <= 0 {
		q.damage.ranges, q.damage.told = nil, nil // nothing of it is stored
	}
}

// Missing gives how many stored copies, and how many that are in the spool, were counted that are
// not there, once: there is nothing that was not read.
func (q *Queue) Missing() (stored, spooled int64) {
	if len(q.gaps) == 0 && len(q.damage.ranges) == 0 && q.gapCount != 0 {
		stored, spooled = q.gapCount-q.spooled, q.spooled
		q.gapCount, q.spooled = 0, 0
	}
	return stored, spooled
}

// heal reads what cannot be read once more, range by range, and comes again later.
func (q *Queue) heal() {
	if q.damage.at == 0 {
		q.damage.at = 1
	}
	q.healNext()
}

func (q *Queue) healNext() {
	if q.damage.at == 0 || q.reading {
		return
	}
	for len(q.damage.tried) > 0 {
		g := q.damage.tried[0]
		if left := q.gaps.covered(g.from, g.to); len(left) > 0 {
			q.Want(left[0].from)
			return
		}
		q.damage.tried = q.damage.tried[1:]
	}
	g, ok := q.damage.ranges.next(q.damage.at)
	if !ok {
		q.damage.at, q.damage.trying = 0, len(q.damage.ranges) > 0
		if q.damage.trying {
			q.env.After(healEvery, q.heal)
		}
		return
	}
	q.damage.at = g.to
	q.damage.ranges = q.damage.ranges.cut(g.from, g.to)
	q.damage.tried = q.damage.tried.add(g.from, g.to)
	q.gaps = q.gaps.add(g.from, g.to)
	q.Want(g.from)
}

// healed has the slots look at a copy that could not be read when they were there.
func (q *Queue) healed(c *Copy) {
	if !q.damage.tried.has(c.Seq) {
		return
	}
	for _, s := range q.slots {
		if s.position(main) > c.key {
			s.lookAgain(place{main, c.key})
		}
	}
}

// Damage tells of the copies that cannot be read.
func (q *Queue) Damage() (d Damage) {
	width := uint64(0)
	for _, r := range q.damage.ranges {
		width += r.to - r.from
	}
	if d.Places = len(q.damage.ranges); d.Places == 0 {
		return d
	}
	d.From, d.To = q.damage.ranges[0].from, q.damage.ranges[d.Places-1].to
	d.Count, d.Sure = q.gapCount, len(q.gaps) == 0
	if !d.Sure {
		d.Count = int64(min(width, uint64(d.Count)))
	}
	return d
}

// DropDamage ends the copies that cannot be read. It gives their ranges, and how many stored and
// spooled ones there are: no less than the gaps leave.
func (q *Queue) DropDamage(drop func(from, to uint64)) (stored, spooled int64) {
	d := q.Damage()
	n := d.Count
	if !d.Sure {
		n = q.gapCount
		for _, g := range q.gaps {
			n -= int64(min(g.to-g.from, uint64(q.gapCount)))
		}
		n = max(0, n)
	}
	for _, r := range q.damage.ranges {
		drop(r.from, r.to)
	}
	// Which of them are in the spool is not known while others wait there: they are taken to be
	// stored, as far as so many are.
	stored = min(n, q.gapCount-q.spooled)
	spooled = n - stored
	q.gapCount -= n
	q.spooled -= spooled
	q.damage.ranges, q.damage.told = nil, nil
	q.wake()
	return stored, spooled
}
