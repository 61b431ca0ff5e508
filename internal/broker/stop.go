package broker

import (
	"slices"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/broker/window"
	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// The bounds of a clean stop.
const (
	// settleTime is how long clients may go on with what they have, at most.
	settleTime = 2 * time.Second
	// settleSilence is how long one that has something may say nothing meanwhile.
	settleSilence = 500 * time.Millisecond
	// settleTick is how often is looked, and how long one that has nothing may begin something.
	settleTick = 10 * time.Millisecond
	// leaveTime is how long clients may take to close their side: longer than a session waits.
	leaveTime = 6 * time.Second
)

// stop is a clean stop under way. Its phases:
//
//	settling: nothing is delivered, and clients go on with what they have. Each is finished when it
//	has nothing unacknowledged and no transaction open, or is silent, or time is over: from then on
//	nothing that wants an answer is done, and after the last answer its client reads the end.
//	answering: what is on its way to the disk is written and answered; all clients read the end.
//	leaving: acknowledgements that were on their way are executed until all clients have closed.
//	closing: purges are cut off, windows are given back, and what that changed is written.
type stop struct {
	phase phase
	began time.Duration // when the phase did; monotonic
	open  []*Connection // not finished, or not answered about branches; of settling
	look  bool          // it is time to look at open
	next  func()
	ended func()
}

type phase int

const (
	settling phase = iota
	answering
	leaving
	closing
)

// Stop ends the broker in order. What was confirmed is in the store when ended is called, and
// windows were given back: what was written to clients as redelivered. Sends that there is no room
// for are given up: nobody was told that they are safe. next is called when a phase begins behind
// the first, each of which may wait for the store.
func (b *Broker) Stop(next, ended func()) {
	for _, c := range b.connOrder {
		c.out.Cut()
	}
	b.stop = &stop{began: b.env.Mono(), open: slices.Clone(b.connOrder),
		next: next, ended: ended}
	b.stop.tick(b.env)
}

// stopping reports whether a clean stop is under way: nothing is delivered, nobody let in.
func (b *Broker) stopping() bool { return b.stop != nil }

// tick has a turn end each tick, which looks at the stop.
func (s *stop) tick(env loop.Env) {
	env.After(settleTick, func() {
		s.look = true
		if s.phase != closing {
			s.tick(env)
		}
	})
}

// begin begins a phase.
func (s *stop) begin(p phase, env loop.Env) {
	s.phase, s.began = p, env.Mono()
	s.next()
}

// goOnStopping ends the phase of a stop whose time has come, at the end of each turn.
func (b *Broker) goOnStopping() {
	s := b.stop
	if s == nil {
		return
	}
	took := b.env.Mono() - s.began
	switch s.phase {
	case leaving:
		if len(b.connOrder) == 0 || took >= leaveTime {
			b.closeAll()
		}
	case settling:
		if !s.look && len(s.open) > 0 {
			return // in each turn it would be much where there are many windows
		}
		s.look = false
		s.open = slices.DeleteFunc(s.open, func(c *Connection) bool {
			if !c.closed && !c.finished && took < settleTime && c.settles(s) {
				return false
			}
			c.finish()
			if c.concludes() { // what it asked for is done, and so it is answered
				return false
			}
			if !c.closed {
				b.journal.whenAllDurable(c.out.Finish)
			}
			return true
		})
		if len(s.open) == 0 {
			s.begin(answering, b.env)
			b.journal.drain(b.endAll)
		}
	}
}

// settles reports whether the client has something to end before it is finished, and goes on.
func (c *Connection) settles(s *stop) bool {
	return c.b.env.Mono()-max(s.began, c.active) < settleSilence && c.owes()
}

// owes reports whether a transaction is open, or anything that was written is unacknowledged.
func (c *Connection) owes() bool {
	if len(c.transactions)+len(c.branches) > 0 {
		return true
	}
	written := c.out.Written()
	return slices.ContainsFunc(c.order, func(s *consumer) bool {
		return s.browse == nil && s.window.Any(func(e *window.Entry[*queue.Copy]) bool {
			return e.Ref != nil && e.Number <= written
		})
	})
}

// finish ends what wants an answer. What waits for room, or for a commit, is not waited for: done
// later it would be done without an answer, and so again by the client. The end of a branch that is
// being read is, as nothing but the disk is in its way.
func (c *Connection) finish() {
	if c.closed || c.finished {
		return
	}
	c.finished = true
	c.dropParked()
	for tx := range c.branches {
		if tx.by == c {
			tx.then = nil // it waits for what others sent
		}
	}
	for _, tx := range c.openTransactions() {
		tx.by = c
		tx.rollback()
	}
}

// endAll lets all clients read the end; nothing is answered from here on.
func (b *Broker) endAll() {
	b.journal.hold.over = true
	for _, c := range b.connOrder {
		c.out.Finish()
	}
	b.stop.begin(leaving, b.env)
	b.env.Soon(func() {})
}

// closeAll takes leave of who has not closed, and writes what the end of the connections changed.
func (b *Broker) closeAll() {
	b.stop.begin(closing, b.env)
	for _, p := range slices.Clone(b.purges) {
		p.cutOff()
	}
	for _, c := range slices.Clone(b.connOrder) {
		c.close("the broker is stopping")
	}
	b.clearMarks()
	b.journal.drain(func() {
		b.clearDelivered()
		b.journal.drain(func() {
			b.journal.ended = true
			b.stop.ended()
		})
	})
}

// ends reports whether a command ends something, needs no answer and begins nothing. An
// acknowledgement in a transaction ends nothing before the commit, which is not executed any more.
func ends(cmd message.Command) bool {
	switch cmd := cmd.(type) {
	case *message.MessageAck:
		return cmd.Transaction.IsZero()
	case *message.RemoveInfo, *message.ShutdownInfo:
		return true
	}
	return false
}

// refuseLate spoils the transaction of a command that came too late, which another connection may
// want to commit, if this one has part in it, and counts a send that nobody hears of.
func (c *Connection) refuseLate(cmd message.Command) {
	spoil := func(id message.TransactionID) {
		if tx := c.transaction(id); tx != nil && tx.open() {
			tx.spoil(c, message.Errorf(message.RolledBack, "the broker is stopping"))
		}
	}
	switch cmd := cmd.(type) {
	case *message.MessageAck:
		if consumes(cmd) {
			spoil(cmd.Transaction)
		}
	case *message.Oversized:
		spoil(cmd.Transaction)
		c.countTooBig(cmd)
	case *message.Message:
		spoil(cmd.Transaction)
		if cmd.ResponseRequired || cmd.Destination.IsAdvisory() {
			return
		}
		c.b.counts.Reasons[message.ConnectionGone]++
		c.b.tell(Event{Kind: MessageDropped, Reason: message.ConnectionGone, Dest: cmd.Destination,
			Text: cmd.ID.String() + ": the broker is stopping", Count: 1})
	}
}
