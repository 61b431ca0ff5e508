package broker

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/store"
)

// crowded gives a queue without room in memory at which a non-persistent send of p waits.
func crowded(t *testing.T) (h *house, q message.Destination, p *guest) {
	h, q = open(t, nil, limited), queueNamed("q")
	o := h.connect("o", "o", "", nil)
	o.Handle(o.big("o", q, 1, 2<<20, false))
	p = h.connect("p", "p", "", nil)
	p.Handle(p.big("p", q, 1, 100, false))
	if n := len(h.b.find(q).parked); n != 1 {
		t.Fatalf("%d sends wait", n)
	}
	return h, q, p
}

func TestAPersistentSendPassesThoseThatWaitForMemory(t *testing.T) {
	h, q, p := crowded(t)
	x := h.connect("x", "x", "", peerNamed("x", "10"))
	if e := x.produce("x", q, 7); e != nil {
		t.Errorf("a peer's is refused: %v", e)
	}
	m := x.mail("x", q, 2) // a peer's passes the waiting one of its own producer, too
	m.ID.Producer = p.mail("p", q, 0).Producer
	if e := x.do(m); e != nil {
		t.Errorf("a peer's behind what is not persistent is refused: %v", e)
	}
	l := h.connect("l", "l", "", nil)
	if e := l.produce("l", q, 1); e != nil {
		t.Errorf("a local one of another producer is refused: %v", e)
	}
	if n := len(h.b.find(q).parked); n != 1 {
		t.Errorf("%d sends wait, want the first alone", n)
	}
}

func TestSendsOfOneProducerDoNotPassEachOther(t *testing.T) {
	h, q, p := crowded(t)
	var want []message.MessageID
	for n := range int64(9) {
		p.Handle(p.big("p", q, n+2, 100, n%3 > 0))
		h.turn()
	}
	for n := range int64(10) {
		want = append(want, message.MessageID{Producer: p.mail("p", q, 0).Producer, Sequence: n + 1})
	}
	if n := len(h.b.find(q).parked); n != 10 {
		t.Fatalf("%d sends wait, want 10", n)
	}
	c := h.connect("c", "c", "", nil)
	id := c.consume("c", q)
	c.ack(id, q, c.got[0], message.IndividualAck, message.TransactionID{})
	if len(c.got) != 11 {
		t.Fatalf("%d came", len(c.got))
	}
	for i, w := range want {
		if c.got[i+1] != w {
			t.Errorf("number %d is %v, want %v", i+1, c.got[i+1], w)
		}
	}
	if d := h.b.find(q); d.parkedOf != [classes]int{} || len(d.waiting) != 0 {
		t.Errorf("nothing waits, and counted are %v, %v", d.parkedOf, d.waiting)
	}
}

// Whoever comes later must not take the room that was made for others of its kind.
func TestRoomGoesToWhoWaitsLongest(t *testing.T) {
	h, q, _ := crowded(t)
	d := h.b.find(q)
	l := h.connect("l", "l", "", nil)
	m := l.big("l", q, 1, 100, false)
	h.b.memory.Add(-3 << 20) // there is room, and the turn has not ended
	l.Handle(m)
	if n := len(d.parked); n != 2 || d.parked[0].m.ID.Producer.Connection != "p" {
		t.Errorf("%d wait", n)
	}
	h.turn()
	if n := len(d.parked); n != 0 {
		t.Errorf("%d wait", n)
	}
}

func TestAParkedSendWaitsForWhatIsLackingNow(t *testing.T) {
	h := open(t, nil, nil)
	h.pass(time.Hour)
	g := h.connect("g", "g", "", nil)
	m := g.mail("g", queueNamed("q"), 1)
	h.b.journal.undurable = undurableMax + 1
	g.Handle(m)
	d := h.b.find(queueNamed("q"))
	if len(d.parked) != 1 || d.parked[0].reason() != message.MemoryFull {
		t.Fatal("it does not wait for what is on its way")
	}
	h.b.journal.undurable = 0
	h.space = func() store.Space { return store.Space{FreeBytes: -1, Full: true} }
	h.turn()
	if r := d.parked[0].reason(); r != message.StoreFull {
		t.Errorf("it waits for %s, the disk is full", r)
	}
	h.pass(time.Minute)
	g.Handle(g.mail("g", queueNamed("q"), 2))
	row := h.explain(d.name).Rows[0]
	if row.Reason != message.StoreFull || row.Count != 2 ||
		row.Oldest != (Oldest{ID: m.ID, Age: time.Minute}) {
		t.Errorf("explained as %+v", row)
	}
	h.space = nil // the disk tells nobody
	h.pass(2 * storeLook)
	if len(d.parked) != 0 || d.queue.Len() != 2 {
		t.Error("nobody looked whether the disk has room")
	}
}

