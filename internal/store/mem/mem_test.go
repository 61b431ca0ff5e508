package mem_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/mem"
	"hopwire/internal/store/storetest"
)

// world is a store in memory whose Apply returns when its batches are durable.
type world struct {
	s     *mem.Store
	watch func()
}

type synced struct {
	*mem.Store
	w *world
}

func (s synced) Apply(batches []*store.Batch) error {
	if err := s.Store.Apply(batches); err != nil {
		return err
	}
	s.w.watch()
	s.Sync(s.Unsynced())
	s.w.watch()
	return nil
}

func (s synced) Close() error {
	s.w.s = s.CrashClone(0) // everything that Apply returned for is durable
	return s.Store.Close()
}

func (w *world) Open() (store.Store, error) { return synced{w.s, w}, nil }

func (w *world) Watch(f func()) { w.watch = f }

func (w *world) Crash(r *rand.Rand) storetest.World {
	return &world{w.s.CrashClone(r.IntN(w.s.Unsynced() + 1)), func() {}}
}

func (w *world) SetFull(full bool) {
	w.s.SetCapacity(0, 0)
	if full {
		used := w.s.Space().UsedBytes
		w.s.SetCapacity(used+4, 100)
	}
}

func TestStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func() storetest.World {
		return &world{mem.NewUnsynced(), func() {}}
	})
}

func TestPlainStoreIsDurableAtOnce(t *testing.T) {
	s := mem.New()
	b := &store.Batch{Ops: []store.Op{{Kind: store.PutMeta, Name: "a", Value: []byte("b")}}}
	if err := s.Apply([]*store.Batch{b}); err != nil {
		t.Fatal(err)
	}
	if v, _ := s.CrashClone(0).Meta("a"); string(v) != "b" {
		t.Errorf("meta after a crash is %q, want b", v)
	}
}

func TestFaultFailsApplyWhole(t *testing.T) {
	s := mem.New()
	fail := message.Errorf(message.Internal, "disk broken")
	s.SetFault(func([]*store.Batch) error { return fail })
	b := &store.Batch{Ops: []store.Op{{Kind: store.PutMeta, Name: "a", Value: []byte("b")}}}
	if err := s.Apply([]*store.Batch{b}); !errors.Is(err, fail) {
		t.Fatalf("Apply: %v, want %v", err, fail)
	}
	if v, _ := s.Meta("a"); v != nil {
		t.Errorf("meta is %q after a failed Apply", v)
	}
}

func TestCheckFindsWrongHeaders(t *testing.T) {
	h := &store.Header{ID: 1, Head: 1, Reserved: 10,
		Destination: message.Destination{Kind: message.Queue, Name: "q"}}
	put := store.Op{Kind: store.PutMessage, Dest: 1, Seq: 3, Message: &message.Message{}}
	apply := func(change func(h *store.Header)) error {
		s := mem.New()
		hh := *h
		change(&hh)
		ops := []store.Op{put, {Kind: store.PutHeader, Header: &hh}}
		if err := s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
			t.Fatal(err)
		}
		return s.Check()
	}
	if err := apply(func(h *store.Header) { h.Count, h.Bytes = 1, 1024 }); err != nil {
		t.Errorf("a header that agrees: %v", err)
	}
	if err := apply(func(h *store.Header) { h.Count, h.Bytes = 2, 1024 }); err == nil {
		t.Error("a wrong count was not found")
	}
	if err := apply(func(h *store.Header) { h.Count, h.Bytes = 1, 1025 }); err == nil {
		t.Error("wrong bytes were not found")
	}
}

// TestALogGivesItsBytesBack ends one of two messages by the head, and the other with its log.
func TestALogGivesItsBytesBack(t *testing.T) {
	s := mem.New()
	log := func(head store.Seq) store.Op {
		return store.Op{Kind: store.PutHeader, Header: &store.Header{ID: 1, Head: head, Reserved: 10,
			Destination: message.Destination{Kind: message.Topic, Name: "t"}}}
	}
	m := &message.Message{Content: make([]byte, 100)}
	sub := store.Header{ID: 2, Head: 1, Reserved: 10, Subscription: &store.Subscription{Name: "s"},
		Destination: message.Destination{Kind: message.Topic, Name: "t"}, Count: 1, Bytes: m.Size()}
	for i, c := range []struct {
		ops  []store.Op
		want int64
	}{
		{[]store.Op{log(1), {Kind: store.PutMessage, Dest: 1, Seq: 5, Message: m},
			{Kind: store.PutMessage, Dest: 1, Seq: 6, Message: m}}, 2 * m.Size()},
		{[]store.Op{{Kind: store.PutHeader, Header: &sub},
			{Kind: store.PutReference, Dest: 2, Seq: 6, Source: 1}}, 2 * m.Size()},
		{[]store.Op{log(6)}, m.Size()},
		{[]store.Op{{Kind: store.DropDestination, Dest: 2},
			{Kind: store.DropDestination, Dest: 1}}, 0},
	} {
		if err := s.Apply([]*store.Batch{{Ops: c.ops}}); err != nil {
			t.Fatal(err)
		}
		if got := s.Space().UsedBytes; got != c.want {
			t.Errorf("step %d: %d bytes are used, want %d", i, got, c.want)
		}
		if err := s.Check(); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
	}
}

func TestCheckFindsDanglingReferences(t *testing.T) {
	s := mem.New()
	h := store.Header{ID: 1, Head: 1, Reserved: 10,
		Destination: message.Destination{Kind: message.Topic, Name: "t"}}
	sub := h
	m := &message.Message{}
	sub.ID, sub.Subscription, sub.Count, sub.Bytes = 2, &store.Subscription{}, 1, m.Size()
	raised := h
	raised.Head = 6
	apply := func(ops ...store.Op) {
		if err := s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
			t.Fatal(err)
		}
	}
	apply(store.Op{Kind: store.PutReference, Dest: 2, Seq: 5, Source: 1},
		store.Op{Kind: store.PutMessage, Dest: 1, Seq: 5, Message: m},
		store.Op{Kind: store.PutHeader, Header: &h}, store.Op{Kind: store.PutHeader, Header: &sub})
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	apply(store.Op{Kind: store.PutHeader, Header: &raised})
	if err := s.Check(); message.KindOf(err) != message.Corrupt {
		t.Errorf("a reference below the log's head: %v, want a Corrupt error", err)
	}
}

func BenchmarkPutDelete(b *testing.B) {
	s := mem.NewUnsynced()
	h := store.Header{ID: 1, Head: 1, Reserved: 1 << 60,
		Destination: message.Destination{Kind: message.Queue, Name: "q"}}
	m := &message.Message{Content: make([]byte, 100)}
	seq := store.Seq(0)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		hh := h
		put := &store.Batch{Ops: []store.Op{{Kind: store.PutHeader, Header: &hh},
			{Kind: store.PutMessage, Dest: 1, Seq: seq, Message: m}}}
		del := &store.Batch{Ops: []store.Op{{Kind: store.DeleteMessage, Dest: 1, Seq: seq}}}
		if err := s.Apply([]*store.Batch{put}); err != nil {
			b.Fatal(err)
		}
		if err := s.Apply([]*store.Batch{del}); err != nil {
			b.Fatal(err)
		}
		s.Sync(2)
	}
}
