package disk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// killed makes a store that has messages in a table, which the last record of its manifest names,
// and in its log, as a kill leaves it, and gives a copy of its folder.
func killed(t *testing.T, more int) string {
	t.Helper()
	return killedOf(t, more, 1000)
}

// killedOf is killed with messages of a size in the log.
func killedOf(t *testing.T, more, size int) string {
	t.Helper()
	f := newFolder(t)
	f.apply(append(puts(1, 1, 101, 1, func(m *message.Message) {
		m.Content = append(m.Content, noise(size-1000)...)
	}), header(1, message.Queue, 1001, 100)))
	for i := range more {
		seq := store.Seq(101 + i)
		ops := append(puts(1, seq, seq+1, 1, func(m *message.Message) { m.Content = noise(size) }),
			header(1, message.Queue, 1001, 101+i))
		if err := f.s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "s")
	if err := os.CopyFS(to, os.DirFS(f.dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// inDB gives the last file of pebble's that a pattern finds.
func inDB(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "db", pattern))
	if err != nil || len(names) == 0 {
		t.Fatal(pattern, names, err)
	}
	return names[len(names)-1]
}

// change changes a file, or removes it when nothing says to what.
func change(t *testing.T, name string, f func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	switch {
	case err != nil:
	case f == nil:
		err = os.Remove(name)
	default:
		err = os.WriteFile(name, f(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// countIn opens a store and gives how many messages it has.
func countIn(t *testing.T, dir string) (int, error) {
	t.Helper()
	s, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true})
	if err != nil {
		return 0, err
	}
	f := &folder{t: t, s: s}
	read, _ := f.all(1, 1001)
	return len(read), s.Close()
}

// What was durable and is not there any more as it was keeps the store from being opened, and
// nothing is deleted: pebble takes it for a write that was cut off, and the tables for remains.
func TestAnOpenRefusesWhatIsNotAsItWasSynced(t *testing.T) {
	cut := func(n int) func(b []byte) []byte {
		return func(b []byte) []byte { return b[:len(b)*n/10] }
	}
	last := func(b []byte) []byte { b[len(b)-20] ^= 4; return b }
	early := func(b []byte) []byte { b[20] ^= 4; return b }
	zero := func(b []byte) []byte { return make([]byte, len(b)) }
	at := func(thousandths int) func(b []byte) []byte {
		return func(b []byte) []byte { b[disk.Chunks(b)*thousandths/1000] ^= 4; return b }
	}
	for _, c := range []struct {
		file, want string
		change     func(b []byte) []byte // nil to remove it
	}{
		{"MANIFEST-*", "is damaged at byte ", last},
		{"MANIFEST-*", "is damaged at byte 0", early},
		{"MANIFEST-*", "has ", cut(9)},
		{"MANIFEST-*", "is missing", nil},
		{"marker.manifest.*", "is missing", nil},
		{"*.log", "is missing", nil},
		{"*.log", "has 0 bytes, and had ", cut(0)},
		{"*.log", "has ", cut(3)},
		{"*.log", "is damaged at byte 0", zero},
		{"*.log", "is damaged at byte 0", early},
		{"*.log", "is damaged at byte ", at(600)},
		{"*.log", "is damaged at byte ", at(970)},
		{"*.log", "is damaged at byte ", at(999)},
		{"*.log", "has ", func(b []byte) []byte { return b[:disk.Chunks(b)-1] }},
		{"*.sst", "file does not exist", nil},
		{"*.sst", "size mismatch", cut(9)},
		{"marker.format-version.*", "", nil},
	} {
		dir := killed(t, 300)
		tables := inDB(t, dir, "*.sst")
		name := inDB(t, dir, c.file)
		change(t, name, c.change)
		n, err := countIn(t, dir)
		if message.KindOf(err) != message.Corrupt || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "run hopwire repair FILE") ||
			strings.Contains(err.Error(), "\n") ||
			errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %d messages, %v", c.file, n, err)
			continue
		}
		if _, err := os.Stat(tables); err != nil && c.file != "*.sst" {
			t.Errorf("%s: the table is deleted", c.file)
		}
	}
}

// A write that was being made when the power went is cut off, and the store opens.
func TestAnOpenTakesWhatWasCutOff(t *testing.T) {
	for _, c := range []struct {
		file string
		more []byte
	}{
		{"MANIFEST-*", []byte{1, 2, 3, 4, 50, 0, 1, 9, 9, 9}},
		{"MANIFEST-*", append([]byte{1, 2, 3, 4, 3, 0, 1, 9, 9, 9}, noise(4000)...)},
		{"MANIFEST-*", make([]byte, 4096)},
		{"MANIFEST-*", []byte{1, 2, 3}},
		{"*.log", []byte{1, 2, 3, 4, 50, 0, 9, 9, 9, 9}},
		{"*.log", make([]byte, 4096)},
	} {
		dir := killed(t, 10)
		change(t, inDB(t, dir, c.file), func(b []byte) []byte { return append(b, c.more...) })
		if n, err := countIn(t, dir); err != nil || n != 110 {
			t.Errorf("%s and %d bytes: %d messages, %v", c.file, len(c.more), n, err)
		}
	}
}

// A note that is missing, damaged, or of before what is there is damage like any other: without it
// nobody knows whether the last writes are there.
func TestAStoreWithoutItsNoteIsDamaged(t *testing.T) {
	older := killed(t, 10)
	old, err := os.ReadFile(inDB(t, older, "known"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if n, err := countIn(t, older); err != nil || n != 110 {
			t.Fatal(n, err)
		}
	}
	for _, c := range []struct {
		name, want string
		of         string
		change     func(b []byte) []byte
	}{
		{"missing", "db/known is missing", "", nil},
		{"empty", "db/known has 0 bytes and no note", "", func([]byte) []byte { return nil }},
		{"cut", "db/known ", "", func(b []byte) []byte { return b[:5000] }},
		{"without its end", "db/known is damaged", "", func(b []byte) []byte { return b[:8192] }},
		{"zeros", "db/known has no note", "", func(b []byte) []byte { return make([]byte, len(b)) }},
		{"noise", "db/known is damaged", "", func(b []byte) []byte { return noise(len(b)) }},
		{"a bit of its end", "db/known is damaged", "", func(b []byte) []byte {
			b[8200] ^= 1
			return b
		}},
		{"an older one", "db/known is older than MANIFEST-", older, func([]byte) []byte { return old }},
	} {
		dir := c.of
		if dir == "" {
			dir = killed(t, 10)
		}
		change(t, inDB(t, dir, "known"), c.change)
		for range 2 {
			if n, err := countIn(t, dir); message.KindOf(err) != message.Corrupt ||
				!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "hopwire repair") {
				t.Errorf("%s: %d messages, %v", c.name, n, err)
			}
		}
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
		if err != nil || !r.Cut || r.Kept == "" ||
			!strings.Contains(strings.Join(r.Others, "\n"), "whether the end of the last log is whole is") {
			t.Errorf("%s: the repair says %+v, %v", c.name, r, err)
		}
		if n, err := countIn(t, dir); err != nil || n != 110 {
			t.Errorf("%s: %d messages after it, %v", c.name, n, err)
		}
	}
}

// Each bit of a note that turned is seen, as long as the process ended alone, or the slot is the
// older one.
func TestATurnedBitOfTheNewestNoteIsDamage(t *testing.T) {
	dir := killed(t, 10)
	name := inDB(t, dir, "known")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	newest := 0
	turn := func(slot int) (n int) {
		_, _ = fmt.Sscanf(string(b[slot*4096:]), "hopwire files %d", &n)
		return n
	}
	if turn(1) > turn(0) {
		newest = 4096
	}
	for at := range bytes.IndexByte(b[newest:], 0) - 1 { // but for the end of its last line
		b[newest+at] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		b[newest+at] ^= 1
		if n, err := countIn(t, dir); message.KindOf(err) != message.Corrupt {
			t.Fatalf("byte %d: %d messages, %v", at, n, err)
		}
	}
}

// A folder that has a format and no tables has lost them; the format alone is made anew.
func TestTheFormatAndTheTablesBelongTogether(t *testing.T) {
	write := func(text string) func(dir string) error {
		return func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "format"), []byte(text), 0o600)
		}
	}
	for _, c := range []struct {
		name   string
		change func(dir string) error
		tell   string
		cured  bool // by a repair
	}{
		{"no tables", func(dir string) error { return os.RemoveAll(filepath.Join(dir, "db")) },
			"db is empty or missing", false},
		{"empty", func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "db")), os.Mkdir(filepath.Join(dir, "db"),
				0o700))
		}, "db is empty or missing", false},
		{"a bit of the format", write("hoqwire store 5\n"), "run hopwire repair FILE", true},
		{"an empty format", write(""), "run hopwire repair FILE", true},
		{"no format", func(dir string) error { return os.Remove(filepath.Join(dir, "format")) },
			"run hopwire repair FILE", true},
	} {
		dir := killed(t, 10)
		if err := c.change(dir); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if n, err := countIn(t, dir); message.KindOf(err) != message.Corrupt ||
				!strings.Contains(err.Error(), c.tell) {
				t.Errorf("%s: %d messages, %v", c.name, n, err)
			}
		}
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
		if !c.cured {
			if err == nil {
				t.Errorf("%s: a repair says %+v", c.name, r)
			}
			continue
		}
		if err != nil || r.Kept != "" || !strings.Contains(r.Format, "was made anew") {
			t.Errorf("%s: a repair says %+v, %v", c.name, r, err)
		}
		if n, err := countIn(t, dir); err != nil || n != 110 {
			t.Errorf("%s: %d messages, %v", c.name, n, err)
		}
	}
}

