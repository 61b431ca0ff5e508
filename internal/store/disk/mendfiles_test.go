package disk_test

import (
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// A repair opens what an open refuses, and takes what is before the damage and behind it.
func TestARepairTakesWhatLogAndManifestStillHave(t *testing.T) {
	flip := func(at int, by byte) func(b []byte) []byte {
		return func(b []byte) []byte { b[disk.Chunks(b)*at/1000] ^= by; return b }
	}
	zero := func(b []byte) []byte {
		clear(b[len(b)*3/10 : len(b)*3/10+4096])
		return b
	}
	none := func(b []byte) []byte { return b[:0] }
	for _, c := range []struct {
		name, file  string
		change      func(b []byte) []byte // nil to remove it
		least, most int                   // messages that are left of 400
		tell        string
	}{
		{"a bit of the manifest's end", "MANIFEST-*", flip(990, 4), 400, 400, "were turned back: 1"},
		{"a bit of the manifest's begin", "MANIFEST-*", flip(100, 4), 400, 400, "were turned back: 1"},
		{"a bit of the log", "*.log", flip(300, 16), 400, 400, "were turned back: 1"},
		{"the log's first bit", "*.log", flip(0, 16), 400, 400, "were turned back: 1"},
		{"a late bit of the log", "*.log", flip(970, 16), 400, 400, "were turned back: 1"},
		{"a late byte of the log", "*.log", flip(970, 0x55), 390, 399, "bytes of writes could not be"},
		{"a byte of the log", "*.log", flip(300, 0x55), 395, 399, "bytes of writes could not be read"},
		{"a page of the log", "*.log", zero, 392, 398, "bytes of writes could not be read"},
		{"the log", "*.log", nil, 200, 390, "is missing"},
		{"all of the log", "*.log", none, 200, 390, "has 0 bytes, and had"},
		{"the marker", "marker.manifest.*", nil, 400, 400, "is missing"},
		{"the format", "marker.format-version.*", nil, 400, 400, "is missing"},
	} {
		dir := killed(t, 300)
		change(t, inDB(t, dir, c.file), c.change)
		if _, err := countIn(t, dir); message.KindOf(err) != message.Corrupt {
			t.Errorf("%s: open before the repair: %v", c.name, err)
		}
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		n, err := countIn(t, dir)
		if err != nil || n < c.least || n > c.most || r.Kept == "" ||
			!strings.Contains(strings.Join(r.Others, "\n"), c.tell) || r.Cut != (c.least < 400) {
			t.Errorf("%s: %d messages, %v; %+v", c.name, n, err, r)
		}
		if len(r.Destinations) != 1 || r.Destinations[0].Copied != int64(n) {
			t.Errorf("%s: %d messages, told as %+v", c.name, n, r.Destinations)
		}
		if r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir}); err != nil || r.Kept != "" {
			t.Errorf("%s: again: %+v, %v", c.name, r, err)
		}
	}
}

// What is behind damage may have sequences that no header says are given: they are not given again.
func TestARepairGivesNoSequenceTwice(t *testing.T) {
	f := newFolder(t)
	f.apply([]store.Op{header(1, message.Queue, 10, 0)})
	for i, ops := range [][]store.Op{puts(1, 1, 2, 1, nil),
		{header(1, message.Queue, 1000, 1)}, puts(1, 500, 501, 1, nil)} {
		if err := f.s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
			t.Fatal(i, err)
		}
	}
	f.close()
	change(t, inDB(t, f.dir, "*.log"), func(b []byte) []byte {
		i := strings.Index(string(b), string([]byte{'h', 0, 0, 0, 0, 0, 0, 0, 1}))
		if i < 0 {
			t.Fatal("the header is not in the log")
		}
		b[i] ^= 0x55
		return b
	})
	if _, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir}); err != nil {
		t.Fatal(err)
	}
	f.open()
	h, err := f.s.Headers()
	if err != nil || len(h) != 1 || h[0].Reserved <= 500 || h[0].Count != 2 {
		t.Errorf("%+v, %v", h, err)
	}
}

// The options that pebble writes beside its tables are made anew when they make no sense.
func TestOptionsThatMakeNoSenseAreMadeAnew(t *testing.T) {
	for _, c := range []func(b []byte) []byte{
		func(b []byte) []byte { return b[:len(b)/2+3] },
		func(b []byte) []byte { clear(b); return b },
		func(b []byte) []byte { return append(b, "X\xe4"...) },
		func([]byte) []byte { return nil },
	} {
		dir := killed(t, 10)
		change(t, inDB(t, dir, "OPTIONS-*"), c)
		if n, err := countIn(t, dir); err != nil || n != 110 {
			t.Errorf("%d messages, %v", n, err)
		}
	}
}
