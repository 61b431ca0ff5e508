package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/store"
)

// resender is a broker with a consumer of q, and somebody who sends there and may send again.
type resender struct {
	*house
	again    bool // after a restart
	peer     bool // it is a peer that sends, else a client that fails over
	c        *guest
	id       message.ConsumerID
	p        *guest
	forwards map[int64]*bool // answered
	numbered map[int64]int32
}

var (
	peerP     = network.Peer{ID: "ID:p", Hopwire: true, Prefetch: 1000}
	producerP = message.ProducerID{Connection: "p", Session: 1, Value: 1}
)

func resending(h *house, peer, again bool) *resender {
	k := &resender{house: h, peer: peer, again: again, forwards: map[int64]*bool{},
		numbered: map[int64]int32{}}
	if k.c = h.connect("c", "c", "", nil); !peer {
		k.p = h.tolerant("p", again)
		k.p.do(&message.ProducerInfo{ID: producerP})
	}
	k.id = k.c.consume("c", queueQ)
	if !again {
		k.sends(queueQ, 1) // the receipts are in memory
		h.turn()
		k.c.ack(k.id, queueQ, k.c.got[0], message.StandardAck, noTx)
	}
	return k
}

// sends has message n come, without ending the turn.
func (k *resender) sends(d message.Destination, n int64) {
	m := &message.Message{Producer: producerP, Destination: d, Persistent: true,
		ID: message.MessageID{Producer: producerP, Sequence: n}, Content: []byte("x")}
	if k.peer {
		m.BrokerPath = []message.BrokerID{peerP.ID}
		answered := false
		k.forwards[n] = &answered
		k.b.Receive(m, peerP, func(error) { answered = true })
		return
	}
	k.numbered[n] = k.p.hand(m)
}

func (k *resender) answered(n int64) bool {
	if k.peer {
		return *k.forwards[n]
	}
	return k.p.answered(k.numbered[n])
}

// other has somebody else send, without ending the turn.
func (k *resender) other() (g *guest, n int32) {
	g = k.connect("o", "o", "", nil)
	m := g.mail("o", queueNamed("other"), 1)
	return g, g.hand(m)
}

// consumes acknowledges message n, and gives the number of what is to be answered.
func (k *resender) consumes(n int64, how string) int32 {
	id := k.c.got[slices.IndexFunc(k.c.got, func(id message.MessageID) bool {
		return id.Sequence == n
	})]
	if how == "plain" {
		return k.c.hand(&message.MessageAck{Consumer: k.id, Destination: queueQ,
			Type: message.IndividualAck, First: id, Last: id, HasFirst: true, HasLast: true, Count: 1})
	}
	tx := k.c.begin("c", n)
	k.c.tells(k.id, id, message.IndividualAck, tx)
	return k.c.hand(commitOf(tx))
}

// back has the consumer go, and another come: what it had is delivered again.
func (k *resender) back() {
	k.c.Handle(&message.RemoveInfo{Object: k.id, LastDelivered: message.LastDeliveredUnknown})
	k.c.got = nil
	k.id = k.c.consume("c", queueQ)
	k.b.EndTurn()
}

// next is the broker's next life, with room on the disk.
func (k *resender) next() *resender {
	h := k.killed()
	h.disk.SetCapacity(0, 0)
	return resending(h, k.peer, true)
}

// resent gives how many of some messages come to the consumer when they are sent again.
func (k *resender) resent(numbers ...int64) int {
	before := len(k.c.got)
	for _, n := range numbers {
		k.sends(queueQ, n)
		k.turn()
	}
	return len(k.c.got) - before
}

// The receipt of a message, or its number, is durable with the answer of who consumed it before its
// record was written, though the disk is full.
func TestWhatIsConsumedOfAFullDiskIsKnownAfterARestart(t *testing.T) {
	for _, peer := range []bool{true, false} {
		for _, how := range []string{"plain", "transaction"} {
			for _, when := range []string{"on its way", "held", "redelivered", "given back on its way"} {
				for _, end := range []string{"stop", "kill"} {
					name := fmt.Sprintf("peer %v, %s, %s, %s", peer, how, when, end)
					k := resending(open(t, nil, nil), peer, false)
					_, other := k.other()
					k.sends(queueQ, 2)
					k.b.EndTurn()
					if len(k.c.got) != 2 {
						t.Fatal("it is not dispatched ahead")
					}
					k.disk.SetCapacity(1, 1000)
					if when == "given back on its way" {
						k.back()
					}
					if when != "on its way" {
						k.turn()
						k.pass(3 * time.Second)
						if k.answered(2) {
							t.Fatalf("%s: it is answered, and nowhere", name)
						}
					}
					if when == "redelivered" {
						k.back()
						k.back() // the count goes up twice
					}
					n := k.consumes(2, how)
					for !k.c.answered(n) && k.step() {
					}
					if !k.c.answered(n) {
						t.Errorf("%s: consuming waits for room", name)
					}
					if end == "stop" {
						k.turn()
						if !k.answered(2) || k.b.journal.held.empty() {
							t.Errorf("%s: the send is answered: %v; of the other (%d) nothing waits: %v",
								name, k.answered(2), other, k.b.journal.held.empty())
						}
						k.pass(time.Minute)
						k.stop()
					}
					if got := k.next().resent(2); got != 0 {
						t.Errorf("%s: what was consumed comes again", name)
					}
				}
			}
		}
	}
}

