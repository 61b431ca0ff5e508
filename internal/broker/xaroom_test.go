package broker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

func TestAFullStoreRefusesToPrepareWhatWasSent(t *testing.T) {
	in, out := queueNamed("in"), queueNamed("out")
	for _, when := range []string{"full before", "refuses the batch", "something is held"} {
		h := open(t, nil, nil)
		g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		c := g.consume("g", in)
		for n := range int64(3) {
			p.produce("p", in, n+1)
		}
		for n := range 2 {
			g.walk(xid(n), begin, "ok")
			g.ack(c, in, g.got[n], message.StandardAck, xid(n))
		}
		g.sendTx(xid(0), out, 11)
		var got string
		switch when {
		case "full before":
			h.disk.SetCapacity(h.disk.Space().UsedBytes+90, 100)
			got = g.step(xid(0), prepare)
		case "refuses the batch":
			got = g.outcome(g.late(&message.TransactionInfo{Connection: "g", ID: xid(0),
				Type: prepare}), nil)
		case "something is held":
			p.late(p.mail("p", in, 4))
			g.ack(c, in, g.got[3], message.StandardAck, xid(1))
			got = g.step(xid(1), prepare)
			g.walk(xid(1), begin, "ok")
			g.ack(c, in, g.got[1], message.StandardAck, xid(1))
			g.walk(xid(0), rollback, "ok")
		}
		if got != "107" {
			t.Errorf("%s: the prepare is answered with %s", when, got)
		}
		g.walk(xid(0), commit2, "-4")
		g.walk(xid(1), prepare, "vote 0", commit2, "ok")
		h.disk.SetCapacity(0, 0)
		h.pass(5 * time.Second)
		g.Gone()
		h.turn()
		if d := h.b.find(out); d != nil && d.queue.Len() != 0 {
			t.Errorf("%s: %d messages of it are there", when, d.queue.Len())
		}
		want := 2
		if when == "something is held" {
			want = 3
		}
		if got := h.counts(in); len(got) != want {
			t.Errorf("%s: %d messages are left, want %d", when, len(got), want)
		}
		h.over(when)
	}
}

func TestACommitOfAPreparedBranchWaitsForRoom(t *testing.T) {
	h, c := branched(t)
	c.goAway()
	h = h.again()
	h.disk.SetCapacity(1, 1000)
	m := h.connect("m", "m", "", nil)
	if got := m.step(xid(1), commit2); got != "nothing" {
		t.Errorf("without room the commit is answered with %s", got)
	}
	n := m.number
	if ids := h.again().connect("m", "m", "", nil).recovered(); len(ids) != 1 {
		t.Error("a crash while the commit waits loses the branch")
	}
	if d := h.b.find(queueNamed("out")); d.queue.Pending() != 0 || d.queue.Len() != 2 {
		t.Error("what waits is seen")
	}
	h.disk.SetCapacity(0, 0)
	h.pass(5 * time.Second)
	if got := m.outcome(n, nil); got != "ok" {
		t.Errorf("with room the commit is answered with %s", got)
	}
	if got := h.seen(); got != "3; 11 12; 22 13" {
		t.Errorf("clients get %s", got)
	}
	h.over("it is committed")
}

func TestAFailedSendSpoilsABranch(t *testing.T) {
	for _, how := range []message.TransactionType{prepare, commit1} {
		h := open(t, nil, nil)
		g := h.connect("g", "g", "", nil)
		g.walk(xid(1), begin, "ok")
		g.sendTx(xid(1), queueNamed("q"), 1)
		m := g.mail("g", message.Destination{Kind: message.TempQueue, Name: "x:1"}, 2)
		m.Transaction = xid(1)
		g.Handle(m)
		g.walk(xid(1), how, "100", rollback, "-4")
		h.over("a send failed")
	}
}

