package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

var tempQueue = message.Destination{Kind: message.TempQueue, Name: "ID:far-1:1"}

// asked gives a broker that a peer forwarded a request to, and an application that is to reply.
func asked(t *testing.T) (h *house, g *guest) {
	h = open(t, nil, nil)
	h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: "ID:a"}, Started: true, Temps: true})
	m := &message.Message{Destination: queueNamed("q"), ReplyTo: tempQueue,
		ID: message.MessageID{Producer: message.ProducerID{Connection: "ID:far-1"}, Sequence: 1}}
	h.b.Receive(m, network.Peer{ID: "ID:a"}, func(error) {})
	h.turn()
	return h, h.connect("g", "g", "", nil)
}

func (h *house) announce(op message.DestinationOp) {
	h.t.Helper()
	info := &message.DestinationInfo{Destination: tempQueue, Op: op}
	if err := h.b.Temp(network.Peer{ID: "ID:a"}, info); err != nil {
		h.t.Fatal(err)
	}
	h.turn()
}

func TestAReplyWaitsForItsDestinationInOrder(t *testing.T) {
	h, g := asked(t)
	var sent []int32
	for n := range int64(3) {
		g.tell(g.mail("g", tempQueue, n+1))
		sent = append(sent, g.number)
	}
	if g.parkedBytes == 0 {
		t.Fatal("what waits does not count")
	}
	h.pass(replyPatience - time.Millisecond)
	h.announce(message.AddDestination)
	if g.parkedBytes != 0 || len(h.b.replies.waiting)+len(h.b.replies.expected) != 0 {
		t.Errorf("%d bytes wait, %v", g.parkedBytes, h.b.replies)
	}
	c := h.connect("c", "c", "", nil)
	c.consume("c", tempQueue)
	for i, n := range sent {
		if !g.answered(n) || len(c.got) <= i || c.got[i].Sequence != int64(i+1) {
			t.Errorf("reply %d: answered %v, got %v", i+1, g.answered(n), c.got)
		}
	}
	h.pass(time.Minute)
	if n := h.b.counts.Reasons[message.TempUnseen]; n != 0 {
		t.Errorf("%d are counted as refused", n)
	}
}

func TestAReplyIsRefusedAfterItsPatience(t *testing.T) {
	h, g := asked(t)
	g.tell(g.mail("g", tempQueue, 1))
	first := g.number
	h.pass(replyPatience)
	h.turn()
	if !g.answered(first) || h.b.counts.Reasons[message.TempUnseen] != 1 || g.parkedBytes != 0 {
		t.Errorf("answered %v, counted %v", g.answered(first), h.b.counts.Reasons)
	}
	if e := g.produce("g", tempQueue, 2); e == nil {
		t.Error("a later reply waits, or is taken")
	}
}

func TestNothingIsWaitedForThatCannotCome(t *testing.T) {
	for name, change := range map[string]func(h *house){
		"no bridge leads back": func(h *house) {
			h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: "ID:a"}})
		},
		"it came and went":       func(h *house) { h.announce(0); h.announce(message.RemoveDestination) },
		"it went before it came": func(h *house) { h.announce(message.RemoveDestination) },
		"long ago":               func(h *house) { h.pass(replyPatience) },
	} {
		h, g := asked(t)
		change(h)
		if e := g.produce("g", tempQueue, 1); e == nil {
			t.Errorf("%s: the reply is not refused", name)
		}
	}
	h, _ := asked(t)
	g := h.connect("ID:far-2", "far", "", nil)
	m := &message.Message{Destination: queueNamed("q"), ReplyTo: message.Destination{
		Kind: message.TempQueue, Name: "ID:far-2:1"}, ID: message.MessageID{Sequence: 2}}
	h.b.Receive(m, network.Peer{ID: "ID:a"}, func(error) {})
	if e := g.produce("ID:far-2", m.ReplyTo, 1); e == nil {
		t.Error("the owner is here and has no such queue: the reply is not refused")
	}
}

func TestAProducerOfAnExpectedDestinationMayOpen(t *testing.T) {
	h, g := asked(t)
	p := message.ProducerID{Connection: "g", Session: 1, Value: 7}
	if e := g.do(&message.ProducerInfo{ID: p, Destination: tempQueue}); e != nil {
		t.Fatal(e)
	}
	m := &message.Message{Producer: p, Destination: tempQueue, ID: message.MessageID{Producer: p}}
	g.tell(m)
	h.announce(message.AddDestination)
	if n := h.b.find(tempQueue).queue.Len(); n != 1 {
		t.Errorf("%d of 1 replies arrived", n)
	}
}

func TestACommitWaitsForAReplyThatWaits(t *testing.T) {
	for _, comes := range []bool{true, false} {
		h, g := asked(t)
		tx := g.begin("g", 1)
		reply, other := g.mail("g", tempQueue, 1), g.mail("g", queueNamed("log"), 2)
		reply.Transaction, other.Transaction = tx, tx
		g.tell(reply)
		if e := g.do(other); e != nil { // does not let the reply go on
			t.Fatal(e)
		}
		g.tell(&message.TransactionInfo{Connection: "g", ID: tx, Type: message.CommitOnePhase})
		commit := g.number
		if comes {
			h.announce(message.AddDestination)
		} else {
			h.pass(replyPatience)
			h.turn()
		}
		if !g.answered(commit) {
			t.Fatalf("announced %v: no answer to the commit", comes)
		}
		if d := h.b.find(tempQueue); comes && (d == nil || d.queue.Len() != 1) {
			t.Error("the reply is not there")
		}
		if n := h.b.find(queueNamed("log")).queue.Len(); n != 1 {
			t.Errorf("announced %v: %d messages of the transaction in the other queue", comes, n)
		}
	}
}

