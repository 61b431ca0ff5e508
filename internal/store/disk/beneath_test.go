package disk_test

import (
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
