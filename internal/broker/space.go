package broker

import (
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
)

// parking is an arrival's wait for space.
type parking struct {
	reason message.Reason
	since  time.Duration
	timer  interface{ Stop() }
	size   int64 // as it is counted in its connection's parkedBytes
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
	if a.peer == nil && b.failsForSpace(d) {
		b.counts.Reasons[reason]++
		a.refuse(noSpace(d, a, reason, "reached"))
		return finished
	}
	b.park(d, a, reason)
	return parkedHere
}

// lacks tells what room an arrival lacks.
func (b *Broker) lacks(d *destination, a *arrival) message.Reason {
	stored := a.m.Persistent && b.opt.Persistent && !d.name.IsTemp()
	if stored {
		space := b.journal.storage.Space()
		over := b.opt.StoreLimitBytes > 0 && space.UsedBytes >=
			b.opt.StoreLimitBytes/100*int64(d.policy.Memory.StoreHighWaterPercent)
		// What is on its way is as good as written, to a log and to its place: a batch of puts that
		// the store refuses for lack of room would hold up the removals behind it.
		tight := space.FreeBytes >= 0 && space.FreeBytes-2*b.journal.undurable < space.ReserveBytes
		if space.Full || over || tight {
			return message.StoreFull
		}
		// Stored copies leave memory when they are durable; only what is on its way counts.
		if b.journal.undurable > undurableMax {
			return message.MemoryFull
		}
		return ""
	}
	if !d.policy.Memory.ProducerFlowControl || !d.usage.Full() {
		return ""
	}
	if d.queue != nil && d.queue.HasReady() && d.queue.ResidentBytes() < queue.PageBytes {
		return "" // one page for every queue that somebody waits at
	}
	return message.MemoryFull
}

// undurableMax is how many bytes may be on their way to the store before sends wait.
const undurableMax = 64 << 20

func (b *Broker) failsForSpace(d *destination) bool {
	if p := d.policy.Memory.SendFailIfNoSpace; p != nil {
		return *p
	}
	return b.opt.SendFailIfNoSpace
}

func (b *Broker) park(d *destination, a *arrival, reason message.Reason) {
	a.wait = &parking{reason: reason, since: b.env.Mono()}
	if len(d.parked) == 0 {
		b.parked = append(b.parked, d)
		b.tell(Event{Kind: SendParked, Reason: reason, Dest: d.name, Text: a.m.ID.String()})
	}
	d.parked = append(d.parked, a)
	if a.conn != nil {
		a.wait.size = a.m.Size()
		a.conn.parkedBytes += a.wait.size
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
	if reason == message.StoreFull {
		b.env.After(time.Second, b.relieve) // the disk tells nobody when it has room again
	}
}

// parkedMost is how many bytes of one connection's sends may wait before it is not read any more.
const parkedMost = 16 << 20

// Holder is an Outbox whose peer can be made to wait: while it is held, nothing more is read.
type Holder interface {
	Hold(on bool)
}

// pace stops and starts reading the connection. One that consumes is read on, as the room that its
// sends wait for may be what its acknowledgements make; unless they wait for the disk only.
func (c *Connection) pace() {
	h, ok := c.out.(Holder)
	hold := c.parkedBytes > parkedMost && !c.closed && !c.network &&
		(len(c.consumers) == 0 || c.b.journal.undurable > undurableMax)
	if !ok || hold == c.held {
		return
	}
	c.held = hold
	h.Hold(hold)
	if hold {
		c.b.held = append(c.b.held, c)
		return
	}
	for i, o := range c.b.held {
		if o == c {
			c.b.held = append(c.b.held[:i], c.b.held[i+1:]...)
			break
		}
	}
}

// unparked tells that the arrival waits no longer.
func (a *arrival) unparked() {
	if a.conn != nil {
		a.conn.parkedBytes -= a.wait.size
	}
}

func (d *destination) unpark(a *arrival) bool {
	for i, p := range d.parked {
		if p == a {
			d.parked = append(d.parked[:i:i], d.parked[i+1:]...)
			a.unparked()
			return true
		}
	}
	return false
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
			d.parked = d.parked[1:]
			a.unparked()
			if a.wait.timer != nil {
				a.wait.timer.Stop()
			}
			a.wait = nil
			a.step++
			b.run(a)
		}
		if len(d.parked) > 0 {
			b.parked = append(b.parked, d)
			if d.parked[0].wait.reason == message.StoreFull {
				b.env.After(time.Second, b.relieve)
			}
		}
	}
	for _, c := range append([]*Connection(nil), b.held...) {
		c.pace()
	}
}
