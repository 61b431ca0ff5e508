package broker

import (
	"strings"
	"testing"

	"hopwire/internal/message"
)

// TestARollbackThatAConsumerDoesNotHearOfGivesBack rolls branches back in which a consumer that is
// there acknowledged a message: it gets that again, with the count raised, and is given what comes
// after. Its own client redelivers the message itself when it asked for the rollback.
func TestARollbackThatAConsumerDoesNotHearOfGivesBack(t *testing.T) {
	q := queueNamed("in")
	for who, want := range map[string]struct {
		got  string
		left int // in its window
	}{
		"its client":           {"1 2", 1},
		"another":              {"1 2 1* 3", 0},
		"the operator":         {"1 2 1* 3", 0},
		"who began it is gone": {"1 2 1* 3", 0},
	} {
		h := open(t, nil, nil)
		c, m := h.connect("c", "c", "", nil), h.connect("m", "m", "", nil)
		for n := range int64(2) {
			c.produce("c", q, n+1)
		}
		id := c.window("c", q, 1, "")
		m.walk(xid(1), begin, "ok")
		c.ack(id, q, c.got[0], message.StandardAck, xid(1))
		if who != "who began it is gone" {
			c.walk(xid(1), prepare, "vote 0")
		}
		done := 1
		settle := func() {
			for ; done < len(c.got); done++ {
				c.ack(id, q, c.got[done], message.IndividualAck, message.TransactionID{})
			}
		}
		settle()
		switch who {
		case "its client":
			c.walk(xid(1), rollback, "ok")
		case "another":
			m.walk(xid(1), rollback, "ok")
		case "the operator":
			h.b.Decide(xid(1).String(), false, "", func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
			h.turn()
		default:
			m.Gone()
			h.turn()
		}
		settle()
		c.produce("c", q, 3)
		settle()
		if got, n := numbers(c), c.consumers[id].window.Len(); got != want.got || n != want.left {
			t.Errorf("%s rolls it back: the consumer gets %s and has %d, want %s and %d",
				who, got, n, want.got, want.left)
		}
		h.over(who)
	}
}

// TestAConnectionIsReadWhileItsBranchKeepsRoom fills the memory with what a branch acknowledged:
// who began, joined or prepared that must be able to end it, however much of its sends waits.
func TestAConnectionIsReadWhileItsBranchKeepsRoom(t *testing.T) {
	in, out := queueNamed("in"), queueNamed("out")
	for _, how := range []string{"prepared", "joined", "none"} {
		h := open(t, nil, func(o *Options) { o.MemoryLimitBytes = 2 << 20 })
		c, o := h.connect("c", "c", "", nil), h.connect("o", "o", "", nil)
		c.produce("c", queueNamed("x"), 0)
		for n := range int64(2) {
			c.do(c.big("c", in, n+1, 1<<20, false))
		}
		o.walk(xid(1), begin, "ok")
		id := c.window("c", in, 10, "")
		if how != "none" {
			c.walk(xid(1), begin, "ok")
		}
		for _, m := range c.got {
			c.ack(id, in, m, message.StandardAck, xid(1))
		}
		if how == "prepared" {
			c.walk(xid(1), prepare, "vote 0")
		}
		c.do(&message.RemoveInfo{Object: id})
		for n := range int64(17) {
			c.hand(c.big("c", out, n+10, 1<<20, false))
		}
		h.turn()
		if c.held != (how == "none") || c.parkedBytes < congestedBytes {
			t.Errorf("%s: held %v while %d bytes wait", how, c.held, c.parkedBytes)
		}
		o.walk(xid(1), rollback, "ok")
		h.over(how)
		if len(c.branches)+len(o.branches) > 0 {
			t.Errorf("%s: the connections are in branches that are over", how)
		}
	}
}

func TestAQueueIsNotRemovedWhileABranchOfItIsBeingPrepared(t *testing.T) {
	h := open(t, nil, nil)
	q, c := queueNamed("in"), h.connect("c", "c", "", nil)
	c.produce("c", q, 1)
	id := c.window("c", q, 10, "")
	c.walk(xid(1), begin, "ok")
	c.ack(id, q, c.got[0], message.StandardAck, xid(1))
	n := c.hand(&message.TransactionInfo{Connection: "c", ID: xid(1), Type: prepare})
	if err := h.b.removeDestination(h.b.find(q), true); message.KindOf(err) != message.IllegalState {
		t.Errorf("the removal is answered with %v", err)
	}
	h.turn()
	if got := c.outcome(n, nil); got != "vote 0" {
		t.Errorf("the prepare is answered with %s", got)
	}
	c.walk(xid(1), commit2, "ok")
	if err := h.b.removeDestination(h.b.find(q), true); err != nil {
		t.Errorf("the removal after the commit is answered with %v", err)
	}
	h.over("its queue is removed")
}

// TestASendOfWhoIsGoneSpoilsTheBranchOfAnother has a send wait for room in a branch that another
// connection began: when its own goes, it is in no branch, and that is not committed without it.
func TestASendOfWhoIsGoneSpoilsTheBranchOfAnother(t *testing.T) {
	q := queueNamed("q")
	for _, goodbye := range []bool{false, true} {
		h := open(t, nil, limited)
		a, b := h.connect("a", "a", "", nil), h.connect("b", "b", "", nil)
		a.Handle(a.big("a", q, 1, 2<<20, false))
		a.walk(xid(1), begin, "ok")
		b.walk(xid(1), begin, "ok")
		m := b.big("b", q, 2, 100, false)
		m.Transaction = xid(1)
		b.tell(m)
		n := a.hand(&message.TransactionInfo{Connection: "a", ID: xid(1), Type: prepare})
		lost := int64(1)
		if goodbye { // what it sent before is to arrive
			lost = 0
			b.do(&message.RemoveInfo{Object: message.ConnectionID("b")})
			b.close("")
			h.turn()
			a.do(&message.DestinationInfo{Destination: q, Timeout: 1, Op: message.RemoveDestination})
		} else {
			b.Gone()
			h.turn()
		}
		if got := a.outcome(n, nil); got != "100" {
			t.Errorf("good-bye %v: the prepare is answered with %s", goodbye, got)
		}
		if got := h.b.counts.Reasons[message.ConnectionGone]; got != lost {
			t.Errorf("good-bye %v: %d lost sends are counted, want %d", goodbye, got, lost)
		}
		h.over("its sender is gone")
	}
}

func TestASubscriptionThatEndsCountsWhatABranchKeepsOfIt(t *testing.T) {
	for _, restarted := range []bool{true, false} {
		h, s := branched(t)
		if restarted {
			h = h.again()
		} else {
			s.leave()
		}
		c := h.connect("x", "c", "", nil)
		if e := c.do(&message.RemoveSubscriptionInfo{SubscriptionName: "s"}); e != nil {
			t.Fatal(e)
		}
		if n := h.b.counts.Reasons[message.Unsubscribed]; n != 2 {
			t.Errorf("restarted %v: %d messages are counted, want 2", restarted, n)
		}
		last := h.events[len(h.events)-1]
		for _, e := range h.events {
			if e.Kind == SubscriptionRemoved {
				last = e
			}
		}
		if !strings.Contains(last.Text, "2 messages that it kept are dropped; prepared"+
			" transactions, first "+xid(1).String()+", acknowledged 1 of them") {
			t.Errorf("restarted %v: it is told of as %q", restarted, last.Text)
		}
		c.walk(xid(1), commit2, "ok")
		h.over("its subscription is gone")
	}
}
