package broker

import (
	"fmt"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// TestWhatCameBeforeComesBackInSlices: neither many producers nor many receipts hold the loop, and
// all of them are known when the first send goes on.
func TestWhatCameBeforeComesBackInSlices(t *testing.T) {
	const producers, depth, receipts = 3000, 10_000, 40_000
	for _, now := range []int{depth, depth / 2} { // the policy may have changed
		many := func(o *Options) {
			e := policy.NewEntry()
			e.MaxProducersToAudit, e.MaxQueueAuditDepth = 2*producers, now
			o.Policies = &policy.Map{Default: e}
		}
		h := quick(t, many)
		h.tolerant("p", false).produce("p", queueQ, 1)
		h.receive(network.Peer{ID: "ID:q", Hopwire: true}, 0, true)
		id := h.b.find(queueQ).id
		batch := &store.Batch{}
		for i := range producers {
			for _, n := range []int64{3, 4000, 4500} {
				batch.Ops = append(batch.Ops, store.Op{Kind: store.PutNumber, Dest: id, Count: depth,
					ID: &message.MessageID{Sequence: n,
						Producer: message.ProducerID{Connection: message.ConnectionID(fmt.Sprint("c", i)),
							Session: 1, Value: 1}}})
			}
		}
		for i := range uint64(receipts) {
			r := store.Receipt{N: i + 1}
			copy(r.Key[:], fmt.Sprint(i))
			batch.Ops = append(batch.Ops, store.Op{Kind: store.PutReceipt, Dest: id, Peer: "ID:p",
				Receipt: r})
		}
		if err := h.disk.Apply([]*store.Batch{batch}); err != nil {
			t.Fatal(err)
		}
		h = open(t, h.disk.CrashClone(0), many)
		h.unchecked = true
		began := time.Now()
		h.mono = func() time.Duration { return time.Since(began) }
		p := h.tolerant("p", true)
		p.hand(p.mail("p", queueQ, 1))
		slices, most := 0, time.Duration(0)
		for more := true; more; {
			if len(h.soon) > 0 && h.b.find(queueQ).receipts == nil {
				slices++
				from := time.Now()
				more = h.step()
				most = max(most, time.Since(from))
				continue
			}
			more = h.step()
		}
		t.Logf("%d slices, the longest took %v", slices, most)
		if slices < producers/restoreMost || most > 20*time.Millisecond {
			t.Errorf("%d slices, the longest took %v", slices, most)
		}
		d := h.b.find(queueQ)
		if n := d.receipts.Len(); n != receipts+1 || h.b.counts.Duplicates != 1 {
			t.Errorf("%d receipts are known; %d duplicates", n, h.b.counts.Duplicates)
		}
		for i := range producers {
			c := message.ProducerID{Connection: message.ConnectionID(fmt.Sprint("c", i)), Session: 1,
				Value: 1}
			for n, want := range map[int64]bool{3: true, 4: false, 4000: true, 4500: true} {
				if d.producers.Has(message.MessageID{Producer: c, Sequence: n}) != want {
					t.Fatalf("number %d of %v is known: %v", n, c, !want)
				}
			}
		}
	}
}