// A note that is none, or of another copy, and markers that are gone, are told in a line, and a
// repair reads what the tables and logs have.
func TestARepairNeedsNoNote(t *testing.T) {
	rm := func(dir, pattern string) {
		if err := os.RemoveAll(inDB(t, dir, pattern)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		want   string
		cut    bool
		change func(dir string)
	}{
		{"db/marker.manifest.* is missing", true, func(dir string) {
			rm(dir, "known")
			rm(dir, "marker.manifest.*")
			rm(dir, "marker.format-version.*")
		}},
		{"db/known is a folder", true, func(dir string) {
			rm(dir, "known")
			if err := os.MkdirAll(filepath.Join(dir, "db", "known", "in"), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"db/known is of a newer copy", true, func(dir string) {
			newer := filepath.Join(t.TempDir(), "s")
			if err := os.CopyFS(newer, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := countIn(t, newer); err != nil {
					t.Fatal(err)
				}
			}
			change(t, inDB(t, dir, "known"), func([]byte) []byte {
				b, err := os.ReadFile(inDB(t, newer, "known"))
				if err != nil {
					t.Fatal(err)
				}
				return b
			})
		}},
	} {
		dir := killed(t, 300)
		c.change(dir)
		n, err := countIn(t, dir)
		if message.KindOf(err) != message.Corrupt || !strings.Contains(err.Error(), "db/") ||
			!strings.Contains(err.Error(), "run hopwire repair FILE") {
			t.Errorf("%q: %d messages, %v", c.want, n, err)
		}
		told, err := disk.Repair(context.Background(), disk.RepairOptions{Dir: dir})
		if err != nil || told.Cut != c.cut || !strings.Contains(strings.Join(told.Others, "\n"), c.want) {
			t.Errorf("%q: the repair says %+v, %v", c.want, told, err)
		}
		if n, err := countIn(t, dir); err != nil || n != 400 {
			t.Errorf("%q: %d messages after it, %v", c.want, n, err)
		}
	}
}

// A log whose writes are in tables is needed by nobody.
func TestALogThatTablesHaveMayBeDamaged(t *testing.T) {
	early := func(b []byte) []byte { b[20] ^= 4; return b }
	for _, how := range []func(b []byte) []byte{nil, early, func(b []byte) []byte { return b[:10] }} {
		f := newFolder(t)
		ops := slices.Concat([]store.Op{header(1, message.Queue, 1001, 100)}, puts(1, 1, 101, 1, nil))
		if err := f.s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
			t.Fatal(err)
		}
		log := inDB(t, f.dir, "*.log")
		was, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		known, err := os.ReadFile(inDB(t, f.dir, "known"))
		if err != nil {
			t.Fatal(err)
		}
		if err := disk.Flush(f.s); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "s")
		if err := os.CopyFS(dir, os.DirFS(f.dir)); err != nil {
			t.Fatal(err)
		}
		log = filepath.Join(dir, "db", filepath.Base(log))
		if err := os.WriteFile(log, was, 0o600); err != nil {
			t.Fatal(err)
		}
		change(t, inDB(t, dir, "known"), func([]byte) []byte { return known })
		if how == nil {
			if err := os.Remove(log); err != nil {
				t.Fatal(err)
			}
		} else {
			change(t, log, how)
		}
		again := filepath.Join(t.TempDir(), "s")
		if err := os.CopyFS(again, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if n, err := countIn(t, dir); err != nil || n != 100 {
			t.Errorf("%d messages, %v", n, err)
		}
		told, err := disk.Repair(context.Background(), disk.RepairOptions{Dir: again})
		if err != nil || told.Kept != "" {
			t.Errorf("a repair finds %+v, %v", told, err)
		}
	}
}
