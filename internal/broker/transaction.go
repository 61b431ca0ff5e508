package broker

import (
	"cmp"
	"maps"
	"slices"

	"hopwire/internal/broker/queue"
	"hopwire/internal/broker/window"
	"hopwire/internal/message"
)

// Limits of transactions.
const (
	// maxTransactions is how many a connection may have open.
	maxTransactions = 4096
	// transactionBytes is how much the sends of one may take when memory or the store is full. The
	// first send of a transaction waits for room; one that holds room already must not wait for
	// more, since others may wait for what it holds.
	transactionBytes = 8 << 20
)

// transaction is one open transaction, local or an XA branch: sends that wait for the commit, and
// consumers with acknowledgements in it.
type transaction struct {
	b      *Broker
	conn   *Connection // that began it; nil of a branch that is not open any more
	by     *Connection // that asked last for the end of a branch; nil is no client
	id     message.TransactionID
	number uint64 // in the order of their begins
	branch *branch
	sends  []*arrival
	bytes  int64      // of sends
	parked []*arrival // sends that wait for space
	acks   []*consumer
	heard  bool // something in it leaves nothing to commit
	begun  begun
	// broken is the first error of a send nobody waited for; the transaction can only roll back.
	broken error
	// then is the commit or prepare, waiting for parked sends; with an error it is not to be.
	then       func(error)
	committing bool
}

func notStarted(id message.TransactionID) error {
	if id.XA {
		return xaError(xaUnknown, "Transaction '%s' has not been started.", id)
	}
	return message.Errorf(message.NotFound, "Transaction '%s' has not been started.", id)
}

// transact executes a TransactionInfo.
func (c *Connection) transact(cmd *message.TransactionInfo) {
	if err := c.mustBe(c.id); err != nil {
		c.answer(cmd, err)
		return
	}
	if cmd.ID.XA || cmd.Type == message.Recover {
		c.transactXA(cmd)
		return
	}
	tx := c.transactions[cmd.ID]
	switch cmd.Type {
	case message.Begin:
		err := c.begin(cmd.ID)
		c.begins(cmd)
		c.answer(cmd, err)
		return
	case message.End:
		c.answer(cmd, nil)
		return
	case message.CommitOnePhase, message.CommitTwoPhase, message.Rollback:
		if tx == nil || tx.then != nil {
			c.answer(cmd, notStarted(cmd.ID))
			return
		}
		if cmd.Type == message.Rollback {
			tx.rollback()
			c.answer(cmd, nil)
			return
		}
		c.demandWhole(tx, cmd)
		tx.commit(func(err error) { c.answer(cmd, err) })
		return
	}
	c.answer(cmd, message.Errorf(message.IllegalState,
		"Cannot do transaction step %d with local transaction %s", cmd.Type, cmd.ID))
}

func (c *Connection) begin(id message.TransactionID) error {
	switch {
	case c.transactions[id] != nil:
		return nil
	case id.IsZero():
		return message.Errorf(message.Protocol, "a transaction needs an id")
	case len(c.transactions) >= maxTransactions:
		c.b.counts.Reasons[message.TransactionLimit]++
		return message.Errorf(message.Limit, "connection %s has %d transactions open, which is the"+
			" limit: commit or roll back some", c.id, maxTransactions)
	}
	c.transactions[id] = c.b.newTransaction(c, id)
	return nil
}

func (b *Broker) newTransaction(c *Connection, id message.TransactionID) *transaction {
	b.begun++
	return &transaction{b: b, conn: c, id: id, number: b.begun}
}

// transaction gives a transaction that commands of the connection may name: a local one is its
// own, an XA branch anybody's.
func (c *Connection) transaction(id message.TransactionID) *transaction {
	if id.XA {
		return c.b.xa.branches[id]
	}
	return c.transactions[id]
}

