package queue

import "sort"

// residents gives all copies in memory in the order of their sequences.
func (q *Queue) residents() []*Copy {
	all := make([]*Copy, 0, len(q.out)+q.lanes[main].len()+q.lanes[returned].len())
	for i := range q.lanes {
		q.lanes[i].each(0, func(c *Copy) bool {
			all = append(all, c)
			return true
		})
	}
	for _, c := range q.out {
		all = append(all, c)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Seq < all[j].Seq })
	return all
}

// View is a walk through a queue as it was when the walk began, for browsers: copies in memory as
// they were then, stored ones read page by page. Copies that ended meanwhile may be seen.
type View struct {
	resident []*Copy
	gaps     gaps
}

// View begins a walk.
func (q *Queue) View() *View {
	return &View{q.residents(), append(gaps(nil), q.gaps...)}
}

// Next gives the next copy in memory, or the range of stored copies that comes before it; both
// empty means the end.
func (v *View) Next() (c *Copy, from, to uint64) {
	if len(v.gaps) > 0 && (len(v.resident) == 0 || v.gaps[0].from < v.resident[0].Seq) {
		return nil, v.gaps[0].from, v.gaps[0].to
	}
	if len(v.resident) == 0 {
		return nil, 0, 0
	}
	c = v.resident[0]
	v.resident = v.resident[1:]
	return c, 0, 0
}

// Read tells that the stored copies below complete were seen.
func (v *View) Read(complete uint64) { v.gaps = v.gaps.cut(0, complete) }
