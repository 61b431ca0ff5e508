package broker

import (
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

func queueNamed(name string) message.Destination {
	return message.Destination{Kind: message.Queue, Name: name}
}

func peerNamed(name string, prefetch string) *message.BrokerInfo {
	return &message.BrokerInfo{ID: message.BrokerID("ID:" + name), Name: name,
		NetworkConnection: true, NetworkProperties: "prefetchSize=" + prefetch + "\n"}
}

func TestAConsumerIsOnAQueueAgainThatWasRemovedUnderIt(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	c := h.connect("c", "c", "", nil)
	c.consume("c", q)
	p := h.connect("p", "p", "", nil)
	p.produce("p", q, 1)
	if e := p.do(&message.DestinationInfo{Destination: q, Op: message.RemoveDestination,
		Timeout: 1}); e != nil {
		t.Fatal(e)
	}
	p.produce("p", q, 2)
	if len(c.got) != 2 {
		t.Errorf("the consumer got %v, want both messages", c.got)
	}
}

func TestAnAcknowledgementOfARemovedQueueTouchesNoneOfItsSuccessor(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	c := h.connect("c", "c", "", nil)
	id := c.consume("c", q)
	p := h.connect("p", "p", "", nil)
	p.produce("p", q, 1)
	p.do(&message.DestinationInfo{Destination: q, Op: message.RemoveDestination, Timeout: 1})
	p.produce("p", q, 2)
	c.do(&message.MessageAck{Destination: q, Consumer: id, Type: message.IndividualAck,
		Last: c.got[0], HasLast: true, Count: 1})
	d := h.b.find(q)
	if d.queue.Len() != 1 || d.stored != 1 {
		t.Errorf("the new queue has %d copies, %d stored; want 1 and 1", d.queue.Len(), d.stored)
	}
	if err := h.disk.Check(); err != nil {
		t.Error(err)
	}
}

func TestWhoMayTakeOverAConnection(t *testing.T) {
	for _, c := range []struct {
		name              string
		id, client, user  string
		peer              *message.BrokerInfo
		refused, oldGone  bool
		bystanderMustStay bool
	}{
		{name: "the same client after it lost its link", id: "old", client: "old", user: "u",
			oldGone: true},
		{name: "another user with the same connection id", id: "old", client: "old", user: "v",
			refused: true},
		{name: "a new connection with a client id in use", id: "new", client: "old", user: "u",
			refused: true},
		{name: "its own connection id, but another's client id", id: "old", client: "bystander",
			user: "u", refused: true, bystanderMustStay: true},
		{name: "a bridge that takes a client's id", id: "new", client: "old", user: "u",
			peer: peerNamed("x", "1"), refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t, nil, nil)
			old := h.connect("old", "old", "u", nil)
			bystander := h.connect("by", "bystander", "u", nil)
			g := h.connect(c.id, c.client, c.user, c.peer)
			if g.Opened() == c.refused {
				t.Errorf("let in: %v, want refused: %v", g.Opened(), c.refused)
			}
			if n := h.b.counts.Reasons[message.LoginRefused]; (n == 1) != c.refused {
				t.Errorf("%d refusals are counted, want refused: %v", n, c.refused)
			}
			if old.gone != c.oldGone || bystander.gone {
				t.Errorf("old gone %v, bystander gone %v; want %v, false", old.gone, bystander.gone,
					c.oldGone)
			}
		})
	}
}

func TestAPeersNewLinkEndsItsOldOne(t *testing.T) {
	h := open(t, nil, nil)
	old := h.connect("l1", "nc_a_outbound", "u", peerNamed("a", "1"))
	again := h.connect("l2", "nc_a_outbound", "u", peerNamed("a", "1"))
	if !old.gone || !again.Opened() {
		t.Errorf("old gone %v, new let in %v; want both", old.gone, again.Opened())
	}
	other := h.connect("l3", "nc_a_outbound", "u", peerNamed("z", "1"))
	if again.gone || other.Opened() {
		t.Errorf("another peer ended the link: %v, and was let in: %v", again.gone, other.Opened())
	}
}

