package broker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/store"
)

// branchPage bounds a page of what a branch sent.
const branchPage = 4 << 20

// conclude commits or rolls back a prepared branch, and tells when that is durable. With an error
// it stays prepared.
func (tx *transaction) conclude(commit bool, done func(error)) {
	x := tx.branch
	if commit && x.lost > 0 {
		done(tx.incomplete())
		return
	}
	x.state, x.commit = branchEnding, commit
	over := func() {
		tx.forget()
		tx.sends, tx.acks = nil, nil
		done(nil)
		x.goOn()
	}
	if !commit {
		tx.revoke(over)
		return
	}
	var sends []*arrival
	x.reading = true
	tx.readSends(1, func(page []store.Stored) {
		for _, s := range page {
			sends = append(sends, &arrival{b: tx.b, m: s.Message.Clone(), wire: s.Message.Destination,
				again: x.comesAgain(s.Message)})
		}
	}, func(err error) {
		x.reading = false
		if err != nil {
			x.state = branchPrepared
			done(err)
			x.goOn()
			return
		}
		tx.enact(slices.Concat(sends, tx.sends), over)
	})
}

// Decide commits or rolls back a prepared branch that its transaction manager left behind; xid is
// as Status tells it, by who asked.
func (b *Broker) Decide(xid string, commit bool, by string, done func(error)) {
	i := slices.IndexFunc(b.xa.prepared, func(tx *transaction) bool { return tx.id.String() == xid })
	switch {
	case i < 0:
		done(message.Errorf(message.NotFound, "no transaction %s is prepared", xid))
	case b.xa.prepared[i].branch.state == branchEnding:
		done(message.Errorf(message.IllegalState, "%s is being ended", xid))
	default:
		b.impose(b.xa.prepared[i], commit, by, done)
	}
}

// impose decides about a branch without its transaction manager.
func (b *Broker) impose(tx *transaction, commit bool, by string, done func(error)) {
	if commit && tx.branch.lost > 0 {
		done(tx.incomplete())
		return
	}
	how := "rolled back"
	if commit {
		how = "committed"
	}
	b.tell(Event{Kind: BranchImposed, Count: 1, By: by, Text: tx.id.String() + " is " + how +
		" without its transaction manager; it " + tx.holding()})
	tx.by = nil
	tx.conclude(commit, done)
}

// imposeAll decides about all branches that were prepared before the broker's start.
func (b *Broker) imposeAll() {
	for _, tx := range slices.Clone(b.xa.prepared) {
		if tx.branch.state == branchPrepared {
			b.impose(tx, b.opt.Recovered == CommitRecovered, "", func(error) {})
		}
	}
}

// holding says how much waits for a prepared branch.
func (tx *transaction) holding() string {
	lost := ""
	if tx.branch.lost > 0 {
		lost = fmt.Sprintf(", and can only be rolled back, as %d that it sent are lost", tx.branch.lost)
	}
	return fmt.Sprintf("holds %d sent and %d acknowledged messages%s",
		tx.branch.stored-tx.branch.lost+int64(len(tx.sends)), tx.branch.acked, lost)
}

// TransactionStatus is one prepared XA branch at one moment.
type TransactionStatus struct {
	ID    string
	Since time.Duration // since it was prepared
	Sends int64         // messages that are there when it commits
	Lost  int64         // others that a repair lost: it can only be rolled back
	Acks  int           // messages that it acknowledged: nobody gets them before it is rolled back
}

// transactions tells the prepared branches, in this order.
func (b *Broker) transactions() (out []TransactionStatus) {
	for _, tx := range b.xa.prepared {
		out = append(out, TransactionStatus{ID: tx.id.String(), Since: tx.age(),
			Sends: tx.branch.stored - tx.branch.lost + int64(len(tx.sends)), Lost: tx.branch.lost,
			Acks: tx.branch.acked})
	}
	return out
}

// readSends reads what the branch sent, by pages; one that cannot be read is asked for again,
// unless the broker stops. A message that makes no sense is left out. Where the disk gives nothing,
// a repair may find more: the branch stays as it is.
func (tx *transaction) readSends(from store.Seq, take func([]store.Stored), through func(error)) {
	x, b := tx.branch, tx.b
	if int64(from) > x.stored {
		through(nil)
		return
	}
	b.journal.whenHandedOver(func() {
		b.journal.storage.Page(store.PageRequest{Dest: x.dest, From: from, To: store.Seq(x.stored) + 1,
			Bytes: branchPage}, func(page []store.Stored, err error) {
			switch {
			case err != nil:
				b.tell(Event{Kind: StoreTrouble, Text: "what " + tx.id.String() + " sent could not be" +
					" read: " + err.Error()})
				if b.stopping() {
					through(message.Errorf(message.Unavailable, "the broker stops, and what"+
						" %s sent could not be read: %w", tx.id, err))
					return
				}
				b.env.After(time.Second, func() { tx.readSends(from, take, through) })
				return
			case len(page) == 0:
				through(nil)
				return
			}
			if i := slices.IndexFunc(page, func(s store.Stored) bool { return s.To > 0 }); i >= 0 {
				through(tx.unreadable(&page[i]))
				return
			}
			next := page[len(page)-1].Next()
			take(slices.DeleteFunc(page, func(s store.Stored) bool {
				if s.Message == nil {
					n := int64(s.Next() - s.Seq) // there are no holes
					b.counts.Reasons[message.Unreadable] += n
					b.tell(Event{Kind: StoreTrouble, Reason: message.Unreadable, Count: n,
						Text: plural.Of(n, "message") + " of " + tx.id.String() + " left out: " +
							s.Damage.Error()})
				}
				return s.Message == nil
			}))
			tx.readSends(next, take, through)
		})
	})
}

