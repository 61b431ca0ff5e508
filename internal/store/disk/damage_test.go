package disk_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// Bytes turn on the disk below the bodies of some messages: those are lost, and told so; the others
// are read, all can be removed, and the log is not flooded.
func TestADamagedBlockTakesTheBodiesInItAlone(t *testing.T) {
	const count, size, piece = 40, 20_000, 3_000
	dir := t.TempDir()
	warnings := 0
	reopen := func() *disk.Store {
		s, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true,
			PieceBytes: piece, OnWarning: func(string) { warnings++ }})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := reopen()
	ops := []store.Op{{Kind: store.PutHeader, Header: &store.Header{ID: 1, Head: 1, Reserved: 100,
		Count: count, Destination: message.Destination{Kind: message.Queue, Name: "q"}}}}
	random := rand.NewChaCha8([32]byte{1})
	for i := range count {
		m := &message.Message{Content: make([]byte, size)}
		_, _ = random.Read(m.Content)
		ops = append(ops, store.Op{Kind: store.PutMessage, Dest: 1, Seq: store.Seq(i + 1), Message: m})
	}
	if err := s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what opens a store brings its log into a table
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = reopen()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := damage(t, dir, 5*size)
	warnings = 0
	s = reopen()
	defer s.Close()
	for range 3 {
		page, err := s.Page(store.PageRequest{Dest: 1, From: 1, To: 100})
		if err != nil || len(page) != count {
			t.Fatalf("%d of %d are read: %v", len(page), count, err)
		}
		lost := 0
		for _, st := range page {
			if st.Damage != nil {
				lost++
			} else if len(st.Message.Content) != size {
				t.Errorf("message %d has %d bytes", st.Seq, len(st.Message.Content))
			}
		}
		if lost == 0 || lost > 2*damaged { // a block may have the end of one and the begin of another
			t.Errorf("%d messages are lost by %d bytes", lost, damaged)
		}
	}
	if warnings > 1 {
		t.Errorf("%d warnings of one thing", warnings)
	}
	ops = ops[:0]
	for i := range count {
		ops = append(ops, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: store.Seq(i + 1)})
	}
	if err := s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
		t.Fatal(err)
	}
	if page, err := s.Page(store.PageRequest{Dest: 1, From: 1, To: 100}); err != nil || len(page) > 0 {
		t.Errorf("%d are left: %v", len(page), err)
	}
}

// damage turns a byte in each of the store's large tables, up to four, and gives in how many.
func damage(t *testing.T, dir string, large int) (damaged int) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		data, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) < large || damaged == 4 {
			continue // of the rest, not of bodies
		}
		data[len(data)/2] ^= 0x55
		damaged++
		if err := os.WriteFile(table, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if damaged == 0 {
		t.Fatal("no table has the bodies")
	}
	return damaged
}
