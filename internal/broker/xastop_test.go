package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
)

// stalled takes what waits for the store away, and gives what lets it go on.
func (h *house) stalled() (goOn func()) {
	jobs := h.jobs
	h.jobs = nil
	return func() {
		h.jobs = append(h.jobs, jobs...)
		h.turn()
		h.pass(2 * settleTick)
	}
}

// A branch of before the broker's start is nobody's before its outcome comes: who asks for that is
// told of it before the end, however long it is read.
func TestAStopAnswersTheOutcomeOfABranchOfBeforeTheStart(t *testing.T) {
	for _, how := range []message.TransactionType{commit1, commit2, rollback} {
		for _, when := range []string{"at once", "after the silence", "unreadable"} {
			h, _ := branched(t)
			h = h.again()
			m, other := h.connect("m", "m", "", nil), h.connect("o", "o", "", nil)
			m.stays, other.stays = true, true
			ended := h.begins()
			if when == "unreadable" {
				h.broken = 1 << 30
			}
			n := m.hand(&message.TransactionInfo{Connection: "m", ID: xid(1), Type: how})
			also := other.hand(&message.TransactionInfo{Connection: "o", ID: xid(1), Type: how})
			h.b.EndTurn()
			if when == "after the silence" {
				goOn := h.stalled()
				h.pass(settleSilence + settleTick)
				if how != rollback && (m.ended || other.ended) {
					t.Errorf("%d: they read the end before the outcome", how)
				}
				goOn()
			}
			h.turn()
			h.pass(3 * time.Second)
			if !m.ended || !other.ended {
				t.Fatalf("%d, %s: they do not read the end", how, when)
			}
			m.Gone()
			other.Gone()
			h.turn()
			h.broken = 0
			executed := len(h.again().b.xa.prepared) == 0
			want := how == rollback || when != "unreadable"
			if !*ended || executed != want || m.answered(n) != want || other.answered(also) != want {
				t.Errorf("%d, %s: ended %v, executed %v, want %v; answered %v %v", how, when, *ended,
					executed, want, m.answered(n), other.answered(also))
			}
		}
	}
}

// What waits for somebody else's prepare is not done for who has read the end meanwhile.
func TestACommitThatWaitsForAPrepareIsNotDoneAfterTheEnd(t *testing.T) {
	h := open(t, nil, nil)
	g, m := h.connect("g", "g", "", nil), h.connect("m", "m", "", nil)
	g.stays, m.stays = true, true
	g.walk(xid(1), begin, "ok")
	g.sendTx(xid(1), queueQ, 1)
	g.hand(&message.TransactionInfo{Connection: "g", ID: xid(1), Type: prepare})
	h.b.EndTurn()
	n := m.hand(&message.TransactionInfo{Connection: "m", ID: xid(1), Type: commit2})
	h.b.Stop(func() {}, func() {})
	goOn := h.stalled()
	h.pass(settleSilence + settleTick)
	goOn()
	if !m.ended {
		t.Fatal("it does not read the end")
	}
	if executed := len(h.again().b.xa.prepared) == 0; executed || m.answered(n) {
		t.Errorf("executed %v, answered %v", executed, m.answered(n))
	}
}

// A commit of a branch may wait for room that what others sent in it needs.
func TestACommitThatWaitsForASendIsNotDoneAfterTheEnd(t *testing.T) {
	h := open(t, nil, limited)
	full, q := queueNamed("full"), queueNamed("q")
	g, m, c := h.connect("g", "g", "", nil), h.connect("m", "m", "", nil),
		h.connect("c", "c", "", nil)
	g.stays, m.stays, c.stays = true, true, true
	g.Handle(g.big("g", full, 1, 2<<20, false))
	h.turn()
	id := c.consume("c", full)
	g.walk(xid(1), begin, "ok")
	x := g.big("g", q, 2, 100, false)
	x.Transaction = xid(1)
	g.Handle(x)
	n := m.hand(&message.TransactionInfo{Connection: "m", ID: xid(1), Type: commit1})
	h.turn()
	h.begins()
	h.pass(settleSilence - settleTick)
	g.walk(xid(1), end, "ok")
	c.acks(id, full, message.MessageID{}, xid(9)) // is heard of
	h.pass(2 * settleTick)
	if !m.ended || g.ended || c.ended {
		t.Fatalf("ended %v, want the first; %v %v", m.ended, g.ended, c.ended)
	}
	c.acks(id, full, c.got[0], noTx)
	h.pass(2 * settleTick)
	if d := h.b.find(q); d != nil && d.queue.Len() != 0 || m.answered(n) {
		t.Errorf("executed %v, answered %v", d.queue.Len(), m.answered(n))
	}
}
