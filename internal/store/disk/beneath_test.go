package disk_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// A block of a small table that is damaged hides what a large table below has between its first
// key and its last: a repair takes that, but for what another whole block ends.
func TestARepairTakesWhatADamagedBlockHides(t *testing.T) {
	f := newFolder(t)
	named := func(m *message.Message) {
		m.Destination = message.Destination{Kind: message.Queue, Name: "d"}
	}
	large := func(m *message.Message) { // in pieces
		named(m)
		m.Content = noise(250 << 10)
	}
	f.apply(slices.Concat([]store.Op{header(1, message.Queue, 3001, 500)}, puts(1, 1, 497, 1, named),
		puts(1, 497, 501, 1, large)))
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	f.apply(slices.Concat([]store.Op{header(1, message.Queue, 3001, 400),
		{Kind: store.DeleteMessage, Dest: 1, Seq: 1}, {Kind: store.DeleteMessage, Dest: 1, Seq: 500},
		{Kind: store.DeleteRange, Dest: 1, Seq: 101, To: 201}}, puts(1, 1001, 1003, 1, named)))
	before := contentsOf(t, f.s)
	f.close()
	small := inDB(t, f.dir, "*.sst")
	to := filepath.Join(t.TempDir(), "s")
	if err := os.CopyFS(to, os.DirFS(f.dir)); err != nil {
		t.Fatal(err)
	}
	change(t, filepath.Join(to, "db", filepath.Base(small)), func(b []byte) []byte {
		b[30] ^= 0x55 // in the first block, which has all of them
		return b
	})
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: to, Metas: repairMetas})
	if err != nil {
		t.Fatal(err)
	}
	if told := strings.Join(r.Others, "; "); !strings.Contains(told, "may come again") {
		t.Errorf("told: %s", told)
	}
	s, err := disk.Open(context.Background(), disk.Options{Dir: to, NoWait: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	after := contentsOf(t, s)
	for seq, m := range before.messages[1] {
		got, there := after.messages[1][seq]
		if seq <= 500 && (!there || got.Message == nil ||
			len(got.Message.Content) != len(m.Message.Content)) {
			t.Errorf("message %d is lost", seq)
		}
	}
	for seq := range after.messages[1] {
		if seq > 100 && seq < 201 {
			t.Errorf("message %d, which what is whole ends, is there again", seq)
		}
	}
	if h := after.headers[1]; h.Count != int64(len(after.messages[1])) {
		t.Errorf("%d are counted, %d are there", h.Count, len(after.messages[1]))
	}
}

// newInPieces is a store whose table at the bottom has messages 1 to 9, each in two pieces, with
// some counts of deliveries; nothing is compacted any more.
func newInPieces(t *testing.T) (f *folder, large func(*message.Message)) {
	f = newFolder(t)
	f.close()
	f.o.InlineBytes, f.o.PieceBytes = 1000, 5000
	f.open()
	large = func(m *message.Message) {
		m.Destination = message.Destination{Kind: message.Queue, Name: "d"}
		m.Content = noise(6000)
	}
	f.apply(slices.Concat([]store.Op{header(1, message.Queue, 101, 9)}, puts(1, 1, 10, 1, large),
		delivered(1, 5, 2)))
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	disk.Hold(f.s)
	return f, large
}

// delivered sets how often messages 2 and on were delivered.
func delivered(times ...int32) (ops []store.Op) {
	for i, n := range times {
		ops = append(ops, store.Op{Kind: store.SetRedelivery, Dest: 1, Seq: store.Seq(i + 2), Count: n})
	}
	return ops
}

// repaired closes a store, damages the first block of its last table, repairs it, and holds
// messages 1 to 7 to what they were.
func repaired(t *testing.T, f *folder) {
	t.Helper()
	before := contentsOf(t, f.s)
	f.close()
	change(t, inDB(t, f.dir, "*.sst"), func(b []byte) []byte {
		b[30] ^= 0x55
		return b
	})
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir, Metas: repairMetas})
	if err != nil {
		t.Fatal(err)
	}
	f.open()
	after := contentsOf(t, f.s)
	for seq, m := range before.messages[1] {
		if seq > 7 {
			continue // the damaged block had something of it
		}
		got := after.messages[1][seq]
		if got.Message == nil || !bytes.Equal(got.Message.Content, m.Message.Content) ||
			got.Redelivery != m.Redelivery {
			t.Errorf("message %d, delivered %d times, is delivered %d times, and whole: %v; %s", seq,
				m.Redelivery, got.Redelivery, got.Message != nil, strings.Join(r.Others, "; "))
		}
	}
}

// Of what two whole tables have of a record that is written again the later counts.
func TestOfWhatADamagedBlockHidesTheNewestIsTaken(t *testing.T) {
	f, large := newInPieces(t)
	f.apply(delivered(4, 6))    // above the last
	f.apply(delivered(7, 3, 8)) // and above that
	f.apply(append(puts(1, 100, 101, 1, large), header(1, message.Queue, 101, 8),
		store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: 1},
		store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: 9},
		store.Op{Kind: store.SetRedelivery, Dest: 1, Seq: 8, Count: 2}))
	repaired(t, f)
}

// Pieces are in no list of keys, whether the header of their destination can be read or not.
func TestPiecesThatADamagedBlockHidesAreTaken(t *testing.T) {
	f, _ := newInPieces(t)
	for _, kind := range []byte("pq") { // before all pieces, and behind them
		if err := disk.SetRaw(f.s, kind, 1, 0, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.Flush(f.s); err != nil {
		t.Fatal(err)
	}
	repaired(t, f)
}
