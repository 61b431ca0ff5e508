package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

func TestWhatDurablesAcknowledgeAtOnceIsNotWritten(t *testing.T) {
	h := open(t, nil, nil)
	a, b := h.subscribe("a", "s", "T", nil), h.subscribe("b", "s", "T", nil)
	g := h.connect("g", "g", "", nil)
	g.do(&message.ProducerInfo{ID: message.ProducerID{Connection: "g", Session: 1, Value: 1}})
	ack := func(r *reader, id message.MessageID) {
		r.Handle(&message.MessageAck{Consumer: r.id, Destination: topicNamed("T"), Last: id,
			HasLast: true, Count: 1, Type: message.IndividualAck})
	}
	for n := range int64(4) {
		h.b.journal.busy = n > 0 // the first one is handed over at once
		g.Handle(g.mail("g", topicNamed("T"), n+1))
		h.b.dispatch()
		ack(a, a.got[n])
		if n != 2 {
			ack(b, b.got[n])
		}
	}
	h.b.journal.busy = false
	h.turn()
	h.publish("U", 1, 1)
	if n := h.loggedOf("T"); n != 1 || len(h.storedOf("b")) != 1 || len(h.storedOf("a")) != 0 {
		t.Errorf("%d messages are stored, %d for b, %d for a", n, len(h.storedOf("b")),
			len(h.storedOf("a")))
	}
}

// storedOf gives what the store has for a client's subscription "s".
func (h *house) storedOf(client string) []store.Stored {
	h.t.Helper()
	s := h.b.subscriptions[subscriptionKey{client, "s"}]
	page, err := h.disk.Page(store.PageRequest{Dest: s.dest.id, To: 1 << 60})
	if err != nil {
		h.t.Fatal(err)
	}
	return page
}

func TestSequencesOfLogsGoOnAfterARestart(t *testing.T) {
	h := open(t, nil, nil)
	h.subscribe("a", "s", "T", nil).leave()
	h.publish("T", 1, 1)
	h.b.sequence = h.b.journal.sequences - 3
	h.publish("T", 2, 3)
	for n := range int64(3) {
		h = open(t, h.disk, nil)
		h.publish("T", n+4, n+4)
	}
	if got := h.subscribe("a", "s", "T", nil).bodies(); got != "1 2 3 4 5 6" {
		t.Errorf("got %s", got)
	}
}

func TestDurablesOfAFullStore(t *testing.T) {
	h := open(t, nil, nil)
	a, b := h.subscribe("a", "s", "T", nil), h.subscribe("b", "s", "T", nil)
	h.publish("T", 1, 3)
	p := h.connect("p", "p", "", nil)
	sent := p.late(p.mail("p", topicNamed("T"), 4))
	a.ackAll()
	b.ack(b.id, topicNamed("T"), b.got[0], message.StandardAck, message.TransactionID{})
	if p.answered(sent) || len(h.storedOf("a")) != 0 || len(h.storedOf("b")) != 2 {
		t.Errorf("answered %v, stored for a %d, for b %d", p.answered(sent), len(h.storedOf("a")),
			len(h.storedOf("b")))
	}
	again := open(t, h.disk.CrashClone(0), nil)
	if got := again.subscribe("b", "s", "T", nil).bodies(); got != "2 3" {
		t.Errorf("after a crash b gets %q", got)
	}
	h.disk.SetCapacity(0, 0)
	h.pass(2 * time.Second)
	if n := h.loggedOf("T"); !p.answered(sent) || n < 3 || n > 4 { // a head lags behind
		t.Errorf("answered %v, %d logged when there is room", p.answered(sent), n)
	}
	h = open(t, h.disk, nil)
	if got := h.subscribe("b", "s", "T", nil).bodies(); got != "2 3 4" {
		t.Errorf("b gets %q", got)
	}
	if got := h.subscribe("a", "s", "T", nil).bodies(); got != "" { // it had 4 already
		t.Errorf("a gets %q", got)
	}
}

func TestMessagesOfAnOfflineDurableExpire(t *testing.T) {
	h := open(t, nil, nil)
	h.subscribe("a", "s", "T", nil).leave()
	h.subscribe("b", "s", "T", nil).leave()
	h.short(topicNamed("T"), 500)
	h.publish("T", 1, 1)
	now := h.now
	h = open(t, h.disk, nil)
	h.now = now
	h.pass(61 * time.Second)
	if a, b := len(h.storedOf("a")), len(h.storedOf("b")); a != 1 || b != 1 {
		t.Errorf("a keeps %d, b %d", a, b)
	}
	if n := len(h.stored(queueNamed("ActiveMQ.DLQ"))); n != 1000 {
		t.Errorf("%d dead letters for 500 messages of two subscriptions", n)
	}
	if n := h.loggedOf("T"); n != 1 {
		t.Errorf("%d messages are logged", n)
	}
}

