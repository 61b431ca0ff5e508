package broker

import (
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
)

var queueDead = queueNamed("ActiveMQ.DLQ")

// tells hands over an acknowledgement without ending the turn.
func (g *guest) tells(id message.ConsumerID, m message.MessageID, how message.AckType,
	tx message.TransactionID) {
	g.Handle(&message.MessageAck{Consumer: id, Destination: g.from[m], Type: how, Transaction: tx,
		First: m, Last: m, HasFirst: true, HasLast: true, Count: 1})
}

// survive counts what a crash leaves of some queues.
func (h *house) survive(queues ...message.Destination) (n int) {
	again := h.again()
	for _, q := range queues {
		n += len(again.counts(q))
	}
	return n
}

// A message that was consumed before its record was handed over is as safe as what consumed it: a
// commit that also sends, or a dead letter, may wait for room.
func TestWhatIsConsumedAheadIsConfirmedWithWhatConsumedIt(t *testing.T) {
	out := queueNamed("out")
	for _, how := range []string{"commit", "one phase commit", "poison", "expired"} {
		for _, when := range []string{"collected", "on its way"} {
			h := open(t, nil, nil)
			p, c := h.connect("p", "p", "", nil), h.connect("c", "c", "", nil)
			id := c.consume("c", queueQ)
			tx := c.begin("c", 1)
			if how == "one phase commit" {
				tx = xid(1)
				c.walk(tx, begin, "ok")
			}
			c.sendTx(tx, out, 1)
			filler, m := p.mail("p", queueNamed("filler"), 1), p.mail("p", queueQ, 2)
			if when == "collected" {
				p.hand(filler)
				h.b.EndTurn()
			}
			n := p.hand(m)
			h.b.EndTurn()
			if len(c.got) != 1 {
				t.Fatal("it is not dispatched ahead")
			}
			var commit int32
			switch how {
			case "poison":
				c.tells(id, c.got[0], message.PoisonAck, noTx)
			case "expired":
				c.tells(id, c.got[0], message.ExpiredAck, noTx)
			default:
				c.tells(id, c.got[0], message.StandardAck, tx)
				commit = c.hand(commitOf(tx))
			}
			if when == "collected" {
				h.step()
			}
			h.disk.SetCapacity(1, 1000)
			h.turn()
			h.pass(3 * time.Second) // tried again, in vain
			if p.answered(n) || commit > 0 && c.answered(commit) {
				t.Errorf("%s of what is %s: a full disk confirms the send (%v), the commit (%v); a"+
					" crash leaves %d", how, when, p.answered(n), commit > 0 && c.answered(commit),
					h.survive(queueQ, queueDead))
			}
			h.disk.SetCapacity(0, 0)
			h.pass(5 * time.Second)
			if !p.answered(n) || commit > 0 && !c.answered(commit) {
				t.Errorf("%s of what is %s: with room, the send is confirmed: %v", how, when,
					p.answered(n))
			}
			dead := 1
			if commit > 0 {
				dead = 0
			}
			if in, d := h.survive(queueQ), h.survive(queueDead); in != 0 || d != dead {
				t.Errorf("%s of what is %s: %d messages are left, %d dead letters", how, when, in, d)
			}
		}
	}
}

// A dead letter that is consumed before it is written takes what it stands for along: that must not
// be deleted before the commit that consumed it is durable.
func TestADeadLetterConsumedAheadKeepsItsOriginal(t *testing.T) {
	h := stocked(t, queueQ, 1)
	c, p := h.connect("c", "c", "", nil), h.connect("f", "f", "", nil)
	id := c.consume("c", queueQ)
	dead := c.consume("c", queueDead)
	tx := c.begin("c", 1)
	c.sendTx(tx, queueNamed("out"), 1)
	m := p.mail("f", queueNamed("filler"), 1)
	p.hand(m)
	h.b.EndTurn() // on its way
	c.tells(id, c.got[0], message.PoisonAck, noTx)
	h.b.EndTurn()
	if len(c.got) != 2 {
		t.Fatal("the dead letter is not dispatched ahead")
	}
	c.tells(dead, c.got[1], message.StandardAck, tx)
	commit := c.hand(commitOf(tx))
	h.step()
	h.disk.SetCapacity(1, 1000)
	h.turn()
	if n := h.survive(queueQ, queueDead); n != 1 || c.answered(commit) {
		t.Errorf("a crash leaves %d of 1; the commit is answered: %v", n, c.answered(commit))
	}
	h.disk.SetCapacity(0, 0)
	h.pass(5 * time.Second)
	if n := h.survive(queueQ, queueDead); n != 0 || !c.answered(commit) {
		t.Errorf("with room %d are left; the commit is answered: %v", n, c.answered(commit))
	}
}

// Acknowledgements make room: what only they consume waits for nobody's room.
func TestWhatATransactionWithoutSendsConsumedAheadNeedsNoRoom(t *testing.T) {
	h := open(t, nil, nil)
	p, c := h.connect("p", "p", "", nil), h.connect("c", "c", "", nil)
	id := c.consume("c", queueQ)
	tx := c.begin("c", 1)
	n := p.hand(p.mail("p", queueQ, 1))
	h.b.EndTurn()
	c.tells(id, c.got[0], message.StandardAck, tx)
	commit := c.hand(commitOf(tx))
	h.disk.SetCapacity(1, 1000)
	h.turn()
	if !c.answered(commit) || !p.answered(n) {
		t.Errorf("the commit is answered: %v, the send: %v", c.answered(commit), p.answered(n))
	}
}

// What ended a copy ahead and is durable keeps the rest of its send waiting no more, whatever is
// done with its memory.
func TestASendWhoseCopiesWereAllConsumedNeedsNoRoom(t *testing.T) {
	h := stocked(t, queueQ, 3)
	p, c := h.connect("f", "f", "", nil), h.connect("c", "c", "", nil)
	id := c.consume("c", queueQ)
	other := c.consume("c", queueNamed("B"))
	first := c.consume("c", queueNamed("A"))
	poison := slices.Clone(c.got)
	tx := c.begin("c", 1)
	both, filler := p.mail("f", queueNamed("A,B"), 2), p.mail("f", queueNamed("filler"), 1)
	p.hand(filler)
	h.b.EndTurn() // on its way
	n := p.hand(both)
	h.b.EndTurn()
	if len(c.got) != 5 {
		t.Fatal("it is not dispatched ahead")
	}
	c.Handle(&message.MessageAck{Consumer: first, Destination: queueNamed("A"), Last: both.ID,
		HasLast: true, Count: 1, Type: message.StandardAck, Transaction: tx})
	c.tells(id, poison[0], message.StandardAck, tx)
	commit := c.hand(commitOf(tx))
	h.disk.SetCapacity(1, 1000)
	h.turn()
	if !c.answered(commit) || p.answered(n) {
		t.Errorf("answered: the commit %v, the send %v", c.answered(commit), p.answered(n))
	}
	for _, m := range poison[1:] {
		c.tells(id, m, message.PoisonAck, noTx)
	}
	h.turn()
	c.Handle(&message.MessageAck{Consumer: other, Destination: queueNamed("B"), Last: both.ID,
		HasLast: true, Count: 1, Type: message.IndividualAck})
	h.pass(5 * time.Second)
	if !p.answered(n) {
		t.Error("it waits for room that it does not need")
	}
}
