package broker

import (
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// nowhere is a store that takes everything, and costs nothing.
type nowhere struct{ *house }

func (n nowhere) Commit(_ *store.Batch, done func(error)) {
	n.jobs = append(n.jobs, func() { done(nil) })
}

// benchRound is how many messages a round of the benchmarks is of.
const benchRound = 100

// load is one producer and some consumers of a round.
type load struct {
	h         *house
	p         *guest
	consumers []*reader
	mail      *message.Message
}

// send sends messages, in a transaction if there is one.
func (l *load) send(n int, tx message.TransactionID) {
	for range n {
		l.mail.ID.Sequence++
		m := *l.mail
		m.Transaction = tx
		l.p.Handle(&m)
	}
}

// ack acknowledges what the consumers have.
func (l *load) ack() {
	for _, c := range l.consumers {
		for _, id := range c.got {
			c.Handle(&message.MessageAck{Consumer: c.id, Destination: l.mail.Destination, Last: id,
				HasLast: true, Count: 1, Type: message.IndividualAck})
		}
		c.got, c.counts, c.from = c.got[:0], c.counts[:0], nil
	}
}

// BenchmarkJournal is what persistent messages cost the broker without the store.
func BenchmarkJournal(b *testing.B) {
	for _, c := range []struct {
		name   string
		topics int // durable subscriptions of a topic; 0 is a queue
		round  func(l *load)
	}{
		{"queue/ended when durable", 0, func(l *load) {
			l.send(benchRound, noTx)
			l.h.turn()
			l.ack()
			l.h.turn()
		}},
		{"queue/ended before", 0, func(l *load) {
			l.send(1, noTx)
			l.h.b.EndTurn() // is on its way
			l.send(benchRound-1, noTx)
			l.h.b.EndTurn()
			l.ack()
			l.h.turn()
		}},
		{"queue/one by one", 0, func(l *load) {
			for range benchRound {
				l.send(1, noTx)
				l.h.turn()
				l.ack()
				l.h.turn()
			}
		}},
		{"queue/transaction", 0, func(l *load) {
			tx := l.p.begin("p", 1)
			l.send(benchRound, tx)
			l.p.hand(commitOf(tx))
			l.h.turn()
			l.ack()
			l.h.turn()
		}},
		{"10 durables", 10, func(l *load) {
			l.send(benchRound/10, noTx)
			l.h.turn()
			l.ack()
			l.h.turn()
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := open(&testing.T{}, nil, func(o *Options) { o.Observe = func(Event) {} })
			h.b.journal.storage = nowhere{h}
			l := &load{h: h, p: h.connect("p", "p", "", nil)}
			l.mail = l.p.mail("p", queueQ, 1)
			for n := range c.topics {
				l.mail.Destination = topicNamed("T")
				l.consumers = append(l.consumers, h.subscribe(string(rune('a'+n)), "s", "T", nil))
			}
			if c.topics == 0 {
				g := h.connect("c", "c", "", nil)
				l.consumers = []*reader{{g, g.consume("c", queueQ)}}
			}
			b.ReportAllocs()
			for b.Loop() {
				c.round(l)
				l.p.sent = l.p.sent[:0]
			}
			if q := h.b.find(l.mail.Destination); q.queue != nil && q.queue.Len() > 0 {
				b.Error("messages are left")
			}
		})
	}
}