// TestWhatCannotBeReadIsLeftOutAndToldOf: one damaged record must not stop a subscription or queue.
func TestWhatCannotBeReadIsLeftOutAndToldOf(t *testing.T) {
	h := open(t, nil, nil)
	h.subscribe("a", "s", "T", nil).leave()
	h.publish("T", 1, 4)
	h = open(t, h.disk, nil)
	h.bad = map[store.Seq]bool{h.storedOf("a")[1].Seq: true}
	a := h.subscribe("a", "s", "T", nil)
	h.publish("T", 5, 5)
	if a.bodies() != "1 3 4 5" {
		t.Errorf("got %q of a log, want all but 2", a.bodies())
	}
	told := 0
	for _, e := range h.events {
		if e.Kind == StoreTrouble && e.Reason == message.Unreadable && e.Dest == topicNamed("T") {
			told++
		}
	}
	if told != 1 || h.b.counts.Reasons[message.Unreadable] != 1 {
		t.Errorf("it was told %d times: %v", told, h.events)
	}
}

// TestWhatCannotBeReadEnds: it is counted no more, told of once whoever reads the page, and its
// reference is gone before the log's head rises over it, with its expiration.
func TestWhatCannotBeReadEnds(t *testing.T) {
	for _, d := range []message.Destination{topicNamed("T"), queueNamed("q")} {
		h := open(t, nil, nil)
		h.subscribe("a", "s", "T", nil).leave()
		h.short(d, 5)
		now := h.now
		id, at := h.b.find(d).id, func() []store.Stored { return h.stored(d) }
		if d.IsTopic() {
			id, at = h.b.durables.list[0].dest.id, func() []store.Stored { return h.storedOf("a") }
		}
		bad := map[store.Seq]bool{at()[0].Seq: true, at()[3].Seq: true}
		h = open(t, h.disk, nil)
		h.now, h.bad = now, bad
		c := h.connect("c", "c", "", nil)
		if !d.IsTopic() {
			c.browse("c", d, 100)
			c.browse("c", d, 100)
		}
		a := h.subscribe("a", "s", "T", nil)
		if !d.IsTopic() {
			c.got = nil // that a browser saw
			a = &reader{guest: c}
			a.id = a.consume("c", d)
		}
		for len(a.got) > 0 {
			id := a.got[0]
			a.got = a.got[1:]
			a.ack(a.id, d, id, message.StandardAck, message.TransactionID{})
		}
		h.publish("U", 1, 1)
		h.whole(d.String())
		h.bad = nil
		if n := len(at()); n != 0 {
			t.Errorf("%s: %d records stay", d, n)
		}
		refs, err := h.disk.Expired(nil, 1<<60, 100)
		if err != nil || len(refs) != 0 {
			t.Errorf("%s: expirations %v stay, %v", d, refs, err)
		}
		for _, x := range headersOf(t, h) {
			if x.ID == id && (x.Count != 0 || x.Bytes != 0) {
				t.Errorf("%s: the header says %d messages, %d bytes", d, x.Count, x.Bytes)
			}
		}
		told := 0
		for _, e := range h.events {
			if e.Reason == message.Unreadable {
				told++
			}
		}
		if told != 2 || h.b.counts.Reasons[message.Unreadable] != 2 {
			t.Errorf("%s: told %d times, counted %d", d, told, h.b.counts.Reasons[message.Unreadable])
		}
	}
}

func TestBrowsersAndSearchesPassOverWhatCannotBeRead(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	h.short(q, 5)
	now := h.now
	h = open(t, h.disk, nil)
	h.now, h.bad = now, map[store.Seq]bool{h.stored(q)[2].Seq: true}
	c := h.connect("c", "c", "", nil)
	if c.browse("c", q, 100); len(c.got) != 4 {
		t.Errorf("a browser sees %v", c.got)
	}
	id := h.stored(q)[3].Message.ID
	var found *Explanation
	h.b.Explain(q, &id, func(e *Explanation) { found = e })
	h.turn()
	if found == nil || len(found.Rows) == 0 {
		t.Errorf("a message behind it is not found: %+v", found)
	}
	h.pass(45 * time.Second)
	if d := h.b.find(q); d.counts.Expired != 4 || h.b.expiring {
		t.Errorf("%d messages expired, searching %v", d.counts.Expired, h.b.expiring)
	}
}
