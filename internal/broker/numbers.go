package broker

import (
	"maps"
	"slices"

	"hopwire/internal/broker/audit"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// A client over failover sends again what it had no answer for, under the same numbers. So the
// numbers of what it sent are in the store as what it sent is: each in the unit of its message, and
// there also when that was consumed before it was written. One record has all that a producer
// used of a destination. It goes when the client closes the producer, over whichever connection, or
// closes its connection; what clients leave that just vanish is bounded by the policy's
// maxProducersToAudit.

// awaited are the producers that may send again, by their connections, and the destinations that
// know their numbers: those in whose audit they are awaited.
type awaited map[message.ConnectionID]map[message.ProducerID]map[*destination]struct{}

func (w awaited) add(p message.ProducerID, d *destination) {
	of := w[p.Connection]
	if of == nil {
		of = map[message.ProducerID]map[*destination]struct{}{}
		w[p.Connection] = of
	}
	if of[p] == nil {
		of[p] = map[*destination]struct{}{}
	}
	of[p][d] = struct{}{}
}

func (w awaited) remove(p message.ProducerID, d *destination) {
	of := w[p.Connection]
	delete(of[p], d)
	if len(of[p]) == 0 {
		delete(of, p)
	}
	if len(of) == 0 {
		delete(w, p.Connection)
	}
}

// seen records the number of an arrival, and reports whether it was used before.
func (b *Broker) seen(d *destination, a *arrival) bool {
	was, news := b.producersOf(d).Seen(a.m.ID, a.comesAgain())
	b.noteAwaited(d, a.m.ID.Producer, news)
	return was
}

// noteAwaited notes whether an audit awaits a producer from here on, and whom it forgot.
func (b *Broker) noteAwaited(d *destination, p message.ProducerID, news bool) {
	if news {
		b.awaited.add(p, d)
	}
	for _, f := range d.producers.Forgotten() {
		b.awaited.remove(f.Producer, d)
		if f.Stored {
			b.dropNumbers(d, f.Producer)
		}
	}
}

func (b *Broker) producersOf(d *destination) *audit.Producers {
	if d.producers == nil {
		d.producers = audit.NewProducers(d.policy.MaxProducersToAudit, d.policy.MaxQueueAuditDepth)
	}
	return d.producers
}

// comesAgain reports whether an arrival may be sent again after a restart of the broker: its client
// is one that fails over, and did not close its producer.
func (a *arrival) comesAgain() bool {
	switch {
	case a.internal || a.peer != nil || !audit.Numbered(a.m.ID):
		return false
	case a.conn == nil:
		return a.again
	}
	return a.conn.failsOver() && !a.producer.left
}

// failsOver reports whether the client of the connection is one that fails over.
func (c *Connection) failsOver() bool { return c.info.FaultTolerant || c.info.FailoverReconnect }

// keepNumber has the store remember the number of an arrival of which it gets a copy in this unit.
func (b *Broker) keepNumber(a *arrival) {
	d := b.find(firstOf(a.wire))
	if d == nil || d.producers == nil || d.name.IsTemp() || !a.comesAgain() {
		return
	}
	b.journal.change(nil, d, &store.Op{Kind: store.PutNumber, Dest: d.id, ID: &a.m.ID,
		Count: int32(d.producers.Depth())}, 0)
	if !d.headed { // a topic whose messages are not stored has none else
		b.journal.touch(d)
	}
	d.producers.Keep(a.m.ID.Producer)
}

// unawait takes the destination, which is gone, from what is known of producers.
func (b *Broker) unawait(d *destination) {
	if d.producers == nil {
		return
	}
	for p := range d.producers.Awaited() {
		b.awaited.remove(p, d)
	}
}

// leave says that the client closed the producer: it sends nothing of it again.
func (p *producer) leave() {
	p.left = true
	p.conn.b.release(p.info.ID)
}

// release says that a client sends nothing of a producer again.
func (b *Broker) release(p message.ProducerID) {
	for _, d := range slices.SortedFunc(maps.Keys(b.awaited[p.Connection][p]), byID) {
		b.awaited.remove(p, d)
		if d.producers.Release(p) {
			b.dropNumbers(d, p)
		}
	}
}

// releaseAll releases the producers of the connection that its client closed with it, or with a
// session of it. Some may have been closed before while an XA branch had sends of theirs: a client
// over failover sends these again until it hears of the outcome.
func (c *Connection) releaseAll(closed func(message.ProducerID) bool) {
	var list []message.ProducerID
	for p := range c.b.awaited[c.id] {
		if c.opened && closed(p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, message.ProducerID.Compare)
	for _, p := range list {
		c.b.release(p)
	}
}

// clientLeft says that the client closed the connection.
func (c *Connection) clientLeft() {
	for _, p := range c.producers {
		p.left = true
	}
	for tx := range c.branches {
		delete(tx.branch.again, c.id)
	}
	c.releaseAll(func(message.ProducerID) bool { return true })
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
	b.noteAwaited(d, p.Producer, b.producersOf(d).Restore(p.Producer, p.Numbers))
}

// loseNumbers ends the record of a producer that cannot be read: what that sends again may be there
// twice, the others go on.
func (b *Broker) loseNumbers(d *destination, p store.ProducerNumbers) {
	if p.Producer != (message.ProducerID{}) {
		b.dropNumbers(d, p.Producer)
	}
	b.trouble(d, message.Unreadable, 1, "it is not known any more what a producer sent: "+
		p.Damage.Error())
}
