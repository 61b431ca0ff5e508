package broker

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// tolerant opens a connection of a client over failover, for the first time or again.
func (h *house) tolerant(id string, again bool) *guest {
	g := &guest{h: h}
	g.Connection = h.b.Connect(g, Remote{Address: "test"}, nil)
	g.do(&message.ConnectionInfo{ID: message.ConnectionID(id), ClientID: id, FaultTolerant: true,
		FailoverReconnect: again})
	g.do(&message.SessionInfo{ID: message.SessionID{Connection: g.cid(id), Value: 1}})
	return g
}

// killed is the broker's next life after a kill.
func (h *house) killed() *house {
	h.t.Helper()
	return open(h.t, h.disk.CrashClone(0), nil)
}

// numbers gives of which producers the store has numbers of a destination, and which below 20.
func (h *house) numbers(d message.Destination) (out []string) {
	h.t.Helper()
	r, err := h.disk.Receipts(h.b.find(d).id)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range r.Producers {
		text := string(p.Producer.Connection)
		for n := range int64(20) {
			if p.Numbers.Has(n) {
				text += fmt.Sprint(" ", n)
			}
		}
		out = append(out, text)
	}
	return out
}

func (h *house) wantNumbers(d message.Destination, want ...string) {
	h.t.Helper()
	if got := h.numbers(d); !slices.Equal(got, want) {
		h.t.Errorf("%s: the store has numbers %q, want %q", d, got, want)
	}
}

// The broker was killed before it answered: what it took is known, wherever it went.
func TestAResendAfterAKillIsKnownWhateverBecameOfTheFirst(t *testing.T) {
	for _, wire := range []string{"queue://q", "topic://T", "topic://T,queue://q",
		"queue://q,topic://T", "topic://none,queue://q"} {
		for _, consumed := range []bool{false, true} {
			d, _ := message.ParseDestination(wire, message.Queue)
			h := open(t, nil, nil)
			h.subscribe("s", "s", "T", nil).leave()
			p := h.tolerant("p", false)
			for n := range int64(3) {
				p.produce("p", d, n+1)
			}
			want := 3
			if consumed {
				drained(h)
				want = 1
			}
			h = h.killed()
			p = h.tolerant("p", true)
			for _, n := range []int64{3, 1, 2, 4, 4} {
				if e := p.produce("p", d, n); e != nil {
					t.Fatal(e)
				}
			}
			if !consumed {
				want++
			}
			if h.b.counts.Duplicates != 4 {
				t.Errorf("%s, consumed %v: %d duplicates, want 4", wire, consumed, h.b.counts.Duplicates)
			}
			for _, x := range h.b.order {
				if x.queue != nil && x.queue.Len() > 0 && int(x.queue.Len()) != want {
					t.Errorf("%s, consumed %v: %d messages, want %d", wire, consumed, x.queue.Len(), want)
				}
			}
			if got := drained(h); !slices.Equal(got, slices.Repeat([]int{want}, len(got))) ||
				len(got) == 0 {
				t.Errorf("%s, consumed %v: consumers get %d messages, want %d", wire, consumed, got, want)
			}
		}
	}
}

// drained consumes all of q and of the subscription s, and tells how many there were of each.
func drained(h *house) (counts []int) {
	h.t.Helper()
	for _, x := range h.b.durables.list {
		if x.dest.queue.Len() > 0 {
			counts = append(counts, int(x.dest.queue.Len()))
		}
	}
	if q := h.b.find(queueQ); q != nil && q.queue.Len() > 0 {
		counts = append(counts, int(q.queue.Len()))
		c := h.connect("c", "c", "", nil)
		id := c.consume("c", queueQ)
		for _, m := range slices.Clone(c.got) {
			c.ack(id, queueQ, m, message.StandardAck, message.TransactionID{})
		}
		c.Gone()
		h.turn()
	}
	r := h.subscribe("s", "s", "T", nil)
	r.ackAll()
	r.leave()
	return counts
}

