package files

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Table is a table that is to be read.
type Table struct {
	Path   string
	Lo, Hi []byte // the first key, and the last, that count
	Newest uint64 // the sequence number of the newest change in it
}

// Merge gives f, in the order of keys, what tables and logs have, with its sequence number: of each
// key the newest record, but where the key was deleted later, alone or in a range. Of two of one
// age that of the later table counts. Sequence numbers are 0 in the lowest tables: with one that
// was replaced among them an older record may be taken for the newest. What f gets is not to be
// kept.
//
// It needs no list of the tables, and no block that was lost: what such a block had replaced, or
// deleted, is the newest then. Damaged tables are to be shown as Look gives them. Of the logs it
// takes what is newer than all tables.
func (p *Pattern) Merge(ctx context.Context, fs vfs.FS, tables []Table, logs []string,
	f func(key, value []byte, seq uint64) error) error {
	m := merging{ctx: ctx, p: p, fs: fs}
	defer m.close()
	flushed := uint64(0)
	for i, t := range tables {
		flushed = max(flushed, t.Newest)
		if err := m.add(t, i); err != nil {
			return err
		}
	}
	if err := m.addLogs(logs, flushed, len(tables)); err != nil {
		return err
	}
	m.ends = joined(m.ends)
	heap.Init(&m.sources)
	return m.run(f)
}

// entry is a record of a key, or its end.
type entry struct {
	key   []byte
	seq   uint64
	value []byte
	ended bool
}

// source gives entries in the order of their keys, of one key the newest first.
type source struct {
	entry
	rank  int  // of two entries of one key and age the higher counts
	begun bool // entry is none of its, but before all of them
	next  func() (e entry, ok bool, err error)
	close func()
}

// sources is a heap.
type sources []*source

func (h sources) Len() int      { return len(h) }
func (h sources) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h sources) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.seq, a.seq),
		cmp.Compare(b.rank, a.rank)) < 0
}
func (h *sources) Push(x any) { *h = append(*h, x.(*source)) } //nolint:forcetypeassert // of heap
func (h *sources) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// tombstone deletes what is older between two keys.
type tombstone struct {
	lo, hi []byte
	seq    uint64
}

type merging struct {
	ctx     context.Context
	p       *Pattern
	fs      vfs.FS
	sources sources
	ends    []tombstone
}

func (m *merging) close() {
	for _, s := range m.sources {
		s.close()
	}
}

// run goes through all entries.
func (m *merging) run(f func(key, value []byte, seq uint64) error) error {
	var key []byte
	for len(m.sources) > 0 {
		s := m.sources[0]
		if !s.begun {
			if err := m.advance(); err != nil {
				return err
			}
			continue
		}
		key = append(key[:0], s.key...)
		for len(m.ends) > 0 && bytes.Compare(m.ends[0].hi, key) <= 0 {
			m.ends = m.ends[1:]
		}
		ended := s.ended || len(m.ends) > 0 && bytes.Compare(m.ends[0].lo, key) <= 0 &&
			m.ends[0].seq > s.seq
		if !ended {
			if err := f(key, s.value, s.seq); err != nil {
				return err
			}
		}
		for len(m.sources) > 0 && bytes.Equal(m.sources[0].key, key) {
			if err := m.advance(); err != nil {
				return err
			}
		}
	}
	return nil
}

// advance has the first source go on.
func (m *merging) advance() error {
	s := m.sources[0]
	e, ok, err := s.next()
	if err = errors.Join(err, m.ctx.Err()); err != nil {
		return err
	}
	if !ok {
		s.close()
		heap.Pop(&m.sources)
		return nil
	}
	s.entry, s.begun = e, true
	heap.Fix(&m.sources, 0)
	return nil
}

