package broker

import (
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// big is mail of so many bytes, persistent or not, that no answer is asked for.
func (g *guest) big(id string, d message.Destination, n int64, size int,
	persistent bool) *message.Message {
	m := g.mail(id, d, n)
	m.Content, m.Persistent = make([]byte, size), persistent
	return m
}

func limited(o *Options) { o.MemoryLimitBytes = 1 << 20 }

func TestPersistentSendsToTopicsKnowTheMemoryLimit(t *testing.T) {
	h := open(t, nil, limited)
	d := topicNamed("t")
	c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
	if e := c.do(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "c", Session: 1},
		Destination: d, PrefetchSize: 1}); e != nil {
		t.Fatal(e)
	}
	for n := range int64(300) {
		p.Handle(p.big("p", d, n+1, 10_000, true))
	}
	h.turn()
	if used := h.b.memory.Used(); used > 2<<20 {
		t.Errorf("memory is charged %d bytes of %d", used, h.b.memory.Limit())
	}
	if len(h.b.find(d).parked) == 0 {
		t.Error("no send waits")
	}
}

func TestWhatWaitsForSpaceIsBounded(t *testing.T) {
	h := open(t, nil, limited)
	d := queueNamed("q")
	p := h.connect("p", "p", "", nil)
	send := func(n int64) { p.Handle(p.big("p", d, n, 1<<20, false)) }
	const few = congestedBytes >> 20
	for n := range int64(few) {
		send(n + 1)
	}
	if p.congested() {
		t.Error("a connection is congested with little that waits")
	}
	send(few + 1)
	send(few + 2)
	if !p.congested() {
		t.Errorf("a connection with %d bytes that wait is not congested", p.parkedBytes)
	}
	for n := range int64(100) {
		send(n + few + 3)
	}
	if p.parkedBytes > parkedPerConnection || h.b.parkedBytes != p.parkedBytes {
		t.Errorf("%d bytes of a connection wait, %d in all", p.parkedBytes, h.b.parkedBytes)
	}
	refused := 0
	for _, s := range p.sent {
		if e, ok := s.(*message.ConnectionError); ok &&
			strings.Contains(e.Exception.Class, "ResourceAllocation") {
			refused++
		}
	}
	if want := few + 102 - 1 - len(h.b.find(d).parked); refused != want {
		t.Errorf("%d sends are refused, want %d", refused, want)
	}
	c := h.connect("c", "c", "", nil)
	id := c.consume("c", d)
	for n := 0; n < len(c.got); n++ {
		c.ack(id, d, c.got[n], message.IndividualAck, message.TransactionID{})
	}
	if h.b.parkedBytes != 0 || p.parkedBytes != 0 || h.b.memory.Used() != 0 || p.congested() {
		t.Errorf("consumed: %d and %d bytes wait, %d used", h.b.parkedBytes, p.parkedBytes,
			h.b.memory.Used())
	}
}

func TestAConnectionThatHasSomethingToAcknowledgeIsRead(t *testing.T) {
	h := open(t, nil, limited)
	g := h.connect("g", "g", "", nil)
	id := g.consume("g", queueNamed("in"))
	g.produce("g", queueNamed("in"), 1)
	for n := range int64(2 * congestedBytes >> 20) {
		g.Handle(g.big("g", queueNamed("out"), n+2, 1<<20, false))
	}
	if g.congested() {
		t.Error("a connection is not read that has a message to acknowledge")
	}
	g.ack(id, queueNamed("in"), g.got[0], message.IndividualAck, message.TransactionID{})
	if !g.congested() {
		t.Error("a connection is read that has nothing to acknowledge")
	}
}

// flood sends so much to a queue, in a transaction or none, that most of it waits for room.
func (g *guest) flood(d message.Destination, persistent bool, tx message.TransactionID) {
	g.h.t.Helper()
	for n := range int64(congestedBytes>>20 + 10) {
		m := g.big("g", d, n+100, 1<<20, persistent)
		m.Transaction = tx
		g.Handle(m)
	}
	g.h.turn()
	if g.parkedBytes < congestedBytes {
		g.h.t.Fatalf("only %d bytes wait", g.parkedBytes)
	}
}