// A batch has the number of a message if it has the message, or that was consumed before.
func TestANumberIsDurableWithItsMessage(t *testing.T) {
	h := open(t, nil, nil)
	puts, numbers := map[int64]bool{}, map[int64]bool{}
	h.committing = func(b *store.Batch) {
		clear(puts)
		for _, op := range b.Ops {
			switch op.Kind {
			case store.PutMessage:
				puts[op.Message.ID.Sequence] = true
			case store.PutNumber:
				numbers[op.ID.Sequence] = true
			}
		}
		for n := range puts {
			if !numbers[n] {
				t.Errorf("message %d is put without its number", n)
			}
		}
	}
	p, c := h.tolerant("p", false), h.connect("c", "c", "", nil)
	id := c.consume("c", queueQ)
	p.produce("p", queueQ, 1)
	first := p.mail("p", queueQ, 2)
	p.hand(first)
	p.hand(p.mail("p", queueQ, 3))
	h.b.EndTurn() // 2 and 3 are on their way
	n := p.hand(p.mail("p", queueQ, 4))
	h.b.EndTurn()
	c.Handle(&message.MessageAck{Consumer: id, Destination: queueQ, Type: message.StandardAck,
		First: c.got[0], Last: c.got[len(c.got)-1], HasFirst: true, HasLast: true,
		Count: int32(len(c.got))})
	h.turn()
	if len(c.got) != 4 || !p.answered(n) || puts[4] {
		t.Errorf("%v were consumed, 4 is answered: %v, written: %v", c.got, p.answered(n), puts[4])
	}
	h.wantNumbers(queueQ, "p 1 2 3 4")
}

func TestANumberWaitsForRoomWithItsMessage(t *testing.T) {
	h := open(t, nil, nil)
	p := h.tolerant("p", false)
	p.produce("p", queueQ, 1)
	n := p.late(p.mail("p", queueQ, 2))
	h.wantNumbers(queueQ, "p 1")
	lost := open(t, h.disk.CrashClone(0), nil)
	lost.disk.SetCapacity(0, 0)
	if again := lost.tolerant("p", true); again.produce("p", queueQ, 2) != nil ||
		lost.b.counts.Duplicates != 0 || len(lost.stored(queueQ)) != 2 {
		t.Errorf("what was not written is taken for a duplicate")
	}
	h.disk.SetCapacity(0, 0)
	h.pass(2 * time.Second)
	if !p.answered(n) {
		t.Error("no answer when there was room")
	}
	h.wantNumbers(queueQ, "p 1 2")
}

func TestNumbersOfATransactionAreKeptWithItsCommit(t *testing.T) {
	h := open(t, nil, nil)
	p := h.tolerant("p", false)
	send := func(n int64, tx message.TransactionID) {
		m := p.mail("p", queueQ, n)
		m.Transaction = tx
		if e := p.do(m); e != nil {
			t.Fatal(e)
		}
	}
	end := func(tx message.TransactionID, how message.TransactionType) {
		if e := p.finish(tx, how); e != nil {
			t.Error(e)
		}
	}
	undone, open, done := p.begin("p", 1), p.begin("p", 2), p.begin("p", 3)
	send(1, undone)
	send(2, open)
	send(3, done)
	send(4, message.TransactionID{})
	end(undone, message.Rollback)
	end(done, message.CommitOnePhase)
	h.wantNumbers(queueQ, "p 3 4")
	h = h.killed()
	p = h.tolerant("p", true)
	again := p.begin("p", 2)
	send(2, again)
	send(3, again)
	end(again, message.CommitOnePhase)
	if n := h.b.find(queueQ).queue.Len(); n != 3 || h.b.counts.Duplicates != 1 {
		t.Errorf("%d messages, want 3; %d duplicates, want 1", n, h.b.counts.Duplicates)
	}
}

