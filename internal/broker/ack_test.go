package broker

import (
	"testing"

	"hopwire/internal/message"
)

// Whatever the wire says, only what is an acknowledgement consumes.
func TestAnUnknownAcknowledgementIsRefused(t *testing.T) {
	for _, c := range []struct {
		d       message.Destination
		durable string
	}{{queueNamed("q"), ""}, {topicNamed("t"), ""}, {topicNamed("t"), "s"}} {
		for kind := range message.AckType(10) {
			for _, transacted := range []bool{false, true} {
				h := open(t, nil, nil)
				g := h.connect("c", "c", "", nil)
				id := message.ConsumerID{Connection: "c", Session: 1, Value: 1}
				if e := g.do(&message.ConsumerInfo{ID: id, Destination: c.d, PrefetchSize: 10,
					SubscriptionName: c.durable}); e != nil {
					t.Fatal(e)
				}
				g.produce("c", c.d, 1)
				a := &message.MessageAck{Destination: c.d, Consumer: id, Type: kind,
					Last: g.got[0], HasLast: true, Count: 1}
				if transacted && kind == message.PoisonAck {
					continue
				}
				if transacted {
					a.Transaction = g.begin("c", 1)
				}
				e := g.do(a)
				if known := kind != message.UnmatchedAck && kind <= message.ExpiredAck; known != (e == nil) {
					t.Errorf("%v, type %d: answered with %v", c, kind, e)
				}
				if e == nil {
					continue
				}
				if n := h.b.counts.Dequeued; n != 0 {
					t.Errorf("%v, type %d: %d are consumed", c, kind, n)
				}
				if transacted && g.finish(a.Transaction, message.CommitOnePhase) == nil {
					t.Errorf("%v, type %d: a transaction is committed without it", c, kind)
				}
			}
		}
	}
}

// A consumer that failover restored acknowledges what its last connection was sent. Outside of a
// transaction that says nothing; a commit that had no effect would be believed.
func TestAnAcknowledgementOfTheConnectionBeforeIsNotCommitted(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	g := h.connect("c", "c", "", nil)
	last := message.MessageID{Producer: message.ProducerID{Connection: "p", Session: 1, Value: 1},
		Sequence: 1}
	a := &message.MessageAck{Destination: q, Consumer: g.consume("c", q), Last: last, HasLast: true,
		Type: message.StandardAck, Count: 1}
	if e := g.do(a); e != nil {
		t.Error("outside of a transaction:", e)
	}
	a.Transaction = g.begin("c", 1)
	g.do(a)
	if g.finish(a.Transaction, message.CommitOnePhase) == nil {
		t.Error("a commit of nothing is answered as done")
	}
}