func TestAPrepareWaitsForSendsThatWaitForSpace(t *testing.T) {
	for _, what := range []string{"room comes", "rollback", "its connection goes"} {
		h := open(t, nil, limited)
		q := queueNamed("q")
		g, m := h.connect("g", "g", "", nil), h.connect("m", "m", "", nil)
		m.Handle(m.big("m", q, 1, 2<<20, false))
		g.walk(xid(1), begin, "ok")
		x := g.big("g", q, 2, 100, false)
		x.Transaction = xid(1)
		g.Handle(x)
		if got := m.step(xid(1), prepare); got != "nothing" {
			t.Errorf("%s: the prepare is answered with %s", what, got)
		}
		n := m.number
		m.walk(xid(1), prepare, "-6", commit1, "-6")
		want := "-4"
		switch what {
		case "room comes":
			c := m.consume("m", q)
			m.ack(c, q, m.got[0], message.StandardAck, message.TransactionID{})
			h.pass(5 * time.Second)
			want = "vote 0"
		case "rollback":
			m.walk(xid(1), rollback, "ok")
		default:
			g.Gone()
			h.turn()
		}
		if got := m.outcome(n, nil); got != want {
			t.Errorf("%s: the prepare is answered with %s, want %s", what, got, want)
		}
		if want == "vote 0" {
			m.walk(xid(1), rollback, "ok")
		}
		h.over(what)
	}
}

func TestPreparedBranchesAreTold(t *testing.T) {
	h, c := branched(t)
	c.goAway()
	for range 2 {
		h.pass(time.Minute)
		all := h.b.Status().Transactions
		if len(all) != 1 || all[0].ID != xid(1).String() || all[0].Sends != 3 || all[0].Acks != 3 ||
			all[0].Since < time.Minute {
			t.Errorf("told of %+v", all)
		}
		e := h.explain(queueNamed("in"))
		i := slices.IndexFunc(e.Rows, func(r ExplainRow) bool {
			return r.Reason == message.InTransaction
		})
		if i < 0 || e.Rows[i].Count != 2 || e.Rows[i].Who != xid(1).String()+" (prepared)" {
			t.Errorf("explained by %+v", e.Rows)
		}
		id := message.MessageID{Sequence: 2,
			Producer: message.ProducerID{Connection: "c", Session: 1, Value: 1}}
		var x *Explanation
		h.b.Explain(queueNamed("in"), &id, func(e *Explanation) { x = e })
		h.turn()
		if !x.Found || len(x.Rows) != 1 || x.Rows[0].Reason != message.InTransaction {
			t.Errorf("a message of it is explained by %+v", x)
		}
		if w := h.waitsOf(queueNamed("in")); slices.Contains(w, message.InTransaction) !=
			(h.b.find(queueNamed("in")).queue.Withheld() > 0) {
			t.Errorf("its queue waits for %v", w)
		}
		h = h.again()
	}
	if n := len(h.events); n == 0 || h.events[0].Kind != BranchFound ||
		!strings.Contains(h.events[0].Text, "holds 3 sent and 3 acknowledged messages") {
		t.Errorf("at start it is told: %v", h.events)
	}
	var got []error
	note := func(err error) { got = append(got, err) }
	h.b.Decide("XID:none", true, "", note)
	h.b.Decide(xid(1).String(), true, "", note)
	h.b.Decide(xid(1).String(), true, "", note)
	h.turn()
	if len(got) != 3 || message.KindOf(got[0]) != message.NotFound ||
		message.KindOf(got[1]) != message.IllegalState || got[2] != nil {
		t.Errorf("decided with %v", got)
	}
	h.over("somebody decided")
}

func TestRecoveredBranchesEndAsTheStrategySays(t *testing.T) {
	for s, want := range map[RecoveredStrategy]string{CommitRecovered: "3*; 11 12; 22* 13",
		RollbackRecovered: "1* 2* 3*; ; 21* 22*"} {
		h, _ := branched(t)
		h = open(t, h.disk.CrashClone(0), func(o *Options) { o.Recovered = s })
		h.turn()
		if got := h.counted(); got != want {
			t.Errorf("strategy %d: clients get %s, want %s", s, got, want)
		}
		h.over("the strategy")
	}
}

