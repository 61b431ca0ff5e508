package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

var queueQ = message.Destination{Kind: message.Queue, Name: "q"}

// receive lets a peer forward message n and reports how often it was answered.
func (h *house) receive(from network.Peer, n int64, persistent bool) (answers int) {
	m := &message.Message{Destination: queueQ, Persistent: persistent,
		BrokerPath: []message.BrokerID{from.ID},
		ID:         message.MessageID{Producer: message.ProducerID{Connection: "x"}, Sequence: n}}
	h.b.Receive(m, from, func(error) { answers++ })
	h.turn()
	return answers
}

func TestANumberOfAReceiptIsNotGivenAgainAfterARestart(t *testing.T) {
	h := open(t, nil, nil)
	p := network.Peer{ID: "ID:p", Hopwire: true, Prefetch: 1000}
	for n := range int64(5) {
		h.receive(p, n, true)
	}
	d := h.b.find(queueQ)
	h.b.dropReceipts(d, "ID:p", 100) // also the last
	h.turn()
	h = open(t, h.disk, nil)
	if h.receive(p, 5, true) != 1 {
		t.Error("an arrival after the restart was not answered")
	}
	receipts, err := h.disk.Receipts(d.id)
	got := receipts.Peers
	if err != nil || len(got) != 1 || len(got[0].List) != 1 || got[0].List[0].N != 6 {
		t.Errorf("receipts %+v, %v; want number 6 alone", got, err)
	}
}

func TestNonPersistentArrivalsDoNotPushOutDurableReceipts(t *testing.T) {
	h := open(t, nil, nil)
	p := network.Peer{ID: "ID:p", Hopwire: true, Prefetch: 1000}
	h.receive(p, 0, true)
	for n := range int64(2700) {
		h.receive(p, 1+n, false)
	}
	h = open(t, h.disk, nil)
	h.receive(p, 0, true)
	if n := h.b.find(queueQ).counts.Duplicates; n != 1 {
		t.Errorf("%d duplicates were seen, want the resend", n)
	}
}

func TestReceiptsThatCannotBeReadAreReadAgain(t *testing.T) {
	h := open(t, nil, nil)
	h.broken = 2
	p := network.Peer{ID: "ID:p", Hopwire: true}
	answers := 0
	for n := range int64(3) {
		m := &message.Message{Destination: queueQ, Persistent: true,
			BrokerPath: []message.BrokerID{p.ID}, ID: message.MessageID{Sequence: n}}
		h.b.Receive(m, p, func(error) { answers++ })
		h.turn()
	}
	if answers != 0 {
		t.Fatalf("%d were answered without receipts", answers)
	}
	h.pass(3 * time.Second)
	if answers != 3 || h.b.find(queueQ).queue.Len() != 3 {
		t.Errorf("%d were answered, %d are there; want 3", answers, h.b.find(queueQ).queue.Len())
	}
}

// failedOver gives a broker that message 1 of a client reached over a peer and that started again
// since, and that client, which failed over to here.
func failedOver(t *testing.T) (h *house, g *guest, m *message.Message) {
	producer := message.ProducerID{Connection: "c", Session: 1, Value: 1}
	m = &message.Message{Destination: queueQ, Persistent: true, Producer: producer,
		ID: message.MessageID{Producer: producer, Sequence: 1}}
	first := *m
	first.BrokerPath = []message.BrokerID{"ID:p"}
	h = open(t, nil, nil)
	h.b.Receive(&first, network.Peer{ID: "ID:p"}, func(error) {})
	h.turn()
	h = open(t, h.disk, nil)
	g = &guest{h: h}
	g.Connection = h.b.Connect(g, Remote{Address: "test"}, nil)
	g.do(&message.ConnectionInfo{ID: "c", ClientID: "c", FailoverReconnect: true})
	g.do(&message.SessionInfo{ID: message.SessionID{Connection: "c", Value: 1}})
	g.do(&message.ProducerInfo{ID: producer})
	return h, g, m
}

// A client's send reached us over a peer, which did not live to confirm it; it sends again, here.
func TestAFailoverResendIsKnownFromAPeersReceiptAfterARestart(t *testing.T) {
	h, g, m := failedOver(t)
	if e := g.do(m); e != nil {
		t.Fatal(e)
	}
	if n := h.b.find(queueQ).queue.Len(); n != 1 {
		t.Errorf("%d copies, want 1", n)
	}
}

// What a client that failed over sends again is recognised on topics, too, and whatever the policy
// says of the audit.
func TestAResendToATopicIsKnown(t *testing.T) {
	for _, d := range []message.Destination{topicNamed("t"), queueNamed("q")} {
		h := open(t, nil, func(o *Options) {
			e := policy.NewEntry()
			e.EnableAudit = false
			o.Policies = &policy.Map{Default: e}
		})
		c := h.connect("c", "c", "", nil)
		c.consume("c", d)
		p := h.connect("p", "p", "", nil)
		p.produce("p", d, 1)
		p.produce("p", d, 2)
		p.Gone()
		h.turn()
		p = &guest{h: h}
		p.Connection = h.b.Connect(p, Remote{Address: "test"}, nil)
		p.do(&message.ConnectionInfo{ID: "p", ClientID: "p", FailoverReconnect: true})
		p.do(&message.SessionInfo{ID: message.SessionID{Connection: "p", Value: 1}})
		p.produce("p", d, 2)
		p.produce("p", d, 3)
		if len(c.got) != 3 || h.b.counts.Duplicates != 1 {
			t.Errorf("%s: %v, %d duplicates", d, c.got, h.b.counts.Duplicates)
		}
	}
}

