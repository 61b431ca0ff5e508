package broker

import (
	"testing"

	"hopwire/internal/message"
)

func (g *guest) remove(d message.Destination) {
	if e := g.do(&message.DestinationInfo{Destination: d, Op: message.RemoveDestination,
		Timeout: 1}); e != nil {
		g.h.t.Error(e)
	}
}

var tempOfG = message.Destination{Kind: message.TempQueue, Name: "ID:g:1"}

// withReply makes g the owner of tempOfG, with a reply in it.
func (g *guest) withReply() {
	g.do(&message.DestinationInfo{Connection: "ID:g", Destination: tempOfG})
	g.produce("ID:g", tempOfG, 1)
}

// Whatever ends without being consumed is counted and told of under a reason.
func TestWhatIsDroppedWithoutAConsumerIsCountedAndToldOf(t *testing.T) {
	advisory := advisoryTopic("Connection")
	for _, c := range []struct {
		name string
		run  func(h *house, g *guest)
		d    message.Destination
		r    message.Reason
		want int64
	}{
		{"a queue is removed", func(_ *house, g *guest) {
			for n := range int64(3) {
				g.produce("ID:g", queueQ, n+1)
			}
			g.remove(queueQ)
		}, queueQ, message.DestinationRemoved, 3},
		{"an owner leaves", func(_ *house, g *guest) {
			g.withReply()
			g.Gone()
		}, tempOfG, message.NoConsumer, 1},
		{"an owner removes", func(_ *house, g *guest) {
			g.withReply()
			g.remove(tempOfG)
		}, tempOfG, message.DestinationRemoved, 1},
		{"a peer's owner leaves", func(h *house, g *guest) {
			h.told(there, "ID:a")
			g.produce("ID:g", tempQueue, 1)
			h.told(gone, "ID:a")
		}, tempQueue, message.NoConsumer, 1},
		{"a topic is removed", func(h *house, g *guest) {
			h.subscribe("a", "s", "T", nil).leave()
			g.produce("ID:g", topicNamed("T"), 1)
			g.remove(topicNamed("T"))
		}, topicNamed("T"), message.Unsubscribed, 1},
		{"a client unsubscribes", func(h *house, g *guest) {
			a := h.subscribe("a", "s", "T", nil)
			a.do(&message.RemoveInfo{Object: a.id, LastDelivered: message.LastDeliveredUnset})
			g.produce("ID:g", topicNamed("T"), 1)
			if e := a.do(&message.RemoveSubscriptionInfo{SubscriptionName: "s"}); e != nil {
				t.Error(e)
			}
		}, topicNamed("T"), message.Unsubscribed, 1},
		{"an advisory topic", func(_ *house, g *guest) {
			g.produce("ID:g", advisory, 1)
		}, advisory, message.AdvisoryTopic, 1},
		{"an advisory topic, in a transaction", func(_ *house, g *guest) {
			m := g.mail("ID:g", advisory, 1)
			m.Transaction = g.begin("ID:g", 1)
			g.do(m)
			if e := g.finish(m.Transaction, message.CommitOnePhase); e != nil {
				t.Error(e)
			}
		}, advisory, message.AdvisoryTopic, 1},
	} {
		h := open(t, nil, nil)
		c.run(h, h.connect("ID:g", "g", "", nil))
		h.turn()
		h.ended(c.name, c.d, c.r, c.want)
		if all := h.b.counts.Reasons; len(all) != 1 {
			t.Errorf("%s: counted are %v", c.name, all)
		}
	}
}
