package disk_test

import (
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

// Where the list of the tables is damaged all tables and logs are taken: nothing that they have is
// lost, and that it was so is told.
func TestARepairNeedsNoListOfTheTables(t *testing.T) {
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:n] } }
	for _, c := range []struct {
		name, file  string
		change      func(b []byte) []byte // nil to remove it
		least, most int                   // messages that are left of 400
	}{
		{"a list that is cut", "MANIFEST-*", cut(60), 400, 400},
		{"a list that is cut earlier", "MANIFEST-*", cut(44), 400, 400},
		{"an empty list", "MANIFEST-*", cut(0), 400, 400},
		{"a list of zeros", "MANIFEST-*", func(b []byte) []byte { clear(b); return b }, 400, 400},
		{"no list", "MANIFEST-*", nil, 400, 400},
		{"no table", "*.sst", nil, 300, 399},
	} {
		dir := killed(t, 300)
		change(t, inDB(t, dir, c.file), c.change)
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		n, err := countIn(t, dir)
		if err != nil || n < c.least || n > c.most || r.Kept == "" ||
			!strings.Contains(strings.Join(r.Others, "\n"), "the list of the tables is not whole") {
			t.Errorf("%s: %d messages, %v; %+v", c.name, n, err, r)
		}
		// A newer header may be lost: no sequence is given twice, nor anything told as new.
		h := headersOf(t, dir)
		if len(h) != 1 || h[0].Reserved <= 1<<20 || h[0].DeliveredBelow != h[0].Reserved ||
			!r.Destinations[0].Made {
			t.Errorf("%s: the headers are %+v, told as %+v", c.name, h, r.Destinations)
		}
		if again, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir}); err != nil ||
			again.Kept != "" {
			t.Errorf("%s: again: %+v, %v", c.name, again, err)
		}
	}
}

// A table of another length than the list says keeps nobody from reading the list: nothing but what
// that table has lost is lost, and how much that is, is known.
func TestATableOfAnotherLengthIsReadAsFarAsItGoes(t *testing.T) {
	for _, c := range []struct {
		name        string
		change      func(b []byte) []byte
		least, most int // messages that are left of 400
	}{
		{"more behind it", func(b []byte) []byte { return append(b, make([]byte, 1000)...) }, 400, 400},
		{"half of it", func(b []byte) []byte { return b[:len(b)/2] }, 300, 399},
		{"a byte less", func(b []byte) []byte { return b[:len(b)-1] }, 400, 400},
		{"nothing", func([]byte) []byte { return nil }, 300, 300},
	} {
		dir := killed(t, 300)
		change(t, inDB(t, dir, "*.sst"), c.change)
		if n, err := countIn(t, dir); message.KindOf(err) != message.Corrupt {
			t.Errorf("%s: %d messages, %v", c.name, n, err)
		}
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
		if err != nil || len(r.Destinations) != 1 {
			t.Errorf("%s: %+v, %v", c.name, r, err)
			continue
		}
		n, err := countIn(t, dir)
		if err != nil || n < c.least || n > c.most || r.Destinations[0].Lost != int64(400-n) ||
			r.Destinations[0].Made || r.Cut != (n < 400) ||
			!strings.Contains(strings.Join(r.Others, "\n"), "object size mismatch") {
			t.Errorf("%s: %d messages, %v; %+v", c.name, n, err, r)
		}
	}
}

// headersOf gives the headers of a store.
func headersOf(t *testing.T, dir string) []store.Header {
	t.Helper()
	s, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Headers()
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return h
}

