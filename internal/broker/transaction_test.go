package broker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
)

func TestAConsumerThatClosesLeavesWhatItAcknowledgedToTheTransaction(t *testing.T) {
	for _, commit := range []bool{true, false} {
		h := open(t, nil, nil)
		q := queueNamed("q")
		c, other := h.connect("c", "c", "", nil), h.connect("o", "o", "", nil)
		id := c.consume("c", q)
		c.produce("c", q, 1)
		tx := c.begin("c", 1)
		c.ack(id, q, c.got[0], message.StandardAck, tx)
		c.do(&message.RemoveInfo{Object: id, LastDelivered: message.LastDeliveredUnknown})
		to := other.consume("o", q)
		if len(other.got) != 0 {
			t.Fatal("another consumer got what a transaction acknowledged")
		}
		how, left := message.CommitOnePhase, int64(0)
		if !commit {
			how, left = message.Rollback, 1
		}
		if e := c.finish(tx, how); e != nil {
			t.Error(e)
		}
		if n := h.b.find(q).queue.Len(); n != left || len(h.stored(q)) != int(left) ||
			len(other.got) != int(left) {
			t.Errorf("commit %v: %d in the queue, %d stored, %d redelivered", commit, n,
				len(h.stored(q)), len(other.got))
		}
		if !commit {
			other.ack(to, q, other.got[0], message.StandardAck, message.TransactionID{})
		}
		if used := h.b.memory.Used(); used != 0 {
			t.Errorf("commit %v: %d bytes stay charged", commit, used)
		}
	}
}

func TestOpenTransactionsAreChargedAndBounded(t *testing.T) {
	h := open(t, nil, func(o *Options) { o.MemoryLimitBytes = 4 << 20 })
	q := queueNamed("q")
	g := h.connect("g", "g", "", nil)
	var open []message.TransactionID
	for n := range int64(20) {
		tx := g.begin("g", n+1)
		open = append(open, tx)
		for i := range int64(200) {
			m := g.big("g", q, n*1000+i+1, 10_000, true)
			m.Transaction = tx
			g.Handle(m)
		}
	}
	if used := h.b.memory.Used(); used > transactionBytes || used < 4<<20 {
		t.Errorf("open transactions are charged %d bytes", used)
	}
	for _, tx := range open {
		if e := g.finish(tx, message.CommitOnePhase); e != nil {
			t.Error(e)
		}
	}
	h.turn()
	if n := h.b.find(q).queue.Len(); n != 4000 || len(g.transactions) != 0 {
		t.Errorf("%d of 4000 messages are there, %d transactions are open", n, len(g.transactions))
	}
	for n := range int64(maxTransactions) {
		g.begin("g", n+1)
	}
	if e := g.do(&message.TransactionInfo{ID: message.TransactionID{Connection: "g", Value: -1},
		Type: message.Begin}); e == nil {
		t.Error("there is no limit of open transactions")
	}
	c := h.connect("c", "c", "", nil)
	id := c.consume("c", q)
	for n := 0; n < len(c.got); n++ {
		c.Handle(&message.MessageAck{Destination: q, Consumer: id, Last: c.got[n], HasLast: true,
			Type: message.IndividualAck, Count: 1})
		h.turn()
	}
	if used := h.b.memory.Used(); used != 0 {
		t.Errorf("all is consumed and %d bytes are charged", used)
	}
}

// spilled gives a transaction of more than there is room for, whose sends ask for no answers.
func spilled(t *testing.T, tolerant bool) (*house, *guest, message.TransactionID) {
	h := open(t, nil, func(o *Options) {
		limited(o)
		o.CommitWithoutFailed = tolerant
	})
	g := h.connect("g", "g", "", nil)
	tx := g.begin("g", 1)
	for n := range int64(100) {
		m := g.big("g", queueNamed("q"), n+1, 200_000, false)
		m.Transaction = tx
		g.Handle(m)
	}
	return h, g, tx
}

func TestATransactionLargerThanTheRoomFailsAndFreesWhatItHolds(t *testing.T) {
	h, g, tx := spilled(t, false)
	if e := g.finish(tx, message.CommitOnePhase); e == nil ||
		e.Class != "javax.jms.TransactionRolledBackException" {
		t.Errorf("the commit is answered with %v", e)
	}
	if used := h.b.memory.Used(); used != 0 {
		t.Errorf("%d bytes stay charged", used)
	}
}