func TestADamagedSendOfABranchIsLeftOut(t *testing.T) {
	h, _ := branched(t)
	h = h.again()
	h.bad = map[store.Seq]bool{2: true}
	h.broken = 1 // and the first read fails
	m := h.connect("m", "m", "", nil)
	if got := m.step(xid(1), commit2); got != "nothing" {
		t.Fatalf("the commit is answered with %s", got)
	}
	n := m.number
	h.pass(2 * time.Second)
	h.bad = nil
	if got := m.outcome(n, nil); got != "ok" || h.b.counts.Reasons[message.Unreadable] != 1 {
		t.Errorf("the commit is answered with %s, counted %v", got, h.b.counts.Reasons)
	}
	if got := h.seen(); got != "3; 11; 22 13" {
		t.Errorf("clients get %s", got)
	}
	h.over("it is committed")
}

// Where the disk gives nothing of what a branch sent, its commit would lose what a repair may find.
func TestABranchOverDamageStaysPrepared(t *testing.T) {
	h, _ := branched(t)
	h = h.again()
	h.disk.Damage(h.b.xa.prepared[0].branch.dest, 2, 3)
	m := h.connect("m", "m", "", nil)
	tx := h.b.xa.prepared[0].id
	for range 2 {
		if got := m.step(tx, commit2); got != "-3" {
			t.Fatalf("the commit is answered with %s", got)
		}
		var no error
		h.b.Decide(tx.String(), true, "", func(err error) { no = err })
		h.turn()
		if message.KindOf(no) != message.Corrupt || !strings.Contains(no.Error(), "hopwire repair FILE") {
			t.Errorf("by hand: %v", no)
		}
	}
	if n := len(h.b.xa.prepared); n == 0 {
		t.Error("it is over")
	}
	h.disk.Repair()
	if got := m.step(tx, commit2); got != "ok" {
		t.Errorf("when it is repaired, the commit is answered with %s", got)
	}
	h.over("it is committed")
}

func TestWithoutAStoreABranchIsPreparedInMemory(t *testing.T) {
	h := open(t, nil, func(o *Options) { o.Persistent = false })
	g, q := h.connect("g", "g", "", nil), queueNamed("q")
	g.walk(xid(1), begin, "ok")
	g.sendTx(xid(1), q, 1)
	g.walk(xid(1), prepare, "vote 0")
	g.Gone()
	h.turn()
	m := h.connect("m", "m", "", nil)
	if d := h.b.find(q); d != nil && d.queue.Len() != 0 {
		t.Error("what is prepared is seen")
	}
	m.walk(xid(1), commit2, "ok")
	if n := h.b.find(q).queue.Len(); n != 1 {
		t.Errorf("%d messages are there", n)
	}
	h.over("it is committed")
}

func TestATransactionOfTooManySendsIsRolledBack(t *testing.T) {
	for _, tx := range []message.TransactionID{xid(1), {Connection: "g", Value: 1}} {
		h := open(t, nil, func(o *Options) { o.MaxUncommitted = 2 })
		g := h.connect("g", "g", "", nil)
		g.walk(tx, begin, "ok")
		g.sendTx(tx, queueNamed("q"), 1)
		g.sendTx(tx, queueNamed("q"), 2)
		e := g.trySendTx(tx, queueNamed("q"), 3)
		if e == nil || e.Class != "javax.jms.ResourceAllocationException" {
			t.Errorf("the third send in %s is answered with %v", tx, e)
		}
		if got := g.step(tx, commit1); got == "ok" {
			t.Errorf("%s is committed", tx)
		}
		if n := h.b.counts.Reasons[message.TransactionLimit]; n != 1 {
			t.Errorf("%d refusals are counted", n)
		}
		if d := h.b.find(queueNamed("q")); d != nil && d.queue.Len() > 0 {
			t.Errorf("%d messages of %s are there", d.queue.Len(), tx)
		}
		h.over("it had too many sends")
	}
}