// What is not consumed is not known before it is written: it would be lost.
func TestAReceiptWaitsForRoomWithWhatIsNotConsumed(t *testing.T) {
	for _, peer := range []bool{true, false} {
		k := resending(open(t, nil, nil), peer, false)
		k.other()
		both, _ := message.ParseDestination("q,B", message.Queue)
		k.sends(queueQ, 2)
		k.sends(both, 3)
		k.b.EndTurn()
		k.disk.SetCapacity(1, 1000)
		k.turn()
		k.pass(3 * time.Second)
		k.consumes(3, "plain")
		k.turn()
		k.pass(3 * time.Second)
		if k.answered(2) || k.answered(3) {
			t.Errorf("peer %v: answered: %v %v", peer, k.answered(2), k.answered(3))
		}
		again := k.next()
		again.sends(both, 3)
		again.turn()
		if n := again.b.find(queueNamed("B")); n == nil || n.queue.Len() != 1 {
			t.Errorf("peer %v: the copy that nobody consumed is lost", peer)
		}
		if again.resent(2) != 1 {
			t.Errorf("peer %v: a message that nobody consumed is lost", peer)
		}
		k.disk.SetCapacity(0, 0)
		k.pass(5 * time.Second)
		again = k.next()
		again.sends(both, 3)
		again.turn()
		if n := again.b.find(queueNamed("B")).queue.Len(); !k.answered(2) || !k.answered(3) ||
			again.resent(2) != 0 || n != 1 {
			t.Errorf("peer %v: with room, answered: %v %v; %d in B", peer, k.answered(2), k.answered(3), n)
		}
	}
}

// Receipts become durable in any order, and all are known, whichever was first.
func TestTheLaterOfTwoIsFreedFirst(t *testing.T) {
	for _, peer := range []bool{true, false} {
		for _, end := range []string{"kill", "stop", "room"} {
			k := resending(open(t, nil, nil), peer, false)
			k.other()
			for n := range int64(3) {
				k.sends(queueQ, n+2)
			}
			k.b.EndTurn()
			k.disk.SetCapacity(1, 1000)
			k.turn()
			n := k.consumes(3, "transaction")
			k.turn()
			if !k.c.answered(n) || k.answered(2) || !k.answered(3) || k.answered(4) {
				t.Errorf("peer %v, %s: answered: %v; %v %v %v", peer, end, k.c.answered(n), k.answered(2),
					k.answered(3), k.answered(4))
			}
			lost := 2 // nobody was told that they are safe
			switch end {
			case "stop":
				k.c.Gone()
				k.stop()
			case "room":
				k.disk.SetCapacity(0, 0)
				k.pass(5 * time.Second)
				if !k.answered(2) || !k.answered(4) || len(k.stored(queueQ)) != 2 {
					t.Errorf("peer %v: with room, answered: %v %v; stored %d", peer, k.answered(2),
						k.answered(4), len(k.stored(queueQ)))
				}
				lost = 0
			}
			again := k.next()
			if got := again.resent(3, 2, 4); got != lost {
				t.Errorf("peer %v, %s: %d come of what is sent again, want %d", peer, end, got, lost)
			}
			if again = again.next(); again.resent(2, 3, 4) != 0 {
				t.Errorf("peer %v, %s: not all are known after one more restart", peer, end)
			}
		}
	}
}

