package disk

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk/files"
)

// A damaged store is not read by way of pebble, whose iterators end at damage: its tables are
// looked at one by one, and what whole blocks and logs have is merged. A block that is lost hides
// nothing that others have, nor that its table has behind it: what it had replaced, or deleted, is
// there again, which is told.

// kinds are those of records, in the order of keys.
var kinds = []byte{kindMeta, kindReceipt, kindBody, kindCount, kindFacts, kindExpiry, kindHeader,
	kindMessage, kindNumbers, kindPiece, kindMark, kindTerms}

// lostSpan is the keys of a block that is lost, of a table with changes up to a sequence number.
type lostSpan struct {
	files.Span
	newest uint64
}

// lostTable is a table whose tail was damaged.
type lostTable struct {
	name   string
	lo, hi []byte // its first and last key
	bytes  int64  // in blocks that were not found
	whole  bool   // all its records were found
}

const tableSuffix = ".sst"

// find finds the tables and logs of the store, and looks at each. It reports whether anything is
// damaged.
func (r *repair) find() (damaged bool, err error) {
	if r.pattern, err = files.NewPattern(r.ctx); err != nil {
		return false, r.error(err)
	}
	from, err := r.openOld()
	if err != nil {
		return false, err
	}
	if from == nil {
		return true, r.findAll()
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	levels, err := from.SSTables()
	if err != nil {
		return false, r.error(err)
	}
	for _, t := range r.listed(levels) {
		bad, err := r.look(t)
		if err != nil {
			return false, r.error(err)
		}
		damaged = damaged || bad
	}
	r.logs = r.seen.Logs()
	if !damaged && len(r.told.Others) == 0 {
		return r.hasTwins(from)
	}
	return true, nil
}

// findAll takes all tables and logs that the folder has, as nothing tells which are needed. Tables
// that were replaced may be among them, and what these have may seem newer than it is: what is at
// the bottom has no sequence numbers any more.
func (r *repair) findAll() error {
	r.unlisted = true
	names, err := r.seen.List(r.path(files.DB))
	if err != nil {
		return r.error(err)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) // by their numbers
	})
	for _, name := range names {
		path := r.fs.PathJoin(r.path(files.DB), name)
		switch {
		case strings.HasSuffix(name, ".log"):
			r.logs = append(r.logs, path)
		case strings.HasSuffix(name, tableSuffix):
			if _, err := r.look(files.Table{Path: path}); err != nil {
				return r.error(err)
			}
		}
	}
	if len(r.tables)+len(r.logs) == 0 {
		return message.Errorf(message.Corrupt, "store %s: it has no table and no log, and nothing can be"+
			" copied: put a copy of the folder from before the damage in its place", r.o.Dir)
	}
	r.told.Others = append(r.told.Others, fmt.Sprintf("the list of the tables is not whole: all"+
		" tables (%d) and logs (%d) that there are were taken; what was consumed, or removed, may come"+
		" again", len(r.tables), len(r.logs)))
	return nil
}

// look looks at a table, which is read without its damaged blocks from then on.
func (r *repair) look(t files.Table) (damaged bool, err error) {
	file, err := r.seen.Open(t.Path)
	if err != nil {
		return false, err
	}
	bad, tailless, err := r.pattern.Look(r.ctx, file, t.Path)
	switch {
	case err != nil:
	case tailless:
		err = r.mendTail(t)
	case bad:
		err = r.without(t)
	}
	if err == nil && t.Lo == nil {
		t, err = r.pattern.Bounds(r.ctx, r.seen, t.Path)
	}
	r.tables = append(r.tables, t)
	return bad || tailless, err
}

// without has the damaged blocks of a table be left out.
func (r *repair) without(t files.Table) error {
	file, err := r.seen.Open(t.Path)
	if err != nil {
		return err
	}
	if t.Lo == nil { // nothing is known of it
		t.Lo, t.Hi, t.Newest = []byte{0}, []byte{0xff}, math.MaxUint64
	}
	tail, lost, err := r.pattern.Without(r.ctx, file, t.Lo, t.Hi)
	if err != nil {
		return err
	}
	r.seen.ShowTail(t.Path, tail)
	for _, span := range lost {
		r.loseSpan(span, t.Newest)
	}
	return nil
}