func TestATransactionMayCommitWithoutSendsThatFailed(t *testing.T) {
	h, g, tx := spilled(t, true)
	m := g.mail("g", queueNamed("q"), 101)
	m.Transaction = tx
	g.Handle(&message.Oversized{Message: m, Cause: errors.New("too large")})
	if e := g.finish(tx, message.CommitOnePhase); e != nil {
		t.Errorf("the commit is answered with %v", e)
	}
	if n := h.b.find(queueNamed("q")).queue.Len(); n == 0 || n >= 100 {
		t.Errorf("%d of 100 came", n)
	}
}

func TestARollbackTakesBackSendsThatWaitForSpace(t *testing.T) {
	h := open(t, nil, limited)
	q := queueNamed("q")
	g := h.connect("g", "g", "", nil)
	g.Handle(g.big("g", q, 1, 2<<20, false))
	tx := g.begin("g", 1)
	m := g.big("g", q, 2, 100, false)
	m.Transaction = tx
	g.Handle(m)
	if len(h.b.find(q).parked) != 1 {
		t.Fatal("the send does not wait")
	}
	if e := g.finish(tx, message.Rollback); e != nil {
		t.Error(e)
	}
	if len(h.b.find(q).parked) != 0 || h.b.parkedBytes != 0 {
		t.Error("a send of the transaction waits on")
	}
}

func TestNothingOfATransactionOutlivesItsConnection(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("g", "g", "", nil)
	tx := g.begin("g", 1)
	m := g.mail("g", queueNamed("q"), 1)
	m.Transaction = tx
	g.do(m)
	g.do(&message.RemoveInfo{Object: message.ConnectionID("g")})
	if len(g.sessions) != 0 || len(g.transactions) != 0 {
		t.Errorf("%d sessions and %d transactions are left", len(g.sessions), len(g.transactions))
	}
	if e := g.do(&message.TransactionInfo{ID: tx, Type: message.Begin}); e == nil {
		t.Error("a connection that is not logged in begins a transaction")
	}
	g.do(&message.ConnectionInfo{ID: "g", ClientID: "g"})
	if e := g.finish(tx, message.CommitOnePhase); e == nil {
		t.Error("a transaction of the closed connection is committed")
	}
}

func TestAStatisticsRequestInATransactionIsAnswered(t *testing.T) {
	h := open(t, nil, func(o *Options) { o.Statistics = true })
	g := h.connect("g", "g", "", nil)
	tx := g.begin("g", 1)
	m := g.mail("g", queueNamed("ActiveMQ.Statistics.Broker"), 1)
	m.Transaction, m.ReplyTo = tx, queueNamed("reply")
	g.do(m)
	if e := g.finish(tx, message.CommitOnePhase); e != nil {
		t.Error(e)
	}
	if r := h.b.find(queueNamed("reply")); r == nil || r.queue.Len() != 1 {
		t.Error("there is no answer")
	}
	if h.b.find(queueNamed("ActiveMQ.Statistics.Broker")) != nil {
		t.Error("the request stays in its queue")
	}
}