func TestAParkedPeersSendIsCountedByWhatItWaitsFor(t *testing.T) {
	h := open(t, nil, nil)
	x := h.connect("x", "x", "", peerNamed("x", "1000"))
	h.b.journal.undurable = undurableMax + 1
	x.tell(x.mail("x", queueNamed("q"), 1))
	if h.b.parkedBytes == 0 || h.b.parkedBeyond(0) {
		t.Errorf("of %d bytes that wait some count", h.b.parkedBytes)
	}
	h.b.journal.undurable = 0
	h.space = func() store.Space { return store.Space{FreeBytes: -1, Full: true} }
	h.turn()
	if !h.b.parkedBeyond(0) {
		t.Error("what waits for the disk's room does not count")
	}
	h.space = nil
	h.pass(2 * storeLook)
	if h.b.parkedBytes != 0 || x.parkedBytes != 0 {
		t.Errorf("%d and %d bytes count when nothing waits", h.b.parkedBytes, x.parkedBytes)
	}
}

func TestRoomOnTheDiskDoesNotBreakAProducersOrder(t *testing.T) {
	h, q, p := crowded(t)
	d := h.b.find(q)
	h.b.journal.undurable = undurableMax + 1
	p.Handle(p.big("p", q, 2, 100, true)) // waits for the disk
	l := h.connect("l", "l", "", nil)
	l.Handle(l.big("l", q, 1, 100, true))
	if len(d.parked) != 3 {
		t.Fatalf("%d sends wait", len(d.parked))
	}
	h.b.journal.undurable = 0
	h.turn()
	if len(d.parked) != 2 || d.parked[1].m.ID.Producer.Connection != "p" {
		t.Errorf("%d sends wait, want those of p", len(d.parked))
	}
	if d.parkedOf != [classes]int{0: 2} {
		t.Errorf("they wait for %v", d.parkedOf)
	}
}

// far parks ten sends of a peer to topic T, which a durable subscription of a keeps, until the disk
// has taken what is on its way.
func far(t *testing.T) (h *house, a *reader, x *guest) {
	h = open(t, nil, nil)
	a = h.subscribe("a", "s", "T", nil)
	a.do(&message.RemoveInfo{Object: a.id, LastDelivered: message.LastDeliveredUnset})
	x = h.connect("x", "x", "", peerNamed("x", "1000"))
	h.b.journal.undurable = undurableMax + 1
	for n := range int64(10) {
		x.tell(x.mail("x", topicNamed("T"), n+1))
	}
	d := h.b.find(topicNamed("T"))
	if d.parkedCount() != 10 || h.b.parkedBeyond(0) || d.peersBytes == 0 || x.parkedBytes == 0 {
		t.Fatalf("%d wait, %d bytes, %d of peers, %d of the connection", d.parkedCount(),
			h.b.parkedBytes, d.peersBytes, x.parkedBytes)
	}
	return h, a, x
}

func TestWhatParksIsCountedOutAsItWasCountedIn(t *testing.T) {
	for name, change := range map[string]func(h *house, a *reader) *message.Throwable{
		"the topic goes": func(h *house, a *reader) *message.Throwable {
			a.leave()
			g := h.connect("g", "g", "", nil)
			return g.do(&message.DestinationInfo{Destination: topicNamed("T"),
				Op: message.RemoveDestination, Timeout: 1})
		},
		"the subscription goes": func(_ *house, a *reader) *message.Throwable {
			return a.do(&message.RemoveSubscriptionInfo{SubscriptionName: "s", ClientID: "a"})
		},
		"another subscription comes": func(h *house, _ *reader) *message.Throwable {
			h.subscribe("b", "s", "T", nil)
			return nil
		},
	} {
		h, a, x := far(t)
		d := h.b.find(topicNamed("T"))
		if e := change(h, a); e != nil {
			t.Errorf("%s: %v", name, e)
		}
		h.b.journal.undurable = 0
		h.b.relieve()
		h.turn()
		if d.parkedCount() != 0 || h.b.parkedBytes != 0 || d.peersBytes != 0 || x.parkedBytes != 0 {
			t.Errorf("%s: %d wait, %d bytes, %d of peers, %d of the connection", name,
				d.parkedCount(), h.b.parkedBytes, d.peersBytes, x.parkedBytes)
		}
	}
}

// What waits for the store does not any more when its topic keeps nothing.
func TestSendsToATopicThatNobodyKeepsDoNotWaitForTheStore(t *testing.T) {
	h, a, _ := far(t)
	h.space = func() store.Space { return store.Space{FreeBytes: -1, Full: true} }
	h.turn()
	if e := a.do(&message.RemoveSubscriptionInfo{SubscriptionName: "s", ClientID: "a"}); e != nil {
		t.Error(e)
	}
	h.pass(2 * storeLook)
	if n := h.b.find(topicNamed("T")).parkedCount(); n != 0 || h.b.parkedBytes != 0 {
		t.Errorf("%d wait, %d bytes", n, h.b.parkedBytes)
	}
}