// What gives room back comes behind the sends that wait for it: it must be read.
func TestAConnectionThatMayMakeRoomIsRead(t *testing.T) {
	q := queueNamed("q")
	for name, c := range map[string]struct{ hold, release func(g *guest) }{
		"a transaction holds it": {func(g *guest) {
			tx := g.begin("g", 1)
			for n := range int64(8) {
				m := g.big("g", q, n+1, 1<<20, true)
				m.Transaction = tx
				g.Handle(m)
			}
			g.flood(q, true, g.begin("g", 2))
		}, func(g *guest) {
			if e := g.finish(message.TransactionID{Connection: "g", Value: 1},
				message.Rollback); e != nil {
				t.Error(e)
			}
		}},
		"a transaction acknowledged it, of a consumer that is closed": {func(g *guest) {
			id := g.consume("g", q)
			if e := g.do(g.big("g", q, 1, 8<<20, false)); e != nil {
				t.Fatal(e)
			}
			g.ack(id, q, g.got[0], message.IndividualAck, g.begin("g", 1))
			g.do(&message.RemoveInfo{Object: id})
			g.flood(q, false, message.TransactionID{})
		}, func(g *guest) {
			if e := g.finish(message.TransactionID{Connection: "g", Value: 1},
				message.CommitOnePhase); e != nil {
				t.Error(e)
			}
		}},
		"a consumer pulls": {func(g *guest) {
			g.window("g", q, 0, "")
			if e := g.do(g.big("g", q, 1, 8<<20, false)); e != nil {
				t.Fatal(e)
			}
			g.flood(q, false, message.TransactionID{})
		}, nil},
	} {
		h := open(t, nil, func(o *Options) { o.MemoryLimitBytes = 8 << 20 })
		g := h.connect("g", "g", "", nil)
		if c.hold(g); g.held {
			t.Errorf("%s: nothing is read", name)
		}
		if c.release == nil {
			continue
		}
		was := g.parkedBytes
		c.release(g)
		h.turn()
		if g.parkedBytes >= was {
			t.Errorf("%s: %d bytes wait still", name, g.parkedBytes)
		}
	}
}

// While the store refuses what puts, acknowledgements are what makes room on the disk.
func TestAConnectionThatHasSomethingToAcknowledgeIsReadWhileTheStoreIsFull(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("g", "g", "", nil)
	id := g.consume("g", queueNamed("in"))
	g.produce("g", queueNamed("in"), 1)
	var list []*message.Message
	for n := range int64(undurableMax>>20 + 1) {
		list = append(list, g.big("g", queueNamed("out"), n+2, 1<<20, true))
	}
	for _, m := range list {
		g.Handle(m)
	}
	h.b.EndTurn()
	h.disk.SetCapacity(1, 1000)
	h.turn()
	g.flood(queueNamed("out"), true, message.TransactionID{})
	if h.b.journal.undurable <= undurableMax || h.b.journal.held.empty() {
		t.Fatalf("nothing is refused: %d bytes on their way", h.b.journal.undurable)
	}
	if g.held {
		t.Error("a connection is not read that has a message to acknowledge")
	}
	g.ack(id, queueNamed("in"), g.got[0], message.IndividualAck, message.TransactionID{})
	h.turn()
	if !g.congested() {
		t.Error("a connection is read that has nothing to acknowledge")
	}
}

func TestAFullStoreIsLookedAtWithOneTimer(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("g", "g", "", nil)
	h.space = func() store.Space { return store.Space{FreeBytes: -1, Full: true} }
	for n := range int64(20) {
		g.Handle(g.mail("g", queueNamed("q"), n+1))
		h.turn()
	}
	for range 10 {
		h.pass(time.Second)
	}
	if n := len(h.timers); n > 2 { // the other looks for expired messages
		t.Errorf("%d timers run", n)
	}
	h.space = nil
	h.pass(time.Second)
	if n := h.b.find(queueNamed("q")).queue.Len(); n != 20 {
		t.Errorf("%d of 20 sends went on", n)
	}
}

func TestASmallLimitIsNoLimitOfZero(t *testing.T) {
	h := open(t, nil, func(o *Options) { o.MemoryLimitBytes = 60 })
	if h.b.memory.Full() {
		t.Error("nothing is used and the limit is reached")
	}
}