// What a commit has for a topic comes to who subscribes while the commit waits for the disk,
// whatever becomes of the topic meanwhile.
func TestACommitThatWaitsReachesItsTopic(t *testing.T) {
	temp := message.Destination{Kind: message.TempTopic, Name: "o:1"}
	local := message.TransactionID{Connection: "g", Value: 1}
	for _, c := range []struct {
		name      string
		tx        message.TransactionID
		to        message.Destination
		meanwhile func(h *house, owner *guest)
		got       int
		counted   message.Reason
	}{
		{"nothing", local, topicNamed("t"), func(*house, *guest) {}, 1, ""},
		{"a sweep", local, topicNamed("t"), func(h *house, _ *guest) { h.pass(20 * time.Second) }, 1, ""},
		{"a sweep, branch", xid(1), topicNamed("t"),
			func(h *house, _ *guest) { h.pass(20 * time.Second) }, 1, ""},
		{"removed", local, topicNamed("t"), func(_ *house, o *guest) { o.remove(topicNamed("t")) }, 1,
			""},
		{"its owner goes", local, temp, func(_ *house, o *guest) { o.Gone() }, 0, message.NoConsumer},
		{"its time is over", local, topicNamed("t"), func(h *house, _ *guest) { h.pass(time.Hour) }, 0,
			message.Expired},
	} {
		h := open(t, nil, sweeps(nil))
		owner, g := h.connect("o", "o", "", nil), h.connect("g", "g", "", nil)
		if e := owner.do(&message.DestinationInfo{Destination: temp}); e != nil {
			t.Fatal(e)
		}
		commit := &message.TransactionInfo{Connection: "g", ID: c.tx, Type: message.CommitOnePhase}
		g.do(&message.TransactionInfo{Connection: "g", ID: c.tx, Type: message.Begin})
		g.sendTx(c.tx, queueQ, 1)
		m := g.mail("g", c.to, 2)
		m.Transaction, m.Persistent, m.Expiration = c.tx, false, h.Wall()+60_000
		g.do(m)
		if c.tx.XA {
			g.walk(c.tx, message.End, "ok", message.Prepare, "vote 0")
			commit.Type = message.CommitTwoPhase
		}
		h.disk.SetCapacity(1, 1000)
		n := g.hand(commit)
		h.turn()
		if c.meanwhile(h, owner); g.answered(n) {
			t.Fatalf("%s: it is committed", c.name)
		}
		if n := h.b.counts.Reasons[message.Inactive]; n != 0 {
			t.Errorf("%s: %d destinations go as if nobody used them", c.name, n)
		}
		r := h.connect("c", "c", "", nil)
		r.hand(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "c", Session: 1, Value: 1},
			Destination: c.to, PrefetchSize: 10})
		h.disk.SetCapacity(0, 0)
		h.pass(5 * time.Second)
		if len(r.got) != c.got || !g.answered(n) || h.b.memory.Used() > h.b.find(queueQ).usage.Used() ||
			c.counted != "" && h.b.counts.Reasons[c.counted] != 1 {
			t.Errorf("%s: answered %t, %d came, want %d; counted %v", c.name, g.answered(n), len(r.got),
				c.got, h.b.counts.Reasons)
		}
		r.Gone()
		if h.pass(10 * time.Second); h.b.find(topicNamed("t")) != nil {
			t.Errorf("%s: the topic stays", c.name)
		}
	}
}

// What expires while its commit waits for the disk is buried once, by whoever kept it.
func TestWhatExpiresWhileItsCommitWaitsIsBuriedOnce(t *testing.T) {
	for _, durable := range []bool{false, true} {
		h, tp := open(t, nil, nil), topicNamed("t")
		if durable {
			h.subscribe("c", "n", "t", nil).leave()
		}
		g := h.connect("g", "g", "", nil)
		tx := g.begin("g", 1)
		m := g.mail("g", tp, 1)
		m.Transaction, m.Persistent, m.Expiration = tx, true, h.Wall()+60_000
		g.do(m)
		g.sendTx(tx, queueQ, 2)
		h.disk.SetCapacity(1, 1000)
		n := g.hand(&message.TransactionInfo{Connection: "g", ID: tx, Type: message.CommitOnePhase})
		if h.pass(time.Hour); g.answered(n) {
			t.Fatal("it is committed")
		}
		h.disk.SetCapacity(0, 0)
		h.pass(time.Hour)
		dead := h.b.find(queueNamed("ActiveMQ.DLQ"))
		if dead == nil || dead.queue.Len() != 1 || h.b.counts.Expired != 1 || !g.answered(n) {
			t.Errorf("durable %t: %d expired, dead letters: %v", durable, h.b.counts.Expired,
				dead != nil && dead.queue.Len() == 1)
		}
	}
}