// sendIn takes a send that waits for its transaction's commit.
func (c *Connection) sendIn(a *arrival) {
	tx := c.transaction(a.m.Transaction)
	if tx == nil || tx.then != nil {
		a.refuse(notStarted(a.m.Transaction))
		return
	}
	if !tx.open() {
		c.sendLate(tx, a)
		return
	}
	if most := c.b.opt.MaxUncommitted; most > 0 && len(tx.sends)+len(tx.parked) >= most {
		c.b.counts.Reasons[message.TransactionLimit]++
		if tx.isOf(c) {
			tx.by = c
			tx.rollback()
		}
		a.refuse(message.Errorf(message.Limit, "Can not send message on transaction with id: '%s',"+
			" Transaction has reached the maximum allowed number of pending send operations before"+
			" commit of '%d'", tx.id, most))
		return
	}
	a.tx, a.part = tx, tx.isOf(c)
	c.b.run(a)
}

// keep is the last step of a send in a transaction until that commits. What else of the transaction
// waits for space need not wait any longer.
func (b *Broker) keep(a *arrival) outcome {
	tx := a.tx
	tx.take(a)
	waiting := tx.parked
	tx.parked = nil
	for _, p := range waiting {
		if p == a {
			continue
		}
		if p.wait.dest == nil {
			tx.parked = append(tx.parked, p) // it waits for no space
			continue
		}
		reason := p.reason()
		p.wait.dest.unpark(p)
		if p.overdraw(reason) == proceed {
			tx.take(p)
		}
	}
	tx.goOn()
	return finished
}

// take makes a send part of the transaction.
func (tx *transaction) take(a *arrival) {
	if a.m.OriginalTransaction.IsZero() {
		a.m.OriginalTransaction = a.m.Transaction
	}
	tx.has(a.conn)
	a.charged = a.b.wireDestination(a.wire)
	a.charged.usage.Add(a.m.Size())
	a.b.openBytes += a.m.Size()
	tx.sends = append(tx.sends, a)
	tx.bytes += a.m.Size()
	a.answer(nil)
}

// refused tells that a send is not in the transaction; when nobody waited for its answer, or who
// did is gone, the transaction can only roll back.
func (tx *transaction) refused(a *arrival, err error) {
	tx.without(a, err, a.conn.closed || tx.b.spoils(&a.header))
}

// spoils reports whether the refusal of a send spoils its transaction: nobody heard of it.
func (b *Broker) spoils(h *message.Header) bool {
	return !h.ResponseRequired && !b.opt.CommitWithoutFailed
}

// without goes on without a send that waited, and as one that can only roll back if that spoils it.
func (tx *transaction) without(a *arrival, err error, spoils bool) {
	if spoils && tx.broken == nil && (a.part || tx.isOf(a.conn)) {
		tx.broken = err
	}
	if i := slices.Index(tx.parked, a); i >= 0 {
		tx.parked = slices.Delete(tx.parked, i, i+1)
	}
	tx.goOn()
}

// goOn commits when that was asked for and no send waits any more.
func (tx *transaction) goOn() {
	if then := tx.then; then != nil && len(tx.parked) == 0 {
		tx.then = nil
		then(nil)
	}
}

// wait lets f run when no send waits for space any more, and reports whether that is later. With an
// error, f hears that the transaction ended before.
func (tx *transaction) wait(f func(error)) bool {
	if len(tx.parked) == 0 || tx.broken != nil {
		return false
	}
	tx.then = f
	return true
}

// isOf reports whether the connection has a part in the transaction: what is refused to anybody
// else changes nothing of it.
func (tx *transaction) isOf(c *Connection) bool {
	return tx.branch == nil || tx.branch.parties[c] || tx.branch.givers[c.id]
}

// has notes that the connection has something in the transaction.
func (tx *transaction) has(c *Connection) {
	if tx.isOf(c) {
		return
	}
	if tx.branch.givers == nil {
		tx.branch.givers = map[message.ConnectionID]bool{}
	}
	tx.branch.givers[c.id] = true
}

