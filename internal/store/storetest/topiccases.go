package storetest

import (
	"fmt"
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

func header(id store.DestID, kind message.Kind, sub *store.Subscription) *store.Header {
	return &store.Header{ID: id, Head: 1, Reserved: 10_000, Subscription: sub,
		Destination: message.Destination{Kind: kind, Name: "t"}}
}

func putHeader(h *store.Header) store.Op { return store.Op{Kind: store.PutHeader, Header: h} }

// topic gives a batch with the log 1 and the subscription 2.
func topic() *store.Batch {
	return &store.Batch{Ops: []store.Op{putHeader(header(1, message.Topic, nil)),
		putHeader(header(2, message.Topic, &store.Subscription{ClientID: "c", Name: "s"}))}}
}

func reference(id store.DestID, seq store.Seq, log store.DestID) store.Op {
	return store.Op{Kind: store.PutReference, Dest: id, Seq: seq, Source: log}
}

// danglingIsTold drops a log to which references are left, which no broker does.
func danglingIsTold(t *testing.T, w World) {
	s := open(t, w)
	b := topic()
	b.Ops = append(b.Ops, putHeader(header(3, message.Topic, nil)))
	put := func(log store.DestID, seqs ...store.Seq) {
		for _, seq := range seqs {
			ref := reference(2, seq, log)
			ref.Expiration = 1000 + int64(seq)
			b.Ops = append(b.Ops, ref, store.Op{Kind: store.SetRedelivery, Dest: 2, Seq: seq,
				Count: int32(seq)}, store.Op{Kind: store.PutMessage, Dest: log, Seq: seq,
				Message: &message.Message{}})
		}
	}
	put(1, 5, 7, 8)
	put(3, 6, 9)
	apply(t, s, b, &store.Batch{Ops: []store.Op{{Kind: store.DropDestination, Dest: 1}}})
	want := func(r store.PageRequest, seqs ...store.Seq) {
		t.Helper()
		r.Dest, r.To = 2, 100
		p, err := s.Page(r)
		if err != nil || len(p) != len(seqs) {
			t.Fatalf("%+v: %d messages, %v; want %v", r, len(p), err, seqs)
		}
		for i, st := range p {
			if st.Seq != seqs[i] {
				t.Errorf("%+v: [%d] is %d, want %d", r, i, st.Seq, seqs[i])
			}
			checkDangling(t, st, st.Seq == 6 || st.Seq > 8)
		}
	}
	for range 2 {
		want(store.PageRequest{}, 5, 6, 7, 8, 9)
		want(store.PageRequest{From: 7}, 7, 8, 9)
		want(store.PageRequest{Count: 2}, 5, 6)
		want(store.PageRequest{Bytes: 1}, 5, 6)
		want(store.PageRequest{From: 7, Count: 1}, 7)
		closeStore(t, s)
		s = open(t, w)
	}
	b = &store.Batch{Ops: []store.Op{
		{Kind: store.DeleteMessage, Dest: 2, Seq: 7, Expiration: 1007}}}
	put(3, 10)
	apply(t, s, b)
	want(store.PageRequest{}, 5, 6, 8, 9, 10)
	refs, err := s.Expired(nil, 2000, 100)
	if err != nil || len(refs) != 5 || refs[2].Seq != 8 {
		t.Errorf("expired are %v, %v; want 5, 6, 8, 9 and 10", refs, err)
	}
	closeStore(t, s)
}

// checkDangling looks at one message of the subscription 2; if not good its log 1 is gone.
func checkDangling(t *testing.T, st store.Stored, good bool) {
	t.Helper()
	if good {
		if st.Message == nil || st.Damage != nil || st.Redelivery != int32(st.Seq) {
			t.Errorf("%d is %+v", st.Seq, st)
		}
		return
	}
	if st.Message != nil || st.Redelivery != 0 || st.Expiration != 1000+int64(st.Seq) ||
		message.KindOf(st.Damage) != message.Corrupt ||
		!strings.Contains(st.Damage.Error(), fmt.Sprintf("reference %d of destination 2", st.Seq)) ||
		!strings.Contains(st.Damage.Error(), "destination 1 does not have") {
		t.Errorf("%d is without its log %+v, want a Corrupt error that names both", st.Seq, st)
	}
}

func topicPutsAreHeld(t *testing.T, fresh func() World) {
	msg := func(id store.DestID, seq store.Seq) store.Op {
		return store.Op{Kind: store.PutMessage, Dest: id, Seq: seq,
			Message: &message.Message{Expiration: 7}}
	}
	raised := header(1, message.Topic, nil)
	raised.Head = 6
	for _, c := range []struct {
		name string
		ops  []store.Op
		ok   bool
	}{
		{"message and reference", []store.Op{msg(1, 5), reference(2, 5, 1)}, true},
		{"reference first", []store.Op{reference(2, 5, 1), msg(1, 5)}, true},
		{"message to a subscription", []store.Op{msg(2, 5)}, false},
		{"reference in a log", []store.Op{msg(1, 5), reference(1, 6, 1)}, false},
		{"reference in a queue", []store.Op{msg(1, 5), reference(3, 5, 1)}, false},
		{"reference to a message of a queue", []store.Op{msg(3, 5), reference(2, 5, 3)}, false},
		{"reference to nothing known", []store.Op{reference(2, 5, 9)}, false},
		{"reference to itself", []store.Op{reference(2, 5, 2)}, false},
		{"reference below the log's head", []store.Op{reference(2, 5, 1), putHeader(raised)}, false},
		{"message below the log's head", []store.Op{msg(1, 5), putHeader(raised)}, false},
		{"reference above what is reserved", []store.Op{msg(1, 5), reference(2, 10_000, 1)}, false},
		{"deleted again", []store.Op{msg(1, 5), reference(2, 5, 1),
			{Kind: store.DeleteMessage, Dest: 2, Seq: 5}}, true},
		{"dropped again", []store.Op{msg(1, 5), reference(2, 5, 1),
			{Kind: store.DropDestination, Dest: 1}, {Kind: store.DropDestination, Dest: 2}}, true},
		{"a log's message deleted", []store.Op{msg(1, 5),
			{Kind: store.DeleteMessage, Dest: 1, Seq: 5}}, false},
	} {
		s := open(t, fresh())
		b := topic()
		b.Ops = append(b.Ops, putHeader(header(3, message.Queue, nil)))
		apply(t, s, b)
		err := s.Apply([]*store.Batch{{Ops: c.ops}})
		if c.ok && err != nil || !c.ok && (err == nil || message.KindOf(err) != message.Internal) {
			t.Errorf("%s: %v", c.name, err)
		}
		closeStore(t, s)
	}
}

// termsAreKept puts a second header that agrees with the first, or does not.
func termsAreKept(t *testing.T, fresh func() World) {
	for _, c := range []struct {
		name   string
		id     store.DestID
		change func(h *store.Header)
		ok     bool
	}{
		{"same", 2, func(*store.Header) {}, true},
		{"selector", 2, func(h *store.Header) { h.Subscription.Selector = "a" }, false},
		{"name", 2, func(h *store.Header) { h.Subscription.Name = "a" }, false},
		{"client id", 2, func(h *store.Header) { h.Subscription.ClientID = "a" }, false},
		{"no local", 2, func(h *store.Header) { h.Subscription.NoLocal = true }, false},
		{"destination", 2, func(h *store.Header) { h.Destination.Name = "a" }, false},
		{"a subscription no more", 2, func(h *store.Header) { h.Subscription = nil }, false},
		{"a log becomes one", 1, func(h *store.Header) { h.Subscription = &store.Subscription{} },
			false},
	} {
		for _, how := range []string{"later", "at once", "after a reopen"} {
			w := fresh()
			s := open(t, w)
			b := &store.Batch{Ops: []store.Op{putHeader(topic().Ops[c.id-1].Header)}}
			c.change(b.Ops[0].Header)
			batches := []*store.Batch{topic(), b}
			if how != "at once" {
				apply(t, s, topic())
				batches = batches[1:]
			}
			if how == "after a reopen" {
				closeStore(t, s)
				s = open(t, w)
			}
			err := s.Apply(batches)
			if c.ok && err != nil || !c.ok && (err == nil || message.KindOf(err) != message.Internal) {
				t.Errorf("%s, %s: %v", c.name, how, err)
			}
			closeStore(t, s)
		}
	}
}

// patternReadsManyLogs gives one subscription the messages of more logs than a store would read
// side by side, in turn and in rows.
func patternReadsManyLogs(t *testing.T, w World) {
	const logs, all = 70, 600
	s := open(t, w)
	sub := header(1, message.Topic, &store.Subscription{Name: "s"})
	sub.Destination.Name = ">"
	b := &store.Batch{Ops: []store.Op{putHeader(sub)}}
	for i := range logs {
		b.Ops = append(b.Ops, putHeader(header(store.DestID(2+i), message.Topic, nil)))
	}
	from := func(seq store.Seq) store.DestID {
		if seq > all/2 {
			seq /= 17
		}
		return store.DestID(2 + seq%logs)
	}
	for seq := store.Seq(1); seq <= all; seq++ {
		m := &message.Message{CorrelationID: fmt.Sprint(seq), Content: make([]byte, seq%2*3000)}
		b.Ops = append(b.Ops, reference(1, seq, from(seq)),
			store.Op{Kind: store.PutMessage, Dest: from(seq), Seq: seq, Message: m})
		if seq%7 == 0 {
			b.Ops = append(b.Ops, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: seq},
				store.Op{Kind: store.SetRedelivery, Dest: 1, Seq: seq - 1, Count: int32(seq)})
		}
	}
	apply(t, s, b)
	want := store.Seq(1)
	for {
		p, err := s.Page(store.PageRequest{Dest: 1, From: want, To: all + 1, Count: 250})
		if err != nil {
			t.Fatal(err)
		}
		if len(p) == 0 {
			break
		}
		for _, st := range p {
			if want%7 == 0 {
				want++
			}
			count := int32(0)
			if want%7 == 6 {
				count = int32(want + 1)
			}
			if st.Seq != want || st.Message.CorrelationID != fmt.Sprint(want) ||
				st.Redelivery != count {
				t.Fatalf("sequence %d, message %s, redelivery %d; want %d and redelivery %d", st.Seq,
					st.Message.CorrelationID, st.Redelivery, want, count)
			}
			want++
		}
	}
	if want != all+1 {
		t.Errorf("the pages end before %d, want %d", want, all+1)
	}
	closeStore(t, s)
}

