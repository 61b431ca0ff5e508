package mem

import (
	"cmp"
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// damage is a range of sequences, from <= seq < to.
type damage struct{ from, to store.Seq }

// Damage makes sequences of a destination, from <= seq < to, such that no page can read them: with
// its messages, or what references are to. They are there all the same, until Repair or for good.
func (s *Store) Damage(id store.DestID, from, to store.Seq) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage == nil {
		s.damage = map[store.DestID][]damage{}
	}
	list := append(slices.Clone(s.damage[id]), damage{from, to})
	slices.SortFunc(list, func(a, b damage) int { return cmp.Compare(a.from, b.from) })
	s.damage[id] = list
}

// Repair takes all damage back.
func (s *Store) Repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damage = nil
}

func (s *Store) damaged(id store.DestID, seq store.Seq) bool {
	return slices.ContainsFunc(s.damage[id], func(d damage) bool {
		return seq >= d.from && seq < d.to
	})
}

// page is that of what can be read, with what cannot in its place.
func (s *Store) page(r store.PageRequest) (out []store.Stored) {
	if len(s.damage) == 0 {
		return s.now.page(r)
	}
	size := int64(0)
	for r.From < r.To {
		bad := damage{r.To, r.To}
		for _, d := range s.damage[r.Dest] {
			if d.to > r.From && d.from < r.To {
				bad = damage{max(d.from, r.From), min(d.to, r.To)}
				break
			}
		}
		part := r
		part.To = bad.from
		if r.Count > 0 {
			part.Count -= len(out)
		}
		if r.Bytes > 0 {
			part.Bytes -= size
		}
		for _, st := range s.now.page(part) {
			if st.Message != nil {
				size += st.Message.Size()
			}
			out = append(out, s.referred(r.Dest, st))
		}
		if r.Count > 0 && len(out) >= r.Count || r.Bytes > 0 && size >= r.Bytes {
			break
		}
		if bad.from < bad.to {
			out = append(out, unreadable(r.Dest, bad.from, bad.to))
		}
		if r.From = bad.to; r.Count > 0 && len(out) >= r.Count {
			break
		}
	}
	return out
}

// referred gives a message as it is read: one that is a reference may be to a damaged one.
func (s *Store) referred(id store.DestID, st store.Stored) store.Stored {
	if e := s.now.dests[id].msgs.get(st.Seq); e.ref != nil && s.damaged(e.ref.source, st.Seq) {
		return unreadable(e.ref.source, st.Seq, st.Seq+1)
	}
	return st
}

func unreadable(id store.DestID, from, to store.Seq) store.Stored {
	return store.Stored{Seq: from, To: to, Damage: message.Errorf(message.Corrupt,
		"store: messages %d to %d of destination %d are damaged", from, to-1, id)}
}

// removeRange removes what is there of a range.
func (s *state) removeRange(op *store.Op) error {
	d := s.dests[op.Dest]
	if d == nil {
		return nil
	}
	if d.log || d.prepared {
		return message.Errorf(message.Internal,
			"store: messages of the log or branch %d are deleted alone", op.Dest)
	}
	var gone []store.Op
	for i := d.msgs.find(op.Seq); i < len(d.msgs.entries) && d.msgs.entries[i].seq < op.To; i++ {
		if e := &d.msgs.entries[i]; e.live() {
			gone = append(gone, store.Op{Dest: op.Dest, Seq: e.seq, Expiration: d.expiration(e)})
		}
	}
	for i := range gone {
		if err := s.remove(&gone[i]); err != nil {
			return err
		}
	}
	return nil
}
