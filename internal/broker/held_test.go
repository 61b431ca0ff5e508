package broker

import (
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// stored gives the messages that the store has of a destination.
func (h *house) stored(d message.Destination) []store.Stored {
	h.t.Helper()
	page, err := h.disk.Page(store.PageRequest{Dest: h.b.find(d).id, To: 1 << 60})
	if err != nil {
		h.t.Fatal(err)
	}
	return page
}

// late hands a command over, lets its batch go to the store and fills the store before it is there.
func (g *guest) late(c message.Command) int32 {
	n := g.hand(c)
	g.h.b.EndTurn()
	g.h.disk.SetCapacity(1, 1000)
	g.h.turn()
	return n
}

func (g *guest) answered(n int32) bool { return g.answer(n) != nil }

func (g *guest) ack(id message.ConsumerID, d message.Destination, m message.MessageID,
	how message.AckType, tx message.TransactionID) {
	g.h.t.Helper()
	if e := g.do(&message.MessageAck{Destination: d, Consumer: id, Type: how, Transaction: tx,
		First: m, Last: m, HasFirst: true, HasLast: true, Count: 1}); e != nil {
		g.h.t.Errorf("%s is not acknowledged: %v", m, e)
	}
}

func TestAcknowledgementsReachAFullStoreThatRefusedASend(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
	id := c.consume("c", q)
	for n := range int64(10) {
		p.produce("p", q, n+1)
	}
	tx := c.begin("c", 1)
	sent := p.late(p.mail("p", queueNamed("other"), 11))
	for i, m := range c.got[:8] {
		if i < 4 {
			c.ack(id, q, m, message.IndividualAck, message.TransactionID{})
		} else {
			c.ack(id, q, m, message.StandardAck, tx)
		}
	}
	if e := c.finish(tx, message.CommitOnePhase); e != nil {
		t.Error(e)
	}
	if !c.answered(c.number) {
		t.Error("a commit that only removes waits for room")
	}
	if n := len(h.stored(q)); n != 2 {
		t.Errorf("8 of 10 are acknowledged, the full store has %d left", n)
	}
	if p.answered(sent) {
		t.Error("the send was confirmed without being stored")
	}
	h.disk.SetCapacity(0, 0)
	h.pass(2 * time.Second)
	if !p.answered(sent) || len(h.stored(queueNamed("other"))) != 1 {
		t.Error("the send was not stored when there was room")
	}
}

func TestAStopGivesUpWhatTheStoreHasNoRoomFor(t *testing.T) {
	h := open(t, nil, nil)
	q, out := queueNamed("q"), queueNamed("out")
	c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
	id := c.consume("c", q)
	for n := range int64(3) {
		p.produce("p", q, n+1)
	}
	tx := c.begin("c", 1)
	m := c.mail("c", out, 4)
	m.Transaction = tx
	c.do(m)
	c.ack(id, q, c.got[0], message.StandardAck, tx)
	commit := c.late(&message.TransactionInfo{Connection: "c", ID: tx, Type: message.CommitOnePhase})
	sent := p.late(p.mail("p", out, 5))
	c.ack(id, q, c.got[1], message.IndividualAck, message.TransactionID{})
	h.stop()
	if c.answered(commit) || p.answered(sent) {
		t.Error("what is not stored was confirmed")
	}
	h.disk.SetCapacity(0, 0)
	h.pass(10 * time.Second)
	h = h.again()
	if d := h.b.find(out); d != nil && d.queue.Len() != 0 {
		t.Errorf("%d messages are there that nobody was told of", d.queue.Len())
	}
	c = h.connect("c", "c", "", nil)
	c.consume("c", q)
	if !slices.Equal(c.counts, []int32{1, 1}) {
		t.Errorf("messages came back with the counts %v, want 1 and 3, both redelivered", c.counts)
	}
}

// What is on its way to the store when the broker is stopped is answered, so that its producer does
// not send it to the next broker. What comes behind is not executed.
func TestAStopAnswersWhatIsOnItsWay(t *testing.T) {
	h := open(t, nil, nil)
	p := h.connect("p", "p", "", nil)
	p.produce("p", queueNamed("q"), 1)
	c := h.connect("c", "c", "", nil)
	id := c.consume("c", queueNamed("q"))
	m, late := p.mail("p", queueNamed("q"), 2), p.mail("p", queueNamed("q"), 3)
	p.number++
	m.CommandID, m.ResponseRequired = p.number, true
	p.Handle(m)
	sent := p.number
	p.stays = true
	ended := h.begins()
	h.pass(settleTick)
	p.Handle(late)
	c.Handle(&message.MessageAck{Consumer: id, Destination: queueNamed("q"), Last: c.got[0],
		HasLast: true, Count: 1, Type: message.StandardAck})
	p.Gone()
	h.turn()
	if h.pass(settleTick); !*ended || !p.answered(sent) || !p.ended {
		t.Errorf("stopped %v, answered before the end %v, ended %v", *ended, p.answered(sent), p.ended)
	}
	if n := len(h.stored(queueNamed("q"))); n != 1 {
		t.Errorf("%d messages are stored of 2, of which one is acknowledged", n)
	}
}

// An exception would tell the client that its transaction failed; it fails over instead.
func TestAStopLeavesTransactionsUnanswered(t *testing.T) {
	h := open(t, nil, func(o *Options) { o.MemoryLimitBytes = 1 << 20 })
	q := queueNamed("q")
	p, c := h.connect("p", "p", "", nil), h.connect("c", "c", "", nil)
	p.produce("p", q, 1)
	id := c.consume("c", q)
	p.Handle(p.big("p", queueNamed("full"), 2, 2<<20, false))
	tx := p.begin("p", 3)
	m := p.big("p", queueNamed("full"), 3, 100, false)
	m.Transaction = tx
	p.Handle(m)
	waits := p.hand(&message.TransactionInfo{Connection: "p", ID: tx, Type: message.CommitOnePhase})
	h.turn()
	late := p.big("p", q, 5, 10, true)
	p.hand(p.mail("p", q, 4)) // on its way to the disk
	h.b.EndTurn()
	p.stays, c.stays = true, true
	h.b.Stop(func() {}, func() {})
	h.pass(settleSilence)
	if !p.ended || !c.ended {
		t.Fatal("they are not finished")
	}
	own := message.TransactionID{Connection: "c", Value: 7}
	c.hand(&message.TransactionInfo{Connection: "c", ID: own, Type: message.Begin})
	ack := func(tx message.TransactionID) int32 {
		return c.hand(&message.MessageAck{Consumer: id, Destination: q, Type: message.StandardAck,
			Transaction: tx, Last: c.got[0], HasLast: true, Count: 1})
	}
	local, branch := ack(own), ack(xid(4))
	p.Handle(late)
	h.turn()
	if p.answer(waits) != nil || c.answer(local) != nil || c.answer(branch) != nil {
		t.Errorf("answered: %v %v %v", p.answer(waits), c.answer(local), c.answer(branch))
	}
	if n := h.b.counts.Reasons[message.ConnectionGone]; n != 1 {
		t.Errorf("%d sends are counted that came too late, of one", n)
	}
}

func TestAStopWritesWhatThereIsRoomForAgain(t *testing.T) {
	h := open(t, nil, nil)
	p := h.connect("p", "p", "", nil)
	p.produce("p", queueNamed("q"), 1)
	p.late(p.mail("p", queueNamed("q"), 2))
	h.disk.SetCapacity(0, 0)
	h.stop()
	if n := len(h.stored(queueNamed("q"))); n != 2 {
		t.Errorf("%d of 2 messages are stored", n)
	}
}

func TestATransactionThatPutsWaitsForRoomAsAWhole(t *testing.T) {
	h := open(t, nil, nil)
	q, out := queueNamed("q"), queueNamed("out")
	c := h.connect("c", "c", "", nil)
	id := c.consume("c", q)
	c.produce("c", q, 1)
	c.produce("c", q, 2)
	tx := c.begin("c", 1)
	m := c.mail("c", out, 3)
	m.Transaction = tx
	c.do(m)
	c.ack(id, q, c.got[0], message.StandardAck, tx)
	commit := c.late(&message.TransactionInfo{Connection: "c", ID: tx, Type: message.CommitOnePhase})
	c.ack(id, q, c.got[1], message.IndividualAck, message.TransactionID{})
	if in := h.stored(q); len(in) != 1 || in[0].Message.ID != c.got[0] || c.answered(commit) {
		t.Errorf("the store has %d messages, want the transaction's; answered: %v", len(in),
			c.answered(commit))
	}
	// After a crash nothing of the transaction is there.
	again := open(t, h.disk.CrashClone(0), nil)
	a, b := again.b.find(q).queue.Len(), again.b.find(out)
	if a != 1 || b != nil && b.queue.Len() != 0 {
		t.Errorf("after a crash: %d in q, %v", a, b)
	}
	h.disk.SetCapacity(0, 0)
	h.pass(2 * time.Second)
	if !c.answered(commit) || len(h.stored(q)) != 0 || len(h.stored(out)) != 1 {
		t.Error("the transaction did not become durable when there was room")
	}
}

// recorder notes the batches that a house is handed.
type recorder struct {
	*house
	batches []*store.Batch
}

func (r *recorder) Commit(b *store.Batch, done func(error)) {
	seen := *b // its changes are gone when it is durable
	seen.Ops = slices.Clone(b.Ops)
	r.batches = append(r.batches, &seen)
	r.house.Commit(b, done)
}

func TestHeadersOfWhatWasHeldComeInTheOrderOfTheirDestinations(t *testing.T) {
	for range 5 { // an order by chance is right once in 20 factorial
		h := open(t, nil, nil)
		r := &recorder{house: h}
		h.b.journal.storage = r
		p := h.connect("p", "p", "", nil)
		var mails []*message.Message
		for n := range int64(20) {
			mails = append(mails, p.mail("p", queueNamed("q"+string(rune('a'+n))), n+1))
		}
		for _, m := range mails {
			p.hand(m)
		}
		h.b.EndTurn()
		h.disk.SetCapacity(1, 1000)
		h.turn()
		h.disk.SetCapacity(0, 0)
		h.pass(2 * time.Second)
		last := r.batches[len(r.batches)-1]
		var ids []store.DestID
		for _, op := range last.Ops {
			if op.Kind == store.PutHeader {
				ids = append(ids, op.Dest)
			}
		}
		if len(ids) != 20 || !slices.IsSorted(ids) {
			t.Fatalf("headers came as %v", ids)
		}
	}
}

func TestACopyConsumedWhileItsRecordIsRefusedIsNotWritten(t *testing.T) {
	for _, c := range []struct{ inFlight, redelivered bool }{{}, {true, false}, {false, true},
		{true, true}} {
		h := open(t, nil, nil)
		q := queueNamed("q")
		g := h.connect("g", "g", "", nil)
		id := g.consume("g", q)
		m := g.mail("g", q, 1)
		m.CommandID, m.ResponseRequired = 1000, true
		g.Handle(m)
		h.b.EndTurn()
		h.disk.SetCapacity(1, 1000)
		if !c.inFlight {
			h.turn()
		}
		if c.redelivered { // the count is stored behind a put that is not
			g.Handle(&message.RemoveInfo{Object: id, LastDelivered: message.LastDeliveredUnknown})
			g.Handle(&message.ConsumerInfo{ID: id, Destination: q, PrefetchSize: 10})
			h.b.EndTurn()
		}
		g.Handle(&message.MessageAck{Destination: q, Consumer: id, Type: message.IndividualAck,
			Last: m.ID, HasLast: true, Count: 1})
		g.Handle(g.mail("g", queueNamed("other"), 2))
		h.turn()
		if !g.answered(1000) {
			t.Errorf("%+v: a consumed message is not confirmed", c)
		}
		h.disk.SetCapacity(0, 0)
		h.pass(2 * time.Second)
		if n := len(h.stored(q)); n != 0 || h.b.journal.undurable != 0 {
			t.Errorf("%+v: %d stored, %d bytes not durable", c, n, h.b.journal.undurable)
		}
		if n := len(h.stored(queueNamed("other"))); n != 1 {
			t.Errorf("%+v: the other message is stored %d times", c, n)
		}
	}
}

func TestAHeldQueueMayBeRemoved(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	g := h.connect("g", "g", "", nil)
	sent := g.late(g.mail("g", q, 1))
	if e := g.do(&message.DestinationInfo{Destination: q, Op: message.RemoveDestination}); e != nil {
		t.Fatal(e)
	}
	h.disk.SetCapacity(0, 0)
	h.pass(2 * time.Second)
	if !g.answered(sent) {
		t.Error("the send is not answered")
	}
	if again := open(t, h.disk, nil); again.b.find(q) != nil {
		t.Error("the queue is back after a restart")
	}
}

func TestAParkedSendGoesOnAfterOneLookAtTheRoom(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	g := h.connect("g", "g", "", nil)
	looks, free := 0, -1
	h.space = func() store.Space {
		looks++
		return store.Space{FreeBytes: -1, Full: looks != free}
	}
	g.tell(g.mail("g", q, 1))
	free = looks + 1
	h.turn()
	h.space = nil
	h.pass(time.Minute)
	if !g.answered(g.number) || h.b.find(q).queue.Len() != 1 {
		t.Error("the send is lost: one look found room and the next did not")
	}
}

func TestADeadLetterWaitsForRoomWithItsOriginal(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	c := h.connect("c", "c", "", nil)
	id := c.consume("c", q)
	for n := range int64(3) {
		c.produce("c", q, n+1)
	}
	c.late(&message.MessageAck{Destination: q, Consumer: id, Type: message.PoisonAck,
		Last: c.got[0], HasLast: true, Count: 1})
	c.ack(id, q, c.got[1], message.IndividualAck, message.TransactionID{})
	if in := h.stored(q); len(in) != 2 || in[0].Message.ID != c.got[0] {
		t.Errorf("the store has %d messages, want the poisoned one and the last", len(in))
	}
	h.disk.SetCapacity(0, 0)
	h.pass(2 * time.Second)
	if in, dead := len(h.stored(q)), len(h.stored(queueNamed("ActiveMQ.DLQ"))); in != 1 || dead != 1 {
		t.Errorf("%d in the queue and %d dead letters, want 1 and 1", in, dead)
	}
}

func TestABridgeForwardsFromAFullStore(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	c := h.connect("c", "c", "", nil)
	c.produce("c", q, 1)
	c.late(c.mail("c", queueNamed("other"), 2))
	e := &bridgeEnd{}
	h.bridge("ID:p", q, e)
	if len(e.got) != 1 {
		t.Error("a stored message waits for the room that another send needs")
	}
}

func TestWhatWasConsumedOfARefusedBatchIsOnItsWayNoMore(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
	id := c.consume("c", q)
	m := p.big("p", q, 1, 10_000, true)
	m.CommandID, m.ResponseRequired = 1000, true
	h.turn()
	p.Handle(m)
	h.b.EndTurn() // the batch is on its way
	h.disk.SetCapacity(1, 1000)
	c.Handle(&message.MessageAck{Destination: q, Consumer: id, Type: message.IndividualAck,
		Last: c.got[0], HasLast: true, Count: 1})
	h.turn()
	if n := h.b.journal.undurable; n != 0 || !p.answered(1000) {
		t.Errorf("%d bytes are on their way, the send is answered: %v", n, p.answered(1000))
	}
}
