package broker

import (
	"slices"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

func TestAdvisoriesNobodyAcknowledgesAreChargedAndBounded(t *testing.T) {
	for _, peer := range []*message.BrokerInfo{nil, peerNamed("x", "10")} {
		h := open(t, nil, nil)
		g := h.connect("g", "g", "", peer)
		if e := g.do(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "g", Session: 1},
			Destination: topicNamed("ActiveMQ.Advisory.Queue"), PrefetchSize: 1}); e != nil {
			t.Fatal(e)
		}
		data := &message.DestinationInfo{Destination: queueNamed("q")}
		h.b.advise("Queue", data)
		h.b.advise("Queue", data)
		one := h.b.memory.Used()
		if one == 0 {
			t.Fatal("an advisory that waits is not charged")
		}
		for range advisoryBacklogBytes/one + 10 {
			h.b.advise("Queue", data)
		}
		h.turn()
		if used := h.b.memory.Used(); used > advisoryBacklogBytes {
			t.Errorf("%d bytes of advisories wait", used)
		}
		if g.gone != (peer != nil) {
			t.Errorf("peer %v: closed is %v", peer != nil, g.gone)
		}
		g.Gone()
		h.turn()
		if used := h.b.memory.Used(); used != 0 {
			t.Errorf("%d bytes are charged at the end", used)
		}
	}
}

func TestABridgeWhosePeerTakesNoAdvisoriesIsClosed(t *testing.T) {
	h := open(t, nil, nil)
	e := &bridgeEnd{}
	id := h.bridge("ID:p", topicNamed("ActiveMQ.Advisory.Queue"), e)
	data := &message.DestinationInfo{Destination: queueNamed("q")}
	for range 1000 { // the prefetch of the bridge
		h.b.advise("Queue", data)
	}
	h.b.advise("Queue", data)
	one := h.b.memory.Used()
	if one == 0 {
		t.Fatal("an advisory that waits is not charged")
	}
	for range advisoryBacklogBytes/one + 1 {
		h.b.advise("Queue", data)
	}
	h.turn()
	if e.closed == "" || h.b.networks.subs[id] != nil {
		t.Errorf("the bridge goes on; %d bytes of advisories wait", h.b.memory.Used())
	}
	if used := h.b.memory.Used(); used != 0 {
		t.Errorf("%d bytes are charged at the end", used)
	}
}

func TestOnlyHopwirePeersAreToldOfOtherSelectors(t *testing.T) {
	h := open(t, nil, nil)
	all := topicNamed("ActiveMQ.Advisory.Consumer.>")
	listener, peer := h.connect("l", "l", "", nil), h.connect("p", "p", "", peerNamed("p", "10"))
	listener.consume("l", all)
	peer.consume("p", all)
	duplex := &bridgeEnd{}
	h.bridge("ID:d", all, duplex)
	activemq := &bridgeEnd{}
	if err := h.b.Subscribe(&network.Subscription{Peer: "ID:a", Filter: activemq, Sink: activemq,
		Info: &message.ConsumerInfo{ID: message.ConsumerID{Connection: "a"}, Destination: all,
			PrefetchSize: 1000}}); err != nil {
		t.Fatal(err)
	}
	q := h.bridge("ID:x", queueNamed("q"), &bridgeEnd{})
	counts := func() [4]int {
		h.turn()
		return [4]int{len(listener.got), len(peer.got), len(duplex.got), len(activemq.got)}
	}
	before := counts()
	h.b.SetSelectors(q, `"a=1"`)
	h.b.SetSelectors(q, `"a=1"`)
	after := counts()
	for i, want := range [4]int{0, 1, 1, 0} {
		if got := after[i] - before[i]; got != want {
			t.Errorf("listener %d was told %d times, want %d", i, got, want)
		}
	}
	late := h.connect("late", "late", "", peerNamed("z", "10"))
	late.consume("late", all)
	h.turn()
	if len(late.got) == 0 {
		t.Error("a late listener was told nothing")
	}
}

// consumerCounts lists what advisories of a topic say of the number of its consumers.
func (g *guest) consumerCounts() []int32 {
	var out []int32
	for _, m := range g.heard {
		if n, ok := m.Property("consumerCount"); ok {
			out = append(out, n.(int32))
		}
	}
	return out
}

func TestConsumersThatBrowseOrAreAwayAreAdvisedOfAndCounted(t *testing.T) {
	h := open(t, nil, nil)
	l := h.connect("l", "l", "", nil)
	l.consume("l", topicNamed("ActiveMQ.Advisory.Consumer.>"))
	g := h.connect("g", "g", "", nil)
	id := g.browse("g", queueNamed("q"), 10)
	g.do(&message.RemoveInfo{Object: id, LastDelivered: message.LastDeliveredUnset})
	if got := l.consumerCounts(); !slices.Equal(got, []int32{1, 0}) {
		t.Errorf("of a browser: %v", got)
	}
	l.heard = nil
	a := h.subscribe("a", "s", "T", nil)
	a.leave()
	b := h.subscribe("b", "s", "T", nil)
	b.leave()
	h.connect("a", "a", "", nil).do(&message.RemoveSubscriptionInfo{SubscriptionName: "s",
		ClientID: "a"})
	if got := l.consumerCounts(); !slices.Equal(got, []int32{1, 1, 2, 2, 1}) {
		t.Errorf("of durable subscriptions: %v", got)
	}
}
