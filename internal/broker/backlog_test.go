package broker

import (
	"testing"

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