// The client fails over while its branch is committed, and plays all of it again.
func TestNumbersOfABranchAreKeptWithItsOutcome(t *testing.T) {
	h := open(t, nil, nil)
	p := h.tolerant("p", false)
	play := func() {
		p.walk(xid(1), begin, "ok")
		p.sendTx(xid(1), queueQ, 5)
		p.walk(xid(1), end, "ok", prepare, "vote 0")
	}
	play()
	h = h.killed()
	h.connect("m", "m", "", nil).walk(xid(1), commit2, "ok")
	h.wantNumbers(queueQ, "p 5")
	h = h.killed()
	p = h.tolerant("p", true)
	play()
	p.walk(xid(1), commit2, "ok")
	if n := h.b.find(queueQ).queue.Len(); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
}

func TestClientsThatDoNotFailOverCostNothing(t *testing.T) {
	h := open(t, nil, nil)
	h.subscribe("s", "s", "T", nil).leave()
	h.committing = func(b *store.Batch) {
		for _, op := range b.Ops {
			if op.Kind == store.PutNumber {
				t.Errorf("number %d is put", op.ID.Sequence)
			}
		}
	}
	p, f := h.connect("p", "p", "", nil), h.tolerant("f", false)
	p.produce("p", queueQ, 1)
	p.produce("p", topicNamed("T"), 2)
	f.produce("f", topicNamed("nobody"), 1) // and what is not stored neither
	m := f.mail("f", queueQ, 2)
	m.Persistent = false
	f.do(m)
	temp := message.Destination{Kind: message.TempQueue, Name: "f:1"} // of which nothing is kept
	f.do(&message.DestinationInfo{Connection: "f", Destination: temp})
	both, _ := message.ParseDestination(temp.String()+",queue://q", message.Queue)
	if e := f.produce("f", both, 3); e != nil || h.b.find(temp).queue.Len() != 1 {
		t.Errorf("sent to %s: %v", both, e)
	}
}

func TestAProducerThatIsClosedIsForgotten(t *testing.T) {
	for _, c := range []struct {
		how   string
		close func(*guest)
		want  []string
	}{
		{"producer", func(g *guest) {
			g.do(&message.RemoveInfo{Object: message.ProducerID{Connection: "p", Session: 1, Value: 1}})
		}, nil},
		{"session", func(g *guest) {
			g.do(&message.RemoveInfo{Object: message.SessionID{Connection: "p", Value: 1}})
		}, nil},
		{"connection", func(g *guest) { g.do(&message.RemoveInfo{Object: message.ConnectionID("p")}) },
			nil},
		{"by a shutdown", func(g *guest) { g.Handle(&message.ShutdownInfo{}) }, nil},
		{"not at all", func(g *guest) { g.Gone() }, []string{"p 1"}},
	} {
		for _, again := range []bool{false, true} {
			h := open(t, nil, nil)
			p := h.tolerant("p", false)
			p.produce("p", queueQ, 1)
			p.produce("p", topicNamed("T"), 2)
			if again {
				h = h.killed()
				p = h.tolerant("p", true)
				p.produce("p", queueQ, 1)
			}
			batches := 0
			h.committing = func(*store.Batch) { batches++ }
			want := c.want
			if again {
				p.produce("p", queueQ, 3)
				batches = 0
				if want != nil {
					want = []string{"p 1 3"}
				}
			}
			c.close(p)
			h.turn()
			if batches > 0 {
				t.Errorf("%s closed: it costs %d batches", c.how, batches)
			}
			h.connect("q", "q", "", nil).produce("q", queueQ, 1)
			h.wantNumbers(queueQ, want...)
		}
	}
}

func TestAProducerThatIsClosedWhileItsNumbersWaitForRoomIsForgotten(t *testing.T) {
	h := open(t, nil, nil)
	p := h.tolerant("p", false)
	p.produce("p", queueQ, 1)
	p.late(p.mail("p", queueQ, 2))
	p.do(&message.RemoveInfo{Object: message.ProducerID{Connection: "p", Session: 1, Value: 1}})
	h.disk.SetCapacity(0, 0)
	h.pass(2 * time.Second)
	if n := len(h.stored(queueQ)); n != 2 {
		t.Fatalf("%d are stored", n)
	}
	h.connect("q", "q", "", nil).produce("q", queueQ, 1)
	h.wantNumbers(queueQ)
}

