package disk

import (
	"math"
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
	number("whole", math.MaxInt64)
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
			case p.Damage != nil, p.Producer.Connection == "whole" && !p.Numbers.Has(math.MaxInt64),
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
	number("whole", 7)
	if n := damaged(); n != 1 {
		t.Errorf("%d cannot be read, want 1", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
