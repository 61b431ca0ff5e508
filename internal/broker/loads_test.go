package broker

import (
	"slices"
	"testing"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
)

// A send that waits for its receipts to be read is confirmed to nobody when its connection ends
// meanwhile: done then, it would be there twice when its client sends it again.
func TestASendThatLoadsEndsWithItsConnection(t *testing.T) {
	for _, c := range []struct {
		how, in string
		stored  int
	}{
		{"stop", "", 1}, {"stop", "its transaction", 1}, {"stop", "a branch", 1},
		{"gone", "", 1}, {"gone", "its transaction", 1}, {"gone", "a branch", 1},
		{"leaves", "", 2},
	} {
		h := open(t, nil, nil)
		h.tolerant("p", false).produce("p", queueQ, 1)
		h = h.killed()
		p, g := h.tolerant("p", false), h.tolerant("g", false)
		p.stays, g.stays = true, true
		m := p.mail("p", queueQ, 2)
		switch c.in {
		case "its transaction":
			m.Transaction = p.begin("p", 1)
		case "a branch":
			g.walk(xid(1), begin, "ok")
			p.walk(xid(1), begin, "ok")
			m.Transaction = xid(1)
		}
		n := p.hand(m)
		goOn := h.stalled() // before what reads the receipts
		switch c.how {
		case "stop":
			h.b.Stop(func() {}, func() {})
			h.pass(settleSilence - settleTick)
			if c.in == "a branch" {
				g.hand(&message.TransactionInfo{Connection: "g", ID: xid(1), Type: end})
			}
			h.pass(settleTick)
		case "gone":
			p.Gone()
		case "leaves":
			p.Handle(&message.ShutdownInfo{})
		}
		var commit int32
		if c.in == "a branch" {
			commit = g.hand(&message.TransactionInfo{Connection: "g", ID: xid(1), Type: commit1})
		}
		goOn()
		h.turn()
		if commit > 0 && g.outcome(commit, nil) != "100" {
			t.Errorf("%s: the commit without it is answered with %s", c.how, g.outcome(commit, nil))
		}
		gone := int64(1)
		if c.how == "leaves" || c.in == "its transaction" {
			gone = 0
		}
		if k := h.b.counts.Reasons[message.ConnectionGone]; k != gone {
			t.Errorf("%s, in %q: it is counted %d times", c.how, c.in, k)
		}
		if h.b.parkedBytes != 0 || len(h.b.reading) != 0 {
			t.Errorf("%s, in %q: %d bytes wait", c.how, c.in, h.b.parkedBytes)
		}
		if k := len(h.again().stored(queueQ)); k != c.stored || p.answered(n) {
			t.Errorf("%s, in %q: %d messages are stored, want %d; answered: %v", c.how, c.in, k,
				c.stored, p.answered(n))
		}
	}
}

// What waits while receipts cannot be read is counted, bounded, told of, and gone with its client.
func TestSendsThatLoadAreBounded(t *testing.T) {
	h := open(t, nil, nil)
	h.tolerant("p", false).produce("p", queueQ, 1)
	h = h.killed()
	h.broken = 1 << 30
	p := h.tolerant("p", true)
	mail := func(n int) *message.Message {
		m := p.mail("p", queueQ, int64(n))
		m.Content = make([]byte, 1<<20)
		return m
	}
	var sent []int32
	for n := range 15 {
		sent = append(sent, p.hand(mail(n+2)))
	}
	if p.held {
		t.Error("it is held with 15 MiB")
	}
	sent = append(sent, p.hand(mail(17)))
	d := h.b.find(queueQ)
	if !p.held || p.parkedBytes < congestedBytes || h.b.parkedBytes != p.parkedBytes {
		t.Errorf("held: %v; %d bytes of the connection, %d of all", p.held, p.parkedBytes,
			h.b.parkedBytes)
	}
	h.pass(10 * time.Second)
	if x := h.explain(queueQ); len(x.Rows) != 2 || x.Rows[0].Reason != message.ReceiptsUnread ||
		x.Rows[0].Count != 16 || x.Rows[0].Oldest.Age != 10*time.Second || x.Status.Parked != 16 {
		t.Errorf("explained: %+v, %d parked", x.Rows, x.Status.Parked)
	}
	if !slices.Contains(d.waits(h.b, new(int)), message.ReceiptsUnread) ||
		h.b.counts.Reasons[message.ReceiptsUnread] < 10 || d.reasons[message.ReceiptsUnread] < 10 {
		t.Errorf("%v, counted %d", d.waits(h.b, new(int)), h.b.counts.Reasons[message.ReceiptsUnread])
	}
	o := h.tolerant("o", true)
	other := o.hand(o.mail("o", queueQ, 1))
	for range 20 { // it comes again and again
		p.Gone()
		h.turn()
		if h.b.parkedBytes != o.parkedBytes || d.loads.sends != 1 || len(d.loads.list) > 2*holesFew {
			t.Fatalf("%d bytes, %d sends, %d entries wait of nobody", h.b.parkedBytes, d.loads.sends,
				len(d.loads.list))
		}
		p, sent = h.tolerant("p", true), nil
		for n := range 5 {
			sent = append(sent, p.hand(mail(n+2)))
		}
		h.pass(time.Second)
	}
	h.broken = 0
	h.pass(2 * time.Second)
	for _, n := range sent {
		if !p.answered(n) || !o.answered(other) {
			t.Errorf("%d is not answered", n)
		}
	}
	if k := len(h.stored(queueQ)); k != 7 || h.b.parkedBytes+p.parkedBytes != 0 || p.held ||
		len(h.b.reading) != 0 {
		t.Errorf("%d are stored, want 7; %d bytes wait; held: %v", k, h.b.parkedBytes, p.held)
	}
}

