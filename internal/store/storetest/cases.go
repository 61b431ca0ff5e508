package storetest

import (
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// queue gives a batch that makes destination 1 with messages of the sizes given, from sequence 10.
func queue(sizes ...int) *store.Batch {
	b := &store.Batch{}
	h := &store.Header{ID: 1, Head: 10, Reserved: 100,
		Destination: message.Destination{Kind: message.Queue, Name: "q"}}
	for i, n := range sizes {
		m := &message.Message{Content: make([]byte, n)}
		h.Count++
		h.Bytes += m.Size()
		b.Ops = append(b.Ops, store.Op{Kind: store.PutMessage, Dest: 1,
			Seq: store.Seq(10 + i), Message: m})
	}
	b.Ops = append(b.Ops, store.Op{Kind: store.PutHeader, Header: h})
	return b
}

func pageBounds(t *testing.T, s store.Store) {
	apply(t, s, queue(0, 0, 5000, 0, 0, 0)) // sizes 1024, 6024: sequences 10 to 15
	const all = ^store.Seq(0)
	for _, c := range []struct {
		name string
		r    store.PageRequest
		want []store.Seq
	}{
		{"no limits", store.PageRequest{Dest: 1, To: all}, []store.Seq{10, 11, 12, 13, 14, 15}},
		{"from is in", store.PageRequest{Dest: 1, From: 14, To: all}, []store.Seq{14, 15}},
		{"to is out", store.PageRequest{Dest: 1, To: 12}, []store.Seq{10, 11}},
		{"one sequence", store.PageRequest{Dest: 1, From: 12, To: 13}, []store.Seq{12}},
		{"nothing in range", store.PageRequest{Dest: 1, From: 16, To: all}, nil},
		{"empty range", store.PageRequest{Dest: 1, From: 13, To: 12}, nil},
		{"zero to", store.PageRequest{Dest: 1}, nil},
		{"count", store.PageRequest{Dest: 1, From: 11, To: all, Count: 2}, []store.Seq{11, 12}},
		{"at least one", store.PageRequest{Dest: 1, To: all, Bytes: 1}, []store.Seq{10}},
		{"bytes reached exactly", store.PageRequest{Dest: 1, To: all, Bytes: 2048},
			[]store.Seq{10, 11}},
		{"bytes passed", store.PageRequest{Dest: 1, To: all, Bytes: 2049}, []store.Seq{10, 11, 12}},
		{"no such destination", store.PageRequest{Dest: 2, To: all}, nil},
	} {
		got, err := s.Page(c.r)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var seqs []store.Seq
		for _, m := range got {
			seqs = append(seqs, m.Seq)
		}
		if len(seqs) != len(c.want) || len(seqs) > 0 && !equal(seqs, c.want) {
			t.Errorf("%s: page is %v, want %v", c.name, seqs, c.want)
		}
	}
	closeStore(t, s)
}

func equal(a, b []store.Seq) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func putsNeedHeader(t *testing.T, fresh func() World) {
	header := func(head, reserved store.Seq) store.Op {
		return store.Op{Kind: store.PutHeader, Header: &store.Header{ID: 1, Head: head,
			Reserved: reserved, Destination: message.Destination{Kind: message.Queue, Name: "q"}}}
	}
	put := store.Op{Kind: store.PutMessage, Dest: 1, Seq: 5, Message: &message.Message{}}
	for _, c := range []struct {
		name string
		ops  []store.Op
		ok   bool
	}{
		{"no header", []store.Op{put}, false},
		{"below the head", []store.Op{put, header(6, 10)}, false},
		{"at reserved", []store.Op{put, header(1, 5)}, false},
		{"last reserved", []store.Op{put, header(1, 6)}, true},
		{"at the head", []store.Op{header(5, 6), put}, true},
		{"dropped again", []store.Op{put, {Kind: store.DropDestination, Dest: 1}}, true},
		{"deleted again", []store.Op{put, {Kind: store.DeleteMessage, Dest: 1, Seq: 5},
			header(6, 10)}, true},
	} {
		s := open(t, fresh())
		err := s.Apply([]*store.Batch{{Ops: c.ops}})
		if c.ok && err != nil || !c.ok && (err == nil || message.KindOf(err) != message.Internal) {
			t.Errorf("%s: %v", c.name, err)
		}
		closeStore(t, s)
	}
}

func closedAnswersNothing(t *testing.T, s store.Store) {
	apply(t, s, queue(1, 2))
	closeStore(t, s)
	_, err1 := s.Page(store.PageRequest{Dest: 1, To: 100})
	_, err2 := s.Meta("x")
	_, err3 := s.Receipts(1, "p")
	_, err4 := s.Expired(1, 1)
	for i, err := range []error{err1, err2, err3, err4, s.Apply([]*store.Batch{queue()})} {
		if message.KindOf(err) != message.Unavailable {
			t.Errorf("call %d of a closed store: %v, want an Unavailable error", i, err)
		}
	}
	_ = s.Space()
}
