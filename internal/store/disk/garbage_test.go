package disk

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/storetest"
)

// keys gives all keys that are visible in the database.
func (s *Store) keys(t *testing.T) map[string]bool {
	t.Helper()
	it, err := s.db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	out := map[string]bool{}
	for ok := it.First(); ok; ok = it.Next() {
		out[string(it.Key())] = true
	}
	return out
}

// checkReferences tells which reference is to a message that is not there, and gives how many
// there are.
func (s *Store) checkReferences(t *testing.T) (n int) {
	t.Helper()
	keys := s.keys(t)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kindMessage},
		UpperBound: []byte{kindMessage + 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if !isReference(it.Value()) {
			continue
		}
		source, err := decodeReference(it.Value())
		to := seqKey(nil, kindMessage, source, seqOf(it.Key()))
		if err != nil || !keys[string(to)] {
			t.Fatalf("%q is a reference to %q, which is not there: %v", it.Key(), to, err)
		}
		n++
	}
	return n
}

func openMem(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open(context.Background(), Options{Dir: "d", FS: fs, InlineBytes: 1000,
		PieceBytes:    3000,
		MemTableBytes: 1 << 20, NoWait: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNoRecordOutlivesItsMessage(t *testing.T) {
	looked, kinds := 0, map[byte]int{}
	for seed := range rounds(20, 4) {
		fs := vfs.NewMem()
		s := openMem(t, fs)
		for i, b := range storetest.Batches(seed, 60) {
			if err := s.Apply([]*store.Batch{b}); err != nil {
				t.Fatal(err)
			}
			if i%20 == 19 { // what is remembered of destinations must be found again
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openMem(t, fs)
			}
		}
		// Expirations of dropped destinations go with the Apply after a look at them.
		if _, err := s.Expired(nil, maxTime, 1<<30); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(nil); err != nil {
			t.Fatal(err)
		}
		looked += s.checkReferences(t)
		keys := s.keys(t)
		for key := range keys {
			kinds[key[0]]++
			var of string
			switch key[0] {
			case kindBody, kindFacts, kindCount:
				of = key[1:]
			case kindPiece:
				of = key[1:seqKeySize]
			case kindExpiry:
				of = key[9:]
			case kindReceipt, kindMark, kindNumbers, kindTerms:
				if !keys[string(kindHeader)+key[1:destKeySize]] {
					t.Fatalf("seed %d: %q is left of a dropped destination", seed, key)
				}
				continue
			default:
				continue
			}
			if !keys[string(kindMessage)+of] {
				t.Fatalf("seed %d: %q is left of a message that is gone", seed, key)
			}
		}
		if err := s.db.Compact(context.Background(), []byte{0}, []byte{255}, false); err != nil {
			t.Fatal(err)
		}
		if got := s.keys(t); len(got) != len(keys) {
			t.Fatalf("seed %d: %d keys before compaction, %d after", seed, len(keys), len(got))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []byte{kindBody, kindPiece, kindCount, kindFacts, kindExpiry, kindReceipt,
		kindMark, kindNumbers, kindTerms} {
		if kinds[kind] == 0 {
			t.Errorf("no %c record was there to be looked at", kind)
		}
	}
	if looked == 0 {
		t.Error("no reference was there to be looked at")
	}
}

// TestALogsMessagesAreRemovedBelowItsHead raises a log's head by one message at a time: what is
// left below it is little, whatever the messages, and also after the store was opened again.
func TestALogsMessagesAreRemovedBelowItsHead(t *testing.T) {
	for _, c := range []struct {
		name        string
		size, holes int
		merged      int // batches an Apply
		most        int // messages left below the head
	}{
		{"dense", 100, 1, 1, rangeSize},
		{"with holes", 100, 50, 1, rangeSize / 50},
		{"with holes, put and ended at once", 100, 50, 40, rangeSize / 50},
		{"large", 2000, 1, 1, apartSize},
		{"large with holes", 2000, 50, 1, 1},
		{"large with holes, put and ended at once", 2000, 50, 40, 1},
		{"in pieces", 7000, 1, 1, apartSize},
		{"in pieces, with holes, put and ended at once", 7000, 50, 40, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := openMem(t, fs)
			var batches []*store.Batch
			step := func(i int, head store.Seq) {
				seq := store.Seq(i * c.holes)
				b := &store.Batch{Ops: []store.Op{
					{Kind: store.PutMessage, Dest: 1, Seq: seq, Message: &message.Message{
						Content: make([]byte, c.size), Expiration: 7}},
					{Kind: store.PutHeader, Header: &store.Header{ID: 1, Head: head, Reserved: seq + 1,
						Destination: message.Destination{Kind: message.Topic, Name: "t"}}}}}
				if batches = append(batches, b); len(batches) < c.merged {
					return
				}
				if err := s.Apply(batches); err != nil {
					t.Fatal(err)
				}
				batches = nil
				left := map[byte]int{}
				for key := range s.keys(t) {
					left[key[0]]++
				}
				if n := left[kindMessage]; n > c.most+10 {
					t.Fatalf("after %d messages %d are left, want at most %d below the head", i, n, c.most)
				}
				if n := max(left[kindBody], left[kindCount], left[kindPiece]/3); n > left[kindMessage] ||
					left[kindExpiry] > 0 {
					t.Fatalf("after %d messages %v records are left", i, left)
				}
			}
			for i := 1; i < 1000; i++ {
				if i%100 == 70 {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = openMem(t, fs)
				}
				step(i, store.Seq(max(1, i-5)*c.holes))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestRemovedRowsAreLaidUnderRangesOnce(t *testing.T) {
	type laid struct{ lo, hi store.Seq }
	for _, c := range []struct {
		name string
		rows [][2]store.Seq
		want []laid
	}{
		{"short", [][2]store.Seq{{10, 265}}, nil},
		{"long at once", [][2]store.Seq{{10, 266}}, []laid{{10, 266}}},
		{"long in steps", [][2]store.Seq{{10, 200}, {200, 300}}, []laid{{10, 300}}},
		{"two rows grow side by side", [][2]store.Seq{{10, 200}, {1000, 1200}, {200, 300},
			{1200, 1300}}, []laid{{10, 300}, {1000, 1300}}},
		{"only what is new is laid", [][2]store.Seq{{10, 300}, {300, 400}, {400, 600}},
			[]laid{{10, 300}, {300, 600}}},
		{"a gap begins a new row", [][2]store.Seq{{10, 200}, {201, 400}}, nil},
	} {
		d := &dest{}
		var got []laid
		for _, r := range c.rows {
			if lo, hi := d.removed(r[0], r[1]); lo < hi {
				got = append(got, laid{lo, hi})
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: laid %v, want %v", c.name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: laid %v, want %v", c.name, got, c.want)
			}
		}
	}
	d := &dest{}
	for i := range store.Seq(1000) { // scattered removals
		d.removed(i*10, i*10+1)
	}
	if len(d.runs) > maxRuns {
		t.Errorf("%d rows are remembered, want at most %d", len(d.runs), maxRuns)
	}
}
