package broker

import (
	"fmt"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// keptCopy is a copy that a prepared branch keeps since before the broker's start.
type keptCopy struct {
	tx  *transaction
	seq store.Seq
}

// keptOf gives what prepared branches keep of a queue, and is in the store alone.
func (b *Broker) keptOf(d *destination) (kept []keptCopy) {
	for _, tx := range b.xa.prepared {
		for _, r := range tx.branch.refs {
			if r.Dest == d.id {
				kept = append(kept, keptCopy{tx, r.Seq})
			}
		}
	}
	return kept
}

// branches explains what prepared branches keep of the queue; what is looked for is looked for
// there last.
func (e *explainer) branches() {
	kept := e.b.keptOf(e.d)
	if e.id != nil {
		e.kept = kept
		return
	}
	for _, k := range kept {
		row := e.row(message.InTransaction, k.tx.who())
		row.Count++
		row.Oldest.Age = max(row.Oldest.Age, k.tx.age())
	}
}

// age is how long ago the branch was prepared, by the clock on the wall.
func (tx *transaction) age() time.Duration {
	return time.Duration(max(0, tx.b.env.Wall()-tx.branch.since)) * time.Millisecond
}

// inBranches looks for the message among what prepared branches keep.
func (e *explainer) inBranches() {
	if len(e.kept) == 0 {
		e.through()
		return
	}
	k := e.kept[0]
	e.kept = e.kept[1:]
	e.b.journal.storage.Page(store.PageRequest{Dest: e.d.id, From: k.seq, To: k.seq + 1},
		func(page []store.Stored, err error) {
			switch {
			case e.named.gone:
				e.done(nil)
				return
			case err == nil && len(page) > 0 && page[0].Message != nil &&
				page[0].Message.ID == *e.id:
				e.found, e.kept = true, nil
				e.add(message.InTransaction, k.tx.who(),
					&queue.Copy{Message: page[0].Message, Arrived: e.b.arrivedBefore(page[0].Message)})
			}
			e.inBranches()
		})
}

// keepers tells how much of a queue branches keep that are prepared, or on the way there, and names
// the first of these.
func (b *Broker) keepers(d *destination) (by *transaction, n int64) {
	if d.queue == nil || len(b.xa.prepared)+len(b.xa.preparing) == 0 {
		return nil, 0
	}
	kept := b.keptOf(d)
	if n = int64(len(kept)); n > 0 {
		by = kept[0].tx
	}
	d.queue.EachOut(func(c *queue.Copy) {
		if tx, ok := c.Tx.(*transaction); ok && !tx.open() {
			if n++; by == nil || tx.number < by.number {
				by = tx
			}
		}
	})
	return by, n
}

// keptByBranch refuses to remove a queue while a branch that is prepared, or on the way there,
// keeps messages of it. Temporary ones go with their connection.
func (b *Broker) keptByBranch(d *destination) error {
	if d.name.IsTemp() {
		return nil
	}
	by, _ := b.keepers(d)
	if by == nil {
		return nil
	}
	return message.Errorf(message.IllegalState, "%s cannot be removed: prepared transaction %s keeps"+
		" messages of it; commit or roll it back first", d.name, by.id)
}

// keptToo tells, of a durable subscription that ends, what of it branches acknowledged: their
// rollback brings nothing back. It is "" when there is nothing.
func (s *subscription) keptToo() string {
	by, n := s.b.keepers(s.dest)
	if by == nil {
		return ""
	}
	return fmt.Sprintf("; prepared transactions, first %s, acknowledged %d of them: a rollback"+
		" brings nothing of that back", by.id, n)
}
