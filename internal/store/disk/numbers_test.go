package disk

import (
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

func numberOf(connection string, n int64) *store.Batch {
	return &store.Batch{Ops: []store.Op{
		{Kind: store.PutHeader, Header: &store.Header{ID: 1,
			Destination: message.Destination{Kind: message.Queue, Name: "q"}}},
		{Kind: store.PutNumber, Dest: 1, Count: 64, ID: &message.MessageID{Sequence: n,
			Producer: message.ProducerID{Connection: message.ConnectionID(connection)}}}}}
}

// TestNumbersThatCannotBeReadStopNoOthers: they are told of, and begin anew when the producer goes
// on.
func TestNumbersThatCannotBeReadStopNoOthers(t *testing.T) {
	fs := vfs.NewMem()
	s := openMem(t, fs)
	number := func(connection string, n int64) {
		if err := s.Apply([]*store.Batch{numberOf(connection, n)}); err != nil {
			t.Fatal(err)
		}
	}
	number("damaged", 1)
	number("whole", math.MaxInt64-1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openMem(t, fs)
	key := numbersKey(nil, 1, message.ProducerID{Connection: "damaged"})
	if err := s.db.Set(key, []byte{1, 0, 1}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	odd := append(destKey(nil, kindNumbers, 1), 200)
	if err := s.db.Set(odd, []byte{1, 2, 1}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	damaged := func() (n int) {
		r, err := s.Receipts(1)
		if err != nil || len(r.Producers) != 3 {
			t.Fatalf("%d producers, %v", len(r.Producers), err)
		}
		for _, p := range r.Producers {
			switch {
			case message.KindOf(p.Damage) == message.Corrupt && p.Numbers == nil:
				n++
			case p.Damage != nil, p.Producer.Connection == "whole" && !p.Numbers.Has(math.MaxInt64-1),
				p.Producer.Connection == "damaged" && !p.Numbers.Has(5):
				t.Errorf("%v has %v, %v", p.Producer, p.Numbers, p.Damage)
			}
		}
		return n
	}
	if n := damaged(); n != 2 {
		t.Errorf("%d cannot be read, want 2", n)
	}
	number("damaged", 5)
	number("whole", math.MaxInt64)
	if n := damaged(); n != 1 {
		t.Errorf("%d cannot be read, want 1", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// many gives a batch in which each of n producers uses a number, and the window is a large one.
func many(n int, number int64) *store.Batch {
	b := &store.Batch{}
	for i := range n {
		b.Ops = append(b.Ops, store.Op{Kind: store.PutNumber, Dest: 1, Count: 1 << 16,
			ID: &message.MessageID{Sequence: number,
				Producer: message.ProducerID{Connection: "ID:host-41234-1763550000000-1:1",
					Session: int64(i)}}})
	}
	return b
}

func TestNumbersThatAreHeldBetweenAppliesAreBounded(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	apply := func(b *store.Batch) {
		if err := s.Apply([]*store.Batch{b}); err != nil {
			t.Fatal(err)
		}
	}
	apply(numberOf("p", 1))
	before := heap()
	apply(many(2000, 1)) // 16 MB of windows
	if more := heap() - before; more > 4<<20 {
		t.Errorf("%d bytes are held", more)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// What is remembered of a destination that was dropped, of a producer that was forgotten or of a
// batch that was refused is not taken for what the store has.
func TestNumbersThatAreRememberedAreThoseOfTheStore(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	p := message.ProducerID{Connection: "p"}
	apply := func(fine bool, ops ...store.Op) {
		t.Helper()
		if err := s.Apply([]*store.Batch{{Ops: ops}}); (err == nil) != fine {
			t.Fatal(err)
		}
	}
	op := func(kind store.OpKind, n int64) store.Op {
		return store.Op{Kind: kind, Dest: 1, Count: 64,
			ID: &message.MessageID{Producer: p, Sequence: n}}
	}
	want := func(numbers ...int64) {
		t.Helper()
		r, err := s.Receipts(1)
		if err != nil || len(r.Producers) != 1 {
			t.Fatalf("%v, %v", r.Producers, err)
		}
		for n := range int64(20) {
			if has := slices.Contains(numbers, n); r.Producers[0].Numbers.Has(n) != has {
				t.Errorf("number %d: %v, want %v", n, !has, has)
			}
		}
	}
	header := numberOf("p", 0).Ops[0]
	apply(true, header, op(store.PutNumber, 1))
	apply(true, op(store.PutNumber, 2))
	want(1, 2)
	apply(false, op(store.PutNumber, 3), store.Op{Kind: 99})
	apply(true, op(store.PutNumber, 4))
	want(1, 2, 4)
	apply(true, op(store.DropNumbers, 0))
	apply(true, op(store.PutNumber, 5))
	want(5)
	apply(true, store.Op{Kind: store.DropDestination, Dest: 1})
	apply(true, header, op(store.PutNumber, 6))
	want(6)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkNumbers(b *testing.B) {
	for _, n := range []int{1, 10, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s, err := Open(b.Context(), Options{Dir: "store", FS: vfs.NewMem()})
			if err != nil {
				b.Fatal(err)
			}
			ops := many(n, 1)
			for i := range ops.Ops {
				ops.Ops[i].Count = 2048
			}
			number := int64(1)
			for b.Loop() {
				number++
				for i := range ops.Ops {
					ops.Ops[i].ID.Sequence = number
				}
				if err := s.Apply([]*store.Batch{ops}); err != nil {
					b.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
