package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
)

func producerOf(client string) message.ProducerID {
	return message.ProducerID{Connection: message.ConnectionID(client), Session: 1, Value: 1}
}

// closesOfP are what a client closes its producer with.
var closesOfP = map[string]any{
	"producer":   producerOf("p"),
	"session":    message.SessionID{Connection: "p", Value: 1},
	"connection": message.ConnectionID("p"),
}

// A producer may be closed over another connection than the one that it sent over.
func TestAProducerThatIsClosedOverALaterConnectionIsForgotten(t *testing.T) {
	for how, object := range closesOfP {
		for _, opens := range []bool{false, true} {
			h := open(t, nil, nil)
			p := h.tolerant("p", false)
			p.produce("p", queueQ, 1)
			p.Gone()
			h.turn()
			p = h.tolerant("p", true)
			if opens || how == "producer" {
				p.do(&message.ProducerInfo{ID: producerOf("p")})
			}
			p.do(&message.RemoveInfo{Object: object})
			h.connect("o", "o", "", nil).produce("o", queueQ, 1)
			h.turn()
			h.wantNumbers(queueQ)
			if len(h.b.awaited) != 0 {
				t.Errorf("%s is closed, and awaited are %v", how, h.b.awaited)
			}
		}
	}
}

// One connection's close says nothing of another's producers.
func TestWhoIsOpenStaysAwaitedWhenOthersClose(t *testing.T) {
	h := open(t, nil, nil)
	p := h.tolerant("p", false)
	p.produce("p", queueQ, 1)
	two := message.SessionID{Connection: "p", Value: 2}
	other := message.ProducerID{Connection: "p", Session: 2, Value: 1}
	p.do(&message.SessionInfo{ID: two})
	p.do(&message.ProducerInfo{ID: other})
	m := p.mail("p", queueQ, 7)
	m.Producer, m.ID.Producer = other, other
	p.do(m)
	h.tolerant("o", false).produce("o", queueQ, 3)
	p.do(&message.RemoveInfo{Object: two})
	h.connect("q", "q", "", nil).produce("q", queueQ, 1)
	h.wantNumbers(queueQ, "o 3", "p 1")
	p.do(&message.RemoveInfo{Object: message.ConnectionID("p")})
	again := h.tolerant("p", true)
	again.produce("p", queueQ, 4)
	p.Handle(&message.ShutdownInfo{}) // it had its end before
	h.connect("q", "q", "", nil).produce("q", queueQ, 2)
	h.wantNumbers(queueQ, "o 3", "p 4")
	again.Handle(&message.ShutdownInfo{})
	h.connect("q", "q", "", nil).produce("q", queueQ, 3)
	h.wantNumbers(queueQ, "o 3")
}

// branchOf has a client of its own send to q in a branch, closed when ends says, which may be
// "before" the outcome, "after" it, and "not" at all.
func (h *house) branchOf(i int, tolerant bool, ends string) {
	name := fmt.Sprint("x", i)
	var g *guest
	if tolerant {
		g = h.tolerant(name, false)
	} else {
		g = h.connect(name, name, "", nil)
	}
	closes := func(now string) {
		if ends == now {
			g.do(&message.RemoveInfo{Object: producerOf(name)})
			g.do(&message.RemoveInfo{Object: message.ConnectionID(name)})
		}
	}
	g.walk(xid(i), begin, "ok")
	g.sendTx(xid(i), queueQ, 1)
	g.walk(xid(i), end, "ok", prepare, "vote 0")
	closes("before")
	h.connect("m", "m", "", nil).walk(xid(i), commit2, "ok")
	closes("after")
	g.Gone()
	h.turn()
}

