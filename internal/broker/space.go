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

// parking is an arrival's wait, mostly for space.
type parking struct {
	reason message.Reason
	dest   *destination // nil: it waits for its destination (reply.go)
	timer  interface{ Stop() }
}

// isStored reports whether a message to the destination goes to the store.
func (b *Broker) isStored(d *destination, m *message.Message) bool {
	return m.Persistent && b.opt.Persistent && d.stores()
}

// awaitSpace parks an arrival while there is no room for it.
func (b *Broker) awaitSpace(a *arrival) outcome {
	if a.internal || a.m.Destination.IsAdvisory() {
		return proceed
	}
	d := b.wireDestination(a.wire)
	reason := b.lacks(d, a)
	if reason == "" && len(d.parked) == 0 {
		return proceed
	}
	if reason == "" {
		reason = d.parked[0].wait.reason // order: behind those that wait
	}
	if a.tx != nil && a.tx.bytes > 0 {
		return a.overdraw(reason)
	}
	if a.peer == nil && b.failsForSpace(d) {
		b.counts.Reasons[reason]++
		a.refuse(noSpace(d, a, reason, "reached"))
		return finished
	}
	if b.mayNotWait(d, a, reason) {
		b.counts.Reasons[reason]++
		a.refuse(message.Errorf(message.Limit, "%s has no room (%s), and what waits for some is at"+
			" its limit", d.name, reason))
		return finished
	}
	b.park(d, a, reason)
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

// lacks tells what room an arrival lacks.
func (b *Broker) lacks(d *destination, a *arrival) message.Reason {
	stored := b.isStored(d, a.m)
	if stored {
		if b.storeLacks(d) {
			return message.StoreFull
		}
		// Stored copies leave memory when they are durable; only what is on its way counts.
		if b.journal.undurable > undurableMax {
			return message.MemoryFull
		}
	}
	// Until its transaction commits a send is in memory, whatever becomes of it.
	if stored && a.tx == nil || !d.policy.Memory.ProducerFlowControl || !d.usage.Full() {
		return ""
	}
	if a.tx == nil && d.queue != nil && d.queue.HasReady() &&
		d.queue.ResidentBytes() < queue.PageBytes {
		return "" // one page for every queue that somebody waits at
	}
	return message.MemoryFull
}

func (b *Broker) storeLacks(d *destination) bool {
	space := b.journal.storage.Space()
	over := b.opt.StoreLimitBytes > 0 && float64(space.UsedBytes) >=
		float64(b.opt.StoreLimitBytes)/100*float64(d.policy.Memory.StoreHighWaterPercent)
	// What is on its way is as good as written, to a log and to its place: a batch of puts that the
	// store refuses for lack of room is held.
	tight := space.FreeBytes >= 0 && space.FreeBytes-2*b.journal.undurable < space.ReserveBytes
	return space.Full || over || tight
}

// mayNotWait reports whether too much waits already. A peer's sends are bounded by its window; what
// waits for the disk alone would be in memory without waiting, too.
func (b *Broker) mayNotWait(d *destination, a *arrival, reason message.Reason) bool {
	size := a.m.Size()
	if a.waitsForDisk(d, reason) {
		return false
	}
	return b.parkedBytes+size > parkedOverall ||
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
// read from it. One that has deliveries to acknowledge is read, as the room that its sends wait for
// may be what these make; unless they wait for the disk only. A peer's is always read.
func (c *Connection) congested() bool {
	if c.closed || c.network || c.parkedBytes < congestedBytes {
		return false
	}
	if c.b.journal.undurable > undurableMax {
		return true
	}
	for _, s := range c.order {
		if s.inFlight > 0 || s.window != nil && s.window.Len() > 0 {
			return false
		}
	}
	return true
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
		c.b.held = slices.DeleteFunc(c.b.held, func(o *Connection) bool { return o == c })
	}
}

func (b *Broker) failsForSpace(d *destination) bool {
	if p := d.policy.Memory.SendFailIfNoSpace; p != nil {
		return *p
	}
	return b.opt.SendFailIfNoSpace
}

func (b *Broker) park(d *destination, a *arrival, reason message.Reason) {
	a.wait = &parking{reason: reason, dest: d}
	if len(d.parked) == 0 {
		b.tell(Event{Kind: SendParked, Reason: reason, Dest: d.name, Text: a.m.ID.String()})
	}
	if !slices.Contains(b.parked, d) {
		b.parked = append(b.parked, d)
	}
	d.parked = append(d.parked, a)
	b.countParked(a, 1)
	if a.tx != nil {
		a.tx.parked = append(a.tx.parked, a)
	}
	if a.conn != nil {
		a.conn.pace()
	}
	after := b.opt.SendFailIfNoSpaceAfter
	if d.policy.Memory.SendFailIfNoSpaceAfter >= 0 {
		after = d.policy.Memory.SendFailIfNoSpaceAfter
	}
	if after > 0 && a.peer == nil {
		a.wait.timer = b.env.After(after, func() {
			if d.unpark(a) {
				b.counts.Reasons[reason]++
				a.refuse(noSpace(d, a, reason, "Wait Timeout"))
			}
		})
	}
	b.lookForRoom(reason)
}

func (b *Broker) countParked(a *arrival, sign int64) {
	if !a.waitsForDisk(a.wait.dest, a.wait.reason) {
		b.parkedBytes += sign * a.m.Size()
	}
	if a.conn != nil {
		a.conn.parkedBytes += sign * a.m.Size()
	}
}

// lookForRoom looks at the store again in a while, when it is the store that has no room.
func (b *Broker) lookForRoom(reason message.Reason) {
	if reason == message.StoreFull && !b.looking {
		b.looking = true
		b.env.After(storeLook, func() {
			b.looking = false
			b.relieve()
		})
	}
}

// unpark takes an arrival out of those that wait.
func (d *destination) unpark(a *arrival) bool {
	i := slices.Index(d.parked, a)
	if i < 0 {
		return false
	}
	d.parked = append(d.parked[:i:i], d.parked[i+1:]...)
	a.leavePark()
	return true
}

// leavePark takes an arrival out of those that wait, for whatever it is.
func (b *Broker) leavePark(a *arrival) {
	if a.wait.dest == nil {
		b.replies.leave(a)
		return
	}
	a.wait.dest.unpark(a)
}

func (a *arrival) leavePark() {
	a.b.countParked(a, -1)
	if a.wait.timer != nil {
		a.wait.timer.Stop()
	}
	a.wait = nil
}

// noSpace is ActiveMQ's text; how is "reached", or "Wait Timeout" after a wait.
func noSpace(d *destination, a *arrival, reason message.Reason, how string) error {
	what := "Memory"
	if reason == message.StoreFull {
		what = "Store"
	}
	return message.Errorf(message.Limit, "Usage Manager %s Limit %s. Stopping producer (%s) to"+
		" prevent flooding %s. See http://activemq.apache.org/producer-flow-control.html for"+
		" more info", what, how, a.m.Producer, d.name)
}

// dropParked gives up what waits for space of a connection that ended: it was not confirmed, and
// who wants it to arrive sends it again. What a peer's bridge sent is asked about (Known).
func (c *Connection) dropParked() {
	if c.network || c.parkedBytes == 0 {
		return
	}
	for _, d := range c.b.parked {
		for _, a := range slices.Clone(d.parked) {
			if a.conn == c && a.tx == nil { // a transaction's go with that
				d.unpark(a)
				a.answered = true
				c.b.drop(d, message.ConnectionGone, a.m)
			}
		}
	}
	c.b.dropReplies(c)
}

// relieve marks that room was made: parked sends are tried at the end of the turn.
func (b *Broker) relieve() {
	if len(b.parked) > 0 {
		b.env.Soon(func() {})
	}
}

// unpark lets parked sends go on, each destination in order, until one has no room. They go on
// behind the step that parked them: a second look could find less room than the first.
func (b *Broker) unpark() {
	if len(b.parked)+len(b.held) == 0 {
		return
	}
	waiting := b.parked
	b.parked = nil
	for _, d := range waiting {
		for len(d.parked) > 0 {
			a := d.parked[0]
			if b.lacks(d, a) != "" {
				break
			}
			d.unpark(a)
			a.step++
			b.run(a)
		}
		if len(d.parked) > 0 && !slices.Contains(b.parked, d) {
			b.parked = append(b.parked, d)
		}
		if len(d.parked) > 0 {
			b.lookForRoom(d.parked[0].wait.reason)
		}
	}
	for _, c := range slices.Clone(b.held) {
		c.pace()
	}
}

// refuseParked ends what waits for space on a destination that goes.
func (d *destination) refuseParked() {
	for len(d.parked) > 0 {
		a := d.parked[0]
		d.unpark(a)
		a.refuse(message.Errorf(message.InvalidDestination,
			"%s was removed while the send waited for space", d.name))
	}
}
