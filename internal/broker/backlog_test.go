package broker

import (
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// cursors is a policy map of a spool in memory, with topics of which messages stay there, or not.
func cursors(all policy.CursorKind, other message.Destination) func(o *Options) {
	return func(o *Options) {
		spooling(o)
		kept := policy.NewEntry()
		kept.Destination, kept.Cursors.Subscriber = topicNamed("A.>"), all
		e := policy.NewEntry()
		e.Destination = other
		if e.Cursors.Subscriber = policy.CursorVM; all == policy.CursorVM {
			e.Cursors.Subscriber = policy.CursorStore
		}
		o.Policies = &policy.Map{Default: policy.NewEntry(), Entries: []*policy.Entry{kept, e}}
	}
}

// What a consumer of many topics waits for is in the spool or stays in memory as the policy of each
// message's topic says, and comes in order all the same.
func TestEachTopicSaysWhetherItIsSpooled(t *testing.T) {
	kept, other := topicNamed("A.kept"), topicNamed("A.other")
	for _, c := range []struct {
		all policy.CursorKind
		of  message.Destination
	}{{policy.CursorStore, kept}, {policy.CursorVM, other}} {
		h := open(t, nil, cursors(c.all, c.of))
		r := &reader{guest: h.connect("r", "r", "", nil)}
		if e := r.subscribe("", "A.>", func(i *message.ConsumerInfo) {
			i.PrefetchSize = 1
		}); e != nil {
			t.Fatal(e)
		}
		p := h.connect("p", "p", "", nil)
		for i := range int64(300) {
			name := other
			if i%6 == 0 {
				name = kept
			}
			if e := p.do(p.big("p", name, i+1, 10_000, false)); e != nil {
				t.Fatal(e)
			}
		}
		h.turn()
		var q *backlog
		for _, s := range h.b.find(kept).consumers {
			q = &s.backlog
		}
		if q.recordsOf[kept].count != 0 || q.recordsOf[other].count < 100 || q.len() != 299 {
			t.Errorf("of all %d: %d and %d of %d are in the spool", c.all, q.recordsOf[kept].count,
				q.recordsOf[other].count, q.len())
		}
		for n := 0; len(r.got) > n; h.turn() {
			n++
			r.acksFirst(r.id, topicNamed("A.>"))
		}
		if want := numbered(1, 300, 0, 0); r.bodies() != want {
			t.Errorf("of all %d came %s", c.all, r.bodies())
		}
		h.holdsNothing()
		r.Gone()
		h.holdsNothing()
	}
}

// What expires in the spool, where it waits for a consumer of a topic, is found when its turn
// comes: no search for expired messages is told of it.
func TestNoSearchIsToldOfWhatWaitsForAConsumerOfTopics(t *testing.T) {
	h, tp := open(t, nil, spooling), topicNamed("t")
	r := h.slowly(1, 1)
	p := h.connect("p", "p", "", nil)
	for i := range int64(300) {
		m := p.big("p", tp, i+2, 10_000, false)
		m.Expiration = h.Wall() + 5000
		if e := p.do(m); e != nil {
			t.Fatal(e)
		}
	}
	h.burst(queueNamed("q"), 1, 100, 0)
	h.pass(10 * time.Second)
	if q := h.b.spool.backlogs[0]; q.records < 100 {
		t.Errorf("%d are in the spool", q.records)
	}
	if refs, err := h.spool.Expired(nil, h.Wall(), 1000); err != nil || len(refs) != 0 {
		t.Errorf("a search is told of %d, %v", len(refs), err)
	}
	r.acksFirst(r.id, tp)
	for range 20 {
		h.turn()
	}
	if n := h.b.find(tp).counts.Expired; n != 300 || len(r.got) != 1 {
		t.Errorf("%d expired, and %d came", n, len(r.got))
	}
	h.drains(queueNamed("q"))
	h.holdsNothing()
}

// look explains one message of a topic.
func (h *house) look(tp message.Destination, g *guest, n int64) *Explanation {
	h.t.Helper()
	id := g.big("burst", tp, n, 0, false).ID
	var x *Explanation
	h.b.Explain(tp, &id, func(found *Explanation) { x = found })
	for range 50 {
		h.turn()
	}
	if x == nil {
		h.t.Fatalf("the explanation of message %d does not end", n)
	}
	return x
}

// A message that waits for a slow consumer of a topic is found by its id: in memory, in the spool
// and behind that. Of those that are not there, it is told what was not looked at.
func TestAMessageThatWaitsInTheSpoolIsExplained(t *testing.T) {
	h, tp := open(t, nil, spooling), topicNamed("t")
	r := h.slowly(1, 400)
	q := h.b.spool.backlogs[0]
	last := int64(q.items.len()) + q.records + 1 // of the records; one was delivered
	for _, n := range []int64{2, last - q.records, last - q.records + 1, last, last + 1, 400} {
		x := h.look(tp, r.guest, n)
		spooled := int64(0)
		if n > last-q.records && n <= last {
			spooled = 1
		}
		if !x.Found || len(x.Rows) != 1 || x.Rows[0].Count != 1 || x.Spooled != spooled ||
			x.Rows[0].Oldest.ID.Sequence != n || x.Rows[0].Reason != message.WindowFull {
			t.Errorf("message %d, with %d to %d in the spool: %+v", n, last-q.records+1, last, x)
		}
	}
	for _, n := range []int64{1, 401} {
		if x := h.look(tp, r.guest, n); x.Found || len(x.Rows) != 0 {
			t.Errorf("message %d: %+v", n, x)
		}
	}
	h.spool.Damage(q.dest.id, q.first+300, q.first+320)
	h.unchecked = true
	if x := h.look(tp, r.guest, 401); x.Found || !strings.Contains(x.Remark, "cannot be read") {
		t.Errorf("beside damage: %+v", x)
	}
	h.broken = 1
	if x := h.look(tp, r.guest, last); x.Found || !strings.Contains(x.Remark, "cannot be read") {
		t.Errorf("unread: %+v", x)
	}
}

// What comes back to memory while the spool is read is found there; and what is over for somebody
// meanwhile holds no explanation.
func TestAMessageIsFoundOnItsWayOutOfTheSpool(t *testing.T) {
	for _, gone := range []bool{false, true} {
		h, tp := open(t, nil, spooling), topicNamed("t")
		r := h.slowly(1, 400)
		q := h.b.spool.backlogs[0]
		n := int64(q.items.len()) + 2 // the first record
		id := r.big("burst", tp, n, 0, false).ID
		q.read()
		for len(h.jobs) > 0 && q.reading { // on its way as the explanation begins
			var x *Explanation
			h.b.Explain(tp, &id, func(found *Explanation) { x = found })
			if gone {
				r.Gone()
			}
			for range 50 {
				h.turn()
			}
			if x == nil || x.Found == gone || x.Spooled > 0 || !gone && q.first < 3 {
				t.Fatalf("gone %t, from %d on in the spool: %+v", gone, q.first, x)
			}
		}
	}
}

// What waits for a bridge of a topic is explained, too.
func TestWhatWaitsForABridgeOfATopicIsExplained(t *testing.T) {
	h, tp := open(t, nil, spooling), topicNamed("t")
	e := &bridgeEnd{}
	if err := h.b.Subscribe(&network.Subscription{Peer: "ID:a", Filter: e, Sink: e,
		Info: &message.ConsumerInfo{ID: message.ConsumerID{Connection: "n", Value: 1}, Destination: tp,
			PrefetchSize: 2}}); err != nil {
		t.Fatal(err)
	}
	h.burst(tp, 1, 400, 0)
	x := h.explain(tp)
	if len(x.Rows) != 1 || x.Rows[0].Count != 398 || x.Rows[0].Reason != message.RemoteWindowFull ||
		x.Rows[0].Who != "bridge to ID:a" || x.Spooled < 100 {
		t.Errorf("explained as %+v", x)
	}
}
