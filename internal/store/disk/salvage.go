package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// salvage reads a damaged store. An iterator that comes to a damaged block ends; where it can be
// read again behind that is searched for as damage.go does, with keys taken as numbers. Such a gap
// hides more than the block has: newer records of the same keys, and others between them, that lie
// in other tables. Those are asked for one by one where their keys can be listed.
type salvage struct {
	s       *Store       // whose db is read
	ended   func() error // whether nobody waits any more
	headers map[store.DestID]store.Header
	gaps    []gap                                          // sorted for each kind
	asks    int                                            // that may still be made for keys in gaps
	beneath func(lo, hi []byte) (map[string][]byte, error) // what damaged blocks hide; nil nothing
	under   int64                                          // messages that were taken of that
}

// gap is a range of keys [lo, hi) of which nothing can be read.
type gap struct{ lo, hi []byte }

// mostAsks bounds how many keys in gaps are asked for, each for some 10 µs.
const mostAsks = 3_000_000

// lost reports whether a key lies in a gap.
func (v *salvage) lost(key []byte) bool {
	return slices.ContainsFunc(v.gaps, func(g gap) bool {
		return bytes.Compare(key, g.lo) >= 0 && bytes.Compare(key, g.hi) < 0
	})
}

// lostOf reports whether any record of one of the kinds may be lost.
func (v *salvage) lostOf(kinds ...byte) bool {
	return slices.ContainsFunc(kinds, func(kind byte) bool { return len(v.gapsOf(kind)) > 0 })
}

// gapsOf gives the parts of gaps that have keys of a kind.
func (v *salvage) gapsOf(kind byte) (out []gap) {
	for _, g := range v.gaps {
		if lo, hi := clip(g, kind); bytes.Compare(lo, hi) < 0 {
			out = append(out, gap{lo, hi})
		}
	}
	return out
}

func clip(g gap, kind byte) (lo, hi []byte) {
	lo, hi = g.lo, g.hi
	if first := []byte{kind}; bytes.Compare(lo, first) < 0 {
		lo = first
	}
	if last := []byte{kind + 1}; bytes.Compare(hi, last) > 0 {
		hi = last
	}
	return lo, hi
}

// each gives f all that can be read of [lo, hi), in order but for what was hidden by gaps.
func (v *salvage) each(lo, hi []byte, f func(key, value []byte) error) error {
	for bytes.Compare(lo, hi) < 0 {
		read, err := v.until(lo, hi, f)
		if err == nil || !pebble.IsCorruptionError(err) {
			return err
		}
		to, err := v.gapEnd(read, hi)
		if err != nil {
			return err
		}
		if err := v.ask(gap{read, to}, f); err != nil {
			return err
		}
		lo = to
	}
	return nil
}

// until reads until it comes to damage, which begins at the key that it gives.
func (v *salvage) until(lo, hi []byte, f func(key, value []byte) error) (at []byte, err error) {
	it, err := v.s.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return lo, err
	}
	defer it.Close()
	at = append([]byte(nil), lo...)
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return append(at[:0], it.Key()...), err
		}
		if err := f(it.Key(), value); err != nil {
			return nil, err
		}
		at = append(append(at[:0], it.Key()...), 0)
	}
	return at, it.Error()
}

// keyWidth is how many bytes of a key are looked at to find the end of a gap.
const keyWidth = 96

// widths are the lengths of keys, of kinds of which all have one length.
var widths = map[byte]int{kindBody: seqKeySize, kindCount: seqKeySize, kindFacts: seqKeySize,
	kindMessage: seqKeySize, kindPiece: pieceKeySize, kindExpiry: expirySize, kindHeader: destKeySize}

// gapEnd gives the first key behind damage at from, hi at the latest.
func (v *salvage) gapEnd(from, hi []byte) ([]byte, error) {
	if width := widths[from[0]]; width > 0 {
		to, err := v.gapEndOf(from, hi, width)
		if err != nil || len(to) > 0 && to[0] == from[0] {
			return to, err
		}
	}
	return v.gapEndOf(from, hi, keyWidth)
}