func TestTwoBrokersOfOneNameAreToldOf(t *testing.T) {
	var warned []string
	h := open(t, nil, func(o *Options) {
		o.Observe = func(e Event) {
			if e.Kind == PeerWarning {
				warned = append(warned, e.Text)
			}
		}
	})
	h.connect("l1", "nc_a_outbound", "u", peerNamed("a", "1"))
	h.connect("l2", "nc_a_outbound", "u", peerNamed("a", "1"))
	if len(warned) > 0 {
		t.Errorf("a peer's own new link warns: %q", warned)
	}
	twin := peerNamed("a", "1")
	twin.ID = "ID:another"
	h.connect("l3", "nc_a_outbound", "u", twin)
	if h.b.Status().Counts.Reasons[message.SameName] != 1 {
		t.Error("it is not counted")
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "ID:another") ||
		!strings.Contains(warned[0], "brokerName") {
		t.Errorf("warned: %q", warned)
	}
	ours := peerNamed(h.b.opt.Name, "1")
	ours.ID = "ID:not ours"
	h.connect("l4", "nc_b_outbound", "u", ours)
	if len(warned) != 2 || !strings.Contains(warned[1], "as this one") ||
		h.b.Status().Counts.Reasons[message.SameName] != 2 {
		t.Errorf("of one that has this broker's name is told: %q", warned)
	}
}

// overOurs is a peer that asks over a link of ours.
func overOurs(peer message.BrokerID) network.Asker { return network.Asker{Peer: peer, Ours: true} }

func TestAPeersQuestionEndsTheLinksItHasNoMore(t *testing.T) {
	var told []message.ConnectionID
	h := open(t, nil, func(o *Options) {
		o.PeerAsks = func(_ network.Asker, links []message.ConnectionID) int {
			told = links
			return 0
		}
	})
	dead := h.connect("l1", "nc_a_outbound", "u", peerNamed("a", "1"))
	twin := h.connect("l2", "nc2_a_outbound", "u", peerNamed("a", "1"))
	asks := h.connect("l3", "nc3_a_outbound", "u", peerNamed("a", "1"))
	other := h.connect("l4", "nc_z_outbound", "u", peerNamed("z", "1"))
	h.b.Known(overOurs("ID:a"), nil, nil, func([]bool, bool) {})
	if dead.gone || told != nil {
		t.Error("a peer that says nothing of its links loses them")
	}
	answered := false
	h.b.Known(overOurs("ID:a"), []message.ConnectionID{"l2", "l3", "of another place"}, nil,
		func([]bool, bool) { answered = true })
	h.turn()
	if !dead.gone || twin.gone || asks.gone || other.gone || len(told) != 3 || !answered {
		t.Errorf("gone: %v, want the first; %v was told; answered %v",
			[]bool{dead.gone, twin.gone, asks.gone, other.gone}, told, answered)
	}
}

func TestAPeersQuestionEndsLinksOfItsOwnUserOnly(t *testing.T) {
	var asked network.Asker
	h := open(t, nil, func(o *Options) {
		o.PeerAsks = func(from network.Asker, _ []message.ConnectionID) int {
			asked = from
			return 2
		}
	})
	theirs := h.connect("l1", "nc_a_outbound", "u", peerNamed("a", "1"))
	own := h.connect("l2", "x_outbound", "v", peerNamed("a", "1"))
	g := h.connect("l3", "y_outbound", "v", peerNamed("a", "1"))
	g.Handle(&message.ControlCommand{Command: network.Talk{Kind: network.Ask, ID: 1,
		Links: []message.ConnectionID{"l3"},
		Keys:  []network.DoubtKey{{Destination: queueNamed("q")}}}.Encode()})
	h.turn()
	if theirs.gone || !own.gone || g.gone {
		t.Errorf("gone: %v, want the second alone", []bool{theirs.gone, own.gone, g.gone})
	}
	if asked.User != "v" || asked.Ours || asked.Peer != "ID:a" {
		t.Errorf("links that this broker made are asked for by %+v", asked)
	}
	if e := h.events[len(h.events)-1]; e.Kind != PeerWarning || e.Count != 3 {
		t.Errorf("the last event is %+v, want that 3 links stay", e)
	}
}

func TestAPeerIntroducesItselfOnce(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("l1", "nc_a_outbound", "", peerNamed("a", "1"))
	if e := g.do(peerNamed("somebody else", "1")); e == nil {
		t.Error("a second BrokerInfo was accepted")
	}
	if g.peer.Name != "a" {
		t.Errorf("the peer is %q now", g.peer.Name)
	}
}