// spoil leaves nothing but a rollback, as a command of the connection is refused that nobody waits
// for: a commit without it would not be what the client commits.
func (tx *transaction) spoil(c *Connection, err error) {
	if tx != nil && tx.broken == nil && tx.isOf(c) {
		tx.broken = err
	}
}

// spoiled is the error of a commit or prepare of a transaction that can only roll back.
func (tx *transaction) spoiled() error {
	if tx.branch != nil {
		return xaError(xaRollback, "COMMIT FAILED: Transaction marked rollback only: %s", tx.broken)
	}
	return message.Errorf(message.RolledBack, "Transaction rolled back: %w", tx.broken)
}

// forget takes the transaction off those that commands find.
func (tx *transaction) forget() {
	if tx.conn != nil {
		delete(tx.conn.transactions, tx.id)
	}
	if tx.branch != nil {
		tx.b.xa.forget(tx)
	}
}

// loses gives up a send of a connection that is gone, whose branch others may end.
func (tx *transaction) loses(a *arrival) {
	tx.without(a, message.Errorf(message.RolledBack, "the connection of message %s was lost while"+
		" that waited", a.m.ID), true)
}

// committing is a copy of a transaction whose batch is on the way.
type committing struct {
	dest *destination
	copy *queue.Copy
}

// commit lets an open transaction take effect. It waits for sends that wait for space.
func (tx *transaction) commit(done func(error)) {
	if tx.wait(func(err error) {
		if err != nil {
			done(err)
			return
		}
		tx.commit(done)
	}) {
		return
	}
	if tx.broken != nil {
		tx.rollback()
		done(tx.spoiled())
		return
	}
	tx.forget()
	tx.enact(tx.sends, func() { done(nil) })
}

// enact makes sends and the transaction's acknowledgements durable in one batch; they take effect
// when it is.
func (tx *transaction) enact(sends []*arrival, done func()) {
	b := tx.b
	defer b.journal.leave(b.journal.enter())
	tx.committing = true
	var copies []committing
	var rest []target
	tx.release()
	for _, a := range sends {
		a.tx = nil
		if b.testReceipt(a) != proceed {
			continue
		}
		b.stamp(a)
		before := b.journal.puts
		for _, t := range b.resolve(a.m) {
			if b.late(t.dest, t.m, nil) {
				continue
			}
			if t.dest.queue == nil || b.isRequest(t.dest, t.m) {
				rest = append(rest, t)
				t.dest.commits++
				b.retain(t.dest, unmarked(t.m), nil, func(d *destination, m *message.Message,
					seq uint64) *queue.Copy {
					c := d.queue.ReserveAs(seq, m, b.env.Mono(), tx)
					copies = append(copies, committing{d, c})
					return c
				})
				continue
			}
			t.dest.reserve(b)
			reserved := t.dest.queue.Reserve(t.m, b.env.Mono(), tx)
			b.enqueued(t.dest, reserved, nil)
			copies = append(copies, committing{t.dest, reserved})
		}
		if b.journal.puts > before {
			b.keepNumber(a)
		}
	}
	acked := tx.takeAcked()
	tx.branch.end(b)
	after := b.journal.whenDurable
	if len(sends) > 0 {
		after = b.journal.whenAllDurable // one that is known may not be durable yet
	}
	after(func() {
		tx.committed(copies, acked, rest)
		done()
	})
}

// release gives back what the sends are charged; when they are enqueued their copies are.
func (tx *transaction) release() {
	for _, a := range tx.sends {
		a.release()
	}
}

func (a *arrival) release() {
	a.b.openBytes -= a.m.Size()
	if !a.charged.gone {
		a.charged.usage.Add(-a.m.Size())
	}
}

