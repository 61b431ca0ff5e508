package broker

import (
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// withLost gives the house after a repair that lost the last message that its one branch sent.
func withLost(t *testing.T) *house {
	t.Helper()
	h, _ := branched(t)
	disk := h.disk.CrashClone(0)
	headers, err := disk.Headers()
	if err != nil {
		t.Fatal(err)
	}
	var ops []store.Op
	for _, was := range headers {
		if was.Prepared == nil {
			continue
		}
		now := was
		now.ID, now.Prepared.Lost = 1<<40, 1
		page, err := disk.Page(store.PageRequest{Dest: was.ID, From: 1, To: 3, Count: 10})
		if err != nil {
			t.Fatal(err)
		}
		ops = []store.Op{{Kind: store.DropDestination, Dest: was.ID},
			{Kind: store.PutHeader, Header: &now}}
		for _, s := range page {
			ops = append(ops, store.Op{Kind: store.PutMessage, Dest: now.ID, Seq: s.Seq,
				Message: s.Message})
		}
	}
	if err := disk.Apply([]*store.Batch{{Ops: ops}}); err != nil || len(ops) != 4 {
		t.Fatal(len(ops), err)
	}
	return open(t, disk.CrashClone(0), nil)
}

// A prepared branch of which a repair lost what it sent is told as such, and not committed, by
// nobody: half of it would be. It is rolled back.
func TestABranchThatIsNotWholeIsNotCommitted(t *testing.T) {
	h := withLost(t)
	all := h.b.Status().Transactions
	if len(all) != 1 || all[0].Lost != 1 || all[0].Sends != 2 || all[0].Acks != 3 {
		t.Errorf("told of %+v", all)
	}
	found := ""
	for _, e := range h.events {
		if e.Kind == BranchFound {
			found = e.Text
		}
	}
	if !strings.Contains(found, "can only be rolled back, as 1 that it sent are lost") {
		t.Errorf("at the start it is told %q", found)
	}
	m := h.connect("m", "m", "", nil)
	m.walk(xid(1), commit2, "-3", commit1, "-3")
	var byHand error
	h.b.Decide(xid(1).String(), true, "someone", func(err error) { byHand = err })
	h.turn()
	if message.KindOf(byHand) != message.Corrupt || h.corrupt() == 0 {
		t.Errorf("by hand: %v; told %d times", byHand, h.corrupt())
	}
	h = h.again()
	if len(h.b.xa.prepared) != 1 || h.b.xa.prepared[0].branch.lost != 1 {
		t.Fatalf("after the refusals: %+v", h.b.xa.prepared)
	}
	m = h.connect("m", "m", "", nil)
	m.walk(xid(1), rollback, "ok")
	if got, want := sorted(strings.ReplaceAll(h.seen(), "*", "")), "1 2 3; ; 21 22"; got != want {
		t.Errorf("after the rollback there is %q, want %q", got, want)
	}
	h = h.again()
	if len(h.b.xa.prepared) != 0 {
		t.Error("it is prepared after the rollback")
	}
}

// A broker that is to commit what it finds prepared does not commit half of it.
func TestWhatIsNotWholeIsNotCommittedAtAStart(t *testing.T) {
	disk := withLost(t).disk
	h := open(t, disk.CrashClone(0), func(o *Options) { o.Recovered = CommitRecovered })
	h.turn()
	if len(h.b.xa.prepared) != 1 || h.corrupt() != 1 {
		t.Errorf("%d are prepared, told %d times", len(h.b.xa.prepared), h.corrupt())
	}
}
