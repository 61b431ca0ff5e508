package broker

import (
	"testing"

	"hopwire/internal/message"
)

// Receipts, marks and doubts are kept under a peer's id: it must have one, and not ours.
func TestBrokerWithoutAnIDOrWithOursIsNoPeer(t *testing.T) {
	for _, id := range []message.BrokerID{"", "ID:b"} {
		h := open(t, nil, nil)
		g := &guest{h: h}
		g.Connection = h.b.Connect(g, Remote{Address: "test", HopwireLevel: 1}, nil)
		if e := g.do(&message.BrokerInfo{ID: id, Name: "p", NetworkConnection: true}); e == nil {
			t.Errorf("broker id %q is let in as a peer", id)
		}
		if h.b.counts.Reasons[message.LoginRefused] == 0 {
			t.Errorf("broker id %q: the refusal is not counted", id)
		}
		e := g.do(&message.ConnectionInfo{ID: "p", ClientID: "p"})
		if e == nil || len(h.b.connOrder) != 0 {
			t.Errorf("broker id %q: the connection that was to be a peer's is let in", id)
		}
		if h.pass(2 * refusedDelay); g.closed == "" {
			t.Errorf("broker id %q: the connection stays", id)
		}
	}
}