// unreadable tells of a place on the disk that gives nothing of what the branch sent.
func (tx *transaction) unreadable(s *store.Stored) error {
	err := message.Errorf(message.Corrupt, "%s stays prepared: what it sent cannot be read at %s;"+
		" stop the broker, run hopwire repair FILE, which copies what can be read, and commit then: %w",
		tx.id, sequences(uint64(s.Seq), uint64(s.To)), s.Damage)
	tx.b.counts.Reasons[message.Unreadable]++
	tx.b.tell(Event{Kind: StoreTrouble, Reason: message.Unreadable, Count: 1, Text: err.Error()})
	return err
}

// incomplete refuses the commit of a branch of which a repair could not read all that it sent: half
// of what was to happen at once is no outcome.
func (tx *transaction) incomplete() error {
	err := message.Errorf(message.Corrupt, "%s stays prepared: of the messages that it sent, a repair"+
		" of the store lost %d, and %d are left; roll it back, with its transaction manager or by"+
		" hopwire transactions", tx.id, tx.branch.lost, tx.branch.stored-tx.branch.lost)
	tx.b.counts.Reasons[message.Unreadable]++
	tx.b.tell(Event{Kind: StoreTrouble, Reason: message.Unreadable, Count: 1, Text: err.Error()})
	return err
}

// end adds to the batch of a commit that the branch is over; nil is no branch.
func (x *branch) end(b *Broker) {
	if x == nil {
		return
	}
	for _, r := range x.refs {
		if d := b.byID(r.Dest); d != nil {
			b.journal.delete(d, nil, r.Seq, r.Expiration, r.Size)
		}
	}
	x.drop(b)
}

func (x *branch) drop(b *Broker) {
	if x.dest != 0 {
		b.journal.add(store.Op{Kind: store.DropDestination, Dest: x.dest})
		b.journal.keepNextDest()
	}
}

// settleStored lets the end of withheld copies take effect.
func (x *branch) settleStored(b *Broker) {
	if x == nil {
		return
	}
	for _, r := range x.refs {
		d := b.byID(r.Dest)
		if d == nil || !d.queue.EndWithheld(uint64(r.Seq)) {
			continue
		}
		d.counts.Dequeued++
		b.counts.Dequeued++
		if d.sub != nil {
			b.journal.touch(d) // what its logs keep for it may be less
		}
	}
}

// revoke rolls a prepared branch back. What was acknowledged before the broker's start waits again,
// with the redelivery count raised; all else is as of an open transaction.
func (tx *transaction) revoke(over func()) {
	x, b := tx.branch, tx.b
	b.journal.apart(func() {
		for _, r := range x.refs {
			if d := b.byID(r.Dest); d != nil && d.queue.Release(uint64(r.Seq)) {
				b.journal.add(store.Op{Kind: store.SetRedelivery, Dest: r.Dest, Seq: r.Seq,
					Count: r.Redelivery + 1})
			}
		}
		x.drop(b)
		tx.undo()
		b.journal.whenDurable(over)
	})
}

// restoreBranches finds the branches that were prepared before the broker's start, and withholds
// what they acknowledged.
func (b *Broker) restoreBranches(headers []store.Header) {
	var found []*transaction
	for i := range headers {
		h := &headers[i]
		if h.Prepared == nil {
			continue
		}
		tx := b.newTransaction(nil, h.Prepared.ID)
		tx.branch = &branch{state: branchPrepared, dest: h.ID, stored: h.Count,
			lost: h.Prepared.Lost, since: h.Prepared.Time}
		for _, r := range h.Prepared.Acks {
			d := b.byID(r.Dest)
			if d != nil && d.queue != nil && d.queue.Withhold(uint64(r.Seq)) {
				tx.branch.refs = append(tx.branch.refs, r)
			}
		}
		tx.branch.acked = len(tx.branch.refs)
		found = append(found, tx)
	}
	slices.SortStableFunc(found, func(x, y *transaction) int {
		return cmp.Compare(x.branch.since, y.branch.since)
	})
	for _, tx := range found {
		b.xa.branches[tx.id] = tx
		b.tell(Event{Kind: BranchFound, Count: 1, Text: tx.id.String() + " " + tx.holding() +
			"; if its transaction manager does not come back: hopwire transactions"})
	}
	b.xa.prepared = found
	if b.opt.Recovered != KeepRecovered {
		b.env.Soon(b.imposeAll)
	}
}
