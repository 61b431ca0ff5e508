package files

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// merged gives what Merge makes of a database's tables and of logs.
func merged(t *testing.T, fs vfs.FS, db *pebble.DB, logs []string) map[string]string {
	t.Helper()
	p, err := NewPattern(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	levels, err := db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	var tables []Table
	for _, level := range slices.Backward(levels) {
		for i := range level {
			x := &level[i]
			tables = append(tables, Table{Path: fs.PathJoin("db", x.BackingSSTNum.String()+".sst"),
				Lo: x.Smallest.UserKey, Hi: x.Largest.UserKey, Newest: uint64(x.LargestSeqNum)})
		}
	}
	out, last := map[string]string{}, []byte{}
	if err := p.Merge(t.Context(), fs, tables, logs, func(key, value []byte, _ uint64) error {
		if bytes.Compare(key, last) <= 0 {
			t.Errorf("%q comes behind %q", key, last)
		}
		last = append(last[:0], key...)
		out[string(key)] = string(value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// contents gives what a database has.
func contents(t *testing.T, db *pebble.DB) map[string]string {
	t.Helper()
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		out[string(it.Key())] = string(it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Merge reads tables and logs as the database itself does: keys that are set and deleted, alone and
// in ranges, in any order, over flushes and compactions. A log whose writes the tables have adds
// nothing.
func TestMergeReadsWhatTheDatabaseReads(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		fs := vfs.NewMem()
		db, err := pebble.Open("db", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest,
			DisableAutomaticCompactions: true})
		if err != nil {
			t.Fatal(err)
		}
		key := func() []byte { return fmt.Appendf(nil, "k%03d", random.IntN(200)) }
		var snaps []*pebble.Snapshot
		for i := range 600 {
			a, b := key(), key()
			if bytes.Compare(a, b) > 0 {
				a, b = b, a
			}
			switch n := random.IntN(100); {
			case n < 60:
				err = db.Set(a, fmt.Append(nil, i), nil)
			case n < 85:
				err = db.Delete(a, nil)
			case n < 92:
				err = db.DeleteRange(a, b, nil)
			case n < 94:
				snaps = append(snaps, db.NewSnapshot())
			case n < 98:
				err = db.Flush()
			default:
				err = db.Compact(t.Context(), []byte("a"), []byte("z"), false)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		names, err := fs.List("db")
		if err != nil {
			t.Fatal(err)
		}
		var logs []string
		for _, name := range slices.Sorted(slices.Values(names)) {
			if strings.HasSuffix(name, logSuffix) {
				logs = append(logs, fs.PathJoin("db", name))
			}
		}
		if got, want := merged(t, fs, db, logs), contents(t, db); !maps.Equal(got, want) {
			t.Errorf("seed %d: merged are %d keys, want %d", seed, len(got), len(want))
		}
		if err := db.Flush(); err != nil {
			t.Fatal(err)
		}
		if got, want := merged(t, fs, db, logs[:0]), contents(t, db); !maps.Equal(got, want) {
			t.Errorf("seed %d: merged of tables alone are %d keys, want %d", seed, len(got), len(want))
		}
		for _, snap := range snaps {
			if err := snap.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A log whose writes the tables have may have keys whose ends are compacted away: they do not come
// again.
func TestMergePassesOverWhatTablesHaveOfALog(t *testing.T) {
	fs := vfs.NewMem()
	db, err := pebble.Open("db", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest,
		DisableAutomaticCompactions: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Set([]byte("k"), nil, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, logSuffix) })
	old := fs.PathJoin("old", names[i])
	if err := errors.Join(fs.MkdirAll("old", 0o700), vfs.Copy(fs, fs.PathJoin("db", names[i]), old),
		db.Flush(), db.Delete([]byte("k"), nil), db.Set([]byte("z"), nil, nil), db.Flush(),
		db.Compact(t.Context(), []byte("a"), []byte("zz"), false),
		db.Set([]byte("y"), nil, nil), db.Flush()); err != nil {
		t.Fatal(err)
	}
	if got := merged(t, fs, db, []string{old}); !maps.Equal(got, map[string]string{"y": "", "z": ""}) {
		t.Errorf("merged are %q", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
