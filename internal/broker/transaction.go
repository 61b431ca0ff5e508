package broker

import (
	"hopwire/internal/broker/queue"
	"hopwire/internal/broker/window"
	"hopwire/internal/message"
)

// transaction is one open local transaction: sends that wait for the commit, and consumers with
// acknowledgements in it.
type transaction struct {
	conn  *Connection
	id    message.TransactionID
	sends []*arrival
	acks  []*consumer
	// broken is the first error of a send nobody waited for; the transaction can only roll back.
	broken error
}

func notStarted(id message.TransactionID) error {
	return message.Errorf(message.NotFound, "Transaction '%s' has not been started.", id)
}

// transact executes a TransactionInfo.
func (c *Connection) transact(cmd *message.TransactionInfo) {
	if cmd.ID.XA || cmd.Type == message.Recover {
		c.transactXA(cmd)
		return
	}
	tx := c.transactions[cmd.ID]
	switch cmd.Type {
	case message.Begin:
		if tx == nil {
			c.transactions[cmd.ID] = &transaction{conn: c, id: cmd.ID}
		}
		c.answer(cmd, nil)
		return
	case message.End:
		c.answer(cmd, nil)
		return
	case message.CommitOnePhase, message.CommitTwoPhase, message.Rollback:
		if tx == nil {
			c.answer(cmd, notStarted(cmd.ID))
			return
		}
		delete(c.transactions, cmd.ID)
		if cmd.Type == message.Rollback {
			tx.rollback()
			c.answer(cmd, nil)
			return
		}
		tx.commit(cmd)
		return
	}
	c.answer(cmd, message.Errorf(message.IllegalState,
		"Cannot do transaction step %d with local transaction %s", cmd.Type, cmd.ID))
}

// transactXA refuses what only XA needs; recovery finds nothing.
func (c *Connection) transactXA(cmd *message.TransactionInfo) {
	if cmd.Type == message.Recover {
		c.out.Send(&message.Response{Correlation: cmd.CommandID, Shape: message.DataArrayResponse})
		return
	}
	err := &message.Throwable{Class: "javax.transaction.xa.XAException",
		Message: "XA transactions are not supported: xaErrorCode:-3"}
	if cmd.Type == message.Begin {
		c.answer(cmd, nil)
		return
	}
	c.answer(cmd, err)
}

// sendIn keeps a send until its transaction commits.
func (c *Connection) sendIn(a *arrival) {
	tx := c.transactions[a.m.Transaction]
	if tx == nil {
		a.refuse(notStarted(a.m.Transaction))
		return
	}
	if c.b.testNames(a) == finished {
		if tx.broken == nil && !a.header.ResponseRequired {
			tx.broken = message.Errorf(message.InvalidDestination,
				"message %s to %s was refused", a.m.ID, a.wire)
		}
		return
	}
	if a.m.OriginalTransaction.IsZero() {
		a.m.OriginalTransaction = a.m.Transaction
	}
	tx.sends = append(tx.sends, a)
	if a.header.ResponseRequired {
		c.out.Respond(a.header.CommandID)
	}
	if a.producer.info.WindowSize > 0 && !a.header.ResponseRequired {
		c.out.Send(&message.ProducerAck{Producer: a.producer.info.ID, Size: int32(a.m.Size())})
	}
	a.answered = true
}

// committing is a copy of a transaction whose batch is on the way.
type committing struct {
	dest *destination
	copy *queue.Copy
}

// commit makes the transaction's sends and acknowledgements durable in one batch; they take effect
// when it is.
func (tx *transaction) commit(cmd *message.TransactionInfo) {
	c, b := tx.conn, tx.conn.b
	if tx.broken != nil {
		tx.rollback()
		c.answer(cmd, message.Errorf(message.RolledBack,
			"Transaction rolled back: %w", tx.broken))
		return
	}
	defer b.journal.leave(b.journal.enter())
	var copies []committing
	var topics []target
	for _, a := range tx.sends {
		if b.testReceipt(a) != proceed {
			continue
		}
		b.stamp(a)
		for _, t := range b.resolve(a.m) {
			if t.dest.queue == nil {
				topics = append(topics, t)
				continue
			}
			t.dest.reserve(b)
			reserved := t.dest.queue.Reserve(t.m, b.env.Mono(), tx)
			b.enqueued(t.dest, reserved, nil)
			copies = append(copies, committing{t.dest, reserved})
		}
	}
	acked := tx.takeAcked()
	after := b.journal.afterUnit
	if len(tx.sends) > 0 {
		after = b.journal.after // one that is known may not be durable yet
	}
	after(func() {
		tx.committed(copies, acked, topics)
		c.answer(cmd, nil)
	})
}

// takeAcked takes what the transaction acknowledged out of the consumers' windows: the consumers
// may close before the commit is durable, and must not give it back.
func (tx *transaction) takeAcked() []committing {
	b := tx.conn.b
	var acked []committing
	for _, s := range tx.acks {
		s.window.Commit(tx.id, func(e *window.Entry[*queue.Copy]) {
			s.counts.acked++
			d := b.home(e.Destination, e.Ref)
			if d == nil {
				return
			}
			b.journal.remove(d, e.Ref)
			e.Ref.Stored, e.Ref.Owner = false, tx
			acked = append(acked, committing{d, e.Ref})
		})
		s.ready()
	}
	return acked
}

// committed lets the transaction take effect.
func (tx *transaction) committed(copies, acked []committing, topics []target) {
	b := tx.conn.b
	for _, t := range copies {
		if t.dest.gone {
			continue
		}
		if t.copy.Message.Expired(b.env.Wall()) {
			b.expire(t.dest, t.copy)
			continue
		}
		t.dest.queue.Place(t.copy)
	}
	for _, t := range topics {
		if !t.dest.gone {
			b.publish(t.dest, t.m)
		}
	}
	for _, t := range acked {
		if !t.dest.gone && t.copy.Owner == any(tx) {
			b.settle(t.dest, t.copy)
		}
	}
	b.relieve()
}

// rollback forgets the sends; what was acknowledged stays with the client, which redelivers it.
func (tx *transaction) rollback() {
	for _, s := range tx.acks {
		s.window.Rollback(tx.id)
	}
	tx.sends, tx.acks = nil, nil
}
