package broker

import (
	"testing"

	"hopwire/internal/message"
)

// What a consumer refuses and no dead letter queue takes is dropped under a reason of its own.
func TestPoisonThatNoDeadLetterQueueTakesIsCountedAsSuch(t *testing.T) {
	for name, d := range map[string]message.Destination{"a non-persistent message": queueNamed("q"),
		"a dead letter": queueNamed("ActiveMQ.DLQ")} {
		h := open(t, nil, nil)
		c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
		id := c.consume("c", d)
		m := p.mail("p", d, 1)
		m.Persistent = d.Name != "q"
		p.do(m)
		c.ack(id, d, m.ID, message.PoisonAck, message.TransactionID{})
		at := h.b.find(d)
		if at.queue.Len() != 0 || at.reasons["POISONED"] != 1 || h.b.counts.Reasons["POISONED"] != 1 ||
			at.reasons[message.NoConsumer] != 0 || h.b.counts.DeadLetters != 0 {
			t.Errorf("%s: %d left, reasons %v and %v", name, at.queue.Len(), at.reasons,
				h.b.counts.Reasons)
		}
		last := h.events[len(h.events)-1]
		if last.Kind != MessageDropped || last.Reason != "POISONED" {
			t.Errorf("%s: the last event is %+v", name, last)
		}
	}
}
