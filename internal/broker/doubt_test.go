package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// bridgeEnd is the bridge's side of a network subscription: a filter that says yes unless verdict
// says otherwise, and what was delivered.
type bridgeEnd struct {
	verdict func(network.Candidate) message.Verdict
	asked   int
	got     []message.CopyRef
	closed  string // why the broker closed it
	full    bool   // wants no more
}

func (*bridgeEnd) Gate(time.Duration) message.Verdict { return message.Verdict{} }

func (*bridgeEnd) Took(message.Destination, network.Replay, time.Duration) {}

func (e *bridgeEnd) Closed(why string) { e.closed = why }

func (e *bridgeEnd) Deliver(d network.Delivery) bool {
	e.got = append(e.got, d.Ref)
	return !e.full
}

func (e *bridgeEnd) Verdict(c network.Candidate) message.Verdict {
	e.asked++
	if e.verdict == nil {
		return message.Verdict{}
	}
	return e.verdict(c)
}

// bridge opens a network subscription to a peer.
func (h *house) bridge(peer message.BrokerID, d message.Destination,
	e *bridgeEnd) message.ConsumerID {
	h.t.Helper()
	id := message.ConsumerID{Connection: message.ConnectionID(peer + "/" + message.BrokerID(d.Name)),
		Value: int64(h.Rand())}
	if err := h.b.Subscribe(&network.Subscription{Peer: peer, Filter: e, Sink: e, Hopwire: true,
		Info: &message.ConsumerInfo{ID: id, Destination: d, PrefetchSize: 1000}}); err != nil {
		h.t.Fatal(err)
	}
	h.turn()
	return id
}

// doubt brings n copies of a queue in doubt with a peer.
func (h *house) doubt(peer message.BrokerID, d message.Destination, n int64) {
	h.t.Helper()
	g := h.connect("producer of "+d.Name, "p"+d.Name, "", nil)
	for i := range n {
		g.produce("producer of "+d.Name, d, i)
	}
	e := &bridgeEnd{}
	id := h.bridge(peer, d, e)
	if int64(len(e.got)) != n {
		h.t.Fatalf("%d of %d were forwarded", len(e.got), n)
	}
	h.b.Settle(id, e.got, network.Doubted)
	h.b.Unsubscribe(id)
	h.turn()
}

// page asks for one page of copies in doubt; nil when nobody answers.
func (h *house) page(peer message.BrokerID, after message.CopyRef, limit int) *[]network.Doubt {
	var got *[]network.Doubt
	h.b.InDoubt(peer, after, limit, func(p []network.Doubt) { got = &p })
	h.turn()
	return got
}

func TestARoundAboutDoubtsGoesOnWhenItsQueueIsGone(t *testing.T) {
	for _, again := range []bool{false, true} {
		h := open(t, nil, nil)
		for _, q := range []string{"a", "b", "c"} {
			h.doubt("ID:p", queueNamed(q), 2)
		}
		first := h.page("ID:p", message.CopyRef{}, 10)
		if first == nil || len(*first) != 2 || (*first)[0].Ref.Destination.Name != "a" {
			t.Fatalf("the first page is %v", first)
		}
		if err := h.b.removeDestination(h.b.find(queueNamed("a")), true); err != nil {
			t.Fatal(err)
		}
		if again { // another of that name comes after the others
			h.b.destination(queueNamed("a"))
		}
		next := h.page("ID:p", (*first)[1].Ref, 10)
		if next == nil || len(*next) != 2 || (*next)[0].Ref.Destination.Name != "b" {
			t.Errorf("made again %v: the next page is %v, want the copies of b", again, next)
		}
		if stray := h.page("ID:other", (*first)[1].Ref, 10); stray == nil || len(*stray) != 0 {
			t.Errorf("made again %v: the page of another peer is %v", again, stray)
		}
	}
}

func TestARoundAboutDoubtsEndsWhenTheQueueGoesWhileItsPageIsRead(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	h.doubt("ID:p", q, 3)
	h = open(t, h.disk, nil)
	answers := 0
	h.b.InDoubt("ID:p", message.CopyRef{}, 10, func([]network.Doubt) { answers++ })
	if err := h.b.removeDestination(h.b.find(q), true); err != nil {
		t.Fatal(err)
	}
	h.turn()
	if answers != 1 || len(h.b.networks.loads) != 0 {
		t.Errorf("%d answers, %d queues are waited for; want 1 and 0", answers, len(h.b.networks.loads))
	}
}

func TestARoundAboutDoubtsOutlivesAReadThatFails(t *testing.T) {
	h := open(t, nil, nil)
	h.doubt("ID:p", queueNamed("q"), 3)
	h = open(t, h.disk, nil)
	h.broken = 2
	var page []network.Doubt
	h.b.InDoubt("ID:p", message.CopyRef{}, 10, func(p []network.Doubt) { page = p })
	h.turn()
	h.pass(3 * time.Second)
	if len(page) != 3 {
		t.Errorf("the page has %d copies, want 3", len(page))
	}
}

// A link may have gone before another took the copy, which then went, too.
func TestACopyInDoubtWithTwoPeersIsRedeliveredOnce(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	h.doubt("ID:p", q, 1)
	d := h.b.find(q)
	c := d.queue.OutOf(nil)[0]
	c.Doubts = append(c.Doubts, "ID:r")
	ref := []message.CopyRef{{Destination: q, Seq: c.Seq}}
	h.b.Resolve("ID:p", ref, network.NeverLearned)
	h.b.Resolve("ID:r", ref, network.NeverLearned)
	h.turn()
	if c.Redelivery != 1 || d.queue.Pending() != 1 {
		t.Errorf("redelivery count %d, %d wait; want 1 and 1", c.Redelivery, d.queue.Pending())
	}
	e := &bridgeEnd{}
	id := h.bridge("ID:p", q, e)
	h.b.Settle(id, e.got, network.Doubted)
	h.b.Resolve("ID:p", ref, network.NeverLearned)
	if c.Redelivery != 2 {
		t.Errorf("redelivery count %d after another doubt, want 2", c.Redelivery)
	}
}
