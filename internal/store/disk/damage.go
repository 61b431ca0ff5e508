package disk

import (
	"cmp"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// A block of a table that does not have its checksum gives an error to whoever comes to it; what
// lies behind it can be read by who begins there. Where that is no error says. It is searched for
// by reads at distances that double, and between the last two of them. A block that can be read
// between two that cannot is found when it has no fewer sequences than the first of these.

// skip makes st the range that begins at st.Seq and cannot be read, and has the messages go on
// behind it.
func (p *pager) skip(st *store.Stored) error {
	st.Damage = p.s.readError(p.msgs.Error())
	_ = p.msgs.Close() // its error was looked at
	p.msgs = nil
	to, err := behind(uint64(st.Seq), uint64(p.r.To), func(at uint64) (bool, error) {
		it, err := p.iter(kindMessage, store.Seq(at))
		if err != nil {
			return false, err
		}
		return p.s.readable(it)
	})
	if st.To = store.Seq(to); err == nil && st.To < p.r.To {
		p.msgs, err = p.iter(kindMessage, st.To)
	}
	return err
}

// behind gives the first place behind damage that begins at from and ends at to at the latest; can
// tells whether a place can be read.
func behind(from, to uint64, can func(at uint64) (bool, error)) (uint64, error) {
	bad, good := from, to
	for step := uint64(1); step < to-from; step *= 2 {
		ok, err := can(from + step)
		if err != nil {
			return 0, err
		}
		if ok {
			good = from + step
			break
		}
		bad = from + step
		if step > math.MaxUint64/2 {
			break
		}
	}
	for good-bad > 1 {
		mid := bad + (good-bad)/2
		switch ok, err := can(mid); {
		case err != nil:
			return 0, err
		case ok:
			good = mid
		default:
			bad = mid
		}
	}
	return good, nil
}

// readable reports whether what an iterator begins with can be read, and closes it.
func (s *Store) readable(it *pebble.Iterator) (bool, error) {
	if it.First() {
		_, _ = it.ValueAndErr()
	}
	err := it.Close()
	switch {
	case pebble.IsCorruptionError(err):
		return false, nil
	case err != nil:
		return false, s.readError(err)
	}
	return true, nil
}

// fromBothEnds gives f the values of what an iterator has, in order; when it meets damage, those
// behind that as well, from the end.
func (s *Store) fromBothEnds(it *pebble.Iterator, f func(value []byte) error) (damage, err error) {
	for _, back := range []bool{false, true} {
		first, next := it.First, it.Next
		if back {
			first, next = it.Last, it.Prev
		}
		var bad error
		for ok := first(); ok; ok = next() {
			var value []byte
			if value, bad = it.ValueAndErr(); bad != nil {
				break
			}
			if err := f(value); err != nil {
				return nil, err
			}
		}
		switch err := cmp.Or(it.Error(), bad); {
		case err == nil:
			return damage, nil
		case !pebble.IsCorruptionError(err):
			return nil, s.readError(err)
		case damage == nil:
			damage = s.readError(err)
		}
	}
	return damage, nil
}

// cut is a range of messages that an Apply deletes. What the Apply put before it is among them.
type cut struct {
	dest     store.DestID
	from, to store.Seq
	before   uint32 // how many operations the pebble batch had
}

func (c cut) has(r store.ExpiredRef) bool {
	return r.Dest == c.dest && r.Seq >= c.from && r.Seq < c.to
}

// deleteRange removes messages whether they can be read or not.
func (a *applier) deleteRange(op *store.Op) error {
	w := a.of(op.Dest)
	if w.role == log || w.role == prepared {
		return message.Errorf(message.Internal,
			"store: messages of the log or branch %d are deleted alone", op.Dest)
	}
	if op.Seq >= op.To {
		return nil
	}
	if err := a.load(w.id, w.d); err != nil {
		return err
	}
	a.lay(w.id, w.d, op.Seq, op.To)
	a.cuts = append(a.cuts, cut{op.Dest, op.Seq, op.To, a.b.Count()})
	return nil
}

// cutExpirations removes the expirations of what is deleted by ranges. They lie elsewhere, by their
// times: those of all destinations that can be read are gone through, once for all ranges.
func (a *applier) cutExpirations() error {
	if len(a.cuts) == 0 {
		return nil
	}
	var gone []store.ExpiredRef
	a.eachPutExpiration(func(r store.ExpiredRef, at uint32) {
		if slices.ContainsFunc(a.cuts, func(c cut) bool { return at < c.before && c.has(r) }) {
			gone = append(gone, r)
		}
	})
	joined := joinCuts(a.cuts)
	err := a.s.eachExpiration(a.s.db, minTime, func(r store.ExpiredRef) {
		behind, _ := slices.BinarySearchFunc(joined, r, func(c cut, r store.ExpiredRef) int {
			if c.dest < r.Dest || c.dest == r.Dest && c.from <= r.Seq {
				return -1
			}
			return 1
		})
		if behind > 0 && joined[behind-1].has(r) {
			gone = append(gone, r)
		}
	})
	if err != nil {
		return err
	}
	for _, r := range gone {
		a.key = expiryKey(a.key[:0], r)
		a.delete(a.key)
	}
	return nil
}

// joinCuts gives the same ranges in order, none of which meets another.
func joinCuts(cuts []cut) (out []cut) {
	cuts = slices.Clone(cuts)
	slices.SortFunc(cuts, func(a, b cut) int {
		return cmp.Or(cmp.Compare(a.dest, b.dest), cmp.Compare(a.from, b.from))
	})
	for _, c := range cuts {
		if n := len(out) - 1; n >= 0 && out[n].dest == c.dest && c.from <= out[n].to {
			out[n].to = max(out[n].to, c.to)
			continue
		}
		out = append(out, c)
	}
	return out
}

// eachPutExpiration gives the expirations that this Apply put, and which of its operations did.
func (a *applier) eachPutExpiration(f func(r store.ExpiredRef, at uint32)) {
	r := a.b.Reader()
	for at := uint32(0); ; at++ {
		kind, key, _, ok, err := r.Next()
		if !ok || err != nil { // there is none: nobody but this goroutine wrote it
			return
		}
		if kind == pebble.InternalKeyKindSet && len(key) > 0 && key[0] == kindExpiry {
			if e, parsed := parseExpiry(key); parsed {
				f(e, at)
			}
		}
	}
}

// eachExpiration gives the expirations of all destinations from a time on; damage ends it.
func (s *Store) eachExpiration(from pebble.Reader, low int64, f func(store.ExpiredRef)) error {
	it, err := from.NewIter(&pebble.IterOptions{
		LowerBound: expiryKey(nil, store.ExpiredRef{Expiration: low}),
		UpperBound: []byte{kindExpiry + 1}})
	if err != nil {
		return s.readError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if r, parsed := parseExpiry(it.Key()); parsed {
			f(r)
		}
	}
	if err := it.Close(); err != nil && !pebble.IsCorruptionError(err) {
		return s.readError(err)
	}
	return nil
}
