package disk_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// twoTables makes a store of a queue with 6,000 messages, of which half lie in a table of the
// lowest level and half in one of level 0, turns a byte of each of the two, and opens it.
func twoTables(t *testing.T) (*disk.Store, *atomic.Int32) {
	t.Helper()
	var warnings atomic.Int32
	o := disk.Options{Dir: t.TempDir(), NoWait: true, MemTableBytes: 1 << 20,
		OnWarning: func(string) { warnings.Add(1) }}
	open := func() *disk.Store {
		s, err := disk.Open(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	for _, half := range []struct {
		from, to store.Seq
		settle   func(*disk.Store) error
	}{{1, 3001, disk.Settle}, {3001, 6001, disk.Flush}} {
		err := s.Apply([]*store.Batch{{Ops: append(puts(1, half.from, half.to, 1, nil),
			header(1, message.Queue, 1_000_000, int(half.to-1)))}})
		if err == nil {
			err = half.settle(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(o.Dir, "db", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, table := range tables {
		data, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) < 1<<19 {
			continue
		}
		data[len(data)/2] ^= 0x55
		damaged++
		if err := os.WriteFile(table, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if damaged < 2 {
		t.Fatal(damaged, "tables are damaged of", tables)
	}
	return open(), &warnings
}

// Beside damaged tables, in level 0 and below it, as much can be written and consumed as ever. They
// are not tried again and again, and what comes is compacted.
func TestDamagedTablesStopNoWrites(t *testing.T) {
	s, warnings := twoTables(t)
	end := make(chan error, 1)
	go func() { end <- putAndDelete(s, 100<<20) }()
	select {
	case err := <-end:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("writes wait for ever:", disk.Levels(s))
	}
	fails, amp := disk.Heap(s)
	if fails > 10 || amp > 15 || warnings.Load() > 10 {
		t.Errorf("%d compactions failed, a read looks into %d tables, %d warnings: %s", fails, amp,
			warnings.Load(), disk.Levels(s))
	}
	if err := s.Close(); err != nil { // what stays is let go
		t.Fatal(err)
	}
}

// putAndDelete puts so many bytes of messages to destination 1 and deletes nearly all.
func putAndDelete(s *disk.Store, bytes int) error {
	l := newLoader(s)
	l.next, l.h.Head, l.h.Count, l.h.Reserved = 6001, 1, 6000, 1_000_000
	for size := 0; size < bytes; size += 100 << 10 {
		if err := l.put(100); err != nil {
			return err
		}
		b := &store.Batch{}
		for seq := l.next - 100; seq < l.next-5; seq++ {
			b.Ops = append(b.Ops, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: seq})
		}
		l.h.Count -= 95
		l.header(b)
		if err := s.Apply([]*store.Batch{b}); err != nil {
			return err
		}
	}
	return nil
}