// takeAcked takes what the transaction acknowledged out of the consumers' windows: the consumers
// may close before the commit is durable, and must not give it back.
func (tx *transaction) takeAcked() []committing {
	b := tx.b
	var acked []committing
	for _, s := range tx.acks {
		s.window.Commit(tx.id, func(e *window.Entry[*queue.Copy]) {
			s.counts.acked++
			s.heard(e)
			d := s.home(e.Destination, e.Ref)
			if d == nil || e.Ref.Owner != any(s) && e.Ref.Owner != any(tx) {
				return
			}
			b.journal.remove(d, e.Ref)
			e.Ref.Stored, e.Ref.Owner = false, tx
			acked = append(acked, committing{d, e.Ref})
		})
		s.ready()
		s.drainBacklog()
	}
	return acked
}

// committed lets the transaction take effect.
func (tx *transaction) committed(copies, acked []committing, rest []target) {
	b := tx.b
	for _, t := range copies {
		if t.dest.gone {
			continue
		}
		if t.copy.Message.Expired(b.env.Wall()) {
			b.expire(t.dest, t.copy)
			continue
		}
		t.dest.queue.Place(t.copy)
		if t.dest.sub == nil {
			b.tellDelivered(t.dest, t.copy.Message, false)
		}
	}
	for _, t := range rest {
		t.dest.commits--
		b.publishCommitted(t)
	}
	for _, t := range acked {
		if !t.dest.gone && t.copy.Owner == any(tx) {
			b.settle(t.dest, t.copy)
		}
	}
	tx.branch.settleStored(b)
	b.evictAgain()
	b.relieve()
}

// publishCommitted gives a committed message to a topic, or to who answers for the destination. One
// that was removed while the commit waited for the disk is made again, as by a send.
func (b *Broker) publishCommitted(t target) {
	d := t.dest
	if d.gone {
		if b.mayReach(d.name) != nil {
			b.unreachable(d.name, t.m)
			return
		}
		d = b.destination(d.name)
	}
	switch {
	case t.m.Expired(b.env.Wall()) && d.keeps(t.m): // the copies are buried
	case t.m.Expired(b.env.Wall()):
		b.countExpired(d, t.m)
		b.deadLetterOf(nil, d, t.m, expiredCause(t.m), true)
	case !b.answerStatistics(d, t.m):
		b.publish(d, t.m)
	}
}

// keeps reports whether a durable subscription has a copy of a topic's message.
func (d *destination) keeps(m *message.Message) bool {
	return slices.ContainsFunc(d.shares, func(h *share) bool { return h.sub.refuses(m) == "" })
}

// rollback forgets the sends; what was acknowledged stays with the client, which redelivers it.
// What consumers had that are closed, or that hear nothing of the rollback, goes back to its queue.
func (tx *transaction) rollback() {
	tx.forget()
	tx.undo()
}

// undo is a rollback of a transaction that commands find still.
func (tx *transaction) undo() {
	for _, s := range tx.acks {
		if s.ended || tx.branch != nil && s.conn != tx.by {
			s.giveBackOf(tx)
		} else {
			s.window.Rollback(tx.id, letGo)
		}
	}
	for _, a := range tx.parked {
		a.answered = true // the rollback is the answer
		tx.b.leavePark(a)
	}
	tx.release()
	then := tx.then
	tx.sends, tx.acks, tx.parked, tx.then = nil, nil, nil, nil
	if then != nil && !tx.b.stopping() { // else the client asks the next broker
		then(notStarted(tx.id))
	}
	tx.b.relieve()
}

// hold marks a copy as acknowledged in the transaction. Of a topic's message there is none.
func (tx *transaction) hold(e *window.Entry[*queue.Copy]) {
	if e.Ref != nil {
		e.Ref.Tx = tx
	}
}

// letGo takes the mark back.
func letGo(e *window.Entry[*queue.Copy]) {
	if e.Ref != nil {
		e.Ref.Tx = nil
	}
}

// openTransactions gives the transactions that the connection began, in that order.
func (c *Connection) openTransactions() []*transaction {
	return slices.SortedFunc(maps.Values(c.transactions), func(x, y *transaction) int {
		return cmp.Compare(x.number, y.number)
	})
}
