package broker

import (
	"fmt"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// narrow is a bridge's side whose own window is smaller than the prefetch, as while it ramps up.
type narrow struct {
	bridgeEnd
	window, inFlight int
}

func (n *narrow) Gate(time.Duration) message.Verdict {
	if n.inFlight >= n.window {
		return message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
			Reason: message.RemoteWindowFull}
	}
	return message.Verdict{}
}
func (n *narrow) Took(message.Destination, network.Replay, time.Duration) { n.inFlight++ }

// A peer is not to make a destination that nobody could send to.
func TestABridgeSubscribesToNothingWithoutAName(t *testing.T) {
	h := open(t, nil, nil)
	for _, d := range []message.Destination{{}, {Kind: message.Queue}, {Name: "x"},
		{Kind: message.Queue, Name: ","}, {Kind: 99, Name: "x"}} {
		id := message.ConsumerID{Connection: "b", Session: 1, Value: 1}
		err := h.b.Subscribe(&network.Subscription{Peer: "b", Info: &message.ConsumerInfo{ID: id,
			Destination: d, PrefetchSize: 10, NetworkSubscription: true}})
		if message.KindOf(err) != message.InvalidDestination || len(h.b.networks.subs) > 0 ||
			h.b.dests[d] != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

func TestAnswersOpenABridgesGateWithoutALookAtAllCopies(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	g := h.connect("c", "c", "", nil)
	const many = 1000
	for n := range int64(many) {
		g.produce("c", q, n)
	}
	e := &narrow{window: 10}
	e.verdict = func(c network.Candidate) message.Verdict {
		if c.Message().ID.Sequence < many/2 {
			return message.Refused(message.SelectorNoMatch)
		}
		return message.Verdict{}
	}
	id := message.ConsumerID{Connection: "n", Value: 1}
	if err := h.b.Subscribe(&network.Subscription{Peer: "ID:p", Filter: e, Sink: e,
		Info: &message.ConsumerInfo{ID: id, Destination: q, PrefetchSize: 1000}}); err != nil {
		t.Fatal(err)
	}
	h.turn()
	for len(e.got) < many/2 && e.inFlight > 0 {
		answered := e.got[len(e.got)-e.inFlight:]
		e.inFlight = 0
		h.b.Settle(id, answered, network.Acked)
		h.turn()
	}
	if len(e.got) != many/2 || e.asked > many+many/10 {
		t.Errorf("%d of %d were forwarded after %d looks at %d copies", len(e.got), many/2, e.asked,
			many)
	}
}

func TestABrokerKnowsWhoseBridgesLeadHere(t *testing.T) {
	var told []EventKind
	h := open(t, nil, func(o *Options) {
		o.Observe = func(e Event) {
			if e.Peer == "a" {
				told = append(told, e.Kind)
			}
		}
	})
	g := h.connect("l1", "nc_a_outbound", "u", peerNamed("a", "1"))
	h.connect("c1", "client", "u", nil)
	in := h.b.Status().Incoming
	if len(in) != 1 || in[0].Peer.Name != "a" || in[0].ClientID != "nc_a_outbound" {
		t.Fatalf("bridges that lead here: %+v", in)
	}
	g.close("")
	if in := h.b.Status().Incoming; len(in) != 0 || len(told) != 2 || told[0] != BridgeCame ||
		told[1] != BridgeLeft {
		t.Errorf("afterwards: %+v; told of %v", in, told)
	}
}

// A bridge that led here alone and went without a word is AWAY until its connector is back.
func TestABridgeThatLedHereAndWentWithoutAWordIsAway(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(h *house, g *guest)
		want int
	}{
		{"it is cut", func(_ *house, g *guest) { g.Gone() }, 1},
		{"it says good-bye", func(_ *house, g *guest) {
			g.Handle(&message.ShutdownInfo{})
			g.Gone()
		}, 0},
		{"it is back", func(h *house, g *guest) {
			g.Gone()
			h.connect("l2", "nc_a_outbound", "u", peerNamed("a", "2"))
		}, 0},
		{"it was back before", func(h *house, g *guest) {
			h.connect("l2", "nc_a_other", "u", peerNamed("a", "2"))
			g.Gone()
		}, 0},
		{"another peer is there", func(h *house, g *guest) {
			g.Gone()
			h.connect("l2", "nc_b_outbound", "u", peerNamed("b", "2"))
		}, 1},
		{"it is back as duplex", func(h *house, g *guest) {
			g.Gone()
			duplexOf(h, "l2", "nc_a_outbound", peerNamed("a", "2"))
		}, 0},
		{"it was back as duplex before", func(h *house, g *guest) {
			duplexOf(h, "l2", "nc_a_other", peerNamed("a", "2"))
			g.Gone()
		}, 0},
		{"that is long ago", func(h *house, g *guest) {
			g.Gone()
			h.pass(awayTime + time.Second)
		}, 0},
	} {
		h := open(t, nil, nil)
		c.end(h, h.connect("l1", "nc_a_outbound", "u", peerNamed("a", "1")))
		h.pass(time.Minute)
		away := 0
		for _, x := range h.b.Status().Incoming {
			if x.Away {
				away++
			}
			if x.Away && (x.Peer.Name != "a" || x.Since != time.Minute) {
				t.Errorf("%s: %+v", c.name, x)
			}
		}
		if away != c.want {
			t.Errorf("%s: %d are away", c.name, away)
		}
	}
	h := open(t, nil, nil)
	for n := range awayMost + 5 {
		name := fmt.Sprint("a", n)
		h.connect("l"+name, "nc_"+name, "u", peerNamed(name, "1")).Gone()
	}
	if in := h.b.Status().Incoming; len(in) != awayMost || in[0].Peer.Name != "a5" {
		t.Errorf("%d are away", len(in))
	}
}

// duplexOf connects a peer's bridge that leads back, too.
func duplexOf(h *house, id message.ConnectionID, clientID string, p *message.BrokerInfo) {
	g := &guest{h: h}
	g.Connection = h.b.Connect(g, Remote{Address: "test", HopwireLevel: 1},
		func(*message.BrokerInfo) {})
	p.Duplex = true
	g.do(p)
	g.do(&message.ConnectionInfo{ID: id, ClientID: clientID, UserName: "u"})
}

// What is refused comes again and again: only what was taken counts as received.
func TestReceivedCountsWhatWasTaken(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("l1", "nc_a_outbound", "u", peerNamed("a", "1"))
	want := func(when string, n int64) {
		t.Helper()
		s := h.b.Status()
		if s.Counts.Received != n || s.Incoming[0].Received != n {
			t.Errorf("%s: received %d, the bridge %d; want %d", when, s.Counts.Received,
				s.Incoming[0].Received, n)
		}
	}
	nobody := message.ProducerID{Connection: "l1", Session: 1, Value: 9}
	for n := range int64(3) {
		m := &message.Message{Producer: nobody, Destination: queueNamed("q"), Persistent: true,
			BrokerPath: []message.BrokerID{"a"},
			ID:         message.MessageID{Producer: nobody, Sequence: n}}
		if g.do(m) == nil {
			t.Fatal("taken from a producer that is not there")
		}
	}
	want("after refusals", 0)
	if e := g.produce("l1", queueNamed("q"), 1, "a"); e != nil {
		t.Fatal(e)
	}
	want("after one that was taken", 1)
}