func TestStatisticsRequestsInOneTransactionAreAllAnswered(t *testing.T) {
	h := open(t, nil, func(o *Options) { o.Statistics = true })
	g := h.connect("g", "g", "", nil)
	tx := g.begin("g", 1)
	for n := range int64(2) { // the answer removes the queue that the request made
		m := g.mail("g", queueNamed("ActiveMQ.Statistics.Broker"), n+1)
		m.Transaction, m.ReplyTo = tx, queueNamed("reply")
		g.do(m)
	}
	if e := g.finish(tx, message.CommitOnePhase); e != nil {
		t.Error(e)
	}
	if n := h.b.find(queueNamed("reply")).queue.Len(); n != 2 {
		t.Errorf("%d are answered", n)
	}
	if h.b.find(queueNamed("ActiveMQ.Statistics.Broker")) != nil {
		t.Error("the request stays in its queue")
	}
}

func TestATopicIsAskedForItsStatistics(t *testing.T) {
	h := open(t, nil, func(o *Options) { o.Statistics = true })
	g := h.connect("g", "g", "", nil)
	g.consume("g", topicNamed("T"))
	ask := topicNamed("ActiveMQ.Statistics.Destination.T")
	m := g.mail("g", ask, 1)
	m.ReplyTo = queueNamed("reply")
	g.do(m)
	if r := h.b.find(queueNamed("reply")); r == nil || r.queue.Len() != 1 {
		t.Error("there is no answer")
	}
	if h.b.find(ask) != nil {
		t.Error("the topic of the request stays")
	}
}

// What expires before the commit goes where it would if it were sent then, and once.
func TestWhatExpiresInAnOpenTransactionReachesNobody(t *testing.T) {
	for _, to := range []message.Destination{queueNamed("d"), topicNamed("d"),
		queueNamed("d,topic://e")} {
		h := open(t, nil, nil)
		var all []*guest
		for _, d := range []message.Destination{queueNamed("d"), topicNamed("d"), topicNamed("e")} {
			c := h.connect(d.String(), d.String(), "", nil)
			c.consume(d.String(), d)
			all = append(all, c)
		}
		durable, other := h.subscribe("u", "u", "d", nil), h.subscribe("v", "v", "d", nil)
		g := h.connect("g", "g", "", nil)
		tx := g.begin("g", 1)
		for n := range int64(2) {
			m := g.mail("g", to, n+1)
			m.Persistent, m.Transaction = true, tx
			if n == 0 {
				m.Expiration = h.Wall() + 1000
			}
			g.do(m)
		}
		h.pass(2 * time.Second)
		if e := g.finish(tx, message.CommitOnePhase); e != nil {
			t.Error(e)
		}
		copies := len(to.Split())
		dead := h.b.find(queueNamed("ActiveMQ.DLQ"))
		if dead == nil || dead.queue.Len() != int64(copies) || h.b.counts.Expired != int64(copies) {
			t.Errorf("%s: %d expired, %d dead letters, not %d", to, h.b.counts.Expired,
				h.b.counts.DeadLetters, copies)
		}
		if to.IsTopic() {
			all, copies = append(all, durable.guest, other.guest), copies+2
		}
		for _, c := range all {
			for _, id := range c.got {
				if copies--; id.Sequence != 2 {
					t.Errorf("%s: %s got message %d", to, c.id, id.Sequence)
				}
			}
		}
		if copies != 0 {
			t.Errorf("%s: of what did not expire %d copies are missing", to, copies)
		}
	}
}

func TestATransactedReplyDoesNotMakeItsDestinationAgain(t *testing.T) {
	temp := message.Destination{Kind: message.TempQueue, Name: "r:1"}
	other := message.Destination{Kind: message.Queue, Name: "temp-queue://r:1,queue://q"}
	for name, to := range map[string]message.Destination{"alone": temp, "of several": other} {
		h := open(t, nil, nil)
		r, p := h.connect("r", "r", "", nil), h.connect("p", "p", "", nil)
		if e := r.do(&message.DestinationInfo{Destination: temp}); e != nil {
			t.Fatal(e)
		}
		tx := p.begin("p", 1)
		m := p.mail("p", to, 1)
		m.Transaction = tx
		if e := p.do(m); e != nil {
			t.Fatal(e)
		}
		r.Gone()
		if e := p.finish(tx, message.CommitOnePhase); e != nil {
			t.Error(e)
		}
		if h.b.find(temp) != nil {
			t.Errorf("%s: the reply made the destination of a requester that is gone", name)
		}
		if h.b.counts.Reasons[message.NoConsumer] != 1 ||
			h.b.memory.Used() != 0 && name == "alone" {
			t.Errorf("%s: counted %v, %d bytes charged", name, h.b.counts.Reasons, h.b.memory.Used())
		}
		told := false
		for _, e := range h.events {
			told = told || e.Kind == MessageDropped && e.Dest == temp
		}
		if !told {
			t.Errorf("%s: nobody is told that the reply is dropped", name)
		}
		if name == "of several" && h.b.find(queueNamed("q")).queue.Len() != 1 {
			t.Error("the queue beside it got nothing")
		}
	}
}