// gapEndOf gives the first key behind damage at from that has no more than width bytes, hi at the
// latest.
func (v *salvage) gapEndOf(from, hi []byte, width int) ([]byte, error) {
	unit := new(big.Int).Lsh(big.NewInt(1), uint(8*(keyWidth-width)))
	bad, end := numbered(from[:min(len(from), width)]), numbered(hi)
	at := func(far *big.Int) *big.Int {
		n := new(big.Int).Mul(far, unit)
		return n.Add(n, bad)
	}
	units := new(big.Int).Sub(end, bad)
	units.Add(units, unit).Sub(units, big.NewInt(1)).Div(units, unit) // one that is not whole, too
	far, err := farBehind(units, func(far *big.Int) (bool, error) {
		if err := v.ended(); err != nil {
			return false, err
		}
		it, err := v.s.db.NewIter(&pebble.IterOptions{LowerBound: keyOf(at(far)), UpperBound: hi})
		if err != nil {
			return false, v.s.readError(err)
		}
		return v.s.readable(it)
	})
	if err != nil {
		return nil, err
	}
	if to := at(far); to.Cmp(end) < 0 {
		return keyOf(to), nil
	}
	return hi, nil
}

// numbered takes the first keyWidth bytes of a key as a number.
func numbered(key []byte) *big.Int {
	wide := make([]byte, keyWidth)
	copy(wide, key)
	return new(big.Int).SetBytes(wide)
}

// keyOf is the first key with a number.
func keyOf(n *big.Int) []byte {
	return bytes.TrimRight(n.FillBytes(make([]byte, keyWidth)), "\x00")
}

// kinds are those of records, in the order of keys.
var kinds = []byte{kindMeta, kindReceipt, kindBody, kindCount, kindFacts, kindExpiry, kindHeader,
	kindMessage, kindNumbers, kindPiece, kindMark, kindTerms}

// ask gives f what there is of a gap, and notes the rest.
func (v *salvage) ask(g gap, f func(key, value []byte) error) error {
	for _, kind := range kinds {
		lo, hi := clip(g, kind)
		if bytes.Compare(lo, hi) >= 0 {
			continue
		}
		q := &question{v: v, lo: lo, hi: hi, from: lo, f: f}
		whole, err := v.list(kind, lo, hi, q.key)
		if err == nil && !whole {
			q.bad = true
			err = q.unlisted()
		}
		if err != nil {
			return err
		}
		if q.bad {
			v.note(q.from, hi)
		}
	}
	return nil
}

// question asks for keys of one kind in a gap, in order.
type question struct {
	v      *salvage
	lo, hi []byte
	f      func(key, value []byte) error
	from   []byte            // what is below was found, or noted
	bad    bool              // something from there on cannot be read
	hidden map[string][]byte // by damaged blocks; nil until somebody asks
}

// key asks for one key.
func (q *question) key(key []byte) error {
	value, done, err := q.v.s.db.Get(key)
	switch {
	case err == nil:
		err = errors.Join(q.f(key, value), done.Close())
	case errors.Is(err, pebble.ErrNotFound):
		err = nil
	case pebble.IsCorruptionError(err):
		var there bool
		if there, err = q.beneath(key); !there {
			q.bad = true
			return err
		}
	}
	if q.bad {
		q.v.note(q.from, key)
	}
	q.from, q.bad = append(bytes.Clone(key), 0), false
	return err
}

// beneath gives what a damaged block hides of a key, if it is known.
func (q *question) beneath(key []byte) (there bool, err error) {
	if err := q.look(); err != nil {
		return false, err
	}
	value, there := q.hidden[string(key)]
	if !there {
		return false, nil
	}
	if key[0] == kindMessage {
		q.v.under++
	}
	return true, q.f(key, value)
}

// look finds what damaged blocks hide of the gap.
func (q *question) look() (err error) {
	if q.hidden != nil || q.v.beneath == nil || !bytes.Contains([]byte(messageKinds), q.lo[:1]) {
		return nil
	}
	q.hidden, err = q.v.beneath(q.lo, q.hi)
	return err
}