// loseSpan notes that keys are lost, of changes up to a sequence number.
func (r *repair) loseSpan(span files.Span, newest uint64) {
	r.lost = append(r.lost, lostSpan{span, newest})
	slices.SortFunc(r.lost, func(a, b lostSpan) int { return bytes.Compare(a.Lo, b.Lo) })
}

// mendTail shows a table with another tail.
func (r *repair) mendTail(t files.Table) error {
	data, err := files.Read(r.fs, t.Path)
	if err != nil {
		return err
	}
	tail, err := r.pattern.Mend(r.ctx, data, t.Hi)
	if err != nil {
		return err
	}
	lost := lostTable{name: r.fs.PathBase(t.Path), lo: t.Lo, hi: t.Hi, bytes: tail.Lost,
		whole: tail.Whole}
	r.tailless = append(r.tailless, lost)
	if r.told.Cut = r.told.Cut || !lost.whole; !lost.whole && t.Lo != nil { // any of its keys
		r.loseSpan(files.Span{Lo: t.Lo, Hi: append(bytes.Clone(t.Hi), 0)}, t.Newest)
	}
	r.seen.ShowTail(t.Path, tail.Bytes)
	return nil
}

// hasTwins reports whether two destinations have one name.
func (r *repair) hasTwins(from pebble.Reader) (bool, error) {
	headers, _, err := r.readHeaders(from)
	return len(store.Older(maps.Values(headers))) > 0, err
}

// readHeaders reads all headers. Those that make no sense, or whose terms do not, are not among
// them.
func (r *repair) readHeaders(from pebble.Reader) (headers map[store.DestID]store.Header,
	senseless []store.DestID, err error) {
	headers = map[store.DestID]store.Header{}
	it, err := from.NewIter(&pebble.IterOptions{LowerBound: []byte{kindHeader},
		UpperBound: []byte{kindHeader + 1}})
	if err != nil {
		return nil, nil, err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if len(it.Key()) != destKeySize {
			continue
		}
		id := destOf(it.Key())
		h, no := decodeHeader(id, it.Value())
		if no == nil {
			no = r.s.joinTerms(from, &h)
		}
		switch {
		case no == nil:
			headers[id] = h
		case message.KindOf(no) == message.Unavailable:
			err = no
		default:
			senseless = append(senseless, id)
		}
	}
	return headers, senseless, errors.Join(err, it.Close())
}

// copy copies all that whole blocks and logs have, and then reads the headers.
func (r *repair) copy() error {
	r.counts, r.stale = map[store.DestID]int64{}, map[store.DestID]bool{}
	r.unsure, r.has = map[store.DestID]bool{}, map[byte]bool{}
	r.under = map[store.DestID]spans{}
	metas := map[string]bool{}
	lost := sweep{rest: r.lost}
	err := r.pattern.Merge(r.ctx, r.seen, r.tables, r.logs, func(key, value []byte, seq uint64) error {
		older := lost.at(key, seq)
		r.has[key[0]] = true
		switch {
		case key[0] == kindMessage && len(key) == seqKeySize:
			r.counts[destOf(key)]++
			if older {
				r.unsure[destOf(key)] = true
				r.under[destOf(key)] = r.under[destOf(key)].with(seqOf(key))
			}
		case key[0] == kindHeader && len(key) == destKeySize:
			r.stale[destOf(key)] = older || r.unlisted
		case key[0] == kindHeader, key[0] == kindTerms && len(key) != destKeySize:
			return nil // of a key that makes no sense
		case key[0] == kindMeta:
			metas[string(key)] = !older && !r.unlisted
		}
		return r.put(key, value)
	})
	if err != nil {
		return err
	}
	for _, name := range r.metas {
		key := metaKey(name)
		hidden := (&sweep{rest: r.lost}).at(key, 0)
		if there, has := metas[string(key)]; !there && (hidden || has) {
			r.told.Others = append(r.told.Others, "the fact "+name+" could not be read, or is an older one")
		}
	}
	if err := r.write(1); err != nil {
		return err
	}
	var senseless []store.DestID
	if r.headers, senseless, err = r.readHeaders(r.to); err != nil {
		return err
	}
	for _, id := range senseless {
		if err := r.b.Delete(destKey(nil, kindHeader, id), nil); err != nil {
			return err
		}
	}
	return r.write(1)
}

