package broker

import (
	"fmt"
	"slices"
	"strconv"

	"hopwire/internal/broker/queue"
	"hopwire/internal/broker/window"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// Error codes of javax.transaction.xa.XAException. With a positive one the branch was rolled back.
const (
	xaRollback  = 100 // XA_RBROLLBACK
	xaTransient = 107 // XA_RBTRANSIENT
	xaFailed    = -3  // XAER_RMERR
	xaUnknown   = -4  // XAER_NOTA
	xaInvalid   = -5  // XAER_INVAL
	xaProtocol  = -6  // XAER_PROTO
)

// Votes of a prepare.
const (
	voteCommit   = 0 // XA_OK
	voteReadOnly = 3 // XA_RDONLY: there is nothing to commit, and the branch is over
)

// Limits of XA branches.
const (
	// maxBranches is how many there may be, open and prepared.
	maxBranches = 10_000
	// maxXidBytes is how long each part of an xid may be; XA says 64.
	maxXidBytes = 1024
	// laterMost is how many commands may wait for what the store says about their branch.
	laterMost = 100
)

// xaError is an XAException. Clients read its code from the end of the text.
func xaError(code int, format string, args ...any) error {
	return &message.Throwable{Class: "javax.transaction.xa.XAException",
		Message: fmt.Sprintf(format, args...) + " xaErrorCode:" + strconv.Itoa(code)}
}

// branches are the XA branches of a broker. An open one ends with the connection that began it; one
// that is prepared, or on the way there, is nobody's: any connection may decide it.
type branches struct {
	branches  map[message.TransactionID]*transaction
	preparing []*transaction
	prepared  []*transaction // in this order, until their outcome is durable
	known     int            // messages in their known
}

// branch is what an XA branch is beside a transaction.
type branch struct {
	state   branchState
	unit    *unit                         // of the prepare, while it is on its way
	voted   func(error)                   // hears of it
	dest    store.DestID                  // that keeps what was sent; 0 when nothing is stored
	stored  int64                         // messages in it, with those that are
	lost    int64                         // to a repair
	since   int64                         // when it was prepared; Wall
	acked   int                           // acknowledgements
	refs    []store.AckRef                // those of before the broker's start
	later   []laterTransaction            // came while state is preparing or ending
	known   map[message.MessageID]bool    // what it sent; nil is not known
	again   map[message.ConnectionID]bool // whose clients may send it again; nil is not known
	parties map[*Connection]bool          // that began, joined or prepared it
	givers  map[message.ConnectionID]bool // others of which it has sends or acknowledgements
	commit  bool                          // it is ending so
	reading bool                          // and what it sent is being read
}

type branchState uint8

const (
	branchOpen      branchState = iota
	branchPreparing             // until that is durable
	branchPrepared              // until somebody decides
	branchEnding                // until the outcome is durable
)

type laterTransaction struct {
	conn *Connection
	cmd  *message.TransactionInfo
}

// open reports whether sends and acknowledgements may come.
func (tx *transaction) open() bool { return tx.branch == nil || tx.branch.state == branchOpen }

func (x *branch) isPrepared() bool { return x != nil && x.state >= branchPrepared }

// who names the transaction in explanations.
func (tx *transaction) who() string {
	if tx.branch.isPrepared() {
		return tx.id.String() + " (prepared)"
	}
	return tx.id.String()
}

func (bs *branches) forget(tx *transaction) {
	if bs.branches[tx.id] == tx {
		delete(bs.branches, tx.id)
		bs.known -= len(tx.branch.known)
	}
	for c := range tx.branch.parties {
		delete(c.branches, tx)
	}
	tx.branch.parties = nil
	bs.preparing = without(bs.preparing, tx)
	bs.prepared = without(bs.prepared, tx)
}

// takePart notes that the connection may be who ends the branch.
func (c *Connection) takePart(tx *transaction) {
	if c.branches == nil {
		c.branches = map[*transaction]bool{}
	}
	if tx.branch.parties == nil {
		tx.branch.parties = map[*Connection]bool{}
	}
	c.branches[tx], tx.branch.parties[c] = true, true
}

// ends notes that the connection ends the branch, or prepares it: it waits for the answer.
func (c *Connection) ends(tx *transaction) {
	c.takePart(tx)
	tx.by = c
}

// concludes reports whether the connection waits for the outcome of a branch that is being read.
func (c *Connection) concludes() bool {
	for tx := range c.branches {
		if tx.branch.reading && (tx.by == c || tx.branch.defersOf(c)) {
			return true
		}
	}
	return false
}

// leaveBranches forgets, of a connection that ends, what takePart noted.
func (c *Connection) leaveBranches() {
	for tx := range c.branches {
		delete(tx.branch.parties, c)
	}
	c.branches = nil
}

// transactXA executes a TransactionInfo about XA branches.
func (c *Connection) transactXA(cmd *message.TransactionInfo) {
	switch cmd.Type {
	case message.Recover:
		c.recover(cmd)
		return
	case message.Begin:
		err := c.beginXA(cmd.ID)
		c.begins(cmd)
		c.answer(cmd, err)
		return
	case message.End: // asks only whether all that was sent before it is here
		c.answer(cmd, nil)
		return
	}
	tx := c.b.xa.branches[cmd.ID]
	switch {
	case tx == nil && cmd.Type == message.Prepare:
		c.answer(cmd, message.Errorf(message.IllegalState, "Cannot prepare a transaction that had not"+
			" been started or previously returned XA_RDONLY: %s", cmd.ID))
	case tx == nil:
		c.answer(cmd, notStarted(cmd.ID))
	case tx.branch.state == branchPreparing || tx.branch.state == branchEnding:
		tx.defers(c, cmd)
	default:
		c.decide(tx, cmd)
	}
}

// decide executes a command about a branch that is open or prepared.
func (c *Connection) decide(tx *transaction, cmd *message.TransactionInfo) {
	done := func(err error) { c.answer(cmd, err) }
	told := func(err error) {
		switch {
		case err == nil:
			done(nil)
		case message.KindOf(err) == message.Corrupt:
			done(xaError(xaFailed, "%s", err))
		default: // the broker stops, and the client asks the next one
		}
	}
	isPrepared := tx.branch.state == branchPrepared
	switch cmd.Type {
	case message.Prepare:
		if isPrepared {
			c.vote(cmd, voteCommit)
			return
		}
		if tx.then != nil {
			done(xaError(xaProtocol, "Cannot call prepare now: %s is being ended", tx.id))
			return
		}
		c.ends(tx)
		c.demandWhole(tx, cmd)
		tx.prepare(func(vote int32, err error) {
			if err != nil {
				done(err)
				return
			}
			c.vote(cmd, vote)
		})
	case message.CommitOnePhase, message.CommitTwoPhase:
		switch {
		case isPrepared:
			c.ends(tx)
			tx.conclude(true, told)
		case cmd.Type == message.CommitTwoPhase:
			done(xaError(xaProtocol,
				"Cannot do 2 phase commit if the transaction has not been prepared"))
		case tx.then != nil:
			done(xaError(xaProtocol, "Cannot call commit now: %s is being ended", tx.id))
		default:
			c.ends(tx)
			c.demandWhole(tx, cmd)
			tx.commit(done)
		}
	case message.Rollback, message.Forget:
		c.ends(tx)
		if isPrepared {
			tx.conclude(false, told)
			return
		}
		tx.rollback()
		done(nil)
	default:
		done(xaError(xaInvalid, "there is no transaction step %d", cmd.Type))
	}
}

func (c *Connection) vote(cmd *message.TransactionInfo, vote int32) {
	if cmd.ResponseRequired && !c.closed {
		c.out.Send(&message.Response{Correlation: cmd.CommandID, Shape: message.IntegerResponse,
			Result: vote})
	}
}

// recover tells the prepared branches, whoever prepared them.
func (c *Connection) recover(cmd *message.TransactionInfo) {
	r := &message.Response{Correlation: cmd.CommandID, Shape: message.DataArrayResponse}
	for _, tx := range c.b.xa.prepared {
		r.Array = append(r.Array, tx.id)
	}
	if cmd.ResponseRequired {
		c.out.Send(r)
	}
}

// beginXA begins a branch. One that is there already is joined, or resumed.
func (c *Connection) beginXA(id message.TransactionID) error {
	b := c.b
	switch {
	case b.xa.branches[id] != nil:
		c.takePart(b.xa.branches[id])
		return nil
	case len(id.Global) > maxXidBytes || len(id.Branch) > maxXidBytes:
		return xaError(xaInvalid, "an xid of %d and %d bytes is too long, the limit is %d",
			len(id.Global), len(id.Branch), maxXidBytes)
	case len(b.xa.branches) >= maxBranches:
		b.counts.Reasons[message.TransactionLimit]++
		return xaError(xaFailed, "the broker has %d XA transactions, which is the limit: commit or"+
			" roll back some", maxBranches)
	}
	if err := c.begin(id); err != nil {
		return xaError(xaFailed, "%s", err)
	}
	tx := c.transactions[id]
	tx.branch = &branch{}
	b.xa.branches[id] = tx
	c.takePart(tx)
	return nil
}

// defers has a command wait for what the store says about the branch.
func (tx *transaction) defers(c *Connection, cmd *message.TransactionInfo) {
	x := tx.branch
	if len(x.later) >= laterMost {
		c.answer(cmd, xaError(xaProtocol, "%d commands about %s wait already", laterMost, cmd.ID))
		return
	}
	c.takePart(tx)
	x.later = append(x.later, laterTransaction{c, cmd})
}

// defersOf reports whether commands of the connection wait.
func (x *branch) defersOf(c *Connection) bool {
	return slices.ContainsFunc(x.later, func(l laterTransaction) bool { return l.conn == c })
}

// goOn executes the commands that waited. Who asked for the outcome that came is told of it; for
// who is finished nothing more is done.
func (x *branch) goOn() {
	list := x.later
	x.later = nil
	for _, l := range list {
		commits := l.cmd.Type == message.CommitOnePhase || l.cmd.Type == message.CommitTwoPhase
		rolls := l.cmd.Type == message.Rollback || l.cmd.Type == message.Forget
		switch {
		case l.conn.closed:
		case x.state == branchEnding && (commits && x.commit || rolls && !x.commit):
			l.conn.answer(l.cmd, nil)
		case l.conn.finished:
		default:
			l.conn.transactXA(l.cmd)
		}
	}
}

// prepare votes on a branch: what it sent and acknowledged is made durable in one batch, and waits
// for the outcome. It waits for sends that wait for space.
func (tx *transaction) prepare(done func(vote int32, err error)) {
	if tx.wait(func(err error) {
		if err != nil {
			done(0, err)
			return
		}
		tx.prepare(done)
	}) {
		return
	}
	switch {
	case tx.broken != nil:
		tx.rollback()
		done(0, tx.spoiled())
		return
	case len(tx.sends) == 0 && len(tx.acks) == 0 && !tx.heard:
		tx.forget()
		done(voteReadOnly, nil)
		return
	}
	x, b := tx.branch, tx.b
	x.since, x.voted = b.env.Wall(), func(err error) { done(voteCommit, err) }
	refs, unwritten := tx.ackRefs()
	var keep []*arrival
	for _, a := range tx.sends {
		if a.m.Persistent && b.opt.Persistent {
			keep = append(keep, a)
		}
	}
	if !b.journal.held.empty() && (unwritten || len(keep) > 0) ||
		len(keep) > 0 && b.journal.storage.Space().Full {
		tx.noRoom()
		return
	}
	delete(tx.conn.transactions, tx.id)
	tx.conn = nil
	x.state = branchPreparing
	b.xa.knowSends(tx)
	x.awaitSends(tx.sends)
	b.xa.preparing = append(b.xa.preparing, tx)
	if !b.opt.Persistent {
		tx.voteCommit()
		return
	}
	x.dest, x.stored = b.nextDest, int64(len(keep))
	b.nextDest++
	x.unit = b.journal.apart(func() {
		b.journal.putBranch(x, &store.Prepared{ID: tx.id, Time: x.since, Acks: refs}, keep)
		b.journal.whenDurable(func() {
			if x.state == branchPreparing {
				tx.voteCommit()
			}
		})
	})
}

// putBranch stores a branch with what was sent in it.
func (j *journal) putBranch(x *branch, p *store.Prepared, sends []*arrival) {
	h := &store.Header{ID: x.dest, Prepared: p, Head: 1, Reserved: store.Seq(len(sends) + 1),
		Count: int64(len(sends))}
	for i, a := range sends {
		size := a.m.Size()
		h.Bytes += size
		j.change(nil, nil, &store.Op{Kind: store.PutMessage, Dest: x.dest, Seq: store.Seq(i + 1),
			Message: a.m}, size)
	}
	j.add(store.Op{Kind: store.PutHeader, Dest: x.dest, Header: h})
}

// ackRefs names what the branch acknowledged and is stored, and tells whether the record of some of
// it is not durable yet.
func (tx *transaction) ackRefs() (refs []store.AckRef, unwritten bool) {
	tx.branch.acked = 0
	for _, s := range tx.acks {
		s.window.Each(func(e *window.Entry[*queue.Copy]) {
			c := e.Ref
			if c == nil || c.Tx != any(tx) {
				return
			}
			d := s.home(e.Destination, c)
			if d == nil {
				return
			}
			tx.branch.acked++
			if !c.Stored {
				return
			}
			unwritten = unwritten || !c.Durable
			refs = append(refs, store.AckRef{Dest: d.id, Seq: store.Seq(c.Seq),
				Expiration: c.Message.Expiration, Size: c.Message.Size(), Redelivery: c.Redelivery})
		})
	}
	return refs, unwritten
}

// voteCommit tells that the branch is prepared. What is stored of it leaves memory.
func (tx *transaction) voteCommit() {
	x, b := tx.branch, tx.b
	x.state = branchPrepared
	b.xa.preparing = without(b.xa.preparing, tx)
	b.xa.prepared = append(b.xa.prepared, tx)
	var rest []*arrival
	for _, a := range tx.sends {
		if x.dest != 0 && a.m.Persistent {
			a.release()
		} else {
			rest = append(rest, a)
		}
	}
	tx.sends = rest
	b.relieve()
	x.voted(nil)
	x.goOn()
}

// noRoom rolls a branch back that the store has no room for: a transaction manager that heard of no
// vote would have to wait for it.
func (tx *transaction) noRoom() {
	x := tx.branch
	x.state = branchEnding
	tx.rollback()
	tx.b.counts.Reasons[message.StoreFull]++
	x.voted(xaError(xaTransient, "%s is rolled back: the store has no room for what it sent; consume"+
		" messages or free the disk", tx.id))
	x.goOn()
}

// refused rolls back the branches whose prepares the store has no room for, or that depend on what
// it has no room for.
func (bs *branches) refused() {
	for _, tx := range append([]*transaction(nil), bs.preparing...) {
		if _, unwritten := tx.ackRefs(); unwritten || tx.branch.stored > 0 {
			tx.b.journal.withdraw(tx.branch.unit)
			tx.noRoom()
		}
	}
}
