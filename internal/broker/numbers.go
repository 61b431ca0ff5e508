package broker

import (
	"cmp"
	"maps"
	"slices"

	"hopwire/internal/broker/audit"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// A client over failover sends again what it had no answer for, under the same numbers. So the
// numbers of what it sent are in the store as what it sent is: each in the batch of its message,
// and there also when that was consumed before it was written. One record has all that a producer
// used of a destination. It goes when the client closes the producer; what clients leave that just
// vanish is bounded by the policy's maxProducersToAudit.

// seen records the number of an arrival, and reports whether it was used before.
func (b *Broker) seen(d *destination, a *arrival) bool {
	was := b.producersOf(d).Seen(a.m.ID)
	if a.comesAgain() {
		d.producers.Expect(a.m.ID.Producer)
		if p := a.producer; p != nil && p.info.ID == a.m.ID.Producer {
			p.note(d)
		}
	}
	b.dropEvicted(d)
	return was
}

func (b *Broker) producersOf(d *destination) *audit.Producers {
	if d.producers == nil {
		d.producers = audit.NewProducers(d.policy.MaxProducersToAudit, d.policy.MaxQueueAuditDepth)
	}
	return d.producers
}

// comesAgain reports whether an arrival may be sent again after a restart of the broker: its client
// is one that fails over, or it was in a branch that was prepared, of whoever.
func (a *arrival) comesAgain() bool {
	switch {
	case a.internal || a.peer != nil || !audit.Numbered(a.m.ID):
		return false
	case a.conn == nil:
		return true
	}
	return (a.conn.info.FaultTolerant || a.conn.info.FailoverReconnect) && !a.producer.left
}

// keepNumber has the store remember the number of an arrival of which it gets a copy in this unit.
func (b *Broker) keepNumber(a *arrival) {
	d := b.find(firstOf(a.wire))
	if d == nil || d.producers == nil || d.name.IsTemp() || !a.comesAgain() {
		return
	}
	b.journal.add(store.Op{Kind: store.PutNumber, Dest: d.id, ID: &a.m.ID,
		Count: int32(d.producers.Depth())})
	if !d.headed { // a topic whose messages are not stored has none else
		b.journal.touch(d)
	}
	d.producers.Keep(a.m.ID.Producer)
}

// note says that a destination expects what the producer sent there to be sent again. Of one that
// is gone nothing is noted: nobody will say that it is closed.
func (p *producer) note(d *destination) {
	if _, has := p.sent[d]; has || p.conn.producers[p.info.ID] != p {
		return
	}
	if p.sent == nil {
		p.sent = map[*destination]struct{}{}
	}
	if d.senders == nil {
		d.senders = map[*producer]struct{}{}
	}
	p.sent[d], d.senders[p] = struct{}{}, struct{}{}
}

// unnote takes the producer, which is gone, from the destinations that know it.
func (p *producer) unnote() {
	for d := range p.sent {
		delete(d.senders, p)
	}
	p.sent = nil
}

// unnote takes the destination, which is gone, from the producers that sent to it.
func (d *destination) unnote() {
	for p := range d.senders {
		delete(p.sent, d)
	}
	d.senders = nil
}

// leave says that the client closed the producer: it sends nothing of it again.
func (p *producer) leave() {
	p.left = true
	for _, d := range slices.SortedFunc(maps.Keys(p.sent), func(a, b *destination) int {
		return cmp.Compare(a.id, b.id)
	}) {
		if d.producers.Release(p.info.ID) {
			p.conn.b.dropNumbers(d, p.info.ID)
		}
	}
	p.unnote()
}

// clientLeft says that the client closed the connection.
func (c *Connection) clientLeft() {
	for _, p := range sortedProducers(c.producers) {
		p.leave()
	}
}

func (b *Broker) dropEvicted(d *destination) {
	for _, id := range d.producers.Evicted() {
		b.dropNumbers(d, id)
	}
}

// dropNumbers lets the store forget a producer, when it writes next.
func (b *Broker) dropNumbers(d *destination, id message.ProducerID) {
	b.journal.addIdle(store.Op{Kind: store.DropNumbers, Dest: d.id,
		ID: &message.MessageID{Producer: id}})
}

// restoreNumbers adds what the store has of one of a destination's producers.
func (b *Broker) restoreNumbers(d *destination, p store.ProducerNumbers) {
	if p.Damage != nil {
		b.loseNumbers(d, p)
		return
	}
	b.producersOf(d).Restore(p.Producer, p.Numbers)
	b.dropEvicted(d)
}

// loseNumbers ends the record of a producer that cannot be read: what that sends again may be there
// twice, the others go on.
func (b *Broker) loseNumbers(d *destination, p store.ProducerNumbers) {
	if p.Producer != (message.ProducerID{}) {
		b.dropNumbers(d, p.Producer)
	}
	d.reasons[message.Unreadable]++
	b.counts.Reasons[message.Unreadable]++
	b.tell(Event{Kind: StoreTrouble, Reason: message.Unreadable, Dest: d.name, Count: 1,
		Text: "it is not known any more what a producer sent: " + p.Damage.Error()})
}
