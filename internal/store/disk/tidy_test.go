package disk

import (
	"runtime"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// TestWhatIsDeletedIsFreeWhenTheLimitIsNear writes nothing after the last message is gone: nothing
// that pebble does by itself frees what they took. So much was written that all the logs that
// pebble keeps for it wait to be written over.
func TestWhatIsDeletedIsFreeWhenTheLimitIsNear(t *testing.T) {
	const count, size, limit = 1000, 100_000, 8 << 20
	s, err := Open(t.Context(), Options{Dir: t.TempDir(), NoWait: true, LimitBytes: limit,
		Poll: 5 * time.Millisecond, ReserveBytes: -1, MemTableBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	d := message.Destination{Kind: message.Queue, Name: "A"}
	h := &store.Header{ID: 1, Destination: d, Reserved: count}
	for seq := range store.Seq(count) {
		m := &message.Message{Destination: d, Content: make([]byte, size)}
		fill(m.Content, byte(seq))
		b := &store.Batch{Bytes: size, Ops: []store.Op{
			{Kind: store.PutMessage, Dest: 1, Seq: seq, Message: m},
			{Kind: store.PutHeader, Dest: 1, Header: h},
		}}
		if err := s.Apply([]*store.Batch{b}); err != nil {
			t.Fatal(err)
		}
	}
	if used := s.usedBytes(); used < limit {
		t.Fatalf("%d bytes are used; the test needs more than the limit of %d", used, limit)
	}
	for seq := range store.Seq(count) {
		b := &store.Batch{Ops: []store.Op{{Kind: store.DeleteMessage, Dest: 1, Seq: seq}}}
		if err := s.Apply([]*store.Batch{b}); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(6 * time.Second); s.Space().UsedBytes > limit/4*3; {
		if time.Now().After(end) {
			t.Fatalf("an empty store takes %d bytes of %d", s.Space().UsedBytes, limit)
		}
		runtime.Gosched()
	}
}

// fill writes what does not get smaller when it is compressed.
func fill(b []byte, seed byte) {
	x := uint32(seed) + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
}
