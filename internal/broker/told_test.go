package broker

import (
	"slices"
	"strings"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// asks has all destinations' policy ask for all advisories, unless change says otherwise.
func asks(change func(*policy.Entry)) func(*Options) {
	return func(o *Options) {
		e := policy.NewEntry()
		e.Advisory = policy.Advisory{Consumed: true, Delivery: true, Discarding: true,
			SlowConsumers: true, FastProducers: true, WhenFull: true, NoConsumers: true,
			Dispatched: true}
		if change != nil {
			change(e)
		}
		o.Policies = &policy.Map{Default: e}
	}
}

// told lists of what kind what the guest heard is.
func (g *guest) told() (kinds []string) {
	for _, m := range g.heard {
		kind, _, _ := strings.Cut(strings.TrimPrefix(m.Destination.Name, message.AdvisoryPrefix), ".")
		kinds = append(kinds, kind)
	}
	return kinds
}

// listens gives a guest that hears of messages, and of who is slow or full.
func (h *house) listens() *guest {
	l := h.connect("l", "l", "", nil)
	for _, kind := range []string{"Message", "Slow", "Fast", "FULL", "NoConsumer"} {
		for _, rest := range []string{"Delivered", "Consumed", "Dispatched", "Discarded", "Consumer",
			"Producer", ""} {
			l.consume("l", topicNamed("ActiveMQ.Advisory."+kind+rest+".>"))
		}
	}
	return l
}

// acksFirst acknowledges the first message that the guest got.
func (g *guest) acksFirst(c message.ConsumerID, d message.Destination) {
	g.do(&message.MessageAck{Consumer: c, Destination: d, Last: g.got[0], HasLast: true, Count: 1,
		Type: message.StandardAck})
}

// telling is a program, and what is told of it.
type telling struct {
	name   string
	change func(*policy.Entry)
	run    func(h *house, g *guest)
	want   string
}

var tellings = []telling{
	{"sent and consumed", nil, func(_ *house, g *guest) {
		c := g.consume("g", queueQ)
		g.produce("g", queueQ, 1)
		g.acksFirst(c, queueQ)
	}, "MessageDelivered MessageDispatched MessageConsumed"},
	{"purged", nil, func(h *house, g *guest) {
		g.produce("g", queueQ, 1)
		h.b.Purge(queueQ, "", func(Purged, error) {})
	}, "MessageDelivered MessageConsumed"},
	{"forwarded", nil, func(h *house, g *guest) {
		e := &bridgeEnd{}
		id := h.bridge("ID:p", queueQ, e)
		g.produce("g", queueQ, 1)
		h.turn()
		h.b.Settle(id, e.got, 0)
	}, "MessageDelivered MessageDispatched MessageConsumed"},
	{"a durable subscription's", nil, func(h *house, g *guest) {
		a := h.subscribe("a", "s", "T.>", nil)
		g.produce("g", topicNamed("T.x"), 1)
		a.acksFirst(a.id, topicNamed("T.x"))
	}, "MessageDelivered MessageDispatched MessageConsumed"},
	{"rolled back", nil, sentAnd(message.Rollback), ""},
	{"committed", nil, sentAnd(message.CommitOnePhase), "MessageDelivered"},
	{"no switch", func(e *policy.Entry) { e.Advisory = policy.Advisory{} },
		func(h *house, g *guest) {
			g.produce("g", queueQ, 1)
			h.b.Purge(queueQ, "", func(Purged, error) {})
		}, ""},
	{"full", func(e *policy.Entry) { e.Memory.LimitBytes = 1 }, func(h *house, g *guest) {
		for n := range int64(2) {
			m := g.mail("g", queueQ, n+1)
			m.Persistent = false
			g.hand(m)
			h.turn()
		}
	}, "MessageDelivered FULL FastProducer"},
	{"slow", nil, func(h *house, g *guest) {
		g.window("g", queueQ, 1, "")
		for n := range int64(3) {
			g.produce("g", queueQ, n+1)
		}
		h.turn()
	}, "MessageDelivered MessageDispatched MessageDelivered SlowConsumer MessageDelivered"},
}

// sentAnd sends a message in a transaction that ends so.
func sentAnd(end message.TransactionType) func(*house, *guest) {
	return func(_ *house, g *guest) {
		m := g.mail("g", queueQ, 1)
		m.Transaction = g.begin("g", 1)
		g.do(m)
		_ = g.finish(m.Transaction, end)
	}
}

// dispatches are about messages that go to consumers.
var dispatches = []telling{
	{"given back and sent again", nil, func(h *house, g *guest) {
		c := g.window("g", queueQ, 10, "")
		g.produce("g", queueQ, 1)
		g.window("g", queueQ, 10, "")
		h.turn()
		g.do(&message.RemoveInfo{Object: c, LastDelivered: message.LastDeliveredUnset})
	}, "MessageDelivered MessageDispatched MessageDispatched"},
	{"two listen to a topic", nil, func(_ *house, g *guest) {
		g.consume("g", topicNamed("T"))
		g.consume("g", topicNamed(">"))
		g.produce("g", topicNamed("T"), 1)
	}, "MessageDispatched MessageDispatched MessageDelivered"},
	{"forwarded from a topic", nil, func(h *house, g *guest) {
		h.bridge("ID:p", topicNamed("T"), &bridgeEnd{})
		g.produce("g", topicNamed("T"), 1)
	}, "MessageDispatched MessageDelivered"},
	{"browsed", nil, func(_ *house, g *guest) {
		g.produce("g", queueQ, 1)
		g.browse("g", queueQ, 10)
	}, "MessageDelivered"},
}

func TestPoliciesAskForAdvisoriesOfMessages(t *testing.T) {
	for _, c := range slices.Concat(tellings, dispatches) {
		h := open(t, nil, asks(c.change))
		l := h.listens()
		c.run(h, h.connect("g", "g", "", nil))
		h.turn()
		if got := strings.Join(l.told(), " "); got != c.want {
			t.Errorf("%s: told is %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAdvisoriesHaveBodiesWhenThePolicyWantsThem(t *testing.T) {
	for _, whole := range []bool{false, true} {
		h := open(t, nil, asks(func(e *policy.Entry) { e.Advisory.IncludeBody = whole }))
		l := h.listens()
		h.connect("g", "g", "", nil).produce("g", queueQ, 1)
		m := l.heard[0].Data.(*message.Message)
		id, _ := l.heard[0].Property("orignalMessageId")
		of, _ := l.heard[0].Property("orignalDestination")
		if (m.Content != nil) != whole || id != m.ID.String() || of != "queue://q" {
			t.Errorf("%t: %q %v %v", whole, m.Content, id, of)
		}
	}
}

// An advisory of a dispatch says whose: a client's, or the one of a bridge.
func TestADispatchIsToldOfWithItsConsumer(t *testing.T) {
	for _, d := range []message.Destination{queueQ, topicNamed("T")} {
		for _, bridge := range []bool{false, true} {
			h := open(t, nil, asks(nil))
			l := h.connect("l", "l", "", nil)
			l.consume("l", topicNamed("ActiveMQ.Advisory.MessageDispatched.>"))
			g := h.connect("g", "g", "", nil)
			var id message.ConsumerID
			if bridge {
				id = h.bridge("ID:p", d, &bridgeEnd{})
			} else {
				id = g.consume("g", d)
			}
			g.produce("g", d, 1)
			h.turn()
			if len(l.heard) != 1 {
				t.Fatalf("%v, bridge %t: %d told", d, bridge, len(l.heard))
			}
			who, _ := l.heard[0].Property("consumerId")
			what, _ := l.heard[0].Property("orignalMessageId")
			where, _ := l.heard[0].Property("orignalDestination")
			of := l.heard[0].Data.(*message.Message)
			if who != id.String() || what != of.ID.String() || where != d.String() || of.Content != nil {
				t.Errorf("%v, bridge %t: %v %v %v %q", d, bridge, who, what, where, of.Content)
			}
		}
	}
}

// One consumer may listen to a queue and to what is told of it, and ask for each message.
func TestADispatchIsToldToItsOwnConsumer(t *testing.T) {
	for _, prefetch := range []int32{0, 1, 10} {
		h := open(t, nil, asks(nil))
		g := h.connect("g", "g", "", nil)
		both := message.Destination{Kind: message.Queue,
			Name: "q,topic://ActiveMQ.Advisory.MessageDispatched.Queue.q"}
		c := g.window("g", both, prefetch, "")
		for n := range int64(3) {
			g.produce("g", queueQ, n+1)
		}
		for acked := 0; acked < 6; {
			if prefetch == 0 {
				g.do(&message.MessagePull{Consumer: c, Destination: both, Timeout: -1})
			}
			h.turn()
			count := len(g.got) - acked
			if count == 0 {
				t.Fatalf("prefetch %d: only %d came", prefetch, acked)
			}
			acked += count
			last := g.got[acked-1]
			g.do(&message.MessageAck{Consumer: c, Destination: g.from[last], Last: last,
				HasLast: true, Count: int32(count), Type: message.StandardAck})
		}
		if len(g.got) != 6 || len(g.heard) != 3 {
			t.Errorf("prefetch %d: %d came, %d of them told of", prefetch, len(g.got), len(g.heard))
		}
	}
}

// What nobody is there for is given to the advisory topic as it was sent, if it is not persistent.
func TestWhatNobodyIsThereForIsGivenToWhoListens(t *testing.T) {
	for _, d := range []message.Destination{queueQ, topicNamed("T")} {
		for _, persistent := range []bool{false, true} {
			for who, comes := range map[string]func(h *house){
				"nobody":     func(*house) {},
				"a consumer": func(h *house) { h.connect("c", "c", "", nil).consume("c", d) },
				"a bridge":   func(h *house) { h.bridge("ID:p", d, &bridgeEnd{}) },
			} {
				h := open(t, nil, asks(nil))
				l := h.connect("l", "l", "", nil)
				l.consume("l", topicNamed("ActiveMQ.Advisory.NoConsumer.>"))
				comes(h)
				g := h.connect("g", "g", "", nil)
				m := g.mail("g", d, 1)
				m.Persistent, m.Type = persistent, "type"
				g.do(m)
				given := slices.Contains(l.got, m.ID)
				if want := !persistent && who == "nobody"; given != want || len(l.heard) > 0 {
					t.Errorf("%v persistent %t with %s: given %t", d, persistent, who, given)
				}
			}
		}
	}
}
