package disk_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// backlog makes a store of count messages in tables of the lowest level, turns a byte in the middle
// of one of them, and opens it.
func backlog(t *testing.T, count store.Seq, o disk.Options) (f *folder, table string) {
	t.Helper()
	f = &folder{t: t, dir: t.TempDir(), kept: map[string][]byte{}, o: o}
	f.open()
	for at := store.Seq(1); at < count; at += 1000 {
		if err := f.s.Apply([]*store.Batch{{Ops: append(puts(1, at, at+1000, 1, nil),
			left(1, count, int(at)+999))}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	f.close()
	tables, err := filepath.Glob(filepath.Join(f.dir, "db", "*.sst"))
	if err != nil || len(tables) < 5 {
		t.Fatal(tables, err)
	}
	table = tables[len(tables)/2]
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	f.kept[table] = append([]byte(nil), data...)
	data[len(data)/2] ^= 0x55
	if err := os.WriteFile(table, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f.open()
	return f, table
}

// left is the header of a queue of which so many messages are left from a head on.
func left(head, count store.Seq, n int) store.Op {
	h := header(1, message.Queue, 10*count, n)
	h.Header.Head, h.Header.Bytes = head, int64(n)*2000
	return h
}

// Beside damage that nobody knew of, an emptied store takes little more than the damaged table: in
// whatever order the messages went, near the limit and without one, and when a compaction stays
// that has all tables. It comes to rest then, and more can be written.
func TestAnEmptiedStoreBesideDamageTakesLittle(t *testing.T) {
	const count = 20_000
	for _, c := range []struct {
		name  string
		limit int64
		apart bool // messages are deleted one by one, and not in a row
		stays bool // a compaction comes to the damage meanwhile
	}{
		{"near the limit", 21 << 20, false, false},
		{"near the limit, one by one", 21 << 20, true, false},
		{"with a compaction of all", 0, false, true},
		{"with a compaction of all, one by one", 0, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, table := backlog(t, count, disk.Options{LimitBytes: c.limit, MemTableBytes: 1 << 20,
				Poll: 50 * time.Millisecond, ReserveBytes: -1})
			soon(t, f.s, "it is full", func() bool { return f.s.Space().UsedBytes > count*1000 })
			if c.stays {
				f.apply([]store.Op{{Kind: store.DeleteMessage, Dest: 1, Seq: 1},
					{Kind: store.DeleteMessage, Dest: 1, Seq: count}, left(1, count, count-2)})
				go func() { _ = disk.Settle(f.s) }()
				soon(t, f.s, "a compaction stays", func() bool { return disk.Stays(f.s) > 0 })
			}
			empty(f, count, c.apart)
			// The damaged table, the one that has the headers beside messages, and the logs.
			most := 2*int64(len(f.kept[table])) + 2<<20
			soon(t, f.s, "the room is free", func() bool { return f.s.Space().UsedBytes < most })
			t.Logf("%d bytes are used of %d, %d compactions stay, %d were let go",
				f.s.Space().UsedBytes, c.limit, disk.Stays(f.s), disk.Canceled(f.s))
			soon(t, f.s, "it rests", func() bool { return rests(f.s) })
			for range 10 {
				f.apply(append(puts(1, 5*count, 5*count+10, 1, nil), left(1, 5*count, 10)))
				f.apply([]store.Op{{Kind: store.DeleteRange, Dest: 1, Seq: 5 * count, To: 5*count + 10}})
			}
			f.close()
		})
	}
}

// empty deletes all messages.
func empty(f *folder, count store.Seq, apart bool) {
	f.t.Helper()
	step, each := store.Seq(1), store.Seq(500)
	if apart {
		step = 2
	}
	n := int(count)
	for first := range step {
		for at := first + 1; at <= count; at += step * each {
			var ops []store.Op
			for seq := at; seq < at+step*each && seq <= count; seq += step {
				ops = append(ops, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: seq})
			}
			n = max(0, n-len(ops))
			head := store.Seq(1)
			if !apart {
				head = at + each
			}
			if err := f.s.Apply([]*store.Batch{{Ops: append(ops, left(head, count, n))}}); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	if err := f.s.Apply([]*store.Batch{{Ops: []store.Op{left(1, count, 0)}}}); err != nil {
		f.t.Fatal(err)
	}
}

// rests reports whether next to nothing happens for a while.
func rests(s *disk.Store) bool {
	cpu := func() time.Duration {
		var r syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	const while = 500 * time.Millisecond
	began, had, was := time.Now(), cpu(), disk.Canceled(s)
	fails, _ := disk.Heap(s)
	<-time.After(while)
	now, _ := disk.Heap(s)
	return disk.Canceled(s)-was <= 1 && now-fails <= 1 && cpu()-had < time.Since(began)/4
}

// soon waits until something is so.
func soon(t *testing.T, s *disk.Store, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("it never is so that %s: %s", what, disk.Levels(s))
		}
	}
}

// Of what is there nothing goes with the tables that are dropped beside damage: neither what can be
// read, nor what can be read again later.
func TestWhatIsDroppedBesideDamageIsNobodys(t *testing.T) {
	const count, every = 20_000, 10_000
	f, _ := backlog(t, count, disk.Options{MemTableBytes: 1 << 20, Poll: 50 * time.Millisecond,
		ReserveBytes: -1})
	was, ranges := f.all(1, count+1)
	if len(ranges) == 0 {
		t.Fatal("all is read")
	}
	kept := 0
	for at := store.Seq(1); at <= count; at += 500 {
		var ops []store.Op
		for seq := at; seq < at+500; seq++ {
			if _, read := was[seq]; read && seq%every >= 20 {
				ops = append(ops, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: seq})
			} else {
				kept++
			}
		}
		if err := f.s.Apply([]*store.Batch{{Ops: append(ops, left(1, count, 0))}}); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _ = disk.Settle(f.s) }()
	soon(t, f.s, "the room is free", func() bool { return f.s.Space().UsedBytes < count*1000*3/4 })
	check := func(damaged bool) {
		t.Helper()
		got, ranges := f.all(1, count+1)
		n := len(got)
		for seq := range store.Seq(count + 1) {
			if damaged && covered(ranges, seq) {
				n++
			} else if _, read := got[seq]; !read && seq > 0 && (seq%every < 20 || !has(was, seq)) {
				t.Errorf("%d is gone", seq)
			}
		}
		if n < kept {
			t.Errorf("%d of %d are there", n, kept)
		}
	}
	check(true)
	f.repair()
	check(false)
}

func has(m map[store.Seq]store.Stored, seq store.Seq) bool {
	_, ok := m[seq]
	return ok
}

// remove removes each so many-th message by itself, from one on.
func remove(f *folder, first, count, step store.Seq) {
	f.t.Helper()
	const each = 500
	for at := first; at <= count; at += step * each {
		b := &store.Batch{}
		for seq := at; seq < at+step*each && seq <= count; seq += step {
			b.Ops = append(b.Ops, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: seq})
		}
		if err := f.s.Apply([]*store.Batch{b}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// A compaction that stays at damage, behind messages that were removed one by one, ends with the
// store, and not the process.
func TestACloseBesideDamageEndsNoProcess(t *testing.T) {
	const count = 20_000
	f, _ := backlog(t, count, disk.Options{MemTableBytes: 1 << 20, ReserveBytes: -1})
	remove(f, 1, count, 2)
	remove(f, 2, count, 2)
	go func() { _ = disk.Settle(f.s) }()
	soon(t, f.s, "a compaction stays", func() bool { return disk.Stays(f.s) > 0 })
	f.close()
	f.open()
	f.close()
}

// failingHeaders is a file system on which the headers cannot be read once stays is closed, and
// not before.
type failingHeaders struct {
	vfs.FS
	stays chan struct{}
}

func (fs failingHeaders) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return failingHeader{f, fs.stays}, nil
}

type failingHeader struct {
	vfs.File
	stays chan struct{}
}

func (f failingHeader) ReadAt(b []byte, at int64) (int, error) {
	pcs := make([]uintptr, 128)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	headers, opens := false, false
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		headers = headers || strings.HasSuffix(frame.Function, ".loadHeaders")
		opens = opens || strings.Contains(frame.Function, "sstable.NewReader")
	}
	if headers && !opens {
		<-f.stays
		return 0, syscall.EIO
	}
	return f.File.ReadAt(b, at)
}

// An open that fails while a compaction stays at damage comes back, and the folder is free.
func TestAnOpenThatFailsBesideDamageComesBack(t *testing.T) {
	const count = 20_000
	f, _ := backlog(t, count, disk.Options{MemTableBytes: 1 << 20, ReserveBytes: -1})
	disk.Hold(f.s)
	const tables = 4 // over each other, enough for a compaction
	for first := store.Seq(1); first <= tables; first++ {
		remove(f, first, count, tables)
		if err := disk.Flush(f.s); err != nil {
			t.Fatal(err)
		}
	}
	f.close()
	stays := make(chan struct{})
	var once sync.Once
	o := f.o
	o.FS = failingHeaders{vfs.Default, stays}
	o.OnWarning = func(line string) {
		if strings.Contains(line, "a table is damaged") {
			once.Do(func() { close(stays) })
		}
	}
	came := make(chan error, 1)
	go func() {
		_, err := disk.Open(context.Background(), o)
		came <- err
	}()
	select {
	case err := <-came:
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not come back")
	}
	f.open()
	f.close()
}