// A damaged block takes no more than it has, also when another table, of which a block is damaged
// as well, has what it hides.
func TestASecondDamagedBlockTakesNoMoreThanItHas(t *testing.T) {
	f := newFolder(t)
	named := func(m *message.Message) {
		m.Destination = message.Destination{Kind: message.Queue, Name: "d"}
		m.Content = noise(500)
	}
	h := header(1, message.Queue, 3001, 1000)
	f.apply(append(puts(1, 1, 1001, 1, named), h))
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	large := inDB(t, f.dir, "*.sst")
	f.apply(append(puts(1, 1001, 1003, 1, named), h,
		store.Op{Kind: store.PutMeta, Name: "nextDest", Value: []byte("2")},
		store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: 1},
		store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: 1000}))
	f.close()
	small := inDB(t, f.dir, "*.sst")
	change(t, small, func(b []byte) []byte { b[30] ^= 0x55; return b })
	change(t, large, func(b []byte) []byte { b[len(b)/10] ^= 0x55; return b })
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir})
	if err != nil {
		t.Fatal(err)
	}
	n, err := countIn(t, f.dir)
	if err != nil || n < 960 || n > 999 || len(r.Destinations) != 1 || !r.Destinations[0].More &&
		!r.Destinations[0].Made {
		t.Errorf("%d messages, %v, told as %+v", n, err, r)
	}
	if told := strings.Join(r.Others, "\n"); strings.Contains(told, "receipts") {
		t.Errorf("a store that never had a peer may have lost receipts: %s", told)
	}
}

// A header that makes no sense goes, and what it was of is told.
func TestARepairTakesNoHeaderThatMakesNoSense(t *testing.T) {
	f := newFolder(t)
	f.apply(append(puts(1, 1, 101, 1, nil), header(1, message.Queue, 3001, 100)))
	f.apply(append(puts(2, 1, 11, 1, nil), header(2, message.Queue, 3001, 10)))
	if err := errors.Join(disk.SetHeader(f.s, 2, []byte("senseless")),
		disk.SetHeader(f.s, 8, []byte("of no messages")),
		disk.SetRaw(f.s, 'h', 7, 7, []byte("of a key that is too long"))); err != nil {
		t.Fatal(err)
	}
	f.close()
	change(t, inDB(t, f.dir, "*.sst"), func(b []byte) []byte { b[len(b)/2] ^= 0x55; return b })
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headersOf(t, f.dir) {
		if h.ID != 1 {
			t.Errorf("%+v is left; told as %+v", h, r)
		}
	}
	if r.Dropped != 10 || !strings.Contains(strings.Join(r.Others, "\n"), "could not be copied: 10") {
		t.Errorf("told as %+v", r)
	}
}

// The terms of a durable subscription are written once; a damaged block of another table, between
// the keys of which they are, takes neither them nor the subscription.
func TestADamagedBlockHidesNoTerms(t *testing.T) {
	f := newFolder(t)
	topic := message.Destination{Kind: message.Topic, Name: "t"}
	log := puts(2, 1, 401, 1, func(m *message.Message) { m.Destination = topic })
	refs := func(id store.DestID, from, to store.Seq) (ops []store.Op) {
		for seq := from; seq < to; seq++ {
			ops = append(ops, store.Op{Kind: store.PutReference, Dest: id, Seq: seq, Source: 2})
		}
		return ops
	}
	h := func(id store.DestID, count int64, client string) store.Op {
		out := &store.Header{ID: id, Destination: topic, Head: 1, Reserved: 3001, Count: count}
		if client != "" {
			out.Subscription = &store.Subscription{ClientID: client, Name: "n"}
		}
		return store.Op{Kind: store.PutHeader, Header: out}
	}
	f.apply(slices.Concat([]store.Op{h(2, 0, ""), h(3, 400, "c")}, log, refs(3, 1, 401)))
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	f.apply(slices.Concat([]store.Op{h(2, 0, ""), h(3, 401, "c"), h(5, 1, "d")},
		puts(2, 1001, 1002, 1, func(m *message.Message) { m.Destination = topic }),
		refs(3, 1001, 1002), refs(5, 1001, 1002)))
	f.close()
	change(t, inDB(t, f.dir, "*.sst"), func(b []byte) []byte { b[30] ^= 0x55; return b })
	if _, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir}); err != nil {
		t.Fatal(err)
	}
	s, err := disk.Open(context.Background(), disk.Options{Dir: f.dir, NoWait: true})
	if err != nil {
		t.Fatal(err)
	}
	after := contentsOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(after.messages[3]); n < 400 {
		t.Errorf("the subscription has %d of 400 messages; its header: %+v", n, after.headers[3])
	}
}