// A dead letter that was consumed frees what it is of, and what is behind that.
func TestADeadLetterConsumedOfAFullDiskFreesItsOriginal(t *testing.T) {
	for _, peer := range []bool{true, false} {
		k := resending(open(t, nil, nil), peer, false)
		dead := k.c.consume("c", queueDead)
		k.other()
		k.sends(queueQ, 2)
		k.b.EndTurn()
		k.c.tells(k.id, k.c.got[1], message.PoisonAck, noTx)
		k.disk.SetCapacity(1, 1000)
		k.turn()
		k.pass(3 * time.Second)
		if k.answered(2) != !peer && k.answered(2) || len(k.c.got) != 3 {
			t.Fatalf("the send is answered: %v, deliveries %d", k.answered(2), len(k.c.got))
		}
		k.c.tells(dead, k.c.got[2], message.StandardAck, noTx)
		k.turn()
		if !k.answered(2) {
			t.Errorf("peer %v: the send waits for room that it does not need", peer)
		}
		if again := k.next(); again.resent(2) != 0 || len(again.stored(queueDead)) != 0 {
			t.Errorf("peer %v: what was consumed comes again", peer)
		}
	}
}

// With all consumed nothing waits any more, and who waits for everything is answered.
func TestWithTheLastOfAFullDiskConsumedEverythingIsDurable(t *testing.T) {
	k := resending(open(t, nil, nil), true, false)
	k.sends(queueQ, 2)
	k.sends(queueQ, 3)
	k.b.EndTurn()
	k.disk.SetCapacity(1, 1000)
	k.turn()
	all := false
	k.b.journal.whenAllDurable(func() { all = true })
	k.consumes(2, "plain")
	k.turn()
	if all {
		t.Error("all is durable, and a message is not")
	}
	k.consumes(3, "plain")
	k.turn()
	if !all || !k.b.journal.held.empty() || k.b.journal.undurable != 0 {
		t.Errorf("all is durable: %v; %d bytes are not", all, k.b.journal.undurable)
	}
	k.c.got = nil
	k.sends(queueQ, 4)
	k.pass(time.Second)
	k.disk.SetCapacity(0, 0)
	k.pass(5 * time.Second)
	if !k.answered(4) || len(k.stored(queueQ)) != 1 {
		t.Errorf("with room, the next send is answered: %v", k.answered(4))
	}
}

// The store has numbers of no producer that is closed, though they waited for room meanwhile.
func TestNumbersThatWaitForRoomGoWithTheirProducer(t *testing.T) {
	for _, consumed := range []bool{false, true} {
		k := resending(open(t, nil, nil), false, false)
		k.other()
		k.sends(queueQ, 2)
		k.b.EndTurn()
		k.disk.SetCapacity(1, 1000)
		k.turn()
		k.p.do(&message.RemoveInfo{Object: producerP})
		if consumed {
			k.consumes(2, "plain")
			k.turn()
		}
		k.disk.SetCapacity(0, 0)
		k.pass(5 * time.Second)
		k.wantNumbers(queueQ)
	}
}

// A producer that was pushed out and comes again has the numbers of what it sent since, whichever
// waited for room.
func TestAProducerPushedOutOfAFullDiskIsKnownWhenItComesAgain(t *testing.T) {
	h := open(t, nil, few)
	k := resending(h, false, false)
	k.other()
	k.sends(queueQ, 2)
	k.b.EndTurn()
	k.disk.SetCapacity(1, 1000)
	k.turn()
	d := k.b.find(queueQ)
	for n := range int64(3) {
		x := message.ProducerID{Connection: "x", Value: n}
		_, news := d.producers.Seen(message.MessageID{Producer: x}, true)
		d.producers.Keep(x)
		k.b.noteAwaited(d, x, news)
	}
	if d.producers.Kept(producerP) {
		t.Fatal("it was not pushed out")
	}
	k.space = func() store.Space { return store.Space{FreeBytes: -1} }
	k.sends(queueQ, 3)
	k.space = nil
	k.turn()
	n := k.consumes(3, "transaction")
	k.turn()
	if !k.c.answered(n) {
		t.Error("the commit waits for room")
	}
	if got := k.next().resent(3); got != 0 {
		t.Error("what was consumed comes again")
	}
}

// Headers agree with what there is when a dead letter goes, and the end of its stored original too.
func TestTheEndOfAStoredOriginalGoesWithItsDeadLetter(t *testing.T) {
	h := stocked(t, queueQ, 2)
	k := &resender{house: h, c: h.connect("c", "c", "", nil)}
	k.id = k.c.consume("c", queueQ)
	dead := k.c.consume("c", queueDead)
	k.other()
	k.c.tells(k.id, k.c.got[0], message.PoisonAck, noTx)
	k.b.EndTurn()
	k.disk.SetCapacity(1, 1000)
	k.turn()
	k.c.tells(dead, k.c.got[2], message.StandardAck, noTx)
	k.turn() // the house looks at the headers
	if n := k.survive(queueQ, queueDead); n != 1 || k.b.journal.held.empty() {
		t.Errorf("%d are left of 2, of which one was consumed", n)
	}
}
