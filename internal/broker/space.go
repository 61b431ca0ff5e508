package broker

import (
	"slices"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
)

// Limits of sends that wait for space, in bytes of their messages.
const (
	// congestedBytes of one connection stop its reader.
	congestedBytes = 16 << 20
	// parkedPerConnection is where a connection's sends are refused: one whose reader goes on, since
	// it must be able to acknowledge what it has.
	parkedPerConnection = 64 << 20
	// parkedOverall is where all sends are refused that would wait.
	parkedOverall = 512 << 20
	// undurableMax is how many bytes may be on their way to the store before sends wait. It bounds
	// what one batch takes, but for a transaction, as a batch collects while another is written.
	undurableMax = 64 << 20
)

// storeLook is how often the store is asked for room while sends wait for it: the disk tells nobody
// when it has some again.
const storeLook = time.Second

// isStored reports whether a message to the destination goes to the store.
func (b *Broker) isStored(d *destination, m *message.Message) bool {
	return m.Persistent && b.opt.Persistent && (d.stores() || len(d.shares) > 0)
}

// receiptTells reports whether the receipt of an arrival is durable when what came with it is: one
// in memory, as a topic has, tells nothing of what durable subscriptions and other members of a
// composite have in the store.
func (b *Broker) receiptTells(d *destination, a *arrival) bool {
	if d.stores() {
		return true
	}
	return !slices.ContainsFunc(a.wire.Split(), func(to message.Destination) bool {
		d := b.find(to)
		return d != nil && b.isStored(d, a.m)
	})
}

// awaitSpace parks an arrival while there is no room for it.
func (b *Broker) awaitSpace(a *arrival) outcome {
	if a.internal || a.m.Destination.IsAdvisory() {
		return proceed
	}
	d := b.wireDestination(a.wire)
	b.tellFull(d, a)
	k := b.class(d, a)
	reason := b.lacks(d, k)
	if reason == "" {
		// Behind those of its producer, and those that wait for the same room.
		if behind := d.behind(a); behind != nil {
			k = behind.wait.class
		} else if d.parkedOf[k] == 0 {
			return proceed
		}
		reason = d.lack[k]
	}
	soon := reason == message.MemoryFull && b.spool.makesRoom(d)
	if a.peer == nil && b.failsForSpace(d) && !soon {
		b.counts.Reasons[reason]++
		a.refuse(noSpace(d, a, reason, "reached"))
		return finished
	}
	if a.tx != nil && a.tx.bytes > 0 {
		return a.overdraw(reason)
	}
	if b.mayNotWait(d, a, reason) {
		b.counts.Reasons[reason]++
		a.refuse(message.Errorf(message.Limit, "%s has no room (%s), and what waits for some is at"+
			" its limit", d.name, reason))
		return finished
	}
	b.park(d, a, k, reason)
	return parkedHere
}

// overdraw lets a send in without room, since its transaction must not wait for what others may
// wait for it to give back; up to a limit.
func (a *arrival) overdraw(reason message.Reason) outcome {
	if a.tx.bytes+a.m.Size() <= transactionBytes {
		return proceed
	}
	a.b.counts.Reasons[reason]++
	a.refuse(message.Errorf(message.Limit, "the sends of transaction %s take more than %d bytes"+
		" while there is no room (%s): commit smaller ones", a.tx.id, transactionBytes, reason))
	return finished
}

// class is a kind of sends to a destination, which lack the same room.
type class uint8

const (
	stored     class = 1 // goes to the store
	transacted class = 2 // in a transaction that is open
	classes          = 4
)

func (b *Broker) class(d *destination, a *arrival) class {
	k := class(0)
	if b.isStored(d, a.m) {
		k = stored
	}
	if a.tx != nil {
		k |= transacted
	}
	return k
}

// lacks tells what room the sends of a class lack.
func (b *Broker) lacks(d *destination, k class) message.Reason {
	if k&stored != 0 {
		if b.storeLacks(d) {
			return message.StoreFull
		}
		// Stored copies leave memory when they are durable; only what is on its way counts.
		if b.journal.undurable > undurableMax {
			return message.MemoryFull
		}
	}
	// Until its transaction commits a send is in memory, whatever becomes of it.
	if k == stored|transacted {
		if limit := b.memory.Limit(); limit > 0 && b.openBytes >= limit {
			return message.MemoryFull
		}
		return ""
	}
	// A topic's stored messages wait for those who listen and are slow, whose copies are in memory.
	if k == stored && (d.queue != nil || d.usage.Used() == 0) || !b.memoryLacks(d) {
		return ""
	}
	if k&transacted == 0 && d.queue != nil && d.queue.HasReady() &&
		d.queue.ResidentBytes() < queue.PageBytes {
		return "" // one page for every queue that somebody waits at
	}
	if b.spool.helps(d) && b.spool.full() {
		return message.TempFull
	}
	return message.MemoryFull
}

