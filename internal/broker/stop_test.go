package broker

import (
	"errors"
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
)

// begins has a stop begin, and gives what tells whether it ended.
func (h *house) begins() (ended *bool) {
	ended = new(bool)
	h.b.Stop(func() {}, func() { *ended = true })
	h.turn()
	return ended
}

// acks acknowledges a message as a client does, which waits for no answer.
func (g *guest) acks(id message.ConsumerID, d message.Destination, m message.MessageID,
	tx message.TransactionID) {
	g.Handle(&message.MessageAck{Consumer: id, Destination: d, Type: message.StandardAck,
		Transaction: tx, Last: m, HasLast: true, Count: 1})
	g.h.turn()
}

func commitOf(tx message.TransactionID) *message.TransactionInfo {
	return &message.TransactionInfo{Connection: "c", ID: tx, Type: message.CommitOnePhase}
}

var noTx message.TransactionID

func TestAStopOfIdleClientsTakesOneTick(t *testing.T) {
	h := open(t, nil, nil)
	c := h.connect("c", "c", "", nil)
	c.consume("c", queueNamed("q"))
	h.pass(time.Second)
	ended := h.begins()
	if h.pass(settleTick); !*ended || !c.ended {
		t.Errorf("ended %v, the client read the end: %v", *ended, c.ended)
	}
}

// A client that knows what it was delivered must not have to guess whether its acknowledgements
// arrived.
func TestAStopLetsConsumersEndWhatTheyHave(t *testing.T) {
	q := queueNamed("q")
	h := stocked(t, q, 5)
	c := h.connect("c", "c", "", nil)
	id := c.window("c", q, 3, "")
	ended := h.begins()
	for i := range 3 {
		h.pass(settleSilence - settleTick)
		if c.ended {
			t.Fatalf("it read the end with %d of 3 acknowledged", i)
		}
		c.acks(id, q, c.got[i], noTx)
	}
	h.pass(settleTick)
	if !c.ended || !*ended {
		t.Errorf("with all acknowledged it read the end: %v; stopped %v", c.ended, *ended)
	}
	if c.given != 3 {
		t.Errorf("it was given %d messages", c.given)
	}
	if counts := h.again().counts(q); !slices.Equal(counts, []int32{0, 0}) {
		t.Errorf("the counts are %v, want two that nobody had", counts)
	}
}

func TestAStopAnswersTheCommitThatIsOnItsWay(t *testing.T) {
	q, out := queueNamed("q"), queueNamed("out")
	h := stocked(t, q, 1)
	c := h.connect("c", "c", "", nil)
	id := c.window("c", q, 1, "")
	tx := c.begin("c", 1)
	c.acks(id, q, c.got[0], tx)
	ended := h.begins()
	m := c.mail("c", out, 2)
	m.Transaction = tx
	c.Handle(m)
	h.turn()
	if c.ended {
		t.Fatal("it read the end in its transaction")
	}
	n := c.hand(commitOf(tx))
	h.turn()
	h.pass(settleTick)
	if !c.answered(n) || !*ended {
		t.Errorf("answered %v, stopped %v", c.answered(n), *ended)
	}
	h = h.again()
	if in, sent := h.counts(q), h.counts(out); len(in) != 0 || len(sent) != 1 {
		t.Errorf("%d are left of 1, %d was sent", len(in), len(sent))
	}
}

// A commit that cannot be answered is not executed: its client takes it for rolled back.
func TestACommitAfterTheEndIsNotExecuted(t *testing.T) {
	q, out := queueNamed("q"), queueNamed("out")
	h := stocked(t, q, 1)
	c := h.connect("c", "c", "", nil)
	c.stays = true
	id := c.window("c", q, 1, "")
	tx := c.begin("c", 1)
	c.acks(id, q, c.got[0], tx)
	m := c.mail("c", out, 2)
	m.Transaction = tx
	c.do(m)
	ended := h.begins()
	h.pass(settleSilence)
	if !c.ended {
		t.Fatal("it may be silent for ever")
	}
	n := c.hand(commitOf(tx))
	h.turn()
	c.Gone()
	if h.turn(); !*ended || c.answer(n) != nil {
		t.Errorf("ended %v, answered %v", *ended, c.answer(n))
	}
	h = h.again()
	if in, sent := h.counts(q), h.counts(out); !slices.Equal(in, []int32{1}) || len(sent) != 0 {
		t.Errorf("the counts are %v, want one redelivered; %d was sent", in, len(sent))
	}
}