func TestPeersPersistentSendsDoNotWaitForMemory(t *testing.T) {
	h := open(t, nil, limited)
	x := h.connect("x", "x", "", peerNamed("x", "10"))
	h.b.memory.Add(2 << 20)
	if e := x.produce("x", queueNamed("q"), 1); e != nil || !x.answered(x.number) {
		t.Errorf("a persistent send of a peer waits; %v", e)
	}
}

func TestABatchIsBoundedWhoeverSends(t *testing.T) {
	for _, peer := range []bool{false, true} {
		h := open(t, nil, nil)
		var info *message.BrokerInfo
		if peer {
			info = peerNamed("x", "1000")
		}
		x := h.connect("x", "x", "", info)
		most, waited, counted := int64(0), false, false
		h.committing = func(b *store.Batch) {
			most = max(most, b.Bytes)
			waited, counted = waited || h.b.parkedBytes > 0, counted || h.b.parkedBeyond(0)
		}
		many := int32(undurableMax>>20 + 20) // no client may wait with much more
		if peer {
			many *= 3
		}
		var list []*message.Message
		for n := range int64(many) {
			list = append(list, x.big("x", queueNamed("q"), n+1, 1<<20, true))
		}
		for _, m := range list {
			x.hand(m)
		}
		last := x.number
		h.turn()
		if !waited || counted == peer {
			t.Errorf("peer %v: sends waited: %v, and count against what others may wait with: %v",
				peer, waited, counted)
		}
		if most > undurableMax+2<<20 {
			t.Errorf("peer %v: a batch of %d bytes", peer, most)
		}
		for n := last - many + 1; n <= last; n++ {
			if !x.answered(n) {
				t.Fatalf("peer %v: send %d has no answer", peer, n)
			}
		}
		stored := h.stored(queueNamed("q"))
		for i, s := range stored {
			if s.Message.ID.Sequence != int64(i+1) {
				t.Fatalf("peer %v: message %d is stored as number %d", peer, s.Message.ID.Sequence, i+1)
			}
		}
		if len(stored) != int(many) {
			t.Errorf("peer %v: %d of %d are stored", peer, len(stored), many)
		}
	}
}

func TestAPeersSendsThatWaitForTheDiskAreNeverRefused(t *testing.T) {
	h := open(t, nil, nil)
	x := h.connect("x", "x", "", peerNamed("x", "1000"))
	h.b.parkedBytes = parkedOverall
	h.b.journal.undurable = undurableMax + 1
	x.tell(x.mail("x", queueNamed("q"), 1))
	h.b.journal.undurable = 0
	h.turn()
	if !x.answered(x.number) {
		t.Error("it does not go on")
	}
}

func TestAConnectionIsHeldWhileTooMuchOfItWaits(t *testing.T) {
	for _, end := range []string{"gone", "closed", "consumed"} {
		h := open(t, nil, limited)
		d := queueNamed("q")
		p := h.connect("p", "p", "", nil)
		const many = congestedBytes>>20 + 2
		for n := range int64(many) {
			p.Handle(p.big("p", d, n+1, 1<<20, false))
		}
		if !p.held {
			t.Fatalf("a connection is read with %d bytes that wait", p.parkedBytes)
		}
		switch end {
		case "gone":
			p.Gone()
		case "closed":
			p.close("a test")
		default:
			c := h.connect("c", "c", "", nil)
			id := c.consume("c", d)
			for n := 0; n < len(c.got); n++ {
				c.ack(id, d, c.got[n], message.IndividualAck, message.TransactionID{})
			}
			h.turn()
		}
		if p.held || len(h.b.held) > 0 {
			t.Errorf("%s: it is held still", end)
		}
	}
}

func TestWhereNoSpaceFailsASendOfATransactionFails(t *testing.T) {
	for _, fails := range []bool{false, true} {
		h := open(t, nil, func(o *Options) {
			limited(o)
			e := policy.NewEntry()
			e.Memory.SendFailIfNoSpace = &fails
			o.Policies = &policy.Map{Default: e}
		})
		d := queueNamed("q")
		g, other := h.connect("g", "g", "", nil), h.connect("o", "o", "", nil)
		tx := g.begin("g", 1)
		first := g.mail("g", queueNamed("other"), 1)
		first.Transaction = tx
		g.do(first)
		other.Handle(other.big("o", d, 1, 2<<20, false)) // fills it
		h.turn()
		m := g.big("g", d, 2, 100, false)
		m.Transaction = tx
		if e := g.do(m); (e != nil) != fails {
			t.Errorf("fails is %v: %v", fails, e)
		}
	}
}

