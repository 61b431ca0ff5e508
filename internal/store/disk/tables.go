package disk

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// What is damaged is judged by the tables themselves: reads come by nothing that lies under a range
// tombstone, and compactions do.

// lostTable is a table whose tail was damaged.
type lostTable struct {
	name   string
	lo, hi []byte // its first and last key
	bytes  int64  // in blocks that were not found
	whole  bool   // all its records were found
}

// lookAtTables looks at each table that the list of tables has. It reports whether any is damaged,
// and shows those with another tail whose own cannot be read: then the tables are to be opened
// again.
func (r *repair) lookAtTables(db *pebble.DB) (damaged bool, err error) {
	levels, err := db.SSTables()
	if err == nil {
		r.pattern, err = newPattern(r.ctx)
	}
	if err != nil {
		return false, r.error(err)
	}
	seen := map[string]bool{}
	for _, level := range levels {
		for i := range level {
			t := &level[i]
			name := t.BackingSSTNum.String() + tableSuffix
			if seen[name] {
				continue
			}
			seen[name] = true
			bad, tailless, err := r.lookAtTable(name)
			if tailless && err == nil {
				err = r.mendTail(lostTable{name: name, lo: t.Smallest.UserKey, hi: t.Largest.UserKey})
			}
			if err != nil {
				return false, r.error(err)
			}
			damaged = damaged || bad || tailless
		}
	}
	return damaged, nil
}

const tableSuffix = ".sst"

// lookAtTable reports whether a block of records of a table is damaged, and whether what leads to
// these is, or the range tombstones, without which nothing is read either.
func (r *repair) lookAtTable(name string) (bad, tailless bool, err error) {
	path := r.fs.PathJoin(r.path(dbName), name)
	file, err := r.seen.Open(path)
	if err != nil {
		return false, false, err
	}
	suspects := &suspects{all: true}
	f := &tableFile{File: file, path: path, suspects: suspects, suspect: suspects.mark(path)}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return false, false, err
	}
	o := r.pattern.options.MakeReaderOptions()
	reader, err := sstable.NewReader(r.ctx, readable, o)
	if err != nil {
		return false, true, f.Close() // an error of the system comes again, to who reads all of it
	}
	defer func() { _ = reader.Close() }()
	l, err := reader.Layout()
	if err != nil {
		return false, true, nil //nolint:nilerr // as above
	}
	for _, h := range append([]block.Handle{l.TopIndex, l.RangeDel, l.Properties, l.MetaIndex},
		l.Index...) {
		sound, err := r.isSound(f, h)
		if err != nil || !sound {
			return false, err == nil, err
		}
	}
	for _, h := range l.Data {
		sound, err := r.isSound(f, h.Handle)
		if err != nil {
			return false, false, err
		}
		bad = bad || !sound
	}
	return bad, false, nil
}

func (r *repair) isSound(f *tableFile, h block.Handle) (bool, error) {
	if err := r.ctx.Err(); err != nil || h.Length == 0 {
		return true, err
	}
	b := make([]byte, h.Length+blockTrailer)
	_, err := f.File.ReadAt(b, int64(h.Offset)) //nolint:gosec // below its size
	return sound(b), err
}

// mendTail shows a table with another tail.
func (r *repair) mendTail(t lostTable) error {
	path := r.fs.PathJoin(r.path(dbName), t.name)
	data, err := readFile(r.fs, path)
	if err != nil {
		return err
	}
	found, err := r.pattern.find(r.ctx, data)
	if err != nil {
		return err
	}
	t.whole = found.whole(t.hi)
	t.bytes = int64(len(data)-tableFormat.FooterSize()) - found.bytes
	r.tailless = append(r.tailless, t)
	r.told.Cut = r.told.Cut || !t.whole
	r.seen.tails[path] = r.pattern.tail(len(data), found)
	return nil
}

// tellTails tells of tables with damaged tails.
func (r *repair) tellTails() {
	for _, t := range r.tailless {
		what := "all of its blocks were found"
		if !t.whole {
			what = fmt.Sprintf("%d bytes of it could not be read; its records are from %s to %s: of"+
				" these some may be lost, and what they ended may come again", max(0, t.bytes),
				r.where(t.lo), r.where(t.hi))
		}
		r.told.Others = append(r.told.Others, fmt.Sprintf(
			"%s/%s: what leads to its blocks is damaged; %s", dbName, t.name, what))
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
	if h, known := r.old.headers[destOf(key)]; known {
		return what + nameOf(&h)
	}
	return what + "a destination that nothing names"
}

// tailedFile is a table that is shown with another tail behind its own.
type tailedFile struct {
	vfs.File
	size int64 // where tail begins
	tail []byte
}

// withTail shows a file with a tail. What cannot tell its size is not shown so.
func withTail(f vfs.File, tail []byte) vfs.File {
	info, err := f.Stat()
	if err != nil {
		return f
	}
	return &tailedFile{f, info.Size(), tail}
}

// ReadAt implements vfs.File.
func (f *tailedFile) ReadAt(b []byte, at int64) (n int, err error) {
	if at < f.size {
		n, err = f.File.ReadAt(b[:min(int64(len(b)), f.size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) || n == len(b) || at+int64(n) < f.size {
			return n, err
		}
	}
	n += copy(b[n:], f.tail[min(int64(len(f.tail)), at+int64(n)-f.size):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Stat implements vfs.File.
func (f *tailedFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	return tailedInfo{info, f.size + int64(len(f.tail))}, err
}

type tailedInfo struct {
	vfs.FileInfo
	size int64
}

// Size implements vfs.FileInfo.
func (i tailedInfo) Size() int64 { return i.size }