// spans are sequences in their order; those that follow each other are one.
type spans []span

// with gives them with a sequence that is higher than all.
func (s spans) with(seq store.Seq) spans {
	if n := len(s); n > 0 && s[n-1].hi == seq {
		s[n-1].hi = seq + 1
		return s
	}
	return append(s, span{lo: seq, hi: seq + 1})
}

func (s spans) has(seq store.Seq) bool {
	_, found := slices.BinarySearchFunc(s, seq, func(one span, seq store.Seq) int {
		switch {
		case one.hi <= seq:
			return -1
		case one.lo > seq:
			return 1
		}
		return 0
	})
	return found
}

// sweep goes through keys in their order, beside lost blocks in that of their first keys.
type sweep struct{ rest, open []lostSpan }

// at reports whether a lost block may have a newer record of a key.
func (w *sweep) at(key []byte, seq uint64) (newer bool) {
	for len(w.rest) > 0 && bytes.Compare(w.rest[0].Lo, key) <= 0 {
		w.open = append(w.open, w.rest[0])
		w.rest = w.rest[1:]
	}
	w.open = slices.DeleteFunc(w.open, func(s lostSpan) bool { return bytes.Compare(s.Hi, key) <= 0 })
	return slices.ContainsFunc(w.open, func(s lostSpan) bool { return s.newest >= seq })
}

// lostOf reports whether any record of one of the kinds may be lost: a block that goes on beyond a
// kind of which there is nothing is taken to have none.
func (r *repair) lostOf(kinds ...byte) bool {
	return r.told.Cut || slices.ContainsFunc(kinds, func(kind byte) bool {
		return slices.ContainsFunc(r.lost, func(s lostSpan) bool {
			return s.Lo[0] == kind || s.Hi[0] == kind || s.Lo[0] < kind && kind < s.Hi[0] && r.has[kind]
		})
	})
}

// tellLost tells of blocks that were lost, and of tables with damaged tails.
func (r *repair) tellLost() {
	if r.hidden > 0 {
		r.told.Others = append(r.told.Others, fmt.Sprintf("messages that damaged blocks hid, and that"+
			" are copied: %d; what of them was consumed shortly before the damage may come again", r.hidden))
	}
	for _, t := range r.tailless {
		what := "all of its blocks were found"
		if !t.whole {
			what = fmt.Sprintf("%d bytes of it could not be read", max(0, t.bytes))
			if t.lo != nil {
				what += "; its records are from " + r.where(t.lo) + " to " + r.where(t.hi)
			}
			what += ": of these some may be lost, and what they ended may come again"
		}
		r.told.Others = append(r.told.Others, fmt.Sprintf(
			"%s/%s: what leads to its blocks is damaged; %s", files.DB, t.name, what))
	}
}

// where tells of what a key is, for people.
func (r *repair) where(key []byte) string {
	what := map[byte]string{kindMeta: "facts", kindReceipt: "receipts of ", kindMark: "receipts of ",
		kindExpiry: "expirations", kindHeader: "the header of ", kindNumbers: "numbers of producers of ",
		kindTerms: "the terms of "}[key[0]]
	switch {
	case key[0] == kindMeta || key[0] == kindExpiry:
		return what
	case what == "":
		what = fmt.Sprintf("message %d of ", tailOf(key))
	}
	if h, known := r.headers[destOf(key)]; known {
		return what + nameOf(&h)
	}
	return what + "a destination that nothing names"
}

// destOf gives the destination of a key that may be short.
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
