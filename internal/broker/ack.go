package broker

import (
	"slices"
	"strconv"

	"hopwire/internal/broker/queue"
	"hopwire/internal/broker/window"
	"hopwire/internal/message"
)

// acknowledge executes a MessageAck, and answers when what it changed is durable.
func (c *Connection) acknowledge(a *message.MessageAck) {
	err := c.ack(a)
	if err != nil || !a.ResponseRequired || !a.Transaction.IsZero() {
		c.answer(a, err)
		return
	}
	id := a.CommandID
	c.b.journal.whenDurable(func() { c.out.Respond(id) })
}

// ack executes a MessageAck.
func (c *Connection) ack(a *message.MessageAck) error {
	s := c.consumers[a.Consumer]
	if s == nil {
		return c.ackClosed(a)
	}
	if err := known(a); err != nil {
		return c.spoil(a, err)
	}
	if s.browse != nil {
		s.browse.acked(a)
		return nil
	}
	s.lastAck = c.b.beat
	if a.Destination.IsTopic() && s.durable == nil && !s.mixed {
		if tx := c.transaction(a.Transaction); tx != nil {
			tx.heard = true
		}
		s.ackTopic(a)
		return nil
	}
	if !a.Transaction.IsZero() && a.Type == message.PoisonAck {
		return message.Errorf(message.Protocol,
			"Poison ack cannot be transacted: %s on %s", a.Last, a.Destination)
	}
	if !a.HasLast {
		return message.Errorf(message.Protocol, "acknowledge without a last message on %s",
			a.Destination)
	}
	if tx := c.transaction(a.Transaction); consumes(a) && tx != nil && !tx.open() {
		return c.ackLate(tx)
	}
	r, err := s.window.Find(a)
	if err != nil {
		if s.counts.dispatched == 0 && a.Transaction.IsZero() {
			return nil // restored by failover: of what the connection before it was sent
		}
		return c.spoil(a, err)
	}
	if !a.Transaction.IsZero() && consumes(a) {
		tx := c.transaction(a.Transaction)
		if tx == nil {
			return notStarted(a.Transaction)
		}
		s.window.Hold(r, a.Transaction, tx.hold)
		tx.acks = appendOnce(tx.acks, s)
		tx.has(c)
		s.ready()
		s.drainBacklog()
		return nil
	}
	s.take(a, r)
	return nil
}

// ackClosed is of a consumer that is closed, as one is that was slow: nothing is removed. What a
// transaction sends is for what it received, so that it cannot go without.
func (c *Connection) ackClosed(a *message.MessageAck) error {
	if !consumes(a) || a.Transaction.IsZero() {
		return nil
	}
	return c.spoil(a, message.Errorf(message.NotFound, "The subscription does not exist: %s",
		a.Consumer))
}

// spoil gives the error of an acknowledgement that is refused, and spoils its transaction.
func (c *Connection) spoil(a *message.MessageAck, err error) error {
	if consumes(a) {
		c.transaction(a.Transaction).spoil(c, err)
	}
	return err
}

// known refuses an acknowledgement of a type that no client sends.
func known(a *message.MessageAck) error {
	switch a.Type {
	case message.DeliveredAck, message.PoisonAck, message.StandardAck, message.RedeliveredAck,
		message.IndividualAck, message.ExpiredAck:
		return nil
	}
	return message.Errorf(message.Protocol, "an acknowledgement of type %d on %s says nothing: 0 to 4"+
		" and 6 are known", a.Type, a.Destination)
}

// consumes reports whether the client is done with what it names.
func consumes(a *message.MessageAck) bool {
	return a.Type != message.DeliveredAck && a.Type != message.RedeliveredAck
}

// take does what the acknowledgement says with the entries it names.
func (s *consumer) take(a *message.MessageAck, r window.Range) {
	switch a.Type {
	case message.DeliveredAck:
		s.window.MarkDelivered(r, int(a.Count))
	case message.RedeliveredAck:
		return
	case message.PoisonAck:
		cause := "java.lang.Throwable: poison message"
		if a.PoisonCause != nil {
			cause = a.PoisonCause.Class + ": " + a.PoisonCause.Message
		}
		s.window.Take(r, func(e *window.Entry[*queue.Copy]) {
			s.heard(e)
			if d := s.home(e.Destination, e.Ref); d != nil {
				defer s.b.journal.leave(s.b.journal.enter())
				s.b.deadLetter(d, e.Message, cause, false)
				s.b.settle(d, e.Ref)
			}
		})
	case message.ExpiredAck:
		s.window.Take(r, func(e *window.Entry[*queue.Copy]) {
			s.heard(e)
			if d := s.home(e.Destination, e.Ref); d != nil {
				s.b.expire(d, e.Ref)
			}
		})
	case message.StandardAck, message.IndividualAck:
		s.window.Take(r, func(e *window.Entry[*queue.Copy]) {
			s.counts.acked++
			s.heard(e)
			if d := s.home(e.Destination, e.Ref); d != nil {
				s.b.consume(d, e.Ref)
			}
		})
	}
	s.ready()
	s.drainBacklog()
	s.b.relieve()
}

// heard counts what is done with of a topic's messages that are in the window, as the consumer has
// queues, too: there is no copy of them.
func (s *consumer) heard(e *window.Entry[*queue.Copy]) {
	if d := s.b.dests[e.Destination]; e.Ref == nil && d != nil {
		d.counts.Dequeued++
		s.b.counts.Dequeued++
	}
}

// consume removes a copy that was consumed; whoever waits for its message to be safe need not wait
// for its record.
func (b *Broker) consume(d *destination, c *queue.Copy) {
	a, _ := c.Arrival.(*arrival)
	b.settle(d, c)
	if a != nil {
		a.safe(c)
	}
}

// settle removes a copy and its record.
func (b *Broker) settle(d *destination, c *queue.Copy) {
	if c.Ended() {
		panic("broker: copy " + strconv.FormatUint(c.Seq, 10) + " of " + d.name.String() +
			" ends twice")
	}
	d.queue.Remove(c)
	d.usage.Add(-c.Message.Size())
	d.counts.Dequeued++
	b.counts.Dequeued++
	of := d
	if d.sub != nil {
		if of = b.dests[c.Message.Destination]; of != nil {
			of.counts.Dequeued++
		}
	}
	b.journal.remove(d, c)
	if of != nil {
		b.tellConsumed(of, c.Message)
	}
}

func appendOnce(list []*consumer, s *consumer) []*consumer {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// home gives the queue that has the copy out; none when it was removed since, even if there is a
// new one of that name.
func (b *Broker) home(name message.Destination, c *queue.Copy) *destination {
	d := b.dests[name]
	if c == nil || d == nil || d.queue == nil || d.queue.Outstanding(c.Seq) != c {
		return nil
	}
	return d
}
