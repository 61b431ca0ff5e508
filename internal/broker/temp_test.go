package broker

import (
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// A temporary destination is not of the store: neither is what is sent there, nor its sequences.
func TestTemporaryDestinationsAreNotStored(t *testing.T) {
	h := open(t, nil, nil)
	ops := 0
	h.committing = func(b *store.Batch) { ops += len(b.Ops) }
	g := h.connect("ID:g", "g", "", nil)
	for _, kind := range []message.Kind{message.TempQueue, message.TempTopic} {
		d := message.Destination{Kind: kind, Name: "ID:g:1"}
		if e := g.do(&message.DestinationInfo{Connection: "ID:g", Destination: d}); e != nil {
			t.Fatal(e)
		}
		if e := g.produce("ID:g", d, 1); e != nil {
			t.Fatal(e)
		}
		tx := g.begin("ID:g", 1)
		m := g.mail("ID:g", d, 2)
		m.Transaction = tx
		g.do(m)
		if e := g.finish(tx, message.CommitOnePhase); e != nil {
			t.Fatal(e)
		}
		if h.again().b.find(d) != nil {
			t.Errorf("%s is there after a kill, and nobody owns it", d)
		}
	}
	g.Gone()
	h.turn()
	if ops != 0 {
		t.Errorf("%d changes were written for them", ops)
	}
}

// Earlier versions wrote headers of temporary queues.
func TestStoredTemporaryDestinationsAreDropped(t *testing.T) {
	h := open(t, nil, nil)
	left := store.Header{ID: 7, Destination: tempQueue, Reserved: 1000}
	put := &store.Batch{Ops: []store.Op{{Kind: store.PutHeader, Header: &left}}}
	if err := h.disk.Apply([]*store.Batch{put}); err != nil {
		t.Fatal(err)
	}
	h = open(t, h.disk, nil)
	h.turn()
	if h.b.find(tempQueue) != nil || len(headersOf(t, h)) != 0 {
		t.Errorf("it is there; in the store are %v", headersOf(t, h))
	}
	h = open(t, h.disk, nil)
	if d := h.b.destination(queueNamed("q")); d.id <= 7 {
		t.Errorf("its number %d is given again", d.id)
	}
}
