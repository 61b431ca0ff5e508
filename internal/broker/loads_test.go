package broker

import (
	"testing"

	"hopwire/internal/message"
)

// A send that waits for its receipts to be read is confirmed to nobody when its connection ends
// meanwhile: done then, it would be there twice when its client sends it again.
func TestASendThatLoadsEndsWithItsConnection(t *testing.T) {
	for _, c := range []struct {
		how, in string
		stored  int
	}{
		{"stop", "", 1}, {"stop", "its transaction", 1}, {"stop", "a branch", 1},
		{"gone", "", 1}, {"gone", "its transaction", 1}, {"gone", "a branch", 1},
		{"leaves", "", 2},
	} {
		h := open(t, nil, nil)
		h.tolerant("p", false).produce("p", queueQ, 1)
		h = h.killed()
		p, g := h.tolerant("p", false), h.tolerant("g", false)
		p.stays, g.stays = true, true
		m := p.mail("p", queueQ, 2)
		switch c.in {
		case "its transaction":
			m.Transaction = p.begin("p", 1)
		case "a branch":
			g.walk(xid(1), begin, "ok")
			p.walk(xid(1), begin, "ok")
			m.Transaction = xid(1)
		}
		n := p.hand(m)
		goOn := h.stalled() // before what reads the receipts
		switch c.how {
		case "stop":
			h.b.Stop(func() {}, func() {})
			h.pass(settleSilence - settleTick)
			if c.in == "a branch" {
				g.hand(&message.TransactionInfo{Connection: "g", ID: xid(1), Type: end})
			}
			h.pass(settleTick)
		case "gone":
			p.Gone()
		case "leaves":
			p.Handle(&message.ShutdownInfo{})
		}
		var commit int32
		if c.in == "a branch" {
			commit = g.hand(&message.TransactionInfo{Connection: "g", ID: xid(1), Type: commit1})
		}
		goOn()
		h.turn()
		if commit > 0 && g.outcome(commit, nil) != "100" {
			t.Errorf("%s: the commit without it is answered with %s", c.how, g.outcome(commit, nil))
		}
		if c.how != "leaves" && c.in != "its transaction" &&
			h.b.counts.Reasons[message.ConnectionGone] != 1 {
			t.Errorf("%s, in %q: it is not counted", c.how, c.in)
		}
		if k := len(h.again().stored(queueQ)); k != c.stored || p.answered(n) {
			t.Errorf("%s, in %q: %d messages are stored, want %d; answered: %v", c.how, c.in, k,
				c.stored, p.answered(n))
		}
	}
}
