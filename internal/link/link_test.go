package link

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hopwire/internal/bridge"
	"hopwire/internal/message"
)

func TestMessagesCrossALinkToWhereTheConsumerIs(t *testing.T) {
	a, b := newHouse(t, "a"), newHouse(t, "b")
	a.connect(b.uri(), nil)
	a.until4(bridge.Running)
	q := queue("orders")
	consumer := b.user("consumer")
	consumer.consume(q)
	producer := a.user("producer")
	const n = 200
	for i := range n {
		producer.produce(q, int64(i+1), fmt.Sprint("order ", i))
	}
	for i := range n {
		if m := consumer.receive(); string(m.Content) != fmt.Sprint("order ", i) {
			t.Fatalf("got %q at %d", m.Content, i)
		}
	}
	a.until("all is answered", func() bool {
		s := a.connector.Status()
		return s.Answered == n && s.InFlight == 0 && a.broker.Status().Destinations[0].Size == 0
	})
}

func TestADuplexLinkCarriesBothWays(t *testing.T) {
	a, b := newHouse(t, "a"), newHouse(t, "b")
	a.connect(b.uri(), func(o *bridge.Options) { o.Duplex = true })
	a.until4(bridge.Running)
	b.until("the half of b runs", func() bool {
		acc := b.home.Accepted()
		return len(acc) == 1 && acc[0].Status().State == bridge.Running
	})
	here, there := queue("to.a"), queue("to.b")
	ca, cb := a.user("ca"), b.user("cb")
	ca.consume(here)
	cb.consume(there)
	pa, pb := a.user("pa"), b.user("pb")
	for i := range 50 {
		pa.produce(there, int64(i+1), fmt.Sprint(i))
		pb.produce(here, int64(i+1), fmt.Sprint(i))
	}
	for i := range 50 {
		if m := cb.receive(); string(m.Content) != fmt.Sprint(i) {
			t.Fatalf("at b: %q, want %d", m.Content, i)
		}
		if m := ca.receive(); string(m.Content) != fmt.Sprint(i) {
			t.Fatalf("at a: %q, want %d", m.Content, i)
		}
	}
	// The end of the connection ends both halves and gives the client id back.
	a.ask(func() { a.connector.Restart("test") })
	b.until("a new half took the old one's place", func() bool {
		acc := b.home.Accepted()
		return len(acc) == 1 && acc[0].Status().State == bridge.Running
	})
	a.until4(bridge.Running)
	pa.produce(there, 51, "again")
	if m := cb.receive(); string(m.Content) != "again" {
		t.Fatalf("after the restart: %q", m.Content)
	}
}

func TestAHopwirePeerIsKnown(t *testing.T) {
	a, b := newHouse(t, "a"), newHouse(t, "b")
	a.connect(b.uri()+"?wireFormat.cacheEnabled=true&wireFormat.tightEncodingEnabled=true", nil)
	a.until("the peer is known as Hopwire", func() bool {
		s := a.connector.Status()
		return s.State == bridge.Running && s.Hopwire && s.Peer.Name == "b"
	})
	a.ask(func() {
		if s := a.connector.Status(); s.Peer.ID != b.broker.Info().ID {
			t.Errorf("the peer is %+v", s.Peer)
		}
	})
}

// A broker that loses its link to another of its name hears why, whichever kind its bridge is.
func TestWhoLosesItsLinkToANamesakeIsToldWhy(t *testing.T) {
	for _, duplex := range []bool{false, true} {
		hub, one, two := newHouse(t, "hub"), newHouse(t, "shop+1"), newHouse(t, "shop+2")
		change := func(o *bridge.Options) { o.Name, o.Duplex = "up", duplex }
		one.connect(hub.uri(), change)
		one.until4(bridge.Running)
		two.connect(hub.uri(), change)
		one.until("the first knows why", func() bool {
			return strings.Contains(one.connector.Status().Error,
				"the peer ended the link: two brokers are called shop")
		})
		hub.ask(func() {
			if n := hub.broker.Status().Counts.Reasons[message.SameName]; n == 0 {
				t.Error("the hub does not count it")
			}
		})
	}
}

func TestABrokerOfItsHubsNameIsTold(t *testing.T) {
	hub, shop := newHouse(t, "hub"), newHouse(t, "hub+2")
	shop.connect(hub.uri(), nil)
	shop.until("it is counted", func() bool {
		return slices.Contains(shop.connector.Status().Counts,
			bridge.Count{Reason: message.SameName, N: 1})
	})
}
