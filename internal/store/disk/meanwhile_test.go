package disk

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// What is put where nothing was found, before it is dropped, stays: a message that waited for room
// comes with an old sequence.
func TestWhatIsPutMeanwhileIsNotDropped(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	t.Cleanup(func() { _ = s.Close() })
	put := func(seq store.Seq) []*store.Batch {
		return []*store.Batch{{Ops: []store.Op{queueHeader(1000), {Kind: store.PutMessage, Dest: 1,
			Seq: seq, Message: &message.Message{Content: make([]byte, 7000)}}}}}
	}
	if err := s.Apply(put(900)); err != nil {
		t.Fatal(err)
	}
	s.puts = map[store.DestID]span{}
	for _, seq := range []store.Seq{50, 60} {
		if err := s.Apply(put(seq)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Apply([]*store.Batch{{Ops: []store.Op{{Kind: store.SetRedelivery, Dest: 1, Seq: 900,
		Count: 3}}}}); err != nil {
		t.Fatal(err)
	}
	var ranges []coveredRange
	for _, kind := range []byte(messageKinds) {
		for _, r := range [][2]store.Seq{{1, 51}, {60, 100}, {900, 901}, {55, 56}} {
			ranges = append(ranges, coveredRange{from: seqKey(nil, kind, 1, r[0]),
				to: seqKey(nil, kind, 1, r[1])})
		}
	}
	before := s.keys(t)
	for _, id := range []store.DestID{0, 2} {
		ranges = append(ranges, coveredRange{from: destKey(nil, kindMessage, id),
			to: destKey(nil, kindMessage, id+1)})
	}
	if laid, err := s.layOver(context.Background(), ranges); err != nil || !laid {
		t.Fatal(laid, err)
	}
	after := s.keys(t)
	for key := range before {
		if !after[key] {
			t.Errorf("%q is gone", key)
		}
	}
}
