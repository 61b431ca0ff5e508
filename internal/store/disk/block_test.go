package disk_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// folder is a store in a folder whose tables are damaged while it is closed.
type folder struct {
	t    *testing.T
	dir  string
	s    *disk.Store
	kept map[string][]byte // tables as they were
	o    disk.Options      // without the folder
}

func newFolder(t *testing.T) *folder {
	f := &folder{t: t, dir: t.TempDir(), kept: map[string][]byte{}}
	f.open()
	return f
}

func (f *folder) open() {
	f.t.Helper()
	f.o.Dir, f.o.NoWait = f.dir, true
	s, err := disk.Open(context.Background(), f.o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.s = s
	f.t.Cleanup(func() { _ = s.Close() })
}

func (f *folder) close() {
	f.t.Helper()
	if err := f.s.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// apply applies operations and brings them into a table.
func (f *folder) apply(ops []store.Op) {
	f.t.Helper()
	if err := f.s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
		f.t.Fatal(err)
	}
	if err := disk.Flush(f.s); err != nil {
		f.t.Fatal(err)
	}
}

// damage closes the store, turns a byte at each of the places of its largest table, in thousandths
// of it, and opens the store again.
func (f *folder) damage(places ...int) {
	f.t.Helper()
	f.close()
	tables, err := filepath.Glob(filepath.Join(f.dir, "db", "*.sst"))
	if err != nil {
		f.t.Fatal(err)
	}
	var data []byte
	name := ""
	for _, table := range tables {
		b, err := os.ReadFile(table)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(b) > len(data) {
			data, name = b, table
		}
	}
	f.kept[name] = append([]byte(nil), data...)
	for _, p := range places {
		data[len(data)*p/1000] ^= 0x55
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.open()
}

// repair puts the tables back as they were.
func (f *folder) repair() {
	f.t.Helper()
	f.close()
	for name, data := range f.kept {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	f.open()
}

// all reads a destination page by page; each sequence below to is read, or in a range.
func (f *folder) all(id store.DestID, to store.Seq) (messages map[store.Seq]store.Stored,
	ranges []store.Stored) {
	f.t.Helper()
	messages = map[store.Seq]store.Stored{}
	for from := store.Seq(1); from < to; {
		page, err := f.s.Page(store.PageRequest{Dest: id, From: from, To: to, Count: 100})
		if err != nil {
			f.t.Fatalf("from %d: %v", from, err)
		}
		if len(page) == 0 {
			break
		}
		for _, st := range page {
			switch {
			case st.Seq < from:
				f.t.Fatalf("%d comes behind %d", st.Seq, from-1)
			case st.To == 0 && st.Message != nil:
				messages[st.Seq] = st
			case st.To > st.Seq && st.To <= to && st.Message == nil &&
				message.KindOf(st.Damage) == message.Corrupt:
				ranges = append(ranges, st)
			default:
				f.t.Fatalf("a page has %+v", st)
			}
			from = st.Next()
		}
	}
	return messages, ranges
}

// covered reports whether a sequence is in one of the ranges.
func covered(ranges []store.Stored, seq store.Seq) bool {
	for _, r := range ranges {
		if seq >= r.Seq && seq < r.To {
			return true
		}
	}
	return false
}

func header(id store.DestID, kind message.Kind, to store.Seq, count int) store.Op {
	name := "d"
	if kind == message.Queue && id > 1 {
		name = fmt.Sprint("d", id)
	}
	return store.Op{Kind: store.PutHeader, Header: &store.Header{ID: id, Head: 1, Reserved: to,
		Count: int64(count), Destination: message.Destination{Kind: kind, Name: name}}}
}

// puts are messages of 1,000 bytes that do not compress.
func puts(id store.DestID, from, to store.Seq, step store.Seq, change func(*message.Message)) (
	ops []store.Op) {
	random := rand.NewChaCha8([32]byte{byte(id)})
	for seq := from; seq < to; seq += step {
		m := &message.Message{Content: make([]byte, 1000)}
		_, _ = random.Read(m.Content)
		if change != nil {
			change(m)
		}
		ops = append(ops, store.Op{Kind: store.PutMessage, Dest: id, Seq: seq, Message: m})
	}
	return ops
}

// Of a queue of small messages those in damaged blocks are not read, and only they; with natural
// holes, at the begin and at the end. What a read cannot give is there when the table is whole.
func TestADamagedBlockOfSmallMessagesTakesNoOthers(t *testing.T) {
	const to = 2001
	for _, c := range []struct {
		name   string
		places []int
		step   store.Seq
		blocks int
	}{
		{"one block", []int{500}, 1, 1},
		{"several", []int{100, 300, 320, 700, 900}, 1, 5},
		{"neighbours", []int{500, 510, 520}, 1, 3},
		{"the first", []int{1}, 1, 1},
		{"the last", []int{985}, 1, 1},
		{"with holes", []int{500, 700}, 5, 2},
	} {
		f := newFolder(t)
		f.apply([]store.Op{header(1, message.Queue, to, to-1)})
		f.apply(puts(1, 1, to, c.step, nil))
		f.damage(c.places...)
		for range 2 {
			start := time.Now()
			got, ranges := f.all(1, to)
			lost := 0
			for seq := store.Seq(1); seq < to; seq += c.step {
				_, read := got[seq]
				switch in := covered(ranges, seq); {
				case read == in:
					t.Errorf("%s: %d is read: %v, in a range: %v", c.name, seq, read, in)
				case in:
					lost++
				}
			}
			t.Log(c.name, len(ranges), "ranges", lost, "lost", time.Since(start))
			if len(ranges) == 0 || lost < c.blocks*10 || lost > c.blocks*17 {
				t.Errorf("%s: %d messages are lost in %d ranges by %d blocks", c.name, lost,
					len(ranges), c.blocks)
			}
		}
		f.repair()
		all := (to - 1 + int(c.step) - 1) / int(c.step)
		if got, ranges := f.all(1, to); len(ranges) > 0 || len(got) != all {
			t.Errorf("%s: of the whole table %d are read and %v not", c.name, len(got), ranges)
		}
	}
}

// A body that is larger than a piece shares no block with another, whatever is left for its last
// piece.
func TestADamagedBlockOfALargeBodyTakesThatAlone(t *testing.T) {
	for _, size := range []int{196_700, 200_000} {
		for _, place := range []int{50, 335, 400} {
			f := newFolder(t)
			f.apply(append(puts(1, 1, 4, 1, func(m *message.Message) { m.Content = noise(size) }),
				header(1, message.Queue, 4, 3)))
			f.damage(place)
			if got, ranges := f.all(1, 4); len(got) != 2 {
				t.Errorf("of three of %d bytes %d are read, with damage at %d of 1000: %d ranges", size,
					len(got), place, len(ranges))
			}
			f.close()
		}
	}
}

// Of a subscription its references that can be read are read, and of its topic's log what they are
// to: both are damaged in turn.
func TestADamagedBlockOfATopicTakesNoOthers(t *testing.T) {
	const to = 4001
	for _, of := range []string{"log", "references"} {
		f := newFolder(t)
		sub := header(2, message.Topic, to, to-1)
		sub.Header.Subscription = &store.Subscription{ClientID: "c", Name: "n"}
		f.apply([]store.Op{header(1, message.Topic, to, to-1), sub})
		var refs []store.Op
		for seq := store.Seq(1); seq < to; seq++ {
			refs = append(refs, store.Op{Kind: store.PutReference, Dest: 2, Seq: seq, Source: 1})
		}
		log := puts(1, 1, to, 1, nil)
		if of == "log" {
			f.apply(append(log, refs...))
		} else {
			for i := range log {
				log[i].Message.Content = nil
			}
			f.apply(log)
			f.apply(refs)
		}
		if of == "log" {
			f.damage(300, 600)
		} else {
			f.damage(200)
		}
		got, ranges := f.all(2, to)
		for seq := store.Seq(1); seq < to; seq++ {
			if _, read := got[seq]; read == covered(ranges, seq) {
				t.Errorf("%s: %d is read: %v", of, seq, read)
			}
		}
		if lost := to - 1 - len(got); lost == 0 || lost > 2000 || of == "log" && lost > 40 {
			t.Errorf("%s: %d are lost", of, lost)
		}
		if err := f.s.Apply([]*store.Batch{{Ops: []store.Op{{Kind: store.DeleteRange, Dest: 2,
			Seq: ranges[0].Seq, To: ranges[len(ranges)-1].To}}}}); err != nil {
			t.Fatal(err)
		}
		if _, ranges := f.all(2, to); len(ranges) > 0 {
			t.Errorf("%s: %v stay when they are deleted", of, ranges)
		}
	}
}

// Receipts and numbers on both sides of damage are read, and it is told; new ones can be written.
func TestDamageAmongReceiptsTakesNoOthers(t *testing.T) {
	f := newFolder(t)
	f.apply([]store.Op{header(1, message.Queue, 10, 0)})
	var ops []store.Op
	random := rand.NewChaCha8([32]byte{7})
	for n := range uint64(3000) {
		r := store.Receipt{N: n + 1}
		_, _ = random.Read(r.Key[:])
		for _, peer := range []message.BrokerID{"a", "b", "c"} {
			ops = append(ops, store.Op{Kind: store.PutReceipt, Dest: 1, Peer: peer, Receipt: r})
		}
	}
	f.apply(ops)
	f.damage(50, 500, 930)
	r, err := f.s.Receipts(1)
	if err != nil || message.KindOf(r.Damage) != message.Corrupt || r.From <= 3001 {
		t.Fatalf("damage %v, from %d, %v", r.Damage, r.From, err)
	}
	n := 0
	for _, p := range r.Peers {
		n += len(p.List)
	}
	if len(r.Peers) != 3 || n < 9000*3/4 || n == 9000 {
		t.Errorf("%d receipts of %d peers are read", n, len(r.Peers))
	}
	for _, peer := range []message.BrokerID{"a", "b", "c", "d"} {
		f.apply([]store.Op{
			{Kind: store.PutReceipt, Dest: 1, Peer: peer, Receipt: store.Receipt{N: r.From}},
			{Kind: store.PutReceipt, Dest: 1, Peer: peer, Receipt: store.Receipt{N: r.From + 1}},
			{Kind: store.DropReceipts, Dest: 1, Peer: peer, Receipt: store.Receipt{N: r.From + 1}}})
	}
	from := r.From
	if r, err = f.s.Receipts(1); err != nil || len(r.Peers) != 4 {
		t.Fatalf("when the old ones are dropped: %d peers, %v", len(r.Peers), err)
	}
	for _, p := range r.Peers {
		if len(p.List) != 1 || p.List[0].N != from+1 || p.Next != from+2 {
			t.Errorf("of peer %s there are %d receipts, next %d", p.Peer, len(p.List), p.Next)
		}
	}
}

// A number is put where those before it cannot be read, too: the store goes on.
func TestANumberGoesWhereThoseBeforeItCannotBeRead(t *testing.T) {
	f := newFolder(t)
	f.apply([]store.Op{header(1, message.Queue, 10, 0)})
	const producers = 10_000
	put := func(i int, n int64) store.Op {
		return store.Op{Kind: store.PutNumber, Dest: 1, Count: 2048, ID: &message.MessageID{Sequence: n,
			Producer: message.ProducerID{Connection: message.ConnectionID(fmt.Sprint("c", i*7919%100_003)),
				Session: 1, Value: 1}}}
	}
	var ops []store.Op
	for i := range producers {
		ops = append(ops, put(i, 1))
	}
	f.apply(ops)
	f.damage(500)
	r, err := f.s.Receipts(1)
	if err != nil || message.KindOf(r.Damage) != message.Corrupt || len(r.Producers) == producers {
		t.Fatalf("%d are read, damage %v, %v", len(r.Producers), r.Damage, err)
	}
	c := store.NewCommitter(f.s, func(f func()) bool { f(); return true })
	done := make(chan error, producers+1)
	c.OnFatal = func(err error) { done <- err }
	for i := range producers {
		c.Commit(&store.Batch{Ops: []store.Op{put(i, 2)}}, func(err error) { done <- err })
	}
	for range producers {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if r, err = f.s.Receipts(1); err != nil || len(r.Producers) < producers*3/4 {
		t.Fatalf("%d of %d are read, %v", len(r.Producers), producers, err)
	}
	for _, p := range r.Producers {
		if !p.Numbers.Has(1) || !p.Numbers.Has(2) {
			t.Errorf("%v lacks a number", p.Producer)
		}
	}
}

// What nobody can go on without is one line at the start, which says what to do.
func TestDamageThatNothingCanBeReadWithoutIsOneLine(t *testing.T) {
	f := newFolder(t)
	f.apply([]store.Op{header(1, message.Queue, 10, 0)})
	f.close()
	tables, err := filepath.Glob(filepath.Join(f.dir, "db", "*.sst"))
	if err != nil || len(tables) != 1 {
		t.Fatal(tables, err)
	}
	data, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	data[3] ^= 0x55
	if err := os.WriteFile(tables[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = disk.Open(context.Background(), disk.Options{Dir: f.dir, NoWait: true})
	if message.KindOf(err) != message.Corrupt || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), f.dir) ||
		!strings.Contains(err.Error(), "put a copy of the folder") {
		t.Errorf("the start fails with %v", err)
	}
	t.Log(err)
}

// Expirations on both sides of damage are found.
func TestDamageAmongExpirationsHidesNoOthers(t *testing.T) {
	const to = 5001
	f := newFolder(t)
	f.apply([]store.Op{header(1, message.Queue, to, to-1)})
	expiration := int64(0)
	ops := puts(1, 1, to, 1, func(m *message.Message) {
		m.Content = nil
		expiration += 7
		m.Expiration = expiration
	})
	f.apply(ops)
	f.damage(3, 12)
	found := map[store.Seq]bool{}
	var after *store.ExpiredRef
	for {
		refs, err := f.s.Expired(after, 1<<40, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(refs) == 0 {
			break
		}
		for _, r := range refs {
			found[r.Seq] = true
		}
		after = &refs[len(refs)-1]
	}
	if len(found) < 1000 || len(found) == to-1 || !found[to-1] {
		t.Errorf("%d of %d are found; the last one: %v", len(found), to-1, found[to-1])
	}
}
