package broker

import (
	"fmt"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/store"
)

const days = 24 * time.Hour

// later starts the broker again after a while.
func (h *house) later(d time.Duration) *house {
	h.t.Helper()
	return openAt(h.t, h.now+d, h.disk.CrashClone(0), nil)
}

// kept counts the receipts of a destination in the store.
func (h *house) kept(d message.Destination) (n int) {
	h.t.Helper()
	list, err := h.disk.Receipts(h.b.find(d).id)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range list.Peers {
		n += len(p.List)
	}
	return n
}

// An ActiveMQ broker has a new id after each start.
func TestReceiptsOfPeersThatAreGoneEnd(t *testing.T) {
	h := open(t, nil, nil)
	for n := range int64(100) {
		h.receive(network.Peer{ID: message.BrokerID(fmt.Sprint("ID:p", n)), Prefetch: 1000}, n, true)
	}
	p := network.Peer{ID: "ID:p0", Prefetch: 1000}
	for n := range int64(3) {
		h = h.later(20 * days)
		h.receive(p, 1000+n, true)
	}
	if n := h.b.find(queueQ).receipts.Len(); n != 4 || h.kept(queueQ) != 4 {
		t.Errorf("%d receipts are in memory, %d in the store; want those of one peer", n, h.kept(queueQ))
	}
	if n := len(h.b.networks.seen); n != 1 {
		t.Errorf("%d peers are remembered", n)
	}
	h = h.later(unseenDays * days)
	h.receive(p, 1000, true)
	if n := h.b.find(queueQ).counts.Duplicates; n != 1 {
		t.Errorf("%d resends of a peer that was seen a month ago are known", n)
	}
	h = h.later((unseenDays + 1) * days)
	if h.receive(p, 1003, true) != 1 || h.kept(queueQ) != 1 {
		t.Errorf("%d receipts are kept when a peer comes back after long", h.kept(queueQ))
	}
}

func TestMarksTowardPeersThatAreGoneEnd(t *testing.T) {
	h := open(t, nil, nil)
	h.doubt("ID:x", queueQ, 3)
	for after, want := range map[time.Duration]int{unseenDays * days: 1, (unseenDays + 1) * days: 0} {
		again := h.later(after)
		if n := len(again.b.DoubtedPeers()); n != want {
			t.Errorf("%d peers are in doubt after %v, want %d", n, after, want)
		}
	}
}

// What the store had before it kept who was seen counts from then on.
func TestReceiptsOfEarlierVersionsCountFromNowOn(t *testing.T) {
	h := open(t, nil, nil)
	p, other := network.Peer{ID: "ID:p", Prefetch: 1000}, network.Peer{ID: "ID:o", Prefetch: 1000}
	h.receive(p, 1, true)
	forget := &store.Batch{Ops: []store.Op{{Kind: store.PutMeta, Name: metaPeers}}}
	if err := h.disk.Apply([]*store.Batch{forget}); err != nil {
		t.Fatal(err)
	}
	h = h.later(100 * days)
	h.receive(other, 2, true)
	h = h.later(unseenDays * days)
	h.receive(other, 3, true)
	if n := h.kept(queueQ); n != 3 {
		t.Errorf("%d receipts are kept within the time, want 3", n)
	}
	h = h.later(1 * days)
	h.receive(other, 4, true)
	if n := h.kept(queueQ); n != 3 {
		t.Errorf("%d receipts are kept behind it, want those of one peer", n)
	}
}

func TestASightingOfAPeerIsWrittenOnceADay(t *testing.T) {
	h := open(t, nil, nil)
	writes := 0
	h.committing = func(b *store.Batch) {
		for _, op := range b.Ops {
			if op.Kind == store.PutMeta && op.Name == metaPeers {
				writes++
			}
		}
	}
	for n := range int64(100) {
		h.now += time.Hour
		h.receive(network.Peer{ID: "ID:p\n0 \"ID:q\"", Prefetch: 1000}, n, true)
	}
	if writes != 5 {
		t.Errorf("%d writes in 100 hours, want 5", writes)
	}
	if seen, err := PeersSeen(h.disk); err != nil || len(seen) != 2 {
		t.Errorf("the store knows %v, %v", seen, err)
	}
}
