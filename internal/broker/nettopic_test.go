package broker

import (
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// topicTo gives a broker with a bridge that has room for two of a topic's messages, of which five
// were published, the last of them with a time to live.
func topicTo(t *testing.T) (*house, *bridgeEnd, message.ConsumerID) {
	h := open(t, nil, nil)
	e, tp := &bridgeEnd{}, topicNamed("t")
	id := message.ConsumerID{Connection: "n", Value: 1}
	if err := h.b.Subscribe(&network.Subscription{Peer: "ID:a", Filter: e, Sink: e,
		Info: &message.ConsumerInfo{ID: id, Destination: tp, PrefetchSize: 2}}); err != nil {
		t.Fatal(err)
	}
	g := h.connect("g", "g", "", nil)
	for n := range int64(5) {
		m := g.mail("g", tp, n+1)
		if n == 4 {
			m.Expiration = h.Wall() + 1000
		}
		g.do(m)
	}
	if len(e.got) != 2 {
		t.Fatalf("%d are on their way", len(e.got))
	}
	return h, e, id
}

func (h *house) dropped(r message.Reason, want int64) {
	h.t.Helper()
	d, told := h.b.find(topicNamed("t")), int64(0)
	for _, e := range h.events {
		if e.Kind == MessageDropped && e.Reason == r && e.Dest == d.name {
			told += e.Count
		}
	}
	if d.reasons[r] != want || h.b.counts.Reasons[r] != want || told != want {
		h.t.Errorf("%s: %d at the topic, %d at the broker, %d told, want %d", r, d.reasons[r],
			h.b.counts.Reasons[r], told, want)
	}
	if used := h.b.memory.Used(); used != 0 && r == message.BridgeDown {
		h.t.Errorf("%d bytes stay charged", used)
	}
}

func TestTopicMessagesThatExpireBeforeABridgeCountAsExpired(t *testing.T) {
	h, e, id := topicTo(t)
	h.pass(2_000_000_000)
	for i := 0; i < len(e.got); i++ {
		h.b.Settle(id, e.got[i:i+1], network.Acked)
		h.turn()
	}
	if len(e.got) != 4 || h.b.counts.Expired != 1 {
		t.Errorf("%d crossed, %d expired", len(e.got), h.b.counts.Expired)
	}
	h.dropped(message.Expired, 1)
	h.b.Unsubscribe(id)
	h.dropped(message.BridgeDown, 0)
}

func TestTopicMessagesThatALinkTakesWithItAreCounted(t *testing.T) {
	h, _, id := topicTo(t)
	h.b.Unsubscribe(id) // nothing was answered
	h.dropped(message.BridgeDown, 5)

	h, e, id := topicTo(t)
	h.b.Settle(id, e.got[:1], network.Acked)        // makes room for the third
	h.b.Settle(id, e.got[1:2], network.Redelivered) // the link ends
	h.b.Unsubscribe(id)
	h.dropped(message.BridgeDown, 4)
	if f := h.b.find(topicNamed("t")).counts.Forwarded; f != 1 || h.b.counts.Forwarded != 1 {
		t.Errorf("%d count as forwarded at the topic, %d at the broker, want 1", f,
			h.b.counts.Forwarded)
	}

	h, e, id = topicTo(t)
	for i := 0; i < len(e.got); i++ {
		h.b.Settle(id, e.got[i:i+1], network.Acked)
	}
	h.b.Unsubscribe(id)
	h.dropped(message.BridgeDown, 0)
}
