package disk_test

import (
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
