package hopwire

import (
	"testing"

	"hopwire/internal/broker"
	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/mem"
)

// What the store still has of an emptied destination, as the expirations of its messages, must name
// none of a new one.
func TestEmptiedStoreGivesNoNumberAgain(t *testing.T) {
	st := mem.New()
	apply := func(ops ...store.Op) {
		t.Helper()
		if err := st.Apply([]*store.Batch{{Ops: ops}}); err != nil {
			t.Fatal(err)
		}
	}
	next := func() store.DestID {
		t.Helper()
		if err := empty(st); err != nil {
			t.Fatal(err)
		}
		if left, err := st.Headers(); err != nil || len(left) > 0 {
			t.Fatalf("%d destinations are left: %v", len(left), err)
		}
		n, err := broker.NextDest(st)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	put := func(id store.DestID) store.Op {
		return store.Op{Kind: store.PutHeader, Dest: id, Header: &store.Header{ID: id,
			Destination: message.Destination{Kind: message.Queue, Name: "q"}}}
	}
	if n := next(); n != 0 {
		t.Errorf("an empty store says that %d is next", n)
	}
	apply(put(3), put(7))
	if n := next(); n != 8 {
		t.Errorf("3 and 7 were there, next is %d", n)
	}
	apply(put(8), store.Op{Kind: store.PutMeta, Name: "nextDest", Value: []byte("12")})
	if n := next(); n != 12 {
		t.Errorf("12 was to be next, and is %d", n)
	}
}