func TestAStopForgetsProducersThatWereClosed(t *testing.T) {
	h := open(t, nil, nil)
	p := h.tolerant("p", false)
	p.produce("p", queueQ, 1)
	p.do(&message.RemoveInfo{Object: message.ConnectionID("p")})
	stopped := false
	h.b.Stop(func() {}, func() { stopped = true })
	for range 5 {
		h.turn()
	}
	if !stopped {
		t.Error("the broker did not stop")
	}
	h.wantNumbers(queueQ)
}

// few makes destinations know three producers.
func few(o *Options) {
	e := policy.NewEntry()
	e.MaxProducersToAudit = 3
	o.Policies = &policy.Map{Default: e}
}

// Neither those that closed nor plain clients take the place of one that may send again.
func TestProducersThatSendNothingAgainTakeNoPlace(t *testing.T) {
	one := message.ProducerID{Session: 1, Value: 1}
	for name, send := range map[string]func(h *house, name string){
		"closed": func(h *house, name string) {
			j := h.tolerant(name, false)
			j.produce(name, queueQ, 1)
			one.Connection = message.ConnectionID(name)
			j.do(&message.RemoveInfo{Object: one})
		},
		"plain": func(h *house, name string) { h.connect(name, name, "", nil).produce(name, queueQ, 1) },
	} {
		h := open(t, nil, few)
		h.tolerant("p", false).produce("p", queueQ, 1)
		for i := range 5 {
			send(h, fmt.Sprint("j", i))
		}
		if got := h.numbers(queueQ); !slices.Contains(got, "p 1") {
			t.Errorf("%s: the store has numbers %q, want p 1 among them", name, got)
		}
		h = open(t, h.disk.CrashClone(0), few)
		for i := range 5 { // before it is back
			send(h, fmt.Sprint("k", i))
		}
		p := h.tolerant("p", true)
		p.produce("p", queueQ, 1)
		p.produce("p", queueQ, 2)
		if n := len(h.stored(queueQ)); n != 12 || h.b.counts.Duplicates != 1 {
			t.Errorf("%s: %d are stored, want 12; %d duplicates, want 1", name, n,
				h.b.counts.Duplicates)
		}
		if got := h.numbers(queueQ); !slices.Contains(got, "p 1 2") {
			t.Errorf("%s: the store has numbers %q, want p 1 2 among them", name, got)
		}
	}
}

func TestProducersThatVanishAreBounded(t *testing.T) {
	h := open(t, nil, few)
	for i := range 5 {
		name := fmt.Sprint("p", i)
		p := h.tolerant(name, false)
		p.produce(name, queueQ, 1)
		p.Gone()
		h.turn()
	}
	h.connect("q", "q", "", nil).produce("q", queueQ, 1)
	h.wantNumbers(queueQ, "p2 1", "p3 1", "p4 1")
	h = open(t, h.disk.CrashClone(0), few)
	for i := range 2 {
		name := fmt.Sprint("n", i)
		h.tolerant(name, false).produce(name, queueQ, 1)
	}
	h.tolerant("n1", false).produce("n1", queueQ, 2)
	if got := h.numbers(queueQ); len(got) != 3 || got[0] != "n0 1" || got[1] != "n1 1 2" {
		t.Errorf("the store has numbers %q", got)
	}
}

