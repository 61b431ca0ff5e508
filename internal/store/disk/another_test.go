package disk_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// A list of tables, or a log, that is whole and is not the one that was there is damage: it is of
// another store, or an older one of the same. A repair does not take what it says.
func TestAnotherListOrLogIsNotTakenForTheOneThatWas(t *testing.T) {
	another := func(file string) func(b []byte) []byte {
		return func([]byte) []byte {
			b, err := os.ReadFile(inDB(t, killedOf(t, 320, 1001), file))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	for _, c := range []struct {
		file        string
		least, most int
	}{{"MANIFEST-*", 400, 400}, {"*.log", 200, 390}} {
		dir := killed(t, 300)
		change(t, inDB(t, dir, c.file), another(c.file))
		n, err := countIn(t, dir)
		if message.KindOf(err) != message.Corrupt || !strings.Contains(err.Error(), " is another file") ||
			!strings.Contains(err.Error(), "run hopwire repair FILE") {
			t.Errorf("%s: %d messages, %v", c.file, n, err)
		}
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
		if err != nil || !r.Cut || !strings.Contains(strings.Join(r.Others, "\n"), " is another file") {
			t.Errorf("%s: the repair says %+v, %v", c.file, r, err)
		}
		if n, err := countIn(t, dir); err != nil || n < c.least || n > c.most {
			t.Errorf("%s: %d messages after it, %v", c.file, n, err)
		}
	}
}

// An older list of the tables in the place of the newest, as long as it.
func TestAnOlderListOfTheTablesIsNotTakenForTheNewest(t *testing.T) {
	f := newFolder(t)
	f.apply(append(puts(1, 1, 101, 1, nil), header(1, message.Queue, 1001, 100)))
	old, err := os.ReadFile(inDB(t, f.dir, "MANIFEST-*"))
	if err != nil {
		t.Fatal(err)
	}
	f.close()
	f.open()
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.CopyFS(dir, os.DirFS(f.dir)); err != nil {
		t.Fatal(err)
	}
	change(t, inDB(t, dir, "MANIFEST-*"), func(b []byte) []byte {
		return append(old, make([]byte, max(0, len(b)-len(old)))...)
	})
	if n, err := countIn(t, dir); message.KindOf(err) != message.Corrupt {
		t.Errorf("%d messages, %v", n, err)
	}
}

// twins makes a store that has 100 messages of each of some queues in a table of its own, and gives
// two tables of one length, with their queues.
func twins(t *testing.T, content byte) (dir string, tables [2]string, ids [2]store.DestID) {
	t.Helper()
	f := newFolder(t)
	disk.Hold(f.s)
	for id := store.DestID(1); id < 40; id++ {
		h := header(id, message.Queue, 1001, 100)
		h.Header.Destination.Name = string(rune('A' + id))
		f.apply(append(puts(id, 1, 101, 1, func(m *message.Message) {
			m.Content = bytes.Repeat([]byte{content}, 100)
		}), h))
	}
	f.close()
	all, err := filepath.Glob(filepath.Join(f.dir, "db", "*.sst"))
	if err != nil || len(all) != 39 {
		t.Fatal(all, err)
	}
	of := map[int64]int{}
	for i, name := range all {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if j, has := of[info.Size()]; has {
			ids = [2]store.DestID{store.DestID(j + 1), store.DestID(i + 1)}
			return f.dir, [2]string{all[j], all[i]}, ids
		}
		of[info.Size()] = i
	}
	t.Fatal("no two are of one length")
	return "", tables, ids
}

// Two tables that changed their places, and one of another store, are refused, though each is whole
// and has the length that the list says. A repair puts the ones in their places, and leaves the
// other out.
func TestATableIsNotTakenForAnother(t *testing.T) {
	swap := func(a, b string) error {
		return errors.Join(os.Rename(a, a+".t"), os.Rename(b, a), os.Rename(a+".t", b))
	}
	copied := func(from, to string) error {
		b, err := os.ReadFile(from)
		return errors.Join(err, os.WriteFile(to, b, 0o600))
	}
	_, other, _ := twins(t, 'y')
	for _, c := range []struct {
		name, want string
		left       [2]int
		change     func(tables [2]string) error
	}{
		{"swapped", "; it is taken for 0", [2]int{100, 100}, func(tables [2]string) error {
			return swap(tables[0], tables[1])
		}},
		{"of another store", "; it is left out", [2]int{0, 100}, func(tables [2]string) error {
			return copied(other[1], tables[0])
		}},
		{"twice", "; it is left out", [2]int{100, 0}, func(tables [2]string) error {
			return copied(tables[0], tables[1])
		}},
	} {
		dir, tables, ids := twins(t, 'x')
		if err := c.change(tables); err != nil {
			t.Fatal(err)
		}
		if n, err := countIn(t, dir); message.KindOf(err) != message.Corrupt ||
			!strings.Contains(err.Error(), "is another table than it was") ||
			!strings.Contains(err.Error(), "run hopwire repair FILE") {
			t.Errorf("%s: %d messages, %v", c.name, n, err)
		}
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
		if err != nil || !strings.Contains(strings.Join(r.Others, "\n"), c.want) {
			t.Errorf("%s: the repair says %+v, %v", c.name, r, err)
		}
		s, err := disk.Open(t.Context(), disk.Options{Dir: dir, NoWait: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.left {
			got, damage := (&folder{t: t, s: s}).all(ids[i], 1001)
			for _, m := range got {
				if m.Message.Content[0] != 'x' {
					t.Errorf("%s: a message of another store", c.name)
					break
				}
			}
			if len(got) != want || len(damage) > 0 {
				t.Errorf("%s: %d messages of queue %d, want %d; %v", c.name, len(got), ids[i], want, damage)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
