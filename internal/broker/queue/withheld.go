package queue

// withheld are stored copies that are not in memory and that nobody gets: a branch acknowledged
// them and was prepared before the broker's start. They are in no gap.
type withheld struct {
	seqs  gaps
	count int64 // of seqs
}

// Withhold takes a stored copy that is not in memory out of those that wait. It reports false when
// there can be none of that sequence.
func (q *Queue) Withhold(seq uint64) bool {
	if q.gapCount == 0 || !q.gaps.has(seq) {
		return false
	}
	q.gaps = q.gaps.cut(seq, seq+1)
	q.gapCount--
	q.withheld.seqs = q.withheld.seqs.add(seq, seq+1)
	q.withheld.count++
	return true
}

// Withheld is the number of withheld copies.
func (q *Queue) Withheld() int64 { return q.withheld.count }

// EndWithheld ends a withheld copy; false means that there is none.
func (q *Queue) EndWithheld(seq uint64) bool {
	if !q.withheld.seqs.has(seq) {
		return false
	}
	q.withheld.seqs = q.withheld.seqs.cut(seq, seq+1)
	q.withheld.count--
	return true
}

// Release lets a withheld copy wait, in its place in the order of arrival. Slots that looked beyond
// it look again.
func (q *Queue) Release(seq uint64) bool {
	if !q.EndWithheld(seq) {
		return false
	}
	q.gaps = q.gaps.add(seq, seq+1)
	q.gapCount++
	for _, s := range q.slots {
		if s.pos[main] > seq {
			s.lookAgain(place{main, seq})
		}
	}
	q.wake()
	return true
}