// unlisted gives what damaged blocks hide whose keys are in no list: pieces, and what is of
// destinations whose headers cannot be read. All of the gap is noted.
func (q *question) unlisted() error {
	err := q.look()
	for _, key := range slices.Sorted(maps.Keys(q.hidden)) {
		_, known := q.v.headers[destOf([]byte(key))]
		if known && q.v.asks > 0 && key[0] != kindPiece || err != nil {
			continue
		}
		value, done, no := q.v.s.db.Get([]byte(key))
		switch {
		case no == nil:
			err = errors.Join(q.f([]byte(key), value), done.Close())
		case pebble.IsCorruptionError(no):
			_, err = q.beneath([]byte(key))
		case !errors.Is(no, pebble.ErrNotFound):
			err = no
		}
	}
	return err
}

func (v *salvage) note(lo, hi []byte) {
	v.gaps = append(v.gaps, gap{bytes.Clone(lo), bytes.Clone(hi)})
}

// list gives, in order, the keys of a kind that may be between two; it reports whether all.
func (v *salvage) list(kind byte, lo, hi []byte, f func(key []byte) error) (whole bool, err error) {
	first, last := destOf(lo), store.DestID(math.MaxUint64)
	if hi[0] == kind {
		last = destOf(hi)
	}
	within := func(key []byte) error {
		v.asks--
		if err := v.ended(); err != nil {
			return err
		}
		if bytes.Compare(key, lo) < 0 || bytes.Compare(key, hi) >= 0 {
			return nil
		}
		return f(key)
	}
	switch kind {
	case kindHeader:
		for n := store.DestID(0); n <= min(last-first, mostIDs) && v.asks > 0; n++ {
			if err := within(destKey(nil, kind, first+n)); err != nil {
				return false, err
			}
		}
		return last-first <= mostIDs && v.asks > 0, nil
	case kindBody, kindCount, kindFacts, kindMessage:
	default:
		return false, nil
	}
	for _, id := range slices.Sorted(maps.Keys(v.headers)) {
		if id < first || id > last {
			continue
		}
		h := v.headers[id]
		from, to := h.Head, h.Reserved
		if id == first {
			from = max(from, tailOf(lo))
		}
		if id == last {
			to = min(to, tailOf(hi)+1)
		}
		for seq := from; seq < to && v.asks > 0; seq++ {
			if err := within(seqKey(nil, kind, id, seq)); err != nil {
				return false, err
			}
		}
	}
	return v.asks > 0 && !v.lostOf(kindHeader), nil
}

// mostIDs bounds how many numbers of destinations are asked for in one gap. They are given out one
// by one.
const mostIDs = 50_000

// destOf gives the destination of a key that may be short, as the end of a gap is.
func destOf(key []byte) store.DestID {
	var wide [8]byte
	if len(key) > 0 {
		copy(wide[:], key[1:])
	}
	return store.DestID(binary.BigEndian.Uint64(wide[:]))
}

// tailOf gives the sequence of a key that may be short.
func tailOf(key []byte) store.Seq {
	var wide [8]byte
	if len(key) > destKeySize {
		copy(wide[:], key[destKeySize:])
	}
	return store.Seq(binary.BigEndian.Uint64(wide[:]))
}

// readHeaders reads all headers that can be read. Those whose terms cannot be read are not among
// them.
func (v *salvage) readHeaders() error {
	v.headers = map[store.DestID]store.Header{}
	return v.each([]byte{kindHeader}, []byte{kindHeader + 1}, func(key, value []byte) error {
		if len(key) != destKeySize {
			return nil
		}
		id := destOf(key)
		h, senseless := decodeHeader(id, value)
		switch err := v.s.joinTerms(v.s.db, &h); {
		case senseless != nil || message.KindOf(err) == message.Corrupt: // as if it was not there
		case err != nil:
			return err
		default:
			v.headers[id] = h
		}
		return nil //nolint:nilerr // as above
	})
}

// hasTwins reports whether two destinations have one name.
func (v *salvage) hasTwins() (bool, error) {
	err := v.readHeaders()
	return len(store.Older(maps.Values(v.headers))) > 0, err
}
