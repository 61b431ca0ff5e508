package broker

import (
	"slices"
	"time"

	"hopwire/internal/broker/audit"
	"hopwire/internal/message"
)

// loads are what waits for the receipts of a destination, and the numbers of its producers, to be
// read. Sends among them count as parked ones do, and go with their connection or transaction. But
// those of peers are bounded by their windows, never refused, and leave others their room: they
// would be in memory without waiting, too.
type loads struct {
	reading bool // in Broker.reading
	list    []waiter
	sends   int      // that wait
	left    int      // entries of list that do not wait any more
	went    []func() // what the receipts are told first
}

// waiter is a send that waits, or a question.
type waiter struct {
	send *arrival // nil: a question
	run  func()
}

func (l waiter) waits() bool { return l.send == nil || l.send.wait != nil }

// hasReceipts reports whether the receipts of all peers, and the store's numbers of producers, are
// in memory. Of all peers, since a copy that came by one may come again by another, or from the
// client that sent it.
func (b *Broker) hasReceipts(d *destination) bool {
	if d.receipts != nil {
		return true
	}
	topic := d.name.Kind == message.Topic
	if !b.opt.Persistent || !d.stores() && !topic || topic && !d.headed {
		d.receipts, d.loads.went = audit.NewReceipts(), nil // nothing was here before
		return true
	}
	return false
}

// haveReceipts is hasReceipts; if not, f runs when they are, behind all that waited before.
func (b *Broker) haveReceipts(d *destination, f func()) bool {
	if b.hasReceipts(d) {
		return true
	}
	b.load(d, waiter{run: f})
	return false
}

// load has something wait.
func (b *Broker) load(d *destination, l waiter) {
	d.loads.list = append(d.loads.list, l)
	if !d.loads.reading {
		d.loads.reading = true
		b.reading = append(b.reading, d)
		b.readReceipts(d)
	}
}

// awaitReceipts parks an arrival until the receipts are read.
func (b *Broker) awaitReceipts(d *destination, a *arrival) outcome {
	if a.peer == nil && b.mayNotWait(d, a, message.ReceiptsUnread) {
		d.reasons[message.ReceiptsUnread]++
		b.counts.Reasons[message.ReceiptsUnread]++
		a.refuse(message.Errorf(message.Limit, "it is not read yet what came to %s before (%s), and what"+
			" waits for that is at its limit", d.name, message.ReceiptsUnread))
		return finished
	}
	a.wait = &parking{reason: message.ReceiptsUnread, load: d, size: a.m.Size(), since: b.env.Mono()}
	d.loads.sends++
	b.countLoad(a, 1)
	if a.tx != nil { // which must not commit without it
		a.tx.parked = append(a.tx.parked, a)
	}
	if a.conn != nil {
		a.conn.parkedBytes += a.wait.size
		a.conn.pace()
	}
	b.load(d, waiter{send: a, run: func() {
		b.endLoad(a)
		if a.tx != nil {
			drop(&a.tx.parked, a)
		}
		b.run(a)
	}})
	return parkedHere
}

func (b *Broker) endLoad(a *arrival) {
	a.wait.load.loads.sends--
	b.countLoad(a, -1)
	a.leavePark()
}

func (b *Broker) countLoad(a *arrival, sign int64) {
	if a.peer == nil {
		b.parkedBytes += sign * a.wait.size
	}
}

// leaveLoad takes an arrival out of those that wait: it does not go on.
func (b *Broker) leaveLoad(a *arrival) {
	d := a.wait.load
	b.endLoad(a)
	if d.loads.left++; 2*d.loads.left > len(d.loads.list)+holesFew {
		d.loads.list = slices.DeleteFunc(d.loads.list, func(l waiter) bool { return !l.waits() })
		d.loads.left = 0
	}
}

// dropLoads gives up what waits of a connection that ended. A peer that asks about it is told, when
// the receipts are read, that it never came.
func (c *Connection) dropLoads() {
	for _, d := range c.b.reading {
		for _, l := range slices.Clone(d.loads.list) {
			if a := l.send; a != nil && a.wait != nil && a.conn == c && !a.goesWith(c) {
				c.b.leaveLoad(a)
				a.giveUp()
			}
		}
	}
}

// loaded lets all go on that waits.
func (b *Broker) loaded(d *destination) {
	for _, f := range d.loads.went {
		f()
	}
	for len(d.loads.list) > 0 {
		l := d.loads.list[0]
		d.loads.list[0] = waiter{}
		d.loads.list = d.loads.list[1:]
		if l.waits() {
			l.run()
		}
	}
	d.loads = loads{}
	drop(&b.reading, d)
}

// unreadReceipts tells that a read failed, and has it tried again.
func (b *Broker) unreadReceipts(d *destination, err error) {
	b.trouble(d, message.ReceiptsUnread, 1, "the receipts of peers and producers could not be read: "+
		err.Error())
	b.env.After(time.Second, func() { b.readReceipts(d) })
}

// loads counts the sends that wait for receipts.
func (e *explainer) loads() {
	for _, l := range e.named.loads.list {
		if a := l.send; a != nil && a.wait != nil && (e.id == nil || a.m.ID == *e.id) {
			e.found = true
			row := e.row(message.ReceiptsUnread, "sends that wait for a read")
			row.Count++
			row.Oldest.add(e.oldestParked(a))
		}
	}
}