// add adds a table. It is opened when its first key comes.
func (m *merging) add(t Table, rank int) error {
	r, err := m.open(t)
	if err != nil {
		return err
	}
	err = m.rangesOf(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	s := &source{rank: rank, entry: entry{key: t.Lo, seq: 1 << 63}, close: func() {}}
	s.next = func() (entry, bool, error) {
		r, err := m.open(t)
		if err != nil {
			return entry{}, false, err
		}
		it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
		if err != nil {
			return entry{}, false, errors.Join(err, r.Close())
		}
		s.close = func() { _ = errors.Join(it.Close(), r.Close()) }
		kv := it.SeekGE(t.Lo, 0)
		// An older record of a key, kept for a snapshot, has its value in a block of such values. It
		// is looked at where the newest is lost alone.
		leads := r.Attributes.Has(sstable.AttributeValueBlocks)
		var last []byte // the key that was given last
		s.next = func() (e entry, ok bool, err error) {
			for ; kv != nil && bytes.Compare(kv.K.UserKey, t.Hi) <= 0; kv = it.Next() {
				apart := !kv.V.IsInPlaceValue()
				if last != nil && bytes.Equal(kv.K.UserKey, last) || apart && !leads {
					continue
				}
				e = entry{key: kv.K.UserKey, seq: uint64(kv.SeqNum())}
				switch kv.Kind() {
				case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
					e.value, _, err = kv.Value(nil)
				default:
					e.ended = true
				}
				if apart && err != nil && IsDamage(err) {
					continue // it is lost as well
				}
				last = append(last[:0], e.key...)
				return e, err == nil, err
			}
			return e, false, it.Error()
		}
		return s.next()
	}
	m.sources = append(m.sources, s)
	return nil
}

func (m *merging) open(t Table) (*sstable.Reader, error) {
	f, err := m.fs.Open(t.Path)
	if err != nil {
		return nil, err
	}
	r, err := m.p.Reader(m.ctx, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// rangesOf notes the ranges that a table deletes.
func (m *merging) rangesOf(r *sstable.Reader) error {
	it, err := r.NewRawRangeDelIter(m.ctx, sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil || it == nil {
		return err
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil && err == nil; span, err = it.Next() {
		for _, k := range span.Keys {
			m.ends = append(m.ends, tombstone{bytes.Clone(span.Start), bytes.Clone(span.End),
				uint64(k.SeqNum())})
		}
	}
	return err
}

// addLogs adds what logs have that is newer.
func (m *merging) addLogs(paths []string, than uint64, rank int) error {
	var list []entry
	for _, path := range paths {
		data, err := Read(m.fs, path)
		if err != nil {
			return err
		}
		list = m.entriesOf(list, data, path, than)
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.seq, a.seq))
	})
	m.sources = append(m.sources, &source{rank: rank, entry: list[0], begun: true,
		close: func() {},
		next: func() (entry, bool, error) {
			if list = list[1:]; len(list) == 0 {
				return entry{}, false, nil
			}
			return list[0], true, nil
		}})
	return nil
}

// entriesOf adds the entries of a log up to what cannot be read.
func (m *merging) entriesOf(list []entry, data []byte, path string, than uint64) []entry {
	for _, rec := range records(data, fileNumber(m.fs.PathBase(path))) {
		h, ok := batchrepr.ReadHeader(rec)
		if !ok {
			continue
		}
		seq := uint64(h.SeqNum)
		for ops := batchrepr.Read(rec); ; {
			kind, key, value, ok, err := ops.Next()
			if !ok || err != nil {
				break
			}
			if kind == pebble.InternalKeyKindLogData {
				continue
			}
			switch {
			case seq <= than:
			case kind == pebble.InternalKeyKindRangeDelete:
				m.ends = append(m.ends, tombstone{key, value, seq})
			case kind == pebble.InternalKeyKindSet:
				list = append(list, entry{key: key, seq: seq, value: value})
			default:
				list = append(list, entry{key: key, seq: seq, ended: true})
			}
			seq++
		}
	}
	return list
}

// joined gives ranges in order, none of which meets another, each with the newest change that
// deletes it.
func joined(list []tombstone) (out []tombstone) {
	slices.SortFunc(list, func(a, b tombstone) int { return bytes.Compare(a.lo, b.lo) })
	var bounds [][]byte
	for _, t := range list {
		bounds = append(bounds, t.lo, t.hi)
	}
	slices.SortFunc(bounds, bytes.Compare)
	bounds = slices.CompactFunc(bounds, bytes.Equal)
	var open newestFirst
	for i := range max(0, len(bounds)-1) {
		for ; len(list) > 0 && bytes.Equal(list[0].lo, bounds[i]); list = list[1:] {
			heap.Push(&open, list[0])
		}
		for len(open) > 0 && bytes.Compare(open[0].hi, bounds[i]) <= 0 {
			heap.Pop(&open)
		}
		if len(open) > 0 {
			out = append(out, tombstone{bounds[i], bounds[i+1], open[0].seq})
		}
	}
	return out
}

// newestFirst is a heap.
type newestFirst []tombstone

func (h newestFirst) Len() int           { return len(h) }
func (h newestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h newestFirst) Less(i, j int) bool { return h[i].seq > h[j].seq }
func (h *newestFirst) Push(x any) {
	*h = append(*h, x.(tombstone)) //nolint:forcetypeassert // of heap
}
func (h *newestFirst) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
