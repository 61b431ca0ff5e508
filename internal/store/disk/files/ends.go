package files

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Ends tells one table from another by the first and the last key, which the list of the tables
// has of each. Pebble looks at the length of a table alone.
type Ends struct {
	options sstable.ReaderOptions
}

// NewEnds makes one.
func NewEnds() *Ends {
	o := &pebble.Options{}
	o.EnsureDefaults()
	return &Ends{o.MakeReaderOptions()}
}

// Span gives the first and the last key of a table as far as they can be read; what cannot is nil.
// What is damaged is told by who looks for damage.
func (e *Ends) Span(ctx context.Context, fs vfs.FS, path string) (lo, hi *pebble.InternalKey) {
	f, err := Open(fs, path)
	if err != nil {
		return nil, nil
	}
	readable, err := sstable.NewSimpleReadable(&checkedFile{f, path})
	if err != nil {
		_ = f.Close()
		return nil, nil
	}
	r, err := sstable.NewReader(ctx, readable, e.options)
	if err != nil {
		_ = readable.Close()
		return nil, nil
	}
	defer func() { _ = r.Close() }()
	m := merging{ctx: ctx}
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err = errors.Join(err, m.rangesOf(r)); err != nil {
		return nil, nil
	}
	if kv := it.First(); kv != nil {
		k := kv.K.Clone()
		lo = &k
	}
	isFirst := it.Error() == nil // a table may have nothing but ranges that it deletes
	if kv := it.Last(); kv != nil {
		k := kv.K.Clone()
		hi = &k
	}
	isLast := it.Error() == nil
	_ = it.Close() // it was looked at
	for _, t := range m.ends {
		if isFirst && (lo == nil || bytes.Compare(t.lo, lo.UserKey) <= 0) {
			lo = &pebble.InternalKey{UserKey: t.lo}
		}
		if isLast && (hi == nil || bytes.Compare(t.hi, hi.UserKey) > 0) {
			hi = &pebble.InternalKey{UserKey: t.hi}
		}
	}
	return lo, hi
}

// Another reports whether a table that can be read at one of its ends is not the one of a list.
func (e *Ends) Another(ctx context.Context, fs vfs.FS, path string,
	lo, hi pebble.InternalKey) bool {
	first, last := e.Span(ctx, fs, path)
	return first != nil && !isEnd(first, lo) || last != nil && !isEnd(last, hi)
}

// isEnd compares a key with that of a list. Those of ranges that are deleted have no age here.
func isEnd(k *pebble.InternalKey, listed pebble.InternalKey) bool {
	return bytes.Equal(k.UserKey, listed.UserKey) && (k.Trailer == 0 ||
		listed.Kind() == pebble.InternalKeyKindRangeDelete || k.Trailer == listed.Trailer)
}
