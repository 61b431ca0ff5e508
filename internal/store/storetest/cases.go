package storetest

import (
	"fmt"
	"slices"
	"sync"
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

// receiptNumbersAreNew puts receipts of a peer out of order, drops all, with more than there are,
// and puts on.
func receiptNumbersAreNew(t *testing.T, w World) {
	put := func(n uint64) *store.Batch {
		return &store.Batch{Ops: []store.Op{{Kind: store.PutReceipt, Dest: 1, Peer: "p",
			Receipt: store.Receipt{N: n}}}}
	}
	refused := func(s store.Store, n uint64) {
		t.Helper()
		if err := s.Apply([]*store.Batch{put(n)}); message.KindOf(err) != message.Internal {
			t.Errorf("%d was given twice: %v, want an Internal error", n, err)
		}
	}
	s := open(t, w)
	apply(t, s, queue(), put(2), put(5), put(3), put(7))
	refused(s, 0)
	for _, n := range []uint64{2, 3, 5} {
		refused(s, n)
	}
	apply(t, s, put(4), put(1))
	refused(s, 4)
	receipts, err := s.Receipts(1)
	var order []uint64
	for _, r := range receipts.Peers[0].List {
		order = append(order, r.N)
	}
	if want := []uint64{1, 2, 3, 4, 5, 7}; err != nil || !slices.Equal(order, want) ||
		receipts.Peers[0].Next != 8 {
		t.Errorf("receipts %v, next %d, %v; want %v, next 8", order, receipts.Peers[0].Next, err, want)
	}
	closeStore(t, s)
	s = open(t, w)
	refused(s, 6) // passed over before
	apply(t, s, put(10), &store.Batch{Ops: []store.Op{
		{Kind: store.DropReceipts, Dest: 1, Peer: "p", Receipt: store.Receipt{N: 700}},
		{Kind: store.DropReceipts, Dest: 1, Peer: "never", Receipt: store.Receipt{N: 700}}}})
	closeStore(t, s)
	s = open(t, w)
	receipts, err = s.Receipts(1)
	got := receipts.Peers
	if err != nil || len(got) != 1 || got[0].Peer != "p" || got[0].Next != 11 || len(got[0].List) > 0 {
		t.Errorf("after all were dropped: %+v, %v; want nothing of p, next 11", got, err)
	}
	refused(s, 10)
	closeStore(t, s)
	s = open(t, w)
	apply(t, s, put(13), put(12), &store.Batch{Ops: []store.Op{
		{Kind: store.DropReceipts, Dest: 1, Peer: "p", Receipt: store.Receipt{N: 12}}}})
	refused(s, 11)
	apply(t, s, put(14))
	closeStore(t, s)
}

// lastsIsNotExpired looks that a message that lasts is in pages alone, whatever its expiration.
func lastsIsNotExpired(t *testing.T, s store.Store) {
	b := queue()
	b.Ops[0].Header.Count = 2
	for seq := range store.Seq(2) {
		b.Ops = append(b.Ops, store.Op{Kind: store.PutMessage, Dest: 1, Seq: 10 + seq, Lasts: seq == 0,
			Message: &message.Message{Expiration: 7}})
	}
	apply(t, s, b)
	refs, err := s.Expired(nil, 100, 10)
	if err != nil || len(refs) != 1 || refs[0].Seq != 11 {
		t.Errorf("Expired gives %v, %v", refs, err)
	}
	page := func() (n int) {
		list, err := s.Page(store.PageRequest{Dest: 1, To: 100})
		if err != nil {
			t.Error(err)
		}
		return len(list)
	}
	if n := page(); n != 2 {
		t.Errorf("%d are there", n)
	}
	apply(t, s, &store.Batch{Ops: []store.Op{{Kind: store.DeleteMessage, Dest: 1, Seq: 10},
		{Kind: store.PutHeader, Header: &store.Header{ID: 1, Head: 11, Reserved: 100, Count: 1,
			Destination: b.Ops[0].Header.Destination}}}})
	if n := page(); n != 1 {
		t.Errorf("%d are left", n)
	}
	closeStore(t, s)
}

func closedAnswersNothing(t *testing.T, s store.Store) {
	apply(t, s, queue(1, 2))
	closeStore(t, s)
	_, err1 := s.Page(store.PageRequest{Dest: 1, To: 100})
	_, err2 := s.Meta("x")
	_, err3 := s.Receipts(1)
	_, err4 := s.Expired(nil, 1, 1)
	for i, err := range []error{err1, err2, err3, err4, s.Apply([]*store.Batch{queue()})} {
		if message.KindOf(err) != message.Unavailable {
			t.Errorf("call %d of a closed store: %v, want an Unavailable error", i, err)
		}
	}
	_ = s.Space()
}

// readsSeeWholeBatches moves a window of width messages through a queue, one put and one removed
// in each batch, while others read: a page must be a window, with bodies and counts in place.
func readsSeeWholeBatches(t *testing.T, s store.Store) {
	const width, steps = 20, 2000
	step := func(seq store.Seq) *store.Batch {
		m := &message.Message{Content: make([]byte, 6000*(seq%2)), Expiration: int64(seq)}
		head := store.Seq(1)
		if seq > width {
			head = seq - width + 1
		}
		b := &store.Batch{Ops: []store.Op{
			{Kind: store.PutMessage, Dest: 1, Seq: seq, Message: m},
			{Kind: store.SetRedelivery, Dest: 1, Seq: seq, Count: int32(seq)},
			{Kind: store.PutHeader, Header: &store.Header{ID: 1, Head: head, Reserved: steps + 1,
				Destination: message.Destination{Kind: message.Queue, Name: "q"}}}}}
		if head > 1 {
			b.Ops = append(b.Ops, store.Op{Kind: store.DeleteMessage, Dest: 1, Seq: head - 1,
				Expiration: int64(head - 1)})
		}
		return b
	}
	for seq := store.Seq(1); seq <= width; seq++ {
		apply(t, s, step(seq))
	}
	whileReading(t, s, []store.DestID{1, 1}, width, func() {
		for seq := store.Seq(width + 1); seq <= steps && !t.Failed(); seq++ {
			apply(t, s, step(seq))
		}
	})
	closeStore(t, s)
}

// whileReading does something while a reader for each of the destinations looks for windows.
func whileReading(t *testing.T, s store.Store, dests []store.DestID, width int, do func()) {
	done := make(chan bool)
	var wait sync.WaitGroup
	for _, id := range dests {
		wait.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := isWindow(s, id, width); err != nil {
					t.Errorf("destination %d: %v", id, err)
					return
				}
			}
		})
	}
	do()
	close(done)
	wait.Wait()
}

func isWindow(s store.Store, id store.DestID, width int) error {
	p, err := s.Page(store.PageRequest{Dest: id, To: ^store.Seq(0)})
	if err != nil {
		return err
	}
	if len(p) != width {
		return fmt.Errorf("a page has %d messages, want %d", len(p), width)
	}
	for i, st := range p {
		want := p[0].Seq + store.Seq(i)
		if st.Seq != want || st.Redelivery != int32(want) ||
			len(st.Message.Content) != int(6000*(want%2)) {
			return fmt.Errorf("[%d] is sequence %d, redelivery %d, %d bytes; want sequence %d",
				i, st.Seq, st.Redelivery, len(st.Message.Content), want)
		}
	}
	if _, err := s.Expired(nil, int64(p[0].Seq+1), 10); err != nil {
		return err
	}
	return nil
}