func TestWhatWaitsForADestinationGoesWithItsConnection(t *testing.T) {
	for name, end := range map[string]func(*guest, message.TransactionID){
		"gone": func(g *guest, _ message.TransactionID) { g.Gone() },
		"rollback": func(g *guest, tx message.TransactionID) {
			if e := g.finish(tx, message.Rollback); e != nil {
				t.Error(e)
			}
		},
	} {
		h, g := asked(t)
		tx := g.begin("g", 1)
		m := g.mail("g", tempQueue, 1)
		if name == "rollback" {
			m.Transaction = tx
		}
		g.tell(m)
		end(g, tx)
		if len(h.b.replies.waiting) != 0 || g.parkedBytes != 0 || h.b.parkedBytes != 0 {
			t.Errorf("%s: %v waits, %d bytes", name, h.b.replies.waiting, h.b.parkedBytes)
		}
		h.announce(message.AddDestination)
		if n := h.b.find(tempQueue).queue.Len(); n != 0 {
			t.Errorf("%s: %d replies arrived", name, n)
		}
	}
}

func TestExpectedRepliesAreBounded(t *testing.T) {
	h, _ := asked(t)
	for n := range int64(2 * expectedMost) {
		m := &message.Message{Destination: queueNamed("q"), ID: message.MessageID{Sequence: n + 9},
			ReplyTo: message.Destination{Kind: message.TempQueue,
				Name: "ID:x-" + time.Duration(n).String() + ":1"}}
		h.b.Receive(m, network.Peer{ID: "ID:a"}, func(error) {})
	}
	r := &h.b.replies
	if len(r.expected) > expectedMost || len(r.order) > expectedMost {
		t.Errorf("%d are expected, %d remembered", len(r.expected), len(r.order))
	}
	h.turn()
}

func TestRepliesThatWaitAreShown(t *testing.T) {
	h, g := asked(t)
	g.tell(g.mail("g", tempQueue, 1))
	g.tell(g.mail("g", tempQueue, 2))
	var seen []DestinationStatus
	for _, d := range h.b.Status().Destinations {
		if d.Name == tempQueue {
			seen = append(seen, d)
		}
	}
	if len(seen) != 1 || seen[0].Parked != 2 || !slices.Equal(seen[0].Waits,
		[]message.Reason{message.TempUnseen}) {
		t.Errorf("status tells %+v", seen)
	}
	explain := func(id *message.MessageID) (x *Explanation) {
		h.b.Explain(tempQueue, id, func(e *Explanation) { x = e })
		return x
	}
	if x := explain(nil); x == nil || len(x.Rows) != 1 || x.Rows[0].Count != 2 ||
		x.Rows[0].Reason != message.TempUnseen || x.Rows[0].Releases == "" {
		t.Errorf("explained as %+v", x)
	}
	id := message.MessageID{Producer: g.mail("g", tempQueue, 0).Producer, Sequence: 2}
	if x := explain(&id); x == nil || !x.Found || x.Rows[0].Oldest.ID != id {
		t.Errorf("one is explained as %+v", x)
	}
	id.Sequence = 3
	if x := explain(&id); x == nil || x.Found {
		t.Errorf("one that is not there is explained as %+v", x)
	}
	h.pass(replyPatience)
	if x := explain(nil); x != nil {
		t.Errorf("explained when none waits: %+v", x)
	}
}

// ask has a peer's message ask for an answer to a destination of number n.
func (h *house) ask(n int) message.Destination {
	to := message.Destination{Kind: message.TempQueue, Name: fmt.Sprintf("ID:far-2:%d", n)}
	h.b.expectReply(&arrival{b: h.b, peer: &network.Peer{ID: "ID:a"},
		m: &message.Message{ReplyTo: to}})
	return to
}

func TestWhatIsExpectedIsNotEndedByWhatWas(t *testing.T) {
	h, g := asked(t)
	twice := h.ask(0)
	h.b.announced(twice)
	h.ask(0)
	for n := range 3 * expectedMost {
		h.b.announced(h.ask(n + 1))
	}
	r := &h.b.replies
	if len(r.expected) != 2 || len(r.order) > 2*expectedMost {
		t.Errorf("%d are expected, %d remembered; want 2", len(r.expected), len(r.order))
	}
	g.tell(g.mail("g", twice, 1))
	for n := range 2 * expectedMost {
		h.ask(-n - 1)
	}
	if len(r.expected) != expectedMost || r.expected[twice] != 0 {
		t.Errorf("%d are expected, want %d", len(r.expected), expectedMost)
	}
	h.pass(replyPatience)
	h.ask(1)
	if len(r.expected) != 1 || len(r.order) != 1 {
		t.Errorf("%d are expected, %d remembered; want 1", len(r.expected), len(r.order))
	}
}

func TestTheOldestExpectationGoesFirst(t *testing.T) {
	h, _ := asked(t) // the first
	twice := h.ask(0)
	h.b.announced(twice)
	h.pass(time.Millisecond)
	for n := range expectedMost {
		h.ask(n)
	}
	r := &h.b.replies
	if len(r.expected) != expectedMost || r.expected[tempQueue] != 0 || r.expected[twice] == 0 {
		t.Errorf("%d are expected, until %v the first and %v one that came back", len(r.expected),
			r.expected[tempQueue], r.expected[twice])
	}
}
