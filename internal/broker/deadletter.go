package broker

import (
	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
)

// deadLetter puts a copy of the message where the destination's strategy says, with the cause. It
// does not remove the original.
func (b *Broker) deadLetter(d *destination, m *message.Message, cause string, expired bool) {
	b.deadLetterOf(nil, d, m, cause, expired)
}

// deadLetterOf is deadLetter for an arrival that never was in a queue: it is safe when its dead
// letter is. a is nil otherwise.
func (b *Broker) deadLetterOf(a *arrival, d *destination, m *message.Message, cause string,
	expired bool) {
	if target, ok := b.graveOf(d, m, expired); ok {
		b.bury(a, d, m, target, cause)
		return
	}
	reason := message.Poisoned
	if expired {
		reason = message.Expired
	}
	b.drop(d, reason, m)
}

// graveOf gives where the destination's strategy puts a message that is dead, if anywhere.
func (b *Broker) graveOf(d *destination, m *message.Message, expired bool,
) (target message.Destination, ok bool) {
	strategy := &d.policy.DeadLetter
	source, durable := d.source(m), ""
	if d.sub != nil {
		durable = d.sub.key.clientID + ":" + d.sub.key.name
	}
	target = strategy.Target(source, durable)
	return target, !target.IsZero() && target != source && testName(target) == nil &&
		!b.wasDead(d, source, target, m) &&
		(m.Persistent || strategy.ProcessNonPersistent) &&
		(!expired || strategy.ProcessExpired)
}

// bury puts a copy of a dead message into its grave.
func (b *Broker) bury(a *arrival, d *destination, m *message.Message, target message.Destination,
	cause string) {
	var until int64
	if x := d.policy.DeadLetter.Expiration; x > 0 {
		until = b.env.Wall() + x.Milliseconds()
	}
	dead, err := deadCopy(d.source(m), m, target, cause, until)
	if err != nil {
		b.drop(d, message.FrameTooBig, m)
		return
	}
	t := b.destination(target)
	b.counts.DeadLetters++
	b.tell(Event{Kind: MessageDead, Dest: d.name, Text: m.ID.String() + ": " + cause, Count: 1})
	b.sequence++
	dead.BrokerSequence = b.sequence
	lost := t.name.IsTopic() && t.nobodyTakes()
	b.put(t, dead, a)
	if lost {
		b.dropMany(t, message.NoConsumer, m.ID.String()+": a dead letter of "+d.name.String()+
			", and the topic has no subscriber", 1)
	}
	b.adviseMessage("MessageDLQd", d, m)
}

// nobodyTakes reports whether a topic's message is nobody's: there is no subscription, nor does the
// topic keep anything for later ones.
func (d *destination) nobodyTakes() bool {
	return len(d.consumers)+len(d.nets)+len(d.shares) == 0 && d.memory == nil
}

// wasDead reports whether a message lies where its own strategy put it when it was dead-lettered
// first, or would go back where it was before: it ends here, else dead letters that expire would
// make ever longer names, or go round.
func (b *Broker) wasDead(d *destination, source, target message.Destination,
	m *message.Message) bool {
	first := m.OriginalDestination
	if first.IsZero() || first.IsComposite() {
		return false
	}
	entry := b.opt.Policies.Find(first)
	return entry.DeadLetter.Puts(first, source) && (entry == d.policy || target == first)
}

// deadCopy makes the copy for a dead letter queue, with the properties that ActiveMQ gives it: the
// time of its end only if it has no end any more.
func deadCopy(source message.Destination, m *message.Message, target message.Destination,
	cause string, until int64) (*message.Message, error) {
	dead := m.Clone()
	set := []message.Property{{Name: "dlqDeliveryFailureCause", Value: cause}}
	if until == 0 {
		set = append(set, message.Property{Name: "originalExpiration", Value: m.Expiration})
	}
	if !m.Persistent {
		set = append(set, message.Property{Name: "originalDeliveryMode", Value: "NON_PERSISTENT"})
	}
	if err := dead.SetProperties(set...); err != nil {
		return nil, err
	}
	dead.Expiration, dead.Persistent, dead.RedeliveryCounter = until, true, 0
	dead.Transaction = message.TransactionID{}
	dead.OriginalDestination = source
	dead.Destination = target
	return dead, nil
}

// expire removes a copy whose time is over; it may go to the dead letter queue.
func (b *Broker) expire(d *destination, c *queue.Copy) {
	defer b.journal.leave(b.journal.enter())
	b.countExpired(d, c.Message)
	b.deadLetter(d, c.Message, expiredCause(c.Message), true)
	b.settle(d, c)
}

func (b *Broker) countExpired(d *destination, m *message.Message) {
	d.counts.Expired++
	b.counts.Expired++
	b.adviseExpired(d, m)
}

func (b *Broker) adviseExpired(d *destination, m *message.Message) {
	b.adviseMessage("Expired", d, m,
		message.Property{Name: "orignalMessageId", Value: m.ID.String()})
}