// memoryLacks reports whether the destination's limit is reached, or the broker's: that one alone
// without flow control, when the spool does not follow, is full, or takes nothing of it.
func (b *Broker) memoryLacks(d *destination) bool {
	if !d.policy.Memory.ProducerFlowControl {
		return b.memory.Full()
	}
	return d.usage.Full()
}

func (b *Broker) storeLacks(d *destination) bool {
	space := b.journal.storage.Space()
	// What is on its way is as good as written, to a log and to its place: a batch of puts that the
	// store refuses for lack of room is held.
	tight := space.FreeBytes >= 0 && space.FreeBytes-2*b.journal.undurable < space.ReserveBytes
	return space.Full || b.overStoreLimit(d) || tight
}

// overStoreLimit reports whether the store takes what the destination may have of storeUsage, with
// what is on its way there.
func (b *Broker) overStoreLimit(d *destination) bool {
	used := b.journal.storage.Space().UsedBytes + b.journal.undurable
	return b.opt.StoreLimitBytes > 0 && float64(used) >=
		float64(b.opt.StoreLimitBytes)/100*float64(d.policy.Memory.StoreHighWaterPercent)
}

// mayNotWait reports whether too much waits already. A peer's sends are bounded by its window; what
// waits for the disk alone would be in memory without waiting, too.
func (b *Broker) mayNotWait(d *destination, a *arrival, reason message.Reason) bool {
	size := a.m.Size()
	if a.waitsForDisk(d, reason) {
		return false
	}
	return b.parkedBeyond(parkedOverall-size) ||
		a.conn != nil && a.peer == nil && a.conn.parkedBytes > 0 &&
			a.conn.parkedBytes+size > parkedPerConnection
}

// waitsForDisk reports whether a peer's send waits for what is on its way to the disk, and nothing
// else.
func (a *arrival) waitsForDisk(d *destination, reason message.Reason) bool {
	return a.peer != nil && reason == message.MemoryFull && a.b.isStored(d, a.m)
}

// Holder is an Outbox whose peer can be made to wait: while it is held, nothing more is read.
type Holder interface {
	Hold(on bool)
}

// congested reports whether so much of the connection's waits for space that nothing more should be
// read from it. One that may make room is read, as what its sends wait for may be that; unless they
// wait for a disk that takes what is on its way, which needs no help. A peer's is always read.
func (c *Connection) congested() bool {
	if c.closed || c.network || c.parkedBytes < congestedBytes {
		return false
	}
	if j := &c.b.journal; j.undurable > undurableMax && j.held.empty() {
		return true
	}
	return !c.mayMakeRoom()
}

// mayMakeRoom reports whether a command of the connection that is still to come may give room back:
// an acknowledgement, the end of a transaction, or a pull of what would be acknowledged then.
func (c *Connection) mayMakeRoom() bool {
	for _, tx := range c.transactions {
		if tx.keeps() {
			return true
		}
	}
	for tx := range c.branches {
		if tx.keeps() || tx.branch.isPrepared() {
			return true
		}
	}
	return slices.ContainsFunc(c.order, func(s *consumer) bool {
		return s.inFlight > 0 || s.window != nil && s.window.Len() > 0 || s.pulls()
	})
}

// keeps reports whether the end of the transaction may give room back.
func (tx *transaction) keeps() bool { return tx.bytes > 0 || len(tx.acks) > 0 }

// pulls reports whether the consumer is given messages only when it asks, and there are some.
func (s *consumer) pulls() bool {
	return s.browse == nil && s.window != nil && s.window.Prefetch() == 0 &&
		slices.ContainsFunc(s.slots, func(cs consumerSlot) bool { return cs.dest.queue.Len() > 0 })
}

// pace stops and starts reading the connection.
func (c *Connection) pace() {
	h, ok := c.out.(Holder)
	hold := c.congested()
	if !ok || hold == c.held {
		return
	}
	c.held = hold
	h.Hold(hold)
	if hold {
		c.b.held = append(c.b.held, c)
	} else {
		drop(&c.b.held, c)
	}
}

func (b *Broker) failsForSpace(d *destination) bool {
	if p := d.policy.Memory.SendFailIfNoSpace; p != nil {
		return *p
	}
	return b.opt.SendFailIfNoSpace
}

// noSpace is ActiveMQ's text; how is "reached", or "Wait Timeout" after a wait.
func noSpace(d *destination, a *arrival, reason message.Reason, how string) error {
	what := "Memory"
	switch reason {
	case message.StoreFull:
		what = "Store"
	case message.TempFull:
		what = "Temp Store"
	}
	return message.Errorf(message.Limit, "Usage Manager %s Limit %s. Stopping producer (%s) to"+
		" prevent flooding %s. See http://activemq.apache.org/producer-flow-control.html for"+
		" more info", what, how, a.m.Producer, d.name)
}

// sender names who sends, for the log.
func (a *arrival) sender() string {
	switch {
	case a.peer != nil:
		return "bridge of " + a.b.peerText(a.peer.ID)
	case a.conn != nil:
		return "client " + a.conn.clientID + " at " + a.conn.remote.Address
	}
	return "this broker"
}
