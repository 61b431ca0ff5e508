package store

import (
	"cmp"
	"slices"
)

// Backend is a store as a loop sees it: everything answers later, on the loop. A read sees every
// batch that was committed before the call. Committer is one.
type Backend interface {
	Commit(b *Batch, done func(error))
	Page(r PageRequest, done func([]Stored, error))
	Receipts(dest DestID, done func(Receipts, error))
	Expired(after *ExpiredRef, before int64, limit int, done func([]ExpiredRef, error))
	Space() Space
}

// Overlay lays a spool over a store: who reads finds the messages of both, in the order of their
// sequences, and those of the spool marked. A sequence is in one of them at most. What is committed
// to the Overlay goes to the store, what is committed to Spool to the spool.
//
// The spool is read when the store has answered, so that what is seen of it is of a later moment.
// That is sound where a page is of sequences that are in no memory when it is asked for: their
// records are there by then, in one or the other, and may only be gone since.
//
// All methods run on the loop. A spool that was never written to is never asked.
type Overlay struct {
	Backend
	spool Backend
	dests map[DestID]bool // that have something in the spool, or had
}

// NewOverlay lays a spool over a store.
func NewOverlay(store, spool Backend) *Overlay {
	return &Overlay{Backend: store, spool: spool, dests: map[DestID]bool{}}
}

// Spool is what is written to the spool.
func (o *Overlay) Spool() *Spool { return (*Spool)(o) }

// Spool is the writer's side of an Overlay's spool.
type Spool Overlay

// Commit hands a batch over, as Backend's.
func (s *Spool) Commit(b *Batch, done func(error)) {
	for i := range b.Ops {
		switch op := &b.Ops[i]; op.Kind {
		case PutHeader:
			s.dests[op.Header.ID] = true
		case DropDestination:
			delete(s.dests, op.Dest)
		}
	}
	s.spool.Commit(b, done)
}

// Space tells what room the spool has.
func (s *Spool) Space() Space { return s.spool.Space() }

// Page implements Backend. A page ends where that of the store does, or that of the spool, though
// there may be room for more.
func (o *Overlay) Page(r PageRequest, done func([]Stored, error)) {
	if !o.dests[r.Dest] {
		o.Backend.Page(r, done)
		return
	}
	o.Backend.Page(r, func(stored []Stored, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		rest := r
		rest.To = end(stored, r.To)
		o.spool.Page(rest, func(spooled []Stored, err error) {
			if err != nil {
				done(nil, err)
				return
			}
			done(merge(stored, spooled, r), nil)
		})
	})
}

// end is where a page ends: only an empty one tells that nothing follows.
func end(page []Stored, to Seq) Seq {
	if len(page) == 0 {
		return to
	}
	return page[len(page)-1].Next()
}

// merge gives what is in both pages up to the end of the one that ends first, within the limits of
// the request.
func merge(stored, spooled []Stored, r PageRequest) []Stored {
	m := merging{r: r, from: r.From, to: min(end(stored, r.To), end(spooled, r.To)),
		out: make([]Stored, 0, len(stored)+len(spooled))}
	for i := range spooled {
		spooled[i].Spooled = true
	}
	messages := [2][]Stored{m.split(stored), m.split(spooled)}
	slices.SortFunc(m.ranges, func(a, b Stored) int { return cmp.Compare(a.Seq, b.Seq) })
	for {
		list := &messages[0]
		if x := messages; len(x[0]) == 0 || len(x[1]) > 0 && x[1][0].Seq < x[0][0].Seq {
			list = &messages[1]
		}
		if len(*list) == 0 || (*list)[0].Seq >= m.to {
			break
		}
		m.unreadable((*list)[0].Seq)
		m.add((*list)[0])
		*list = (*list)[1:]
	}
	m.unreadable(m.to)
	return m.out
}

// merging is a page that is made of two.
type merging struct {
	r        PageRequest
	from, to Seq      // what is left of the range
	ranges   []Stored // that cannot be read and are not behind from
	out      []Stored
	size     int64
	full     bool
}

// split takes the ranges that cannot be read out of a page, and gives the rest.
func (m *merging) split(page []Stored) []Stored {
	if !slices.ContainsFunc(page, func(s Stored) bool { return s.To > 0 }) {
		return page
	}
	var rest []Stored
	for _, s := range page {
		if s.To > 0 {
			m.ranges = append(m.ranges, s)
		} else {
			rest = append(rest, s)
		}
	}
	return rest
}

// unreadable adds what cannot be read below a sequence, where one page can tell of a message what
// the other cannot.
func (m *merging) unreadable(to Seq) {
	for i := 0; i < len(m.ranges) && m.ranges[i].Seq < to; {
		s := m.ranges[i]
		if s.To <= to {
			m.ranges = slices.Delete(m.ranges, i, i+1)
		} else {
			i++ // the rest of it is behind
		}
		if s.Seq, s.To = max(s.Seq, m.from), min(s.To, to); s.Seq < s.To {
			m.add(s)
		}
	}
}

// add adds what is next, unless the page is full.
func (m *merging) add(s Stored) {
	if m.full {
		return
	}
	m.out = append(m.out, s)
	m.from = s.Next()
	if s.Message != nil {
		m.size += s.Message.Size()
	}
	m.full = m.r.Count > 0 && len(m.out) >= m.r.Count || m.r.Bytes > 0 && m.size >= m.r.Bytes
}

// Expired implements Backend.
func (o *Overlay) Expired(after *ExpiredRef, before int64, limit int,
	done func([]ExpiredRef, error)) {
	if len(o.dests) == 0 {
		o.Backend.Expired(after, before, limit, done)
		return
	}
	o.Backend.Expired(after, before, limit, func(stored []ExpiredRef, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		o.spool.Expired(after, before, limit, func(spooled []ExpiredRef, err error) {
			if err != nil {
				done(nil, err)
				return
			}
			all := slices.Concat(stored, spooled)
			slices.SortFunc(all, func(a, b ExpiredRef) int {
				return cmp.Or(cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.Dest, b.Dest),
					cmp.Compare(a.Seq, b.Seq))
			})
			done(all[:min(limit, len(all))], nil)
		})
	})
}
