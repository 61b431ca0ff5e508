package storetest

import (
	"reflect"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// branchesAreWhole holds the messages of prepared branches, few and many, to what their headers say
// of them, over a reopening.
func branchesAreWhole(t *testing.T, w World) {
	s := open(t, w)
	var want []store.Header
	for i, n := range []int{0, 3, 200} {
		h := store.Header{ID: store.DestID(i + 1), Head: 1, Reserved: store.Seq(n + 1),
			Prepared: &store.Prepared{Time: 7, ID: message.TransactionID{XA: true, FormatID: int32(i),
				Global: "g", Branch: "b"}, Acks: []store.AckRef{{Dest: 9, Seq: 8, Expiration: -7,
				Size: 6, Redelivery: 5}}}}
		b := &store.Batch{}
		for seq := range n {
			m := &message.Message{Expiration: 1, Content: make([]byte, seq%2*10_000)}
			h.Count, h.Bytes = h.Count+1, h.Bytes+m.Size()
			b.Ops = append(b.Ops, store.Op{Kind: store.PutMessage, Dest: h.ID,
				Seq: store.Seq(seq + 1), Message: m})
		}
		b.Ops = append(b.Ops, store.Op{Kind: store.PutHeader, Header: &h})
		apply(t, s, b)
		again := h
		for _, op := range []store.Op{{Kind: store.PutHeader, Header: &again},
			{Kind: store.DeleteMessage, Dest: h.ID, Seq: 1, Expiration: 1}} {
			if err := s.Apply([]*store.Batch{{Ops: []store.Op{op}}}); message.KindOf(err) !=
				message.Internal || err == nil {
				t.Errorf("%+v: %v, want an Internal error", op, err)
			}
		}
		want = append(want, h)
	}
	closeStore(t, s)
	s = open(t, w)
	got, err := s.Headers()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("headers are %+v, %v\nwant %+v", got, err, want)
	}
	if refs, err := s.Expired(nil, 1<<60, 10); err != nil || len(refs) != 0 {
		t.Errorf("messages of branches expire: %v, %v", refs, err)
	}
	for _, h := range want {
		page, err := s.Page(store.PageRequest{Dest: h.ID, To: 1 << 60})
		if err != nil || int64(len(page)) != h.Count {
			t.Errorf("branch %d has %d messages, %v, want %d", h.ID, len(page), err, h.Count)
		}
		apply(t, s, &store.Batch{Ops: []store.Op{{Kind: store.DropDestination, Dest: h.ID}}})
		if page, err := s.Page(store.PageRequest{Dest: h.ID, To: 1 << 60}); err != nil ||
			len(page) != 0 {
			t.Errorf("%d messages are left of branch %d, %v", len(page), h.ID, err)
		}
	}
	closeStore(t, s)
	s = open(t, w)
	if got, err := s.Headers(); err != nil || len(got) != 0 {
		t.Errorf("branches are left: %+v, %v", got, err)
	}
	closeStore(t, s)
}