func TestAcknowledgementsBehindTheEndAreExecuted(t *testing.T) {
	q := queueNamed("q")
	h := stocked(t, q, 5)
	c := h.connect("c", "c", "", nil)
	c.stays = true
	id := c.window("c", q, 4, "")
	c.unsent = 1 // the fourth never got out
	mail := c.mail("c", queueNamed("late"), 9)
	ended := h.begins()
	h.pass(settleSilence)
	c.acks(id, q, c.got[0], noTx)
	late := c.hand(&message.ProducerInfo{ID: message.ProducerID{Connection: "c", Session: 1}})
	c.Handle(mail)
	c.acks(id, q, c.got[1], noTx)
	if *ended || !c.ended {
		t.Fatalf("stopped %v, the client read the end: %v", *ended, c.ended)
	}
	c.Gone()
	if h.turn(); !*ended || c.answered(late) {
		t.Errorf("stopped %v with the client gone; a command behind the end is answered: %v", *ended,
			c.answered(late))
	}
	h = h.again()
	if counts := h.counts(q); !slices.Equal(counts, []int32{1, 0, 0}) {
		t.Errorf("the counts are %v, want those of one that was delivered and two that were not",
			counts)
	}
	if n := len(h.counts(queueNamed("late"))); n != 0 {
		t.Error("a send was stored and not answered")
	}
}

func TestAStopWaitsForNobodyForEver(t *testing.T) {
	q := queueNamed("q")
	h := stocked(t, q, 400)
	c := h.connect("c", "c", "", nil)
	c.stays = true
	id := c.window("c", q, 400, "")
	ended, n := h.begins(), 0
	for began := h.now; !c.ended; n++ {
		if h.now-began > settleTime {
			t.Fatal("it may go on for ever")
		}
		c.acks(id, q, c.got[n], noTx)
		h.pass(settleTick)
	}
	if n < int(settleTime/settleTick)-1 {
		t.Errorf("it had time for %d acknowledgements", n)
	}
	h.pass(leaveTime - settleTick)
	if *ended {
		t.Error("the stop ended before the client had time to leave")
	}
	h.pass(2 * settleTick)
	if !*ended || !c.gone {
		t.Error("a client that does not leave keeps the broker")
	}
}

// What waits for room at the end is given up: stored after it, it would be sent again.
func TestRoomThatComesAfterTheEndIsNotUsed(t *testing.T) {
	for _, full := range []string{"store", "memory", "memory, in a transaction"} {
		h := open(t, nil, func(o *Options) { o.MemoryLimitBytes = 1 << 20 })
		q, out := queueNamed("q"), queueNamed("out")
		c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
		c.stays, p.stays = true, true
		id := c.consume("c", q)
		var sent int32
		switch full {
		case "store":
			p.produce("p", q, 1)
			sent = p.late(p.mail("p", out, 2))
		case "memory":
			p.Handle(p.big("p", q, 1, 2<<20, false))
			h.turn()
			sent = p.hand(p.big("p", out, 2, 100, false))
		default:
			p.Handle(p.big("p", q, 1, 2<<20, false))
			h.turn()
			m := p.big("p", out, 2, 100, false)
			m.Transaction = p.begin("p", 1)
			p.Handle(m)
			sent = p.hand(&message.TransactionInfo{Connection: "p", ID: m.Transaction,
				Type: message.CommitOnePhase})
		}
		h.turn()
		ended := h.begins()
		h.pass(settleSilence)
		if !c.ended || !p.ended || p.answered(sent) {
			t.Fatalf("%s: ended %v %v, answered %v", full, c.ended, p.ended, p.answered(sent))
		}
		h.disk.SetCapacity(0, 0)
		c.acks(id, q, c.got[0], noTx)
		h.pass(2 * time.Second)
		c.Gone()
		p.Gone()
		if h.turn(); !*ended || p.answered(sent) {
			t.Errorf("%s: stopped %v, answered %v", full, *ended, p.answered(sent))
		}
		if d := h.b.find(out); d != nil && d.queue.Len() > 0 && full != "store" {
			t.Errorf("%s: what nobody was answered is there", full)
		}
		if n := len(h.again().counts(out)); n != 0 {
			t.Errorf("%s: what nobody was answered is stored", full)
		}
	}
}

