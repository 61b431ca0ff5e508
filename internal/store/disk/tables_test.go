package disk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// layered makes a store with a large table, and above it a small one whose keys go from the first
// to the last: headers, messages, their ends and a range tombstone.
func layered(t *testing.T) (dir, large, small string, before *contents) {
	t.Helper()
	f := newFolder(t)
	f.apply(slices.Concat([]store.Op{header(1, message.Queue, 3001, 500),
		header(2, message.Queue, 3001, 500)}, puts(1, 1, 501, 1, nil), puts(2, 1, 501, 1, nil)))
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	large = filepath.Base(inDB(t, f.dir, "*.sst"))
	f.apply(slices.Concat([]store.Op{header(1, message.Queue, 3002, 400),
		header(2, message.Queue, 3001, 501), {Kind: store.PutMeta, Name: "brokerId", Value: []byte("b")},
		{Kind: store.DeleteMessage, Dest: 1, Seq: 1},
		{Kind: store.DeleteRange, Dest: 1, Seq: 301, To: 401},
		{Kind: store.DeleteMessage, Dest: 2, Seq: 7}},
		puts(1, 1001, 1002, 1, nil), puts(2, 1001, 1003, 1, nil)))
	before = contentsOf(t, f.s)
	f.close()
	small = filepath.Base(inDB(t, f.dir, "*.sst"))
	return f.dir, large, small, before
}

// notShort leaves out what one goroutine does often: the race detector, which a short run has on,
// finds nothing in a minute of it.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a minute under the race detector; make test runs it")
	}
}