// A resend is not answered while a crash would lose the first.
func TestAResendOfAClientIsAnsweredWhenTheFirstIsDurable(t *testing.T) {
	h := open(t, nil, nil)
	p := h.tolerant("p", false)
	p.produce("p", queueQ, 1)
	first := p.mail("p", queueQ, 2)
	second := *first
	p.hand(first)
	h.b.EndTurn()
	p.Gone()
	again := &guest{h: h}
	again.Connection = h.b.Connect(again, Remote{Address: "test"}, nil)
	again.hand(&message.ConnectionInfo{ID: "p", ClientID: "p", FaultTolerant: true,
		FailoverReconnect: true})
	again.hand(&message.SessionInfo{ID: first.Producer.SessionID()})
	again.hand(&message.ProducerInfo{ID: first.Producer})
	n := again.hand(&second)
	h.b.EndTurn()
	if h.b.counts.Duplicates != 1 || again.answered(n) {
		t.Errorf("%d duplicates, want 1; it is answered: %v", h.b.counts.Duplicates, again.answered(n))
	}
	if h.turn(); !again.answered(n) || len(h.stored(queueQ)) != 2 {
		t.Errorf("it is answered: %v; %d are stored", again.answered(n), len(h.stored(queueQ)))
	}
}

// A client may use any number, also the highest; its store is read, and others go on.
func TestTheHighestNumberIsANumberLikeOthers(t *testing.T) {
	h := open(t, nil, nil)
	h.tolerant("p", false).produce("p", queueQ, math.MaxInt64)
	h.tolerant("o", false).produce("o", queueQ, 1)
	h = h.killed()
	p, o := h.tolerant("p", true), h.tolerant("o", true)
	p.produce("p", queueQ, math.MaxInt64)
	o.produce("o", queueQ, 1)
	o.produce("o", queueQ, 2)
	if n := len(h.stored(queueQ)); n != 3 || h.b.counts.Duplicates != 2 {
		t.Errorf("%d are stored, want 3; %d duplicates, want 2", n, h.b.counts.Duplicates)
	}
}

// Whoever counts anew loses no message, and is known again by what it sends from then on.
func TestAProducerWhoseNumbersFallIsKnownByTheNewOnes(t *testing.T) {
	h := open(t, nil, nil)
	p := h.tolerant("p", false)
	for _, n := range []int64{1, 2, 1 << 62, 1, 2, 2, 3} {
		p.produce("p", queueQ, n)
	}
	if n := len(h.stored(queueQ)); n != 6 || h.b.counts.Duplicates != 1 {
		t.Errorf("%d are stored, want 6; %d duplicates, want 1", n, h.b.counts.Duplicates)
	}
	h.wantNumbers(queueQ, "p 1 2 3")
	h = h.killed()
	p = h.tolerant("p", true)
	for _, n := range []int64{2, 3, 4} {
		p.produce("p", queueQ, n)
	}
	if n := len(h.stored(queueQ)); n != 7 || h.b.counts.Duplicates != 2 {
		t.Errorf("after a kill %d are stored, want 7; %d duplicates, want 2", n, h.b.counts.Duplicates)
	}
}

// A record of one producer that cannot be read ends; the destination and the others go on.
func TestNumbersThatCannotBeReadEndAndAreToldOf(t *testing.T) {
	h := open(t, nil, nil)
	h.tolerant("p", false).produce("p", queueQ, 1)
	h.tolerant("o", false).produce("o", queueQ, 1)
	h = h.killed()
	h.odd = "p"
	p, o := h.tolerant("p", true), h.tolerant("o", true)
	o.produce("o", queueQ, 1)
	p.produce("p", queueQ, 2)
	if n := len(h.stored(queueQ)); n != 3 || h.b.counts.Duplicates != 1 {
		t.Errorf("%d are stored, want 3; %d duplicates, want 1", n, h.b.counts.Duplicates)
	}
	told := 0
	for _, e := range h.events {
		if e.Kind == StoreTrouble && e.Reason == message.Unreadable && e.Dest == queueQ {
			told++
		}
	}
	if d := h.b.find(queueQ); told != 1 || d.reasons[message.Unreadable] != 1 ||
		h.b.counts.Reasons[message.Unreadable] != 1 {
		t.Errorf("it was told of %d times, counted %d", told, d.reasons[message.Unreadable])
	}
	h.wantNumbers(queueQ, "o 1", "p 2")
}