// TestReceiptsCoverThePeersWindow keeps what a peer may ask about: twice its prefetch, also when it
// asked before it sent anything.
func TestReceiptsCoverThePeersWindow(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	h.connect("c", "c", "", nil).produce("c", q, 1)
	const prefetch = 5000
	peer := network.Peer{ID: "ID:a", Name: "a", Hopwire: true, Prefetch: prefetch}
	h.b.Known(overOurs(peer.ID), nil, []network.DoubtKey{{Destination: q}}, func([]bool, bool) {})
	h.turn()
	var keys []network.DoubtKey
	for n := range int64(2 * prefetch) {
		m := &message.Message{Destination: q, Persistent: true, BrokerPath: []message.BrokerID{"ID:a"},
			ID: message.MessageID{Producer: message.ProducerID{Connection: "x"}, Sequence: n}}
		keys = append(keys, network.DoubtKey{Destination: q,
			Key: message.Receipt(m, q, m.BrokerPath, "ID:b")})
		h.b.Receive(m, peer, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	h.turn()
	unknown := 0
	h.b.Known(overOurs(peer.ID), nil, keys[len(keys)-prefetch:], func(known []bool, _ bool) {
		for _, k := range known {
			if !k {
				unknown++
			}
		}
	})
	h.turn()
	if unknown > 0 {
		t.Errorf("%d of the last %d arrivals are not known", unknown, prefetch)
	}
}

func TestARemovedQueueThatNeverHeldAnythingIsNotBackAfterARestart(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	g := h.connect("g", "g", "", nil)
	g.do(&message.DestinationInfo{Destination: q})
	g.do(&message.DestinationInfo{Destination: q, Op: message.RemoveDestination})
	if open(t, h.disk, nil).b.find(q) != nil {
		t.Error("the queue is back")
	}
}

func TestBrokerSequencesGoOnAfterARestart(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	for start := range int64(3) {
		h = open(t, h.disk, nil)
		h.connect("g", "g", "", nil).produce("g", q, start+1)
	}
	last := int64(0)
	for _, s := range h.stored(q) {
		if s.Message.BrokerSequence <= last {
			t.Errorf("%s has sequence %d behind %d", s.Message.ID, s.Message.BrokerSequence, last)
		}
		last = s.Message.BrokerSequence
	}
}

func TestASendThatIsExpiredIsConfirmedWhenItsDeadLetterIsDurable(t *testing.T) {
	h := open(t, nil, nil)
	g := h.connect("g", "g", "", nil)
	m := g.mail("g", queueNamed("q"), 1)
	m.Expiration, m.CommandID, m.ResponseRequired = 1, 500, true
	g.Handle(m)
	h.b.EndTurn()
	if g.answered(500) {
		t.Error("it is confirmed before anything is durable")
	}
	h.turn()
	if !g.answered(500) || len(h.stored(queueNamed("ActiveMQ.DLQ"))) != 1 {
		t.Error("it is not confirmed with its dead letter")
	}
}

func TestExplainNamesAReasonForAllThatIsThere(t *testing.T) {
	rows := func(h *house, q message.Destination) map[message.Reason]int64 {
		out := map[message.Reason]int64{}
		h.b.Explain(q, nil, func(x *Explanation) {
			for _, r := range x.Rows {
				out[r.Reason] += r.Count
				if r.Releases == "" {
					t.Errorf("nothing releases %s", r.Reason)
				}
			}
			out["rest"] = x.Stored
		})
		h.turn()
		return out
	}
	q := queueNamed("q")
	if got := rows(filled(t, q, 250), q); got[message.NoConsumer] != 250 || got["rest"] != 0 {
		t.Errorf("after a restart: %v, want 250 without a consumer", got)
	}
	h := open(t, nil, limited)
	p := h.connect("p", "p", "", nil)
	late := p.mail("p", q, 1)
	late.Expiration = h.Wall() + 10
	p.Handle(late)
	h.turn()
	h.pass(time.Second)
	if got := rows(h, q); got[message.Expired] != 1 {
		t.Errorf("an expired message: %v", got)
	}
	full := queueNamed("full")
	for n := range int64(3) {
		p.Handle(p.big("p", full, n+2, 1<<20, false))
	}
	if got := rows(h, full); got[message.MemoryFull] != 2 || got[message.NoConsumer] != 1 {
		t.Errorf("sends that wait: %v", got)
	}
}

func TestExplainFindsAMessageThatIsInTheStoreAlone(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 450)
	for _, n := range []int64{1, 449, 9999} {
		id := message.MessageID{Sequence: n, Producer: message.ProducerID{Connection: "p",
			Session: 1, Value: 1}}
		var x *Explanation
		h.b.Explain(q, &id, func(e *Explanation) { x = e })
		h.turn()
		want := n < 9999
		if x == nil || x.Found != want || want && (len(x.Rows) != 1 || x.Rows[0].Count != 1 ||
			x.Rows[0].Reason != message.NoConsumer) {
			t.Errorf("message %d: %+v", n, x)
		}
	}
}
