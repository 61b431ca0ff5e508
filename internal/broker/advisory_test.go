package broker

import (
	"testing"

	"hopwire/internal/message"
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
