package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// linked tells the house that a bridge to a peer, which tells of temporary destinations, is up.
func (h *house) linked(up bool) {
	h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: "ID:a"}, Started: up, Temps: true})
	h.turn()
}

// withMirror gives a broker that mirrors a peer's temporary queue with a reply in it.
func withMirror(t *testing.T) *house {
	h := open(t, nil, nil)
	h.linked(true)
	h.announce(message.AddDestination)
	g := h.connect("g", "g", "", nil)
	if e := g.produce("g", tempQueue, 1); e != nil {
		t.Fatal(e)
	}
	return h
}

func (h *house) mirrors(want bool, after string) {
	h.t.Helper()
	if d := h.b.find(tempQueue); (d != nil) != want {
		h.t.Errorf("%s the mirror is there: %v", after, d != nil)
	} else if want && d.queue.Len() != 1 {
		h.t.Errorf("%s the mirror has %d replies", after, d.queue.Len())
	}
}

func TestMirrorOfARequesterThatLeftWhileTheLinkWasCutIsRemoved(t *testing.T) {
	h := withMirror(t)
	h.linked(false)
	h.pass(10 * time.Second)
	h.linked(true) // the peer announces what there is: not this one
	h.pass(mirrorPatience - time.Second)
	h.mirrors(true, "within the patience")
	h.pass(2 * time.Second)
	h.mirrors(false, "behind the patience")
	if n := h.b.counts.Reasons[message.NoConsumer]; n != 1 {
		t.Errorf("%d replies are counted", n)
	}
	g := h.connect("x", "x", "", nil)
	if e := g.produce("x", tempQueue, 2); e == nil {
		t.Error("a later reply is taken")
	}
}

func TestMirrorOutlivesAShortCut(t *testing.T) {
	h := withMirror(t)
	for range 3 {
		h.linked(false)
		h.pass(mirrorPatience - time.Second)
		h.linked(true)
		h.pass(mirrorPatience - time.Second)
		h.announce(message.AddDestination) // a long replay
		h.pass(3 * mirrorPatience)
	}
	h.mirrors(true, "after short cuts")
	h.announce(message.RemoveDestination)
	h.mirrors(false, "at its owner's word")
}

func TestMirrorEndsAfterAMinuteWithoutALink(t *testing.T) {
	h := withMirror(t)
	h.linked(false)
	h.pass(mirrorPatience - time.Second)
	h.mirrors(true, "within the patience")
	h.pass(time.Second)
	h.mirrors(false, "after a minute")
	if n := h.b.counts.Reasons[message.BridgeDown]; n != 1 {
		t.Errorf("%d replies are counted", n)
	}
}

func TestMirrorStaysWhileSomebodyElseLeadsThere(t *testing.T) {
	h := withMirror(t)
	h.linked(true) // a second connector's
	h.linked(false)
	h.pass(3 * mirrorPatience)
	h.mirrors(true, "with one of two links")
	h.linked(false)
	e := &bridgeEnd{verdict: func(network.Candidate) message.Verdict {
		return message.Refused(message.SelectorNoMatch)
	}}
	id := message.ConsumerID{Connection: "n", Value: 1}
	if err := h.b.Subscribe(&network.Subscription{Peer: "ID:other", Filter: e, Sink: e,
		Info: &message.ConsumerInfo{ID: id, Destination: tempQueue, PrefetchSize: 10}}); err != nil {
		t.Fatal(err)
	}
	h.pass(3 * mirrorPatience)
	h.mirrors(true, "while another bridge leads to it")
	h.b.Unsubscribe(id)
	h.pass(mirrorPatience)
	h.mirrors(false, "when no bridge does")
}

// Demand for a temporary destination may be seen before, or without, the word about it.
func TestWhatABridgesDemandMakesIsAMirror(t *testing.T) {
	h := open(t, nil, nil)
	h.linked(true)
	e := &bridgeEnd{}
	id := message.ConsumerID{Connection: "n", Value: 1}
	if err := h.b.Subscribe(&network.Subscription{Peer: "ID:a", Filter: e, Sink: e,
		Info: &message.ConsumerInfo{ID: id, Destination: tempQueue, PrefetchSize: 10}}); err != nil {
		t.Fatal(err)
	}
	h.announce(message.RemoveDestination)
	h.mirrors(false, "at its owner's word")
}