// A client that is read on, as it has something to acknowledge, is refused what is too much.
func TestSendsThatLoadAreRefusedAboveTheLimit(t *testing.T) {
	h := open(t, nil, nil)
	h.tolerant("p", false).produce("p", queueQ, 1)
	h.connect("o", "o", "", nil).produce("o", queueNamed("other"), 1)
	h = h.killed()
	p := h.tolerant("p", true)
	p.consume("p", queueNamed("other"))
	h.broken = 1 << 30
	refused := 0
	for n := range 70 {
		m := p.mail("p", queueQ, int64(n+2))
		m.Content = make([]byte, 1<<20)
		if k := p.hand(m); p.answered(k) {
			refused++
			if e := p.answer(k).Exception; e == nil {
				t.Fatal("what is not read is confirmed")
			}
		}
	}
	if p.held || refused < 6 || p.parkedBytes > parkedPerConnection ||
		h.b.counts.Reasons[message.ReceiptsUnread] < int64(refused) {
		t.Errorf("held: %v, %d refused, %d bytes wait", p.held, refused, p.parkedBytes)
	}
	h.broken = 0
	h.pass(2 * time.Second)
	if k := len(h.stored(queueQ)); k != 71-refused || h.b.parkedBytes != 0 {
		t.Errorf("%d are stored, want %d; %d bytes wait", k, 71-refused, h.b.parkedBytes)
	}
}

// One message is looked for among those that load, too.
func TestOneThatLoadsIsExplained(t *testing.T) {
	h := open(t, nil, nil)
	h.tolerant("p", false).produce("p", queueQ, 1)
	h = h.killed()
	h.broken = 3
	p := h.tolerant("p", true)
	p.hand(p.mail("p", queueQ, 2))
	m := p.mail("p", queueQ, 3)
	p.hand(m)
	h.turn()
	for _, c := range []struct {
		n    int64
		want int64
	}{{3, 1}, {4, 0}} {
		id := m.ID
		id.Sequence = c.n
		var x *Explanation
		h.b.Explain(queueQ, &id, func(e *Explanation) { x = e })
		h.turn()
		rows := int64(0)
		for _, r := range x.Rows {
			rows += r.Count
		}
		if rows != c.want || x.Found != (c.want > 0) {
			t.Errorf("message %d: found %v, %+v", c.n, x.Found, x.Rows)
		}
	}
}

// What a peer sent waits as well, is refused by nobody, and takes nobody's room; it ends with its
// link, and its bridge is told that it never came.
func TestAPeersSendsThatLoadEndWithItsLink(t *testing.T) {
	h := open(t, nil, nil)
	h.tolerant("p", false).produce("p", queueQ, 1)
	h = h.killed()
	h.broken = 1
	b := h.connect("peer", "peer", "", peerNamed("peer", "10"))
	m := b.mail("peer", queueQ, 5)
	m.BrokerPath = []message.BrokerID{"ID:peer"}
	h.b.parkedBytes = parkedOverall
	n := b.hand(m)
	if d := h.b.find(queueQ); d.loads.sends != 1 || b.answered(n) || h.b.parkedBytes != parkedOverall {
		t.Fatalf("%d wait, %d bytes, %v, %v", d.loads.sends, h.b.parkedBytes, b.answer(n), d.receipts)
	}
	h.b.parkedBytes = 0
	b.Gone()
	if d := h.b.find(queueQ); d.loads.sends != 0 ||
		h.b.counts.Reasons[message.ConnectionGone] != 1 {
		t.Errorf("%d wait of a link that is gone", d.loads.sends)
	}
	h.pass(3 * time.Second)
	if k := len(h.stored(queueQ)); k != 1 || h.b.parkedBytes != 0 {
		t.Errorf("%d are stored, want 1; %d bytes wait", k, h.b.parkedBytes)
	}
}

// What receipts are told when they are read waits once, however much it is.
func TestWhatReceiptsAreToldAsksForOneRead(t *testing.T) {
	h := open(t, nil, nil)
	h.tolerant("p", false).produce("p", queueQ, 1)
	h = h.killed()
	h.broken = 1
	d := h.b.find(queueQ)
	for n := range int64(20) {
		h.b.forwarded(d, &queue.Copy{Message: &message.Message{
			ID: message.MessageID{Sequence: n}, BrokerPath: []message.BrokerID{"ID:a"}}}, "ID:b")
	}
	if len(d.loads.list) != 1 || len(d.loads.went) != 20 {
		t.Errorf("%d wait, %d are told", len(d.loads.list), len(d.loads.went))
	}
	h.turn()
	h.pass(3 * time.Second)
	if d.receipts == nil || len(d.loads.list)+len(d.loads.went) != 0 {
		t.Errorf("%d wait", len(d.loads.list))
	}
}
