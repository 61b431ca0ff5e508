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

// What no repair made in the folder where one makes its tables is kept by starts and repairs, and
// told of. What a repair made that was killed goes.
func TestWhatNoRepairMadeIsKept(t *testing.T) {
	write := func(dir string, names ...string) {
		t.Helper()
		for _, name := range names {
			name = filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		files []string
		kept  bool
	}{
		{"somebody's file", []string{"letter.txt"}, true},
		{"a copy of a store", []string{"MANIFEST-000001", "000005.sst"}, true},
		{"a file beside a repair's", []string{"made-by-repair", "000005.sst", "letter.txt"}, true},
		{"a folder beside a repair's", []string{"made-by-repair", "000005.sst/letter.txt"}, true},
		{"a repair's", []string{"made-by-repair", "known", "000005.sst", "LOCK", "OPTIONS-1"}, false},
		{"a repair's that was just begun", nil, false},
	} {
		for _, folder := range []string{"db.new", "db.ready"} {
			dir := killed(t, 10)
			change(t, inDB(t, dir, "*.log"), func(b []byte) []byte { b[20] ^= 0x55; return b })
			at := filepath.Join(dir, folder)
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			write(at, c.files...)
			_, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
			if c.kept {
				if message.KindOf(err) != message.Limit || !strings.Contains(err.Error(), folder) {
					t.Errorf("%s in %s: a repair says %v", c.name, folder, err)
				}
			} else if err != nil {
				t.Errorf("%s in %s: %v", c.name, folder, err)
			}
			dir = killed(t, 10)
			at = filepath.Join(dir, folder)
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			write(at, c.files...)
			told := ""
			s, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true,
				OnWarning: func(line string) { told += line }})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if c.kept != strings.Contains(told, at+" is kept, as nothing tells that a repair made") {
				t.Errorf("%s in %s: a start tells %q", c.name, folder, told)
			}
			for _, name := range c.files {
				if _, err := os.Stat(filepath.Join(at, name)); c.kept != (err == nil) {
					t.Errorf("%s in %s: %s: %v", c.name, folder, name, err)
				}
			}
		}
	}
}

// A repaired store has no mark of the repair.
func TestARepairLeavesNoMark(t *testing.T) {
	dir := killed(t, 10)
	change(t, inDB(t, dir, "known"), nil)
	if _, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "db"))
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return strings.HasPrefix(e.Name(), "made")
	}) {
		t.Error(entries, err)
	}
}

// Tables that lie on another disk by a link are not repaired onto the disk of the link.
func TestTablesBehindALinkAreNotRepairedElsewhere(t *testing.T) {
	dir := killed(t, 10)
	db, there := filepath.Join(dir, "db"), filepath.Join(t.TempDir(), "there")
	if err := os.Rename(db, there); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(there, db); err != nil {
		t.Fatal(err)
	}
	if n, err := countIn(t, dir); err != nil || n != 110 {
		t.Errorf("%d messages, %v", n, err)
	}
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
	if err != nil || r.Kept != "" {
		t.Errorf("without damage: %+v, %v", r, err)
	}
	change(t, inDB(t, dir, "known"), nil)
	_, err = disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
	if message.KindOf(err) != message.Limit ||
		!strings.Contains(err.Error(), "db is a link to "+there) {
		t.Errorf("%v", err)
	}
}

// A prepared branch of which what it sent is lost says how much, after each repair.
func TestARepairMarksABranchThatIsNotWhole(t *testing.T) {
	f := newFolder(t)
	bytes, n := noise(200_000), 0
	f.apply(append(puts(5, 1, 201, 1, func(m *message.Message) {
		m.Content = bytes[n*1000:][:1000]
		n++
	}),
		store.Op{Kind: store.PutHeader, Header: &store.Header{ID: 5, Head: 1, Reserved: 201, Count: 200,
			Prepared: &store.Prepared{ID: message.TransactionID{XA: true, Global: "g", Branch: "b"},
				Acks: []store.AckRef{}}}}))
	f.damage(500)
	f.close()
	for range 2 {
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir})
		if err != nil || len(r.Destinations) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		lost := r.Destinations[0].Lost
		if lost == 0 || lost == 200 ||
			!strings.Contains(strings.Join(r.Others, "\n"), "cannot be committed any more, as messages") {
			t.Errorf("the repair says %+v", r)
		}
		f.open()
		h, err := f.s.Headers()
		if err != nil || len(h) != 1 || h[0].Prepared.Lost != lost || h[0].Count != 200 ||
			len(h[0].Prepared.Acks) != 0 {
			t.Errorf("of %d lost: %+v, %v", lost, h, err)
		}
		f.close()
		change(t, inDB(t, f.dir, "known"), nil)
		if err := os.RemoveAll(r.Kept); err != nil { // the next is named by the second
			t.Fatal(err)
		}
	}
}
