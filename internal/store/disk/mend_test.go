package disk_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// A prepared branch that acknowledged what is lost names it no more: its end would take it off the
// count of the queue a second time.
func TestAPreparedBranchNamesNothingThatARepairLost(t *testing.T) {
	f := newFolder(t)
	acks := []store.AckRef{{Dest: 1, Seq: 10}, {Dest: 1, Seq: 100}, {Dest: 1, Seq: 190}}
	f.apply(append(puts(1, 1, 201, 1, nil), header(1, message.Queue, 1001, 200),
		store.Op{Kind: store.PutHeader, Header: &store.Header{ID: 5, Head: 1, Reserved: 1,
			Prepared: &store.Prepared{ID: message.TransactionID{XA: true, Global: "g", Branch: "b"},
				Acks: acks}}}))
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	f.damage(500)
	f.close()
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir})
	if err != nil || r.Kept == "" ||
		!strings.Contains(strings.Join(r.Others, "\n"), "could not be read; such messages: 1") {
		t.Fatalf("%+v, %v", r, err)
	}
	f.open()
	got, _ := f.all(1, 1001)
	headers, err := f.s.Headers()
	if err != nil || len(headers) != 2 {
		t.Fatal(headers, err)
	}
	for _, h := range headers {
		switch {
		case h.Prepared == nil:
			if h.Count != int64(len(got)) || h.Count == 200 {
				t.Errorf("the header counts %d messages, there are %d", h.Count, len(got))
			}
		case len(h.Prepared.Acks) != 2:
			t.Errorf("the branch acknowledged %+v", h.Prepared.Acks)
		}
		if h.Prepared == nil {
			continue
		}
		for _, a := range h.Prepared.Acks {
			if _, there := got[a.Seq]; !there {
				t.Errorf("the branch names %d, which is lost", a.Seq)
			}
		}
	}
}

// manyHeaders makes a store whose headers fill some blocks, and turns a byte of the first: the
// headers there are lost, of a queue with messages, a topic, and a subscription without messages.
func manyHeaders(t *testing.T) (f *folder) {
	t.Helper()
	f = newFolder(t)
	sub := header(3, message.Topic, 1000, 0)
	sub.Header.Subscription = &store.Subscription{ClientID: "c", Name: "n"}
	ops := []store.Op{header(1, message.Queue, 1001, 1), header(2, message.Topic, 1000, 0), sub,
		header(500, message.Topic, 7000, 0)}
	ops[3].Header.Destination.Name = "other"
	for id := store.DestID(10); id < 400; id++ {
		h := header(id, message.Queue, 10, 0)
		h.Header.Destination.Name = fmt.Sprint("queue.with.a.rather.long.name.", id)
		ops = append(ops, h)
	}
	f.apply(append(ops, puts(1, 1, 2, 1, func(m *message.Message) {
		m.Destination = message.Destination{Kind: message.Queue, Name: "d"}
	})...))
	if err := disk.Settle(f.s); err != nil {
		t.Fatal(err)
	}
	f.close()
	change(t, inDB(t, f.dir, "*.sst"), func(b []byte) []byte { b[200] ^= 0x55; return b })
	return f
}

// A durable subscription that had got all there was is made anew of its terms: it gets what is sent
// from now on. That destinations without messages are lost is told.
func TestARepairKeepsASubscriptionThatHasNoMessages(t *testing.T) {
	f := manyHeaders(t)
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir})
	if err != nil || !strings.Contains(strings.Join(r.Others, "\n"),
		"destinations without messages may be lost") {
		t.Fatalf("%+v, %v", r, err)
	}
	if !slices.ContainsFunc(r.Destinations, func(d disk.RepairedDestination) bool {
		return d.Name() == "durable subscription n of c" && d.Made && d.Copied == 0 && d.Lost == -1
	}) {
		t.Errorf("of the subscription it is told %+v", r.Destinations)
	}
	f.open()
	headers, err := f.s.Headers()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]store.Header{}
	for _, h := range headers {
		names[h.Destination.Name+fmt.Sprint(h.Subscription != nil)] = h
	}
	sub := names["dtrue"]
	if sub.ID != 3 || sub.Head != 1 || sub.Reserved != 7000 || sub.Count != 0 {
		t.Errorf("the subscription is %+v", sub)
	}
	if h := names["dfalse"]; h.ID != 1 || h.Count != 1 {
		t.Errorf("the queue is %+v", h)
	}
	if len(headers) > 300 {
		t.Errorf("all %d headers are there", len(headers))
	}
}

// The removal of a queue is lost with a part of the log, and it was made anew meanwhile: the newer
// one is left. Without damage two of a name are reason enough for a repair.
func TestARepairLeavesOneDestinationOfAName(t *testing.T) {
	named := func(m *message.Message) {
		m.Destination = message.Destination{Kind: message.Queue, Name: "d"}
		m.Expiration = 1 << 41
	}
	second := header(2, message.Queue, 1000, 5)
	second.Header.Destination.Name = "d"
	for _, drops := range []bool{true, false} {
		f := newFolder(t)
		f.apply(append(puts(1, 1, 11, 1, named), header(1, message.Queue, 1000, 10)))
		batches := [][]store.Op{append(puts(2, 1, 6, 1, named), second)}
		if drops {
			batches = slices.Insert(batches, 0, []store.Op{{Kind: store.DropDestination, Dest: 1}})
		}
		for _, ops := range batches {
			if err := f.s.Apply([]*store.Batch{{Ops: ops}}); err != nil {
				t.Fatal(err)
			}
		}
		f.close()
		if drops {
			change(t, inDB(t, f.dir, "*.log"), func(b []byte) []byte {
				i := strings.Index(string(b), string([]byte{'R', 0, 0, 0, 0, 0, 0, 0, 1}))
				if i < 0 {
					t.Fatal("the removal is not in the log")
				}
				b[i] ^= 0x55
				b[i+3] ^= 0x33
				return b
			})
		}
		r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir})
		if err != nil || !strings.Contains(strings.Join(r.Others, "\n"), "queue://d was removed and made"+
			" anew, and its removal is lost; messages from before it, left out: 10") || r.Cut != drops ||
			r.Dropped != 10 {
			t.Fatalf("%+v, %v", r, err)
		}
		f.open()
		got := contentsOf(t, f.s)
		if len(got.headers) != 1 || len(got.messages[2]) != 5 || len(got.expires) != 5 {
			t.Errorf("%d headers, %d messages and %d expirations are left", len(got.headers),
				len(got.messages[2]), len(got.expires))
		}
		if left, _ := f.all(1, 1000); len(left) > 0 {
			t.Errorf("%d messages of the removed queue are left", len(left))
		}
	}
}

// What a gap in the log has may be anything: it is told of what may come twice.
func TestALostPartOfTheLogMayHaveBeenReceipts(t *testing.T) {
	dir := killed(t, 300)
	if err := os.Remove(inDB(t, dir, "*.log")); err != nil {
		t.Fatal(err)
	}
	r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: dir})
	if err != nil || !r.Cut {
		t.Fatalf("%+v, %v", r, err)
	}
	told := strings.Join(r.Others, "\n")
	for _, want := range []string{"acknowledgements", "receipts of what peers", "numbers of producers",
		"redelivery counts", "destinations without messages", "prepared transactions"} {
		if !strings.Contains(told, want) {
			t.Errorf("it is not told of %s: %s", want, told)
		}
	}
}
