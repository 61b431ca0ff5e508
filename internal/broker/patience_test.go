package broker

import (
	"maps"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// tells opens a subscription of a peer that told its inDoubtTimeout, and brings a copy in doubt.
func (h *house) tells(peer message.BrokerID, patience time.Duration) {
	h.t.Helper()
	e := &bridgeEnd{}
	id := message.ConsumerID{Connection: message.ConnectionID(peer), Value: int64(h.Rand())}
	d := message.Destination{Kind: message.Queue, Name: id.String()}
	if err := h.b.Subscribe(&network.Subscription{Peer: peer, Filter: e, Sink: e, Hopwire: true,
		Patience: patience,
		Info:     &message.ConsumerInfo{ID: id, Destination: d, PrefetchSize: 1000}}); err != nil {
		h.t.Fatal(err)
	}
	h.turn()
	client := "client " + id.String()
	h.connect(client, client, "", nil).produce(client, d, 1)
	h.turn()
	if len(e.got) == 0 {
		h.t.Fatal("nothing was forwarded")
	}
	h.b.Settle(id, e.got, network.Doubted)
	h.turn()
}

func TestWhatPeersToldOfTheirPatienceIsKeptOverARestart(t *testing.T) {
	h := open(t, nil, nil)
	h.tells("ID:a", network.ForEver)
	h.tells("ID:b \"\n", time.Minute)
	h.tells("ID:b \"\n", time.Second) // the first is open
	h.tells("ID:c", 0)
	got, err := DoubtPatience(h.disk)
	want := map[message.BrokerID]time.Duration{"ID:a": network.ForEver, "ID:b \"\n": time.Minute}
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("the store has %v, %v", got, err)
	}
	h = open(t, h.disk, func(o *Options) { o.DoubtPatience = got })
	if got := h.b.DoubtPatience("ID:a"); got != network.ForEver {
		t.Errorf("after a restart: %v", got)
	}
}

func TestPeersWithoutCopiesAreLeftOut(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		o.DoubtPatience = map[message.BrokerID]time.Duration{"ID:gone": time.Minute}
	})
	h.tells("ID:a", time.Second)
	got, err := DoubtPatience(h.disk)
	if err != nil || !maps.Equal(got, map[message.BrokerID]time.Duration{"ID:a": time.Second}) {
		t.Errorf("the store has %v, %v", got, err)
	}
}
