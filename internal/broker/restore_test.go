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
	for slow, now := range map[bool]int{false: depth, true: depth / 2} { // the policy may change
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
		// Steps are a producer or so many receipts; of a slow machine the clock ends a slice.
		steps, ahead := producers+receipts/restoreReceipts, restoreMost
		if slow {
			ahead = restoreLook
			h.mono = func() time.Duration { h.now += restoreTime; return h.now }
		}
		p := h.tolerant("p", true)
		p.hand(p.mail("p", queueQ, 1))
		slices := 0
		longest(t, "the restore", time.Second, func() {
			for more := true; more; more = h.step() {
				if len(h.soon) > 0 && h.b.find(queueQ).receipts == nil {
					slices++
				}
			}
		})
		if slices < steps/ahead {
			t.Errorf("slow: %v; %d slices for %d steps, want %d or more", slow, slices, steps,
				steps/ahead)
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

// What is known of who may send again ends with the destination, with its room in the audit, and
// with the producer.
func TestWhoIsAwaitedIsAwaitedSomewhere(t *testing.T) {
	h := open(t, nil, few)
	p := h.tolerant("p", false)
	for i := range int64(20) {
		p.produce("p", queueNamed(fmt.Sprint("q", i%10)), i)
	}
	one := message.ProducerID{Connection: "p", Session: 1, Value: 1}
	if n := len(h.b.awaited["p"][one]); n != 10 {
		t.Fatalf("it sent to %d destinations, want 10", n)
	}
	for i := range 9 {
		if err := h.b.removeDestination(h.b.find(queueNamed(fmt.Sprint("q", i))), true); err != nil {
			t.Error(err)
		}
	}
	last := h.b.find(queueNamed("q9"))
	if _, has := h.b.awaited["p"][one][last]; !has || len(h.b.awaited["p"][one]) != 1 {
		t.Errorf("it is awaited at %d destinations, want q9 alone", len(h.b.awaited["p"][one]))
	}
	for i := range 5 {
		name := fmt.Sprint("o", i)
		h.tolerant(name, false).produce(name, queueNamed("q9"), 1)
	}
	if len(h.b.awaited) != 3 || h.b.awaited["p"] != nil {
		t.Errorf("3 are awaited in q9, and known are %v", h.b.awaited)
	}
	for i := range 5 {
		h.tolerant(fmt.Sprint("o", i), true).do(&message.RemoveInfo{
			Object: message.ConnectionID(fmt.Sprint("o", i))})
	}
	if len(h.b.awaited) != 0 {
		t.Errorf("all are closed, and known are %v", h.b.awaited)
	}
}

func TestAProducerToManyDestinationsLooksAtEachOnce(t *testing.T) {
	const many = 20_000
	b := &Broker{awaited: awaited{}}
	list := make([]*destination, many)
	for i := range list {
		list[i] = &destination{}
	}
	longest(t, "to send twice to each of many, half of which go", time.Second, func() {
		for i := range 2 * many {
			b.awaited.add(message.ProducerID{}, list[i%many])
		}
		for i := range many / 2 {
			b.awaited.remove(message.ProducerID{}, list[i])
		}
	})
	if n := len(b.awaited[""][message.ProducerID{}]); n != many/2 {
		t.Errorf("it sent to %d", n)
	}
}

// Also what memory alone has of a producer makes room when that closes.
func TestAProducerThatIsClosedMakesRoomForThoseThatMemoryAloneKnows(t *testing.T) {
	h := open(t, nil, few)
	send := func(g *guest, name string) {
		m := g.mail(name, queueQ, 1)
		m.Persistent = false
		if e := g.do(m); e != nil {
			t.Fatal(e)
		}
	}
	p := h.tolerant("p", false)
	send(p, "p")
	for i := range 5 {
		name := fmt.Sprint("j", i)
		j := h.tolerant(name, false)
		send(j, name)
		j.do(&message.RemoveInfo{Object: message.ConnectionID(name)})
	}
	p.Gone()
	send(h.tolerant("p", true), "p")
	if h.b.counts.Duplicates != 1 {
		t.Errorf("%d duplicates, want 1", h.b.counts.Duplicates)
	}
}

// Two of a name in the store are none that a broker makes: it serves the newer and tells of it.
func TestOfTwoOfANameTheNewerIsServed(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("c", "c", "", nil)
	for n := range int64(3) {
		g.produce("c", queueQ, n+1)
	}
	older := h.b.find(queueQ).id
	clone := h.disk.CrashClone(0)
	header := store.Header{ID: older + 10, Destination: queueQ, Head: 1, Reserved: 1000, Count: 2}
	ops := []store.Op{{Kind: store.PutHeader, Dest: header.ID, Header: &header}}
	for seq := range store.Seq(2) {
		ops = append(ops, store.Op{Kind: store.PutMessage, Dest: header.ID, Seq: seq + 1,
			Message: &message.Message{Destination: queueQ, Persistent: true,
				ID: message.MessageID{Producer: producerP, Sequence: 100 + int64(seq)}}})
	}
	if err := clone.Apply([]*store.Batch{{Ops: ops}}); err != nil {
		t.Fatal(err)
	}
	h = open(t, clone, nil)
	h.unchecked = true
	if n := h.corrupt(); n != 1 || h.b.counts.Reasons[message.Unreadable] != 3 {
		t.Errorf("told %d times, counted %d", n, h.b.counts.Reasons[message.Unreadable])
	}
	r := h.connect("r", "r", "", nil)
	r.consume("r", queueQ)
	d := h.b.find(queueQ)
	if len(r.got) != 2 || d.id != header.ID || h.b.byID(older) != nil {
		t.Errorf("%d messages of destination %d", len(r.got), d.id)
	}
	for other := range h.b.named() {
		if other.name == queueQ && other != d {
			t.Error("the older one is there as well")
		}
	}
}