// queued parks n small sends of g to a queue until the disk has taken what is on its way, behind
// one of another producer that waits for memory.
func (g *guest) queued(q message.Destination, n int) {
	h := g.h
	h.b.journal.undurable = undurableMax + 1
	first := h.connect("first"+q.Name, "first"+q.Name, "", nil)
	first.Handle(first.big("first"+q.Name, q, 1, 1000, false))
	for i := range n {
		g.Handle(g.big("g", q, int64(i+1), 10, true))
	}
	if d := h.b.find(q); d.parkedCount() != n+1 {
		h.t.Fatalf("%d wait", d.parkedCount())
	}
}

func TestManyParkedSendsGoOnInTurnsAndInLinearTime(t *testing.T) {
	const many = 16_000
	h := open(t, nil, func(o *Options) { o.MemoryLimitBytes = 1 << 30 })
	h.b.memory.Add(1 << 30)
	g := h.connect("g", "g", "", nil)
	g.queued(queueNamed("q"), many)
	g.queued(queueNamed("r"), 2*unparkMost)
	late := g.big("g", queueNamed("q"), many+1, 10, true)
	h.b.journal.undurable = 0
	q, r := h.b.find(queueNamed("q")), h.b.find(queueNamed("r"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h.b.unpark()
	if n := q.parkedCount(); n != many+1-unparkMost {
		t.Errorf("%d are left after a turn", n)
	}
	g.Handle(late)
	if n := q.parkedCount(); n != many+2-unparkMost || q.lack[stored] == "" {
		t.Errorf("%d wait for %q after another one came", n, q.lack[stored])
	}
	h.b.unpark()
	if n := r.parkedCount(); n >= 2*unparkMost {
		t.Errorf("another queue waits until all of the first went on: %d", n)
	}
	for range 3 + many/unparkMost {
		h.b.unpark()
	}
	runtime.ReadMemStats(&after)
	if n, m := q.parkedCount(), r.parkedCount(); n > 1 || m > 1 {
		t.Errorf("%d and %d are left", n, m)
	}
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 200 {
		t.Errorf("%d MiB were allocated for it", n)
	}
}

// ended checks how many messages or sends to a destination are counted and told of under a reason.
func (h *house) ended(why string, d message.Destination, r message.Reason, want int64) {
	h.t.Helper()
	told := int64(0)
	for _, e := range h.events {
		ends := slices.Contains([]EventKind{MessageDropped, SendRefused, SubscriptionRemoved}, e.Kind)
		if ends && e.Reason == r && e.Dest == d {
			told += e.Count
		}
	}
	if n := h.b.counts.Reasons[r]; n != want || told != want {
		h.t.Errorf("%s: %d are counted and %d told of as %s, want %d", why, n, told, r, want)
	}
}

func TestWhatWaitedAndEndsIsCountedAndToldOf(t *testing.T) {
	h, _, x := far(t)
	topic := topicNamed("T")
	keys := []network.DoubtKey{}
	for _, a := range h.b.find(topic).parked[:3] {
		keys = append(keys, network.DoubtKey{Destination: a.wire,
			Key: message.Receipt(a.m, a.wire, a.m.BrokerPath, h.b.opt.ID)})
	}
	known := []bool{true}
	h.b.Known(overOurs("ID:x"), nil, keys, func(k []bool, _ bool) { known = k })
	h.turn()
	if slices.Contains(known, true) || h.b.find(topic).parkedCount() != 7 {
		t.Fatalf("known are %v, %d wait", known, h.b.find(topic).parkedCount())
	}
	h.ended("a peer asked", topic, message.ConnectionGone, 3)
	x.Gone()

	h, a, _ := far(t)
	a.leave()
	g := h.connect("g", "g", "", nil)
	g.do(&message.DestinationInfo{Destination: topic, Op: message.RemoveDestination, Timeout: 1})
	h.ended("the topic went", topic, message.NoConsumer, 10)

	h, r := asked(t)
	r.tell(r.mail("g", tempQueue, 1))
	r.Gone()
	h.ended("the connection went", tempQueue, message.ConnectionGone, 1)

	h, r = asked(t)
	r.tell(r.mail("g", tempQueue, 1))
	h.pass(replyPatience)
	h.ended("nobody told of it", tempQueue, message.TempUnseen, 1)
}

func TestWhoseSendsWaitIsTold(t *testing.T) {
	h, _, _ := crowded(t)
	for _, e := range h.events {
		if e.Kind == SendParked {
			if want := "client p at test, the first: message p:"; !strings.HasPrefix(e.Text, want) {
				t.Errorf("told as %q, want %s…", e.Text, want)
			}
			return
		}
	}
	t.Error("nothing is told")
}