func TestWhatWaitsOfAConnectionThatBrokeIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*guest)
		kept int
	}{
		{"the socket is gone", func(g *guest) { g.Gone() }, 0},
		{"the broker closes it", func(g *guest) { g.close("a test") }, 0},
		{"it closes", func(g *guest) {
			g.do(&message.RemoveInfo{Object: message.ConnectionID("g")})
			g.Handle(&message.ShutdownInfo{})
			g.Gone()
		}, 2},
		{"it shuts down", func(g *guest) { g.Handle(&message.ShutdownInfo{}) }, 2},
	} {
		h := open(t, nil, limited)
		d := queueNamed("q")
		g, other := h.connect("g", "g", "", nil), h.connect("o", "o", "", nil)
		other.Handle(other.big("o", d, 1, 2<<20, false)) // fills it
		g.Handle(g.big("g", d, 1, 100, false))
		other.Handle(other.big("o", d, 2, 100, false))
		g.Handle(g.big("g", d, 2, 100, false))
		c.end(g)
		h.turn()
		if n := len(h.b.find(d).parked); n != 1+c.kept {
			t.Errorf("%s: %d sends wait, want %d", c.name, n, 1+c.kept)
		}
		if n := h.b.counts.Reasons[message.ConnectionGone]; int(n) != 2-c.kept {
			t.Errorf("%s: %d are counted, want %d", c.name, n, 2-c.kept)
		}
	}
}

func TestAConnectionThatWaitsForTheDiskIsHeldWhateverItHasToAcknowledge(t *testing.T) {
	h := open(t, nil, limited)
	g := h.connect("g", "g", "", nil)
	g.consume("g", queueNamed("in"))
	g.produce("g", queueNamed("in"), 1)
	g.parkedBytes = congestedBytes
	for undurable, want := range map[int64]bool{undurableMax: false, undurableMax + 1: true} {
		h.b.journal.undurable = undurable
		if g.congested() != want {
			t.Errorf("%d bytes on their way: congested is %v", undurable, !want)
		}
	}
}

func TestWhatIsOnItsWayNeedsItsRoomTwice(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("g", "g", "", nil)
	g.produce("g", queueNamed("q"), 1)
	h.space = func() store.Space { return store.Space{FreeBytes: 100, ReserveBytes: 50} }
	for undurable, want := range map[int64]bool{25: false, 26: true} {
		h.b.journal.undurable = undurable
		if got := h.b.storeLacks(h.b.find(queueNamed("q"))); got != want {
			t.Errorf("%d bytes on their way: no room is %v", undurable, got)
		}
	}
}

func TestWithoutFlowControlTheBrokersMemoryIsTheLimit(t *testing.T) {
	for _, d := range []message.Destination{queueNamed("q"), topicNamed("q")} {
		h := open(t, nil, func(o *Options) {
			limited(o)
			e := policy.NewEntry()
			e.Memory.ProducerFlowControl, e.Memory.LimitBytes = false, 100_000
			o.Policies = &policy.Map{Default: e}
		})
		c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
		id := message.ConsumerID{Connection: "c", Session: 1}
		if e := c.do(&message.ConsumerInfo{ID: id, Destination: d, PrefetchSize: 1}); e != nil {
			t.Fatal(e)
		}
		const many = 100
		for n := range int64(many) {
			p.Handle(p.big("p", d, n+1, 100_000, false))
		}
		h.turn()
		if used := h.b.memory.Used(); used < 800_000 || used > 1_200_000 {
			t.Errorf("%s: %d bytes are used of %d", d, used, h.b.memory.Limit())
		}
		told := false
		for _, e := range h.events {
			told = told || e.Kind == SendParked && e.Reason == message.MemoryFull && e.Dest == d
		}
		if !told {
			t.Errorf("%s: nobody is told that sends wait", d)
		}
		for n := 0; n < len(c.got); n++ {
			c.ack(id, d, c.got[n], message.StandardAck, message.TransactionID{})
			h.turn()
		}
		if len(c.got) != many || h.b.parkedBytes != 0 {
			t.Errorf("%s: %d of %d came, %d bytes wait", d, len(c.got), many, h.b.parkedBytes)
		}
	}
}
