package broker

import (
	"slices"

	"hopwire/internal/message"
)

// parking is an arrival's wait, mostly for space.
type parking struct {
	reason message.Reason // without dest; else what its class lacks is
	dest   *destination   // nil: it waits for its destination (reply.go)
	class  class          // what it waits for the room of
	timer  interface{ Stop() }
}

// reason tells what a parked arrival waits for now.
func (a *arrival) reason() message.Reason {
	if d := a.wait.dest; d != nil {
		return d.lack[a.wait.class]
	}
	return a.wait.reason
}

// passesMemory reports whether an arrival passes those of its own producer that are not stored: a
// peer's stored send never waits for memory, whoever waits for some.
func (a *arrival) passesMemory() bool {
	return a.peer != nil && a.b.isStored(a.b.wireDestination(a.wire), a.m)
}

// waiting counts the parked sends of one producer at a destination.
type waiting struct{ all, stored int }

// countWait counts a parked arrival in or out.
func (d *destination) countWait(a *arrival, sign int) {
	d.parkedOf[a.wait.class] += sign
	if d.waiting == nil {
		d.waiting = map[message.ProducerID]waiting{}
	}
	w := d.waiting[a.m.ID.Producer]
	w.all += sign
	if a.b.isStored(d, a.m) {
		w.stored += sign
		if a.peer != nil {
			d.peersBytes += int64(sign) * a.m.Size()
		}
	}
	d.waiting[a.m.ID.Producer] = w
	if w.all == 0 {
		delete(d.waiting, a.m.ID.Producer)
	}
}

// behind gives the last parked send that an arrival must not pass: those of its producer keep their
// order.
func (d *destination) behind(a *arrival) *arrival {
	w := d.waiting[a.m.ID.Producer]
	passes := a.passesMemory()
	if w.all == 0 || passes && w.stored == 0 {
		return nil
	}
	for _, p := range slices.Backward(d.parked) {
		if p.m.ID.Producer == a.m.ID.Producer && (!passes || a.b.isStored(d, p.m)) {
			return p
		}
	}
	return nil
}

// setLack notes what a class lacks. What peers sent and waits for the disk alone does not count as
// waiting.
func (d *destination) setLack(b *Broker, k class, r message.Reason) {
	was := d.lack[k] == message.MemoryFull
	d.lack[k] = r
	switch is := r == message.MemoryFull; {
	case k != stored || was == is:
	case is:
		b.parkedBytes -= d.peersBytes
	default:
		b.parkedBytes += d.peersBytes
	}
}

// park lets an arrival wait for the room that a class lacks: its own, or that of who it is behind.
func (b *Broker) park(d *destination, a *arrival, k class, reason message.Reason) {
	a.wait = &parking{dest: d, class: k}
	d.setLack(b, k, reason)
	if len(d.parked) == 0 {
		b.tell(Event{Kind: SendParked, Reason: reason, Dest: d.name, Text: a.m.ID.String()})
	}
	if !slices.Contains(b.parked, d) {
		b.parked = append(b.parked, d)
	}
	d.parked = append(d.parked, a)
	d.countWait(a, 1)
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
			reason := a.reason()
			if d.unpark(a) {
				b.counts.Reasons[reason]++
				a.refuse(noSpace(d, a, reason, "Wait Timeout"))
			}
		})
	}
	b.lookForRoom(reason)
}

func (b *Broker) countParked(a *arrival, sign int64) {
	if !a.waitsForDisk(a.wait.dest, a.reason()) {
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
	switch {
	case len(d.parked) == 1:
		d.parked = nil
	case i == 0:
		d.parked = d.parked[1:]
	default:
		d.parked = append(d.parked[:i:i], d.parked[i+1:]...)
	}
	d.countWait(a, -1)
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

// unpark lets parked sends go on.
func (b *Broker) unpark() {
	if len(b.parked)+len(b.held) == 0 {
		return
	}
	waiting := b.parked
	b.parked = nil
	for _, d := range waiting {
		b.unparkAt(d)
		if len(d.parked) > 0 && !slices.Contains(b.parked, d) {
			b.parked = append(b.parked, d)
		}
	}
	for _, c := range slices.Clone(b.held) {
		c.pace()
	}
}

// unparkAt lets the sends go on that wait at a destination, in order, until each class that waits
// lacks room. They go on behind the step that parked them: a second look could find less room than
// the first. What stays behind one of its producer waits for what that one does.
func (b *Broker) unparkAt(d *destination) {
	for k := range class(classes) {
		if d.parkedOf[k] > 0 {
			d.setLack(b, k, b.lacks(d, k))
		}
	}
	left := map[message.ProducerID]*stays{}
	for _, a := range d.parked {
		if !d.mayGo() {
			break
		}
		if a.wait == nil || a.wait.dest != d {
			continue // it went with another
		}
		own := b.class(d, a)
		k := own
		if p := left[a.m.ID.Producer].before(a); p != nil {
			k = p.wait.class
		} else if d.setLack(b, k, b.lacks(d, k)); d.lack[k] == "" {
			d.unpark(a)
			a.step++
			b.run(a)
			continue
		}
		d.countWait(a, -1)
		a.wait.class = k
		d.countWait(a, 1)
		if left[a.m.ID.Producer] == nil {
			left[a.m.ID.Producer] = &stays{}
		}
		left[a.m.ID.Producer].add(a, own)
	}
	for k := range class(classes) {
		if d.parkedOf[k] > 0 {
			b.lookForRoom(d.lack[k])
		}
	}
}

// mayGo reports whether a class that waits has room.
func (d *destination) mayGo() bool {
	for k := range d.parkedOf {
		if d.parkedOf[k] > 0 && d.lack[k] == "" {
			return true
		}
	}
	return false
}

// stays are the last sends of one producer that cannot go on.
type stays struct{ any, stored *arrival }

func (s *stays) add(a *arrival, own class) {
	if s.any = a; own&stored != 0 {
		s.stored = a
	}
}

// before gives the one that an arrival must not pass.
func (s *stays) before(a *arrival) *arrival {
	if s == nil {
		return nil
	}
	p := s.any
	if a.passesMemory() {
		p = s.stored
	}
	if p == nil || p.wait == nil {
		return nil
	}
	return p
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
