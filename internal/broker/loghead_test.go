package broker

import (
	"fmt"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// whole fails when the store failed, or when its references and logs do not fit.
func (h *house) whole(what string) {
	h.t.Helper()
	if err := h.b.journal.failed; err != nil {
		h.t.Errorf("%s: the store failed: %v", what, err)
	}
	if err := h.disk.Check(); err != nil {
		h.t.Errorf("%s: %v", what, err)
	}
}

func TestALogsHeadStaysBelowWhatIsOnItsWayIntoIt(t *testing.T) {
	for what, end := range map[string]func(h *house, a *reader){
		"unsubscribed": func(h *house, a *reader) {
			a.Handle(&message.RemoveInfo{Object: a.id, LastDelivered: message.LastDeliveredUnset})
			a.Handle(&message.RemoveSubscriptionInfo{SubscriptionName: "s"})
		},
		"another selector": func(h *house, a *reader) {
			a.Handle(&message.RemoveInfo{Object: a.id, LastDelivered: message.LastDeliveredUnset})
			c := a.id
			c.Value++
			a.Handle(&message.ConsumerInfo{ID: c, Destination: topicNamed("T"), PrefetchSize: 10,
				SubscriptionName: "s", Selector: "JMSPriority=9"})
		},
		"delivered twice": func(h *house, a *reader) {
			h.b.dispatch()
			a.Gone()
			h.b.dispatch()
			b := &reader{guest: &guest{h: h}}
			b.Connection = h.b.Connect(b.guest, Remote{Address: "test"}, nil)
			b.Handle(&message.ConnectionInfo{ID: "b", ClientID: "a"})
			b.Handle(&message.SessionInfo{ID: message.SessionID{Connection: "b", Value: 1}})
			b.id = message.ConsumerID{Connection: "b", Session: 1, Value: 1}
			b.Handle(&message.ConsumerInfo{ID: b.id, Destination: topicNamed("T"), PrefetchSize: 10,
				SubscriptionName: "s"})
			h.b.dispatch()
			for _, m := range b.got {
				b.Handle(&message.MessageAck{Consumer: b.id, Destination: topicNamed("T"), Last: m,
					HasLast: true, Count: 1, Type: message.StandardAck})
			}
		},
	} {
		h := open(t, nil, nil)
		a := h.subscribe("a", "s", "T", nil)
		g := h.connect("g", "g", "", nil)
		m := g.mail("g", topicNamed("T"), 2)
		h.b.journal.busy = true // a batch is on its way
		g.Handle(m)
		end(h, a)
		h.b.journal.busy = false
		h.turn()
		g.produce("g", queueNamed("q"), 50) // the next batch
		h.whole(what)
		if n := h.loggedOf("T"); n != 0 {
			t.Errorf("%s: %d messages stay logged", what, n)
		}
	}
}

func TestAReferenceWhoseEndWaitsForRoomKeepsItsMessage(t *testing.T) {
	for _, topics := range []string{"T", "T,U"} {
		h := open(t, nil, nil)
		a := h.subscribe("a", "s", topics, nil)
		h.publish("T", 1, 1)
		h.disk.SetCapacity(1, 1)
		a.do(&message.MessageAck{Consumer: a.id, Destination: topicNamed("T"), Last: a.got[0],
			HasLast: true, Count: 1, Type: message.PoisonAck})
		a.leave()
		g := h.connect("g", "g", "", nil)
		e := g.do(&message.DestinationInfo{Destination: topicNamed("T"),
			Op: message.RemoveDestination, Timeout: 1})
		if topics != "T" && e == nil {
			t.Errorf("%s: the topic went under a reference", topics)
		}
		h.whole(topics)
		again := open(t, h.disk.CrashClone(0), nil)
		again.disk.SetCapacity(0, 0)
		if got := again.subscribe("a", "s", topics, nil).bodies(); topics != "T" && got != "1" {
			t.Errorf("%s: after a crash it gets %q", topics, got)
		}
		h.disk.SetCapacity(0, 0)
		h.pass(3 * time.Second)
		h.whole(topics + ", room again")
	}
}

func TestOfflineDurablesDoNotFillMemory(t *testing.T) {
	small := policy.NewEntry()
	small.Memory.LimitBytes = 100 << 10
	h := open(t, nil, func(o *Options) {
		o.MemoryLimitBytes, o.Policies = 8<<20, &policy.Map{Default: small}
	})
	const readers, many = 12, 400
	for n := range readers {
		h.subscribe(fmt.Sprint("c", n), "s", "T", nil).leave()
	}
	g := h.connect("g", "g", "", nil)
	for n := range int64(many) {
		for _, persistent := range []bool{true, false} {
			m := g.big("g", topicNamed("T"), 2*n, 9000, persistent)
			if !persistent {
				m.ID.Sequence++
			}
			g.Handle(m)
			h.turn()
		}
		if len(h.b.parked) > 0 {
			t.Fatalf("message %d waits, with %d bytes of memory used", n, h.b.memory.Used())
		}
	}
	dropped := h.b.counts.Reasons[message.MemoryFull]
	if dropped == 0 || dropped > readers*many || h.b.memory.Used() > 8<<20 {
		t.Errorf("%d dropped, %d bytes used", dropped, h.b.memory.Used())
	}
	r := h.subscribe("c3", "s", "T", func(c *message.ConsumerInfo) { c.PrefetchSize = 2000 })
	stored := 0
	for _, id := range r.got {
		if id.Sequence%2 == 0 {
			stored++
		}
	}
	if stored != many {
		t.Errorf("%d of %d persistent messages come", stored, many)
	}
}

func TestStoredSendsOfATransactionDoNotWaitForTheirQueuesMemory(t *testing.T) {
	small := policy.NewEntry()
	small.Memory.LimitBytes = 100 << 10
	h := open(t, nil, func(o *Options) {
		o.MemoryLimitBytes, o.Policies = 8<<20, &policy.Map{Default: small}
	})
	g := h.connect("g", "g", "", nil)
	for n := range int64(40) {
		tx := g.begin("g", n+1)
		for i := range int64(50) {
			m := g.big("g", queueNamed("q"), n*50+i+1, 500, true)
			m.Transaction = tx
			g.Handle(m)
		}
		if e := g.finish(tx, message.CommitOnePhase); e != nil {
			t.Fatal(e)
		}
	}
	if n := h.b.find(queueNamed("q")).queue.Len(); n != 2000 || h.b.openBytes != 0 {
		t.Errorf("%d of 2000 are there, %d bytes are in open transactions", n, h.b.openBytes)
	}
}