// A client over failover begins its open transaction anew, and what it acknowledged in it is lost
// with the last connection.
func TestATransactionThatFailoverRestoredWithoutItsAcknowledgementsIsRolledBack(t *testing.T) {
	for _, c := range []struct {
		name        string
		id          message.TransactionID
		again       bool
		lost, acked int
		want        bool // it is done
	}{
		{"restored, one is lost", message.TransactionID{Connection: "c", Value: 1}, true, 1, 0, false},
		{"restored, none is lost", message.TransactionID{Connection: "c", Value: 1}, true, 0, 0, true},
		{"restored, one is there", message.TransactionID{Connection: "c", Value: 1}, true, 1, 1, true},
		{"a first connection", message.TransactionID{Connection: "c", Value: 1}, false, 1, 0, true},
		{"a branch, restored, one is lost", xid(1), true, 1, 0, false},
		{"a branch, restored, none is lost", xid(1), true, 0, 0, true},
	} {
		for _, end := range []message.TransactionType{message.CommitOnePhase, message.Prepare} {
			if end == message.Prepare && !c.id.XA {
				continue
			}
			h := open(t, nil, nil)
			g := h.tolerant("c", c.again)
			q := queueNamed("q")
			id := g.consume("c", q)
			g.produce("c", q, 1)
			if e := g.do(&message.TransactionInfo{Connection: "c", ID: c.id,
				Type: message.Begin}); e != nil {
				t.Fatal(e)
			}
			if c.acked > 0 {
				g.ack(id, q, g.got[0], message.StandardAck, c.id)
			}
			g.number += int32(c.lost)
			e := g.do(&message.TransactionInfo{Connection: "c", ID: c.id, Type: end})
			if (e == nil) != c.want {
				t.Errorf("%s, step %d: answered with %v", c.name, end, e)
			}
			if e != nil && len(h.b.xa.branches)+len(g.transactions) > 0 {
				t.Errorf("%s: the transaction stays", c.name)
			}
		}
	}
}

// What a transaction received by a consumer that is closed before it acknowledges goes to others,
// so that what it sent for that is taken back.
func TestATransactionOfAConsumerThatWasAbortedRollsBack(t *testing.T) {
	for _, d := range []message.Destination{queueQ, topicNamed("T")} {
		h := open(t, nil, nil)
		g := h.connect("g", "g", "", nil)
		id := g.consume("g", d)
		g.produce("g", d, 1)
		g.do(&message.RemoveInfo{Object: id, LastDelivered: message.LastDeliveredUnknown})
		g.ack(id, d, g.got[0], message.DeliveredAck, message.TransactionID{})
		g.ack(id, d, g.got[0], message.StandardAck, message.TransactionID{})
		out := queueNamed("out")
		tx := g.begin("g", 1)
		m := g.big("g", out, 7, 10, true)
		m.Transaction = tx
		g.Handle(m)
		g.Handle(&message.MessageAck{Consumer: id, Destination: d, First: g.got[0], HasFirst: true,
			Last: g.got[0], HasLast: true, Count: 1, Type: message.StandardAck, Transaction: tx})
		e := g.finish(tx, message.CommitOnePhase)
		if e == nil || !strings.Contains(e.Message, "does not exist") {
			t.Errorf("%s: the commit gives %+v", d, e)
		}
		if x := h.b.find(out); x != nil && x.queue.Len() != 0 {
			t.Errorf("%s: %d sends are there", d, x.queue.Len())
		}
	}
}