// topicReadsSeeWholeBatches moves a window of width messages through a log and two subscriptions
// while others read.
func topicReadsSeeWholeBatches(t *testing.T, s store.Store) {
	const width, steps = 20, 700
	step := func(seq store.Seq) *store.Batch {
		b := topic()
		b.Ops = append(b.Ops, putHeader(header(3, message.Topic, &store.Subscription{Name: "3"})))
		m := &message.Message{Content: make([]byte, 6000*(seq%2)), Expiration: int64(seq)}
		put := []store.Op{{Kind: store.PutMessage, Dest: 1, Seq: seq, Message: m},
			{Kind: store.SetRedelivery, Dest: 1, Seq: seq, Count: int32(seq)}}
		head := store.Seq(1)
		if seq > width {
			head = seq - width + 1
		}
		for i := range 3 {
			b.Ops[i].Header.Head = head
		}
		for id := store.DestID(2); id <= 3; id++ {
			ref := reference(id, seq, 1)
			ref.Expiration = int64(seq)
			put = append(put, ref,
				store.Op{Kind: store.SetRedelivery, Dest: id, Seq: seq, Count: int32(seq)})
			if head > 1 {
				put = append(put, store.Op{Kind: store.DeleteMessage, Dest: id, Seq: head - 1,
					Expiration: int64(head - 1)})
			}
		}
		b.Ops = append(put, b.Ops...)
		return b
	}
	for seq := store.Seq(1); seq <= width; seq++ {
		apply(t, s, step(seq))
	}
	whileReading(t, s, []store.DestID{1, 2, 3}, width, func() {
		for seq := store.Seq(width + 1); seq <= steps && !t.Failed(); seq++ {
			apply(t, s, step(seq))
		}
	})
	closeStore(t, s)
}