func TestATransactionThatIsRepeatedAfterAFailoverIsKnown(t *testing.T) {
	for _, c := range []struct {
		how  string
		end  func(g *guest, tx message.TransactionID)
		want int64
	}{
		{"committed", func(g *guest, tx message.TransactionID) {
			n := g.hand(&message.TransactionInfo{Connection: "c", ID: tx, Type: message.CommitOnePhase})
			if g.answered(n) {
				t.Error("a commit does not wait until it is known whether its sends were here before")
			}
			g.h.turn()
			if r := g.answer(n); r == nil || r.Exception != nil {
				t.Errorf("the commit is answered with %v", r)
			}
		}, 2},
		{"rolled back", func(g *guest, tx message.TransactionID) {
			if e := g.finish(tx, message.Rollback); e != nil {
				t.Error(e)
			}
		}, 1},
		{"given up", func(g *guest, _ message.TransactionID) { g.Gone() }, 1},
	} {
		h, g, m := failedOver(t)
		tx := g.begin("c", 1)
		late := *m
		late.ID.Sequence = 2
		m.Transaction, late.Transaction = tx, tx
		g.Handle(m)
		g.hand(&late)
		c.end(g, tx)
		h.turn()
		if n := h.b.find(queueQ).queue.Len(); n != c.want {
			t.Errorf("%s: %d copies, want %d", c.how, n, c.want)
		}
		if g.parkedBytes != 0 || h.b.openBytes != 0 {
			t.Errorf("%s: %d bytes wait, %d are of open transactions", c.how, g.parkedBytes,
				h.b.openBytes)
		}
	}
}

func TestACommitIsAnsweredWhoseLastSendIsRefusedAfterAWait(t *testing.T) {
	h, g, m := failedOver(t)
	h.space = func() store.Space { return store.Space{FreeBytes: -1, Full: true} }
	h.b.opt.SendFailIfNoSpace = true
	m.Transaction = g.begin("c", 1)
	g.Handle(m)
	n := g.hand(&message.TransactionInfo{Connection: "c", ID: m.Transaction,
		Type: message.CommitOnePhase})
	h.turn()
	if r := g.answer(n); r == nil || r.Exception == nil {
		t.Errorf("the commit of a transaction that cannot be is answered with %v", r)
	}
}

func TestAPeersClaimOfItsWindowIsBounded(t *testing.T) {
	for _, x := range []struct {
		properties  string
		prefetch    int
		perConsumer bool
	}{
		{"", 0, false},
		{"#c\nprefetchSize=1000\nconduitSubscriptions=false\n", 1000, true},
		{"prefetchSize=-5\nconduitSubscriptions=true", 0, false},
		{"prefetchSize=99999999999999999999", prefetchMost, false},
		{"prefetchSize=65537", prefetchMost, false},
		{"prefetchSize=12x", 0, false},
	} {
		if n, each := windowsOf(x.properties); n != x.prefetch || each != x.perConsumer {
			t.Errorf("%q: %d %v, want %d %v", x.properties, n, each, x.prefetch, x.perConsumer)
		}
	}
	d := &destination{consumers: make([]*consumer, 50)}
	p := &network.Peer{Prefetch: prefetchMost, PerConsumer: true}
	if n := receiptLimit(d, p); n != receiptsMost {
		t.Errorf("limit %d, want %d", n, receiptsMost)
	}
}

func TestAResendToATopicIsAnsweredWhenTheFirstIsDurable(t *testing.T) {
	for _, wire := range []string{"T", "T,queue://q", "U,T"} {
		h := open(t, nil, nil)
		h.subscribe("s", "s", "T", nil).leave()
		late := h.connect("late", "late", "", nil)
		answered := make([]bool, 2)
		for i := range answered {
			m := &message.Message{Destination: topicNamed(wire), Persistent: true,
				BrokerPath: []message.BrokerID{"ID:a"},
				ID:         message.MessageID{Producer: message.ProducerID{Connection: "x"}, Sequence: 1}}
			if i > 0 && wire == "T" { // and it is offered to who came meanwhile
				late.Handle(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "late", Session: 1},
					Destination: m.Destination, PrefetchSize: 9})
			}
			h.b.Receive(m, network.Peer{ID: "ID:a", Name: "a"}, func(err error) {
				if err != nil {
					t.Fatal(err)
				}
				answered[i] = true
			})
			for range 6 { // the receipts are read, the batch is on its way
				h.b.EndTurn()
				if len(h.soon) > 0 {
					h.soon[0]()
					h.soon = h.soon[1:]
				}
			}
		}
		lost := open(t, h.disk.CrashClone(0), nil)
		if n := lost.b.durables.list[0].dest.queue.Len(); n == 0 && (answered[0] || answered[1]) {
			t.Errorf("%s: the first is answered: %v, the second: %v; neither would survive a crash",
				wire, answered[0], answered[1])
		}
		if wire == "T" && len(late.got) != 1 {
			t.Errorf("who came meanwhile got %d messages", len(late.got))
		}
		if h.turn(); !answered[0] || !answered[1] || h.b.durables.list[0].dest.queue.Len() != 1 {
			t.Errorf("%s: at last the first is answered: %v, the second: %v", wire, answered[0],
				answered[1])
		}
	}
}
