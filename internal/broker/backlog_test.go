package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
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
