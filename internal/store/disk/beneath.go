package disk

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"hopwire/internal/store/disk/files"
)

// A damaged block hides what other tables have between its first key and its last, as nobody knows
// whether it ended that. A repair takes it: who consumed it may get it again, which is told.

// beneathMost bounds how many bytes are taken of one gap.
const beneathMost = 256 << 20

// version is a record, or its end, in one table.
type version struct {
	seq   uint64
	value []byte
	ended bool
}

// tombstone ends what is older in a range of keys.
type tombstone struct {
	lo, hi []byte
	seq    uint64
}

// layers is what the tables that can be read have of a gap.
type layers struct {
	newest map[string]version
	ends   []tombstone
	bytes  int
}

// beneath gives the records of messages that whole blocks of any table have in [lo, hi), the newest
// of each key, but for those that another whole block ends.
func (r *repair) beneath(db *pebble.DB, lo, hi []byte) (map[string][]byte, error) {
	levels, err := db.SSTables()
	if err != nil {
		return nil, err
	}
	l := layers{newest: map[string]version{}}
	for _, level := range levels {
		for i := range level {
			t := &level[i]
			if bytes.Compare(t.Largest.UserKey, lo) < 0 || bytes.Compare(t.Smallest.UserKey, hi) >= 0 {
				continue
			}
			if err := r.layer(&l, t.BackingSSTNum.String()+tableSuffix, lo, hi); err != nil {
				return nil, err
			}
		}
	}
	out := map[string][]byte{}
	for key, v := range l.newest {
		if !v.ended && !l.isEnded(key, v.seq) {
			out[key] = v.value
		}
	}
	return out, nil
}

// isEnded reports whether a range tombstone ends a record.
func (l *layers) isEnded(key string, seq uint64) bool {
	for _, e := range l.ends {
		if e.seq > seq && string(e.lo) <= key && key < string(e.hi) {
			return true
		}
	}
	return false
}

// layer adds what one table has. What cannot be read of it is left out.
func (r *repair) layer(l *layers, name string, lo, hi []byte) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	f, err := r.seen.Open(r.fs.PathJoin(r.path(files.DB), name))
	if err != nil {
		return err
	}
	reader, err := r.pattern.Reader(r.ctx, f)
	if err != nil {
		return f.Close()
	}
	defer func() { _ = reader.Close() }()
	ranges, err := reader.NewRawRangeDelIter(r.ctx, sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err == nil && ranges != nil {
		for span, err := ranges.First(); span != nil && err == nil; span, err = ranges.Next() {
			if bytes.Compare(span.End, lo) <= 0 || bytes.Compare(span.Start, hi) >= 0 {
				continue
			}
			for _, k := range span.Keys {
				l.ends = append(l.ends, tombstone{bytes.Clone(span.Start), bytes.Clone(span.End),
					uint64(k.SeqNum())})
			}
		}
		ranges.Close()
	}
	it, err := reader.NewIter(sstable.NoTransforms, lo, hi, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil //nolint:nilerr // nothing of it can be read
	}
	for kv := it.SeekGE(lo, 0); kv != nil && l.bytes < beneathMost; kv = it.Next() {
		if !bytes.Contains([]byte(messageKinds), kv.K.UserKey[:1]) {
			continue
		}
		v := version{seq: uint64(kv.SeqNum())}
		if old, again := l.newest[string(kv.K.UserKey)]; again && old.seq >= v.seq {
			continue
		}
		switch kv.Kind() {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
			value, _, err := kv.Value(nil)
			if err != nil {
				continue
			}
			v.value = append([]byte{}, value...)
			l.bytes += len(value)
		default:
			v.ended = true
		}
		l.newest[string(kv.K.UserKey)] = v
	}

	_ = it.Close() // its error is the damage
	return nil
}

// tellBeneath tells of what damaged blocks hid.
func (r *repair) tellBeneath() {
	if n := r.old.under; n > 0 {
		r.told.Others = append(r.told.Others, fmt.Sprintf("messages that damaged blocks hid, and that"+
			" are copied: %d; what of them was consumed shortly before the damage may come again", n))
	}
}
