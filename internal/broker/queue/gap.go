package queue

import "sort"

// gap is a range of sequences, from <= seq < to.
type gap struct{ from, to uint64 }

// gaps are disjoint ranges in ascending order.
type gaps []gap

// next gives the first gap that has a sequence at or above seq, cut to begin there.
func (g gaps) next(seq uint64) (gap, bool) {
	i := sort.Search(len(g), func(i int) bool { return g[i].to > seq })
	if i == len(g) {
		return gap{}, false
	}
	return gap{max(g[i].from, seq), g[i].to}, true
}

// add makes [from, to) part of the gaps, joining neighbours that touch it.
func (g gaps) add(from, to uint64) gaps {
	i := sort.Search(len(g), func(i int) bool { return g[i].to >= from })
	j := i
	for j < len(g) && g[j].from <= to {
		from, to = min(from, g[j].from), max(to, g[j].to)
		j++
	}
	if i == j {
		g = append(g, gap{})
		copy(g[i+1:], g[i:])
		g[i] = gap{from, to}
		return g
	}
	g[i] = gap{from, to}
	return append(g[:i+1], g[j:]...)
}

// cut takes [from, to) out of the gaps.
func (g gaps) cut(from, to uint64) gaps {
	i := sort.Search(len(g), func(i int) bool { return g[i].to > from })
	for i < len(g) && g[i].from < to {
		switch old := g[i]; {
		case old.from < from && old.to > to:
			g = append(g, gap{})
			copy(g[i+1:], g[i:])
			g[i].to, g[i+1].from = from, to
			return g
		case old.from < from:
			g[i].to = from
			i++
		case old.to > to:
			g[i].from = to
			return g
		default:
			g = append(g[:i], g[i+1:]...)
		}
	}
	return g
}