// Branches of clients that close, or do not fail over, take no place of who may send again.
func TestBranchesThatAreOverTakeNoPlace(t *testing.T) {
	for _, tolerant := range []bool{false, true} {
		for _, ends := range []string{"before", "after", "not"} {
			for _, crash := range []bool{false, true} {
				if tolerant && ends == "not" {
					continue // they do take it
				}
				h := open(t, nil, few)
				p := h.tolerant("p", false)
				p.produce("p", queueQ, 1)
				p.Gone() // before the answer came
				h.turn()
				for i := range 5 {
					h.branchOf(i, tolerant, ends)
				}
				if h.turn(); len(h.b.awaited) != 1 {
					t.Errorf("tolerant %v, closed %s: awaited are %v", tolerant, ends, h.b.awaited)
				}
				if crash {
					h = open(t, h.disk.CrashClone(0), few)
				}
				h.tolerant("p", true).produce("p", queueQ, 1)
				if n := len(h.stored(queueQ)); n != 6 || h.b.counts.Duplicates != 1 {
					t.Errorf("tolerant %v, closed %s, crash %v: %d are stored, want 6; %d duplicates, want 1",
						tolerant, ends, crash, n, h.b.counts.Duplicates)
				}
			}
		}
	}
}

// A client over failover that does not hear of the outcome plays the branch again, with producers
// that it closed since.
func TestWhatABranchSentOfAClosedProducerIsAwaited(t *testing.T) {
	for _, crash := range []bool{false, true} {
		h := open(t, nil, nil)
		p := h.tolerant("p", false)
		p.walk(xid(1), begin, "ok")
		p.sendTx(xid(1), queueQ, 5)
		p.do(&message.RemoveInfo{Object: producerOf("p")})
		p.walk(xid(1), end, "ok", prepare, "vote 0")
		p.hand(&message.TransactionInfo{Connection: "p", ID: xid(1), Type: commit2})
		p.Gone() // before the answer came
		h.turn()
		h.wantNumbers(queueQ, "p 5")
		if crash {
			h = h.killed()
		}
		p = h.tolerant("p", true)
		p.walk(xid(1), begin, "ok")
		p.sendTx(xid(1), queueQ, 5)
		p.do(&message.RemoveInfo{Object: producerOf("p")})
		p.walk(xid(1), end, "ok", prepare, "vote 0", commit2, "ok")
		if n := len(h.stored(queueQ)); n != 1 || h.b.counts.Duplicates != 1 {
			t.Errorf("crash %v: %d are stored, %d duplicates", crash, n, h.b.counts.Duplicates)
		}
		p.do(&message.RemoveInfo{Object: message.ConnectionID("p")})
		h.connect("o", "o", "", nil).produce("o", queueQ, 1)
		h.wantNumbers(queueQ)
	}
}

// What memory alone has of those that may send again is pushed out by no plain producer, either.
func TestWhatIsNotStoredIsAwaited(t *testing.T) {
	h := open(t, nil, few)
	p := h.tolerant("p", false)
	send := func(n int64) {
		m := p.mail("p", queueQ, n)
		m.Persistent = false
		if e := p.do(m); e != nil {
			t.Error(e)
		}
	}
	send(1)
	for i := range 5 {
		name := fmt.Sprint("j", i)
		h.connect(name, name, "", nil).produce(name, queueQ, 1)
	}
	p.Gone()
	h.turn()
	p = h.tolerant("p", true)
	send(1)
	if h.b.counts.Duplicates != 1 {
		t.Errorf("%d duplicates, want 1", h.b.counts.Duplicates)
	}
}

// Whoever closed its producer while a send of it waited is not awaited: nobody would end that.
func TestWhatWaitedAsItsProducerWasClosedIsNotAwaited(t *testing.T) {
	for how, object := range closesOfP {
		h := open(t, nil, nil)
		p := h.tolerant("p", false)
		p.produce("p", queueQ, 1)
		n := p.late(p.mail("p", queueQ, 2))
		p.hand(p.mail("p", queueQ, 3))
		h.turn()
		if d := h.b.find(queueQ); d.parkedCount() == 0 || p.answered(n) {
			t.Fatalf("%d wait", d.parkedCount())
		}
		p.do(&message.RemoveInfo{Object: object})
		h.disk.SetCapacity(0, 0)
		h.pass(3 * time.Second)
		if !p.answered(n) || len(h.stored(queueQ)) != 3 {
			t.Fatalf("%d are stored", len(h.stored(queueQ)))
		}
		h.connect("o", "o", "", nil).produce("o", queueQ, 1)
		h.wantNumbers(queueQ)
		if got := slices.Collect(h.b.find(queueQ).producers.Awaited()); len(got) != 0 ||
			len(h.b.awaited) != 0 {
			t.Errorf("%s: awaited are %v, %v", how, got, h.b.awaited)
		}
	}
}
