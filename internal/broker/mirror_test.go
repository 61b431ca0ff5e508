package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// linked tells the house that a bridge to a peer, which tells of temporary destinations, is up.
func (h *house) linked(up bool) { h.link("ID:l", true, up) }

// link is linked by a link of that name, over which the peer may tell of temporary destinations.
func (h *house) link(name message.ConnectionID, temps, up bool) {
	h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: "ID:a"}, Link: name, Started: up,
		Temps: temps})
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
	h.link("ID:l2", true, true) // a second connector's
	h.linked(false)
	h.pass(3 * mirrorPatience)
	h.mirrors(true, "with one of two links")
	h.link("ID:l2", true, false)
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

func TestABridgeStaysKnownWhenAnotherToItsPeerComesOrGoes(t *testing.T) {
	for name, temps := range map[string]bool{"one like it": true, "one without temporaries": false} {
		h, g := asked(t) // over a link without a name
		h.link("ID:second", temps, true)
		g.tell(g.mail("g", tempQueue, 1)) // waits, as a bridge may tell of its destination
		h.link("ID:second", temps, false)
		g.tell(g.mail("g", tempQueue, 2))
		if n := len(h.b.networks.peers); n != 1 {
			t.Errorf("%s came and went: %d bridges are up", name, n)
		}
		h.link("", true, false)
		if n := len(h.b.networks.peers); n != 0 {
			t.Errorf("%s came and went: %d bridges are up in the end", name, n)
		}
	}
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

// told has a peer announce tempQueue, or tell that it is gone there.
func (h *house) told(op message.DestinationOp, path ...message.BrokerID) {
	h.t.Helper()
	info := &message.DestinationInfo{Destination: tempQueue, Op: op, BrokerPath: path}
	if err := h.b.Temp(network.Peer{ID: path[len(path)-1]}, info); err != nil {
		h.t.Fatal(err)
	}
	h.turn()
}

// requester is the owner of tempQueue, connected here, with a consumer of it.
func (h *house) requester() *guest {
	h.t.Helper()
	r := h.connect("ID:far-1", "r", "", nil)
	if e := r.do(&message.DestinationInfo{Connection: "ID:far-1", Destination: tempQueue}); e != nil {
		h.t.Fatal(e)
	}
	r.consume("ID:far-1", tempQueue)
	return r
}

// replies has an application here reply, which is taken or not.
func (h *house) replies(want bool, after string) {
	h.t.Helper()
	g := h.connect("ID:g", "g", "", nil)
	if e := g.produce("ID:g", tempQueue, 7); (e == nil) != want {
		h.t.Errorf("%s a reply is taken: %v (%v)", after, e == nil, e)
	}
	g.Gone()
}

const gone, there = message.RemoveDestination, message.AddDestination

func TestARequesterThatFailsOverKeepsItsTemporaryQueue(t *testing.T) {
	for name, c := range map[string]struct {
		come func(h *house)
		end  func(h *house)
		last message.BrokerID // who has it in the end; "" its owner is here
	}{
		"it came here, its old broker finds out": {
			func(h *house) { h.told(there, "ID:a"); h.requester() },
			func(h *house) { h.told(gone, "ID:a") }, ""},
		"it came here, its old broker ends": {
			func(h *house) { h.told(there, "ID:a"); h.requester() },
			func(h *house) { h.linked(false); h.pass(2 * mirrorPatience) }, ""},
		"it came here while the link was cut": {
			func(h *house) { h.told(there, "ID:a"); h.linked(false); h.requester() },
			func(h *house) { h.linked(true); h.pass(2 * mirrorPatience) }, ""},
		"it came here, its old broker tells again": {
			func(h *house) { h.requester(); h.told(there, "ID:a") },
			func(h *house) { h.told(gone, "ID:a") }, ""},
		"a stranger announced it before": {
			func(h *house) {
				g := h.connect("ID:s", "s", "", nil)
				g.do(&message.DestinationInfo{Connection: "ID:s", Destination: tempQueue})
				h.requester()
			},
			func(h *house) { h.b.connections["ID:s"].Gone(); h.turn() }, ""},
		"it went to a peer": {
			func(h *house) { h.requester(); h.told(there, "ID:c") },
			func(h *house) { h.b.connections["ID:far-1"].Gone(); h.turn() }, "ID:c"},
		"it went from one peer to another": {
			func(h *house) { h.told(there, "ID:a"); h.told(there, "ID:d", "ID:c") },
			func(h *house) { h.told(gone, "ID:a") }, "ID:c"},
		"it is reached by way of another peer": {
			func(h *house) { h.told(there, "ID:a"); h.linked(false); h.told(there, "ID:a", "ID:c") },
			func(h *house) { h.pass(2 * mirrorPatience) }, "ID:c"},
	} {
		h := open(t, nil, nil)
		h.linked(true)
		c.come(h)
		c.end(h)
		h.replies(true, name+":")
		if c.last == "" {
			r := h.b.connections["ID:far-1"]
			if n := len(r.out.(*guest).got); n != 1 {
				t.Errorf("%s: the requester got %d replies", name, n)
			}
			r.Gone()
			h.turn()
		} else {
			h.told(gone, c.last)
		}
		h.replies(false, name+": when its owner is gone")
		if u := h.b.memory.Used(); u != 0 {
			t.Errorf("%s: %d bytes are used in the end", name, u)
		}
	}
}

// Two brokers that have a temporary destination by way of each other would keep it for ever.
func TestWhoHasATemporaryQueueByWayOfWhomIsTold(t *testing.T) {
	h := open(t, nil, nil)
	listener := h.connect("ID:l", "l", "", nil)
	listener.consume("ID:l", advisoryTopic("TempQueue"))
	h.requester()
	h.told(there, "ID:c", "ID:a")
	h.b.connections["ID:far-1"].Gone()
	h.turn()
	want := []string{"[]", "[ID:c ID:a]"}
	var got []string
	for _, m := range listener.data {
		if d, ok := m.(*message.DestinationInfo); ok && d.Op == there {
			got = append(got, fmt.Sprint(d.BrokerPath))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("announced by way of %v, want %v", got, want)
	}
	h.told(there, "ID:x", "ID:a", "ID:b2") // by way of who has it
	h.told(gone, "ID:a")
	h.replies(false, "what both peers had from one:")
}

// What was removed under its owner is not removed again with it, nor is what came after it.
func TestATemporaryDestinationIsRemovedOnce(t *testing.T) {
	h := open(t, nil, nil)
	r := h.requester()
	d := h.b.find(tempQueue)
	if err := h.b.removeDestination(d, true); err != nil {
		t.Fatal(err)
	}
	h.told(there, "ID:a")
	h.replies(true, "of its successor:")
	used := h.b.memory.Used()
	r.Gone()
	h.turn()
	_ = h.b.removeDestination(d, true)
	if n := h.b.memory.Used(); n != used || len(r.temps) > 0 || h.b.find(tempQueue) == nil {
		t.Errorf("%d bytes are used, %d were; the successor is there: %v", n, used,
			h.b.find(tempQueue) != nil)
	}
}