// Messages that come again hide none that are lost: how many these are is not known then.
func TestADestinationOfWhichMessagesComeAgainIsNotToldAsWhole(t *testing.T) {
	f := newFolder(t)
	named := func(m *message.Message) {
		m.Destination = message.Destination{Kind: message.Queue, Name: "d"}
	}
	f.apply(append(puts(1, 1, 501, 1, named), header(1, message.Queue, 3001, 500)))
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	f.apply(append(puts(1, 1001, 1003, 1, named), store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: 1},
		store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: 500}))
	small := inDB(t, f.dir, "*.sst")
	f.apply([]store.Op{header(1, message.Queue, 3001, 500)}) // 500 - 2 + 2
	f.close()
	change(t, small, func(b []byte) []byte { b[30] ^= 0x55; return b })
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir})
	if err != nil || len(r.Destinations) != 1 || !r.Destinations[0].More {
		t.Errorf("%+v, %v", r, err)
	}
}

// A table that was written while somebody read has two records of a key: the older one has its
// value in a block of its own, to which nothing leads when another block is damaged.
func TestARepairReadsTablesOfTwoRecordsOfAKey(t *testing.T) {
	for _, more := range []int{0, 3000} {
		f := newFolder(t)
		headers := func(count int) (ops []store.Op) {
			for id := range more + 1 {
				h := store.Header{ID: store.DestID(id + 1), Reserved: 3001, Count: int64(count),
					Destination: message.Destination{Kind: message.Queue, Name: fmt.Sprintf("d%d", id+1)}}
				ops = append(ops, store.Op{Kind: store.PutHeader, Header: &h})
			}
			return ops
		}
		put := func(ops []store.Op) {
			if err := f.s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
				t.Fatal(err)
			}
		}
		named := func(m *message.Message) {
			m.Destination = message.Destination{Kind: message.Queue, Name: "d1"}
		}
		put(append(headers(0), puts(1, 1, 400, 1, named)...))
		snap := disk.Snap(f.s)
		put(append(headers(1), header(1, message.Queue, 3001, 400), puts(1, 400, 401, 1, named)[0]))
		if err := disk.Flush(f.s); err != nil {
			t.Fatal(err)
		}
		if err := snap.Close(); err != nil {
			t.Fatal(err)
		}
		name := inDB(t, f.dir, "*.sst")
		f.close()
		for _, at := range []int{30, -1} { // a block, and what leads to all
			dir := filepath.Join(t.TempDir(), "s")
			if err := os.CopyFS(dir, os.DirFS(f.dir)); err != nil {
				t.Fatal(err)
			}
			change(t, filepath.Join(dir, "db", filepath.Base(name)), func(b []byte) []byte {
				b[(at+len(b))%len(b)] ^= 0x55
				return b
			})
			r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
			n, no := countIn(t, dir)
			if err != nil || no != nil || n < 300 || at < 0 && n != 400 {
				t.Errorf("%d more, byte %d: %d messages, %v, %v; %+v", more, at, n, err, no, r.Others)
			}
		}
	}
}

// Of a folder that has lost all tables and logs nothing is made: an empty store would be a silent
// loss of all.
func TestNoEmptyStoreIsMadeOfWhatIsLeft(t *testing.T) {
	for _, left := range []string{"known", "marker.*", "OPTIONS-*", "MANIFEST-*"} {
		dir := killed(t, 300)
		keep := inDB(t, dir, left)
		entries, err := os.ReadDir(filepath.Dir(keep))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != filepath.Base(keep) {
				change(t, filepath.Join(filepath.Dir(keep), e.Name()), nil)
			}
		}
		if _, err := countIn(t, dir); message.KindOf(err) != message.Corrupt {
			t.Errorf("%s alone: a start gives %v", left, err)
		}
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
		if message.KindOf(err) != message.Corrupt || r.Kept != "" {
			t.Errorf("%s alone: %+v, %v", left, r, err)
		}
		if _, err := os.Stat(keep); err != nil {
			t.Error(err)
		}
	}
}