// Of a branch that several connections have part in, one may be finished before the other.
func TestABranchWithoutWhatCameTooLateDoesNotCommit(t *testing.T) {
	q, out := queueNamed("q"), queueNamed("out")
	for what, count := range map[string]message.Reason{"an acknowledgement": "",
		"a send": message.ConnectionGone, "a send above the frame limit": message.FrameTooBig} {
		h := stocked(t, q, 1)
		c, m := h.connect("c", "c", "", nil), h.connect("m", "m", "", nil)
		c.stays, m.stays = true, true
		id := c.window("c", q, 1, "")
		late := c.mail("c", out, 2)
		m.walk(xid(1), begin, "ok")
		m.sendTx(xid(1), out, 1)
		c.walk(xid(1), begin, "ok")
		h.begins()
		h.pass(settleSilence - settleTick)
		m.walk(xid(1), end, "ok")
		h.pass(settleTick)
		if !c.ended || m.ended {
			t.Fatalf("finished %v, want the first; %v", c.ended, m.ended)
		}
		switch what {
		case "an acknowledgement":
			c.acks(id, q, c.got[0], xid(1))
		case "a send":
			late.CommandID, late.ResponseRequired, late.Transaction = 0, false, xid(1)
			c.Handle(late)
		default:
			c.Handle(&message.Oversized{Message: &message.Message{Transaction: xid(1),
				Destination: out}, Cause: errors.New("too large")})
		}
		if got := m.step(xid(1), commit1); got != "100" {
			t.Errorf("without %s that came too late the commit is answered with %s", what, got)
		}
		if n := h.b.counts.Reasons[count]; count != "" && n != 1 {
			t.Errorf("%s that came too late is counted %d times", what, n)
		}
	}
}

// A client that has read the end cannot roll back the branches of others whose xids it guesses.
func TestACommandThatCameTooLateSpoilsNoBranchOfOthers(t *testing.T) {
	q, out := queueNamed("q"), queueNamed("out")
	h := stocked(t, q, 1)
	eve, m := h.connect("e", "e", "", nil), h.connect("m", "m", "", nil)
	eve.stays, m.stays = true, true
	id := eve.window("e", q, 1, "")
	late := eve.mail("e", out, 2)
	late.CommandID, late.ResponseRequired, late.Transaction = 0, false, xid(1)
	m.walk(xid(1), begin, "ok")
	m.sendTx(xid(1), out, 1)
	h.begins()
	h.pass(settleSilence - settleTick)
	m.walk(xid(1), end, "ok")
	h.pass(settleTick)
	if !eve.ended || m.ended {
		t.Fatalf("finished %v, want the first; %v", eve.ended, m.ended)
	}
	eve.Handle(late)
	eve.acks(id, q, eve.got[0], xid(1))
	eve.Handle(&message.Oversized{Message: &message.Message{Transaction: xid(1),
		Destination: out}, Cause: errors.New("too large")})
	m.walk(xid(1), commit1, "ok")
}

// Who stops a broker gives each phase its time.
func TestAStopTellsWhenAPhaseBegins(t *testing.T) {
	h := stocked(t, queueQ, 1)
	c := h.connect("c", "c", "", nil)
	c.stays = true
	c.window("c", queueQ, 1, "")
	var at []time.Duration
	began := h.now
	tell := func() { at = append(at, h.now-began) }
	h.b.Stop(tell, tell)
	h.turn()
	h.pass(settleSilence)
	goOn := h.stalled()
	h.pass(3 * time.Second)
	goOn()
	h.pass(leaveTime + settleTick)
	if len(at) != 4 || at[0] != settleSilence || at[3] > settleSilence+leaveTime+4*time.Second {
		t.Errorf("phases begin, and the last ends, after %v", at)
	}
}

// Windows are many where a stop is long: they are not looked through in each turn.
func TestAStopLooksAtWindowsOnceATick(t *testing.T) {
	h := stocked(t, queueQ, 2)
	c := h.connect("c", "c", "", nil)
	c.window("c", queueQ, 2, "")
	h.begins()
	was := c.looked
	for range 100 {
		h.turn()
	}
	if n := c.looked - was; n != 0 {
		t.Errorf("100 turns between two ticks look %d times", n)
	}
	if h.pass(10 * settleTick); c.looked-was > 10 {
		t.Errorf("10 ticks look %d times", c.looked-was)
	}
	if c.ended {
		t.Error("it has no time for what it was delivered")
	}
}
