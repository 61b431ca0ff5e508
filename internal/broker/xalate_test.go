package broker

import (
	"strings"
	"testing"

	"hopwire/internal/message"
)

// TestALateSendOfAPreparedBranchIsTakenWhenItIsKnown sends into a prepared branch, as one that
// failed over: nothing that was not sent in it before is taken, and no destination is made.
func TestALateSendOfAPreparedBranchIsTakenWhenItIsKnown(t *testing.T) {
	_, change := lawful("boss all >", "boss all topic://>", "amy all MINE")
	for _, restarted := range []bool{false, true} {
		for _, c := range []struct {
			d        message.Destination
			n        int64
			user     string
			want     string // class of the exception, or its code
			restored string // the same when the branch was prepared before the broker's start
		}{
			{queueNamed("MINE"), 2, "amy", "", ""},
			{topicNamed("MINE"), 2, "boss", "", ""}, // not there
			{queueNamed("MINE"), 3, "amy", "-6", ""},
			{queueNamed("SECRET"), 2, "amy", "java.lang.SecurityException", "="},
			{queueNamed("MINE,SECRET"), 2, "amy", "java.lang.SecurityException", "="},
			{message.Destination{}, 2, "boss", "javax.jms.InvalidDestinationException", "="},
			{queueNamed(""), 2, "boss", "javax.jms.InvalidDestinationException", "="},
			{queueNamed(","), 2, "boss", "javax.jms.InvalidDestinationException", "="},
			{queueNamed(strings.Repeat("x", maxNameBytes+1)), 2, "boss",
				"javax.jms.InvalidDestinationException", "="},
		} {
			h := open(t, nil, change)
			g := h.connect("g", "g", c.user, nil)
			g.produce("g", queueNamed("MINE"), 1)
			g.walk(xid(1), begin, "ok")
			g.sendTx(xid(1), queueNamed("MINE"), 2)
			g.walk(xid(1), prepare, "vote 0")
			want := c.want
			if restarted {
				h = open(t, h.disk.CrashClone(0), change)
				g = h.connect("g", "g", c.user, nil)
				g.do(&message.ProducerInfo{ID: message.ProducerID{Connection: "g", Session: 1, Value: 1}})
				if c.restored != "=" {
					want = c.restored
				}
			}
			g.info.FailoverReconnect = true
			made := len(h.b.order)
			got := ""
			if e := g.trySendTx(xid(1), c.d, c.n); e != nil {
				got = g.outcome(0, e)
			}
			if got != want || len(h.b.order) != made {
				t.Errorf("restarted %v, message %d to %.20s by %s: %d destinations are made, answered"+
					" with %q, want %q", restarted, c.n, c.d, c.user, len(h.b.order)-made, got, want)
			}
			if n := h.b.counts.Reasons[message.DuplicateMessage]; n > 0 != (want == "") {
				t.Errorf("message %d to %.20s: %d duplicates are counted", c.n, c.d, n)
			}
			g.walk(xid(1), rollback, "ok")
			if h.b.xa.known != 0 {
				t.Errorf("%d messages of no branch are known", h.b.xa.known)
			}
		}
	}
}

// TestWhatABranchIsKnownByIsBounded prepares a branch of more than is remembered.
func TestWhatABranchIsKnownByIsBounded(t *testing.T) {
	h := open(t, nil, nil)
	tx := h.b.newTransaction(nil, xid(1))
	for _, n := range []int{resentMost, resentMost + 1} {
		tx.branch, tx.sends = &branch{}, nil
		for i := range int64(n) {
			tx.sends = append(tx.sends, &arrival{m: &message.Message{ID: message.MessageID{Sequence: i}}})
		}
		h.b.xa.knowSends(tx)
		if got := tx.branch.sent(message.MessageID{Sequence: -1}); got != (n > resentMost) {
			t.Errorf("of a branch of %d messages another may be one: %v", n, got)
		}
	}
	tx.branch, tx.sends, h.b.xa.known = &branch{}, tx.sends[:1], resentOverall
	if h.b.xa.knowSends(tx); tx.branch.known != nil {
		t.Error("more messages are known than the limit of all")
	}
}