// damaged copies a store, with bytes of a table turned, and repairs it.
func damaged(t *testing.T, dir, table string, places ...int) (*disk.Repaired, *contents) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "s")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	change(t, filepath.Join(to, "db", table), func(b []byte) []byte {
		for _, at := range places {
			b[(at+len(b))%len(b)] ^= 0x55
		}
		return b
	})
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: to, Metas: repairMetas})
	if err != nil {
		t.Fatal(err)
	}
	s, err := disk.Open(context.Background(), disk.Options{Dir: to, NoWait: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return r, contentsOf(t, s)
}

// same reports whether a repaired store has all that it had. Headers were counted anew.
func same(a, b *contents) bool {
	return reflect.DeepEqual(a.messages, b.messages) && reflect.DeepEqual(a.metas, b.metas) &&
		len(a.headers) == len(b.headers)
}

// A byte turns in a small table above a large one, wherever: the large one is read all the same,
// and of the small one what is in whole blocks. What is said to be whole is.
func TestASmallDamagedTableHidesNoOther(t *testing.T) {
	notShort(t)
	dir, _, small, before := layered(t)
	info, err := os.Stat(filepath.Join(dir, "db", small))
	if err != nil {
		t.Fatal(err)
	}
	found, lost, blocks := 0, 0, 0
	size := int(info.Size())
	for at := 0; at < size; at += 61 {
		if at < size-1200 && at%1500 > 60 { // the tail is behind that
			continue
		}
		r, after := damaged(t, dir, small, at)
		if r.Kept == "" {
			t.Errorf("byte %d: it is not damaged", at)
			continue
		}
		others := strings.Join(r.Others, "\n")
		if !strings.Contains(others, "what leads to its blocks is damaged") {
			blocks++ // of records
			continue
		}
		switch {
		case strings.Contains(others, "all of its blocks were found"):
			found++
			if !same(before, after) || r.Cut {
				t.Errorf("byte %d: it is not whole: %+v", at, r)
			}
		case !strings.Contains(others, "could not be read; its records are from facts to message 1002 of"+
			" queue://d2") || !r.Cut:
			t.Errorf("byte %d: %+v", at, r)
		default:
			lost++
			if len(after.headers) != 2 || len(after.messages[1]) < 300 || len(after.messages[2]) < 500 {
				t.Errorf("byte %d: of the messages %d and %d are left, %d headers", at,
					len(after.messages[1]), len(after.messages[2]), len(after.headers))
			}
		}
	}
	t.Log(found, lost, blocks)
	if found < 10 || lost < 1 || blocks < 3 {
		t.Errorf("damage met %d tails and %d tombstones, %d blocks of records", found, lost, blocks)
	}
}

// The index and footer of a large table lead to its blocks, and are not needed to find them.
func TestTheBlocksOfATableAreFoundWithoutItsIndex(t *testing.T) {
	notShort(t)
	dir, large, _, before := layered(t)
	for _, at := range []int{-1, -30, -60, -300, -700, -1500} {
		r, after := damaged(t, dir, large, at)
		if !strings.Contains(strings.Join(r.Others, "\n"), "all of its blocks were found") {
			t.Errorf("byte %d: %+v", at, r)
		}
		if !same(before, after) {
			t.Errorf("byte %d: it is not whole: %+v", at, r)
		}
	}
	r, after := damaged(t, dir, large, -30, 100_000)
	missing := len(before.messages[1]) - len(after.messages[1])
	if !r.Cut || missing < 1 || missing > 16 || r.Destinations[0].Lost != int64(missing) {
		t.Errorf("with a block: %d are missing: %+v", missing, r)
	}
}

// What was in a table that has lost blocks leaves no trace but what belongs to it: messages without
// their bodies, or expirations, are no messages and have none.
func TestARepairMakesWholeWhatATableWithoutTailHad(t *testing.T) {
	notShort(t)
	dir, before := everything(t)
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	lost := map[string]int{}
	const parts = 5
	for i := range parts {
		table := tables[i%len(tables)]
		info, err := os.Stat(table)
		if err != nil {
			t.Fatal(err)
		}
		r, after := damaged(t, dir, filepath.Base(table), int(info.Size())*i/parts, -30)
		if r.Cut {
			compareRepaired(t, fmt.Sprintf("place %d: ", i), before, after, r, lost)
		}
	}
	t.Log(len(tables), lost)
}

// Damage under a range tombstone is met by no read, but by compactions.
func TestARepairEndsDamageThatNothingReads(t *testing.T) {
	f := newFolder(t)
	f.apply(append(puts(1, 1, 2001, 1, nil), header(1, message.Queue, 3000, 2000)))
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	f.damage(500)
	_, ranges := f.all(1, 3000)
	from, to := ranges[0].Seq-100, ranges[len(ranges)-1].To+100
	f.apply([]store.Op{{Kind: store.DeleteRange, Dest: 1, Seq: from, To: to},
		header(1, message.Queue, 3000, 2000-int(to-from))})
	f.close()
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir})
	if err != nil || r.Kept == "" || len(r.Destinations) != 1 || r.Destinations[0].Lost != 0 ||
		r.Destinations[0].Copied != 2000-int64(to-from) {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir}); err != nil || r.Kept != "" {
		t.Errorf("again: %+v, %v", r, err)
	}
	f.open()
	if err := disk.Settle(f.s); err != nil {
		t.Error(err)
	}
}

// watched tells of each read of a table.
type watched struct {
	vfs.FS
	read func()
}

func (w watched) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := w.FS.Open(name, o...)
	if err != nil || filepath.Ext(name) != ".sst" {
		return f, err
	}
	return watchedFile{f, w.read}, nil
}

type watchedFile struct {
	vfs.File
	read func()
}

func (f watchedFile) ReadAt(b []byte, at int64) (int, error) {
	f.read()
	return f.File.ReadAt(b, at)
}

// A repair that nobody waits for any more ends.
func TestARepairThatIsInterruptedEnds(t *testing.T) {
	dir, _, small, _ := layered(t)
	change(t, filepath.Join(dir, "db", small), func(b []byte) []byte { b[100] ^= 0x55; return b })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reads atomic.Int64
	const soon, most = 60, 50
	fs := watched{vfs.Default, func() {
		if reads.Add(1) == soon {
			cancel()
		}
	}}
	r, err := disk.Repair(ctx, disk.RepairOptions{Dir: dir, FS: fs})
	if !errors.Is(err, context.Canceled) || reads.Load() > soon+most {
		t.Errorf("%d reads, %v; %+v", reads.Load(), err, r)
	}
	if _, err := os.Stat(filepath.Join(dir, "db.new")); !os.IsNotExist(err) {
		t.Errorf("the copy is left: %v", err)
	}
}
