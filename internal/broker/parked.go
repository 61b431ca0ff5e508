package broker

import (
	"cmp"
	"slices"
	"time"

	"hopwire/internal/message"
)

// A send that finds no room (space.go) is parked at its destination. There it waits with its class,
// which is what sends lack the same room: those of a class go on in the order in which they came.
// Sends of one producer keep theirs, whatever classes they are of: one that comes behind another
// waits with the class of that. A look at the room, at the end of each turn in which some was made,
// lets as many go on as there is room for, and notes what the others lack.
//
// What waits is counted by plain sums: sends of each class of a destination, bytes of a connection
// and of the broker, and of these what peers sent that goes to the store. What that means now, as
// that may wait for nothing but the disk, is worked out where it is asked (parkedBeyond).

// parking is an arrival's wait, mostly for space.
type parking struct {
	reason message.Reason // without dest; else what its class lacks is
	dest   *destination   // nil: it waits for its destination (reply.go), or loads
	load   *destination   // it waits for receipts that are read (loads.go)
	class  class          // what it waits for the room of
	at     int            // its place in dest.parked
	size   int64
	// stored is whether it goes to the store as last looked at: a topic's durable subscriptions come
	// and go. By it and by class the arrival is counted in and out.
	stored bool
	timer  interface{ Stop() }
	since  time.Duration // monotonic
}

// parkingLot is where a destination's sends wait for space.
type parkingLot struct {
	parked     []*arrival
	listed     bool                            // in Broker.parked
	parkedOf   [classes]int                    // of parked, by what they wait for the room of
	lacked     []message.Reason                // all that it was told for, since none waited
	lack       [classes]message.Reason         // lack[k] != "" iff parkedOf[k] > 0: at the last look
	waiting    map[message.ProducerID]*waiting // of parked
	mixed      bool                            // the lines of waiting are to be made anew
	peersBytes int64                           // of peers' sends in parked that wait as stored ones
}

// unparkMost is how many parked sends go on in one turn.
const unparkMost = 1000

// reason tells what a parked arrival waits for now.
func (a *arrival) reason() message.Reason {
	if d := a.wait.dest; d != nil {
		return d.lack[a.wait.class]
	}
	return a.wait.reason
}

// waiting are the parked sends of one producer at a destination: those that do not go to the store,
// and those that do.
type waiting struct{ plain, stored line }

// line are sends in the order of their parking. What left stays in sends until somebody looks.
type line struct {
	n     int // that wait
	sends []*arrival
}

// of gives the line of an arrival that is parked.
func (w *waiting) of(a *arrival) *line {
	if a.wait.stored {
		return &w.stored
	}
	return &w.plain
}

// last gives the one parked last, nil when none waits.
func (l *line) last(d *destination) *arrival {
	if l.n == 0 {
		return nil
	}
	for ; !d.parks(l.sends[len(l.sends)-1]); l.sends = l.sends[:len(l.sends)-1] {
		l.sends[len(l.sends)-1] = nil
	}
	return l.sends[len(l.sends)-1]
}

// count counts one in or out.
func (l *line) count(d *destination, sign int) {
	l.n += sign
	if len(l.sends) > 2*l.n+holesFew {
		l.sends = slices.DeleteFunc(l.sends, func(a *arrival) bool { return !d.parks(a) })
	}
}

// relines makes the lines of all producers anew.
func (d *destination) relines() {
	d.mixed = false
	for _, w := range d.waiting {
		w.plain.sends, w.stored.sends = w.plain.sends[:0], w.stored.sends[:0]
	}
	for _, a := range d.parked {
		if d.parks(a) {
			l := d.waiting[a.m.ID.Producer].of(a)
			l.sends = append(l.sends, a)
		}
	}
}

// countWait counts a parked arrival in or out.
func (d *destination) countWait(a *arrival, sign int) {
	k := a.wait.class
	if d.parkedOf[k] += sign; d.parkedOf[k] == 0 {
		d.lack[k] = ""
	}
	if d.waiting == nil {
		d.waiting = map[message.ProducerID]*waiting{}
	}
	w := d.waiting[a.m.ID.Producer]
	if w == nil {
		w = &waiting{}
		d.waiting[a.m.ID.Producer] = w
	}
	w.of(a).count(d, sign)
	if w.plain.n+w.stored.n == 0 {
		delete(d.waiting, a.m.ID.Producer)
	}
	bytes := int64(sign) * a.wait.size
	a.b.parkedBytes += bytes
	if a.peer != nil && a.wait.stored && a.wait.class == stored {
		d.peersBytes += bytes
		a.b.peersBytes += bytes
	}
}

// recount has a parked arrival wait as another class, or as one whose storedness changed.
func (d *destination) recount(a *arrival, k class, isStored bool) {
	if a.wait.class == k && a.wait.stored == isStored {
		return
	}
	lack := cmp.Or(d.lack[k], message.MemoryFull) // it may wait for its turn alone
	d.countWait(a, -1)
	a.wait.class, a.wait.stored = k, isStored
	d.countWait(a, 1)
	d.lack[k], d.mixed = lack, true
}

// reclass looks again at what goes to the store: of a topic that depends on its subscriptions.
func (d *destination) reclass(b *Broker) {
	if d.stores() {
		return
	}
	for _, a := range d.parked {
		if d.parks(a) && a.wait.stored != b.isStored(d, a.m) {
			d.recount(a, b.class(d, a), !a.wait.stored)
		}
	}
}

// parks reports whether an entry of parked still waits here.
func (d *destination) parks(a *arrival) bool {
	return a != nil && a.wait != nil && a.wait.dest == d
}

// parkedCount is the number of sends that wait.
func (d *destination) parkedCount() (n int) {
	for _, k := range d.parkedOf {
		n += k
	}
	return n
}

// behind gives the last parked send that an arrival must not pass: those of its producer keep their
// order. But a peer's stored send passes those of its producer that are not stored: it never waits
// for memory, whoever waits for some.
func (d *destination) behind(a *arrival) *arrival {
	w := d.waiting[a.m.ID.Producer]
	if w == nil {
		return nil
	}
	if d.mixed {
		d.relines()
	}
	last := w.stored.last(d)
	if a.peer != nil && a.b.isStored(d, a.m) {
		return last
	}
	if p := w.plain.last(d); last == nil || p != nil && p.wait.at > last.wait.at {
		return p
	}
	return last
}

// parkedBeyond reports whether more bytes wait than a limit. What peers sent and waits for the disk
// alone, as its class lacks what is called memory, does not count: it would be in memory without
// waiting, too.
func (b *Broker) parkedBeyond(limit int64) bool {
	n := b.parkedBytes
	if n <= limit || n-b.peersBytes > limit {
		return n > limit
	}
	for _, d := range b.parked {
		if d.lack[stored] == message.MemoryFull {
			n -= d.peersBytes
		}
	}
	return n > limit
}

// park lets an arrival wait for the room that a class lacks: its own, or that of who it is behind.
func (b *Broker) park(d *destination, a *arrival, k class, reason message.Reason) {
	a.wait = &parking{dest: d, class: k, at: len(d.parked), size: a.m.Size(),
		stored: b.isStored(d, a.m), since: b.env.Mono()}
	if d.parkedCount() == 0 {
		d.lacked = append(d.lacked[:0], reason)
		b.tell(Event{Kind: SendParked, Reason: reason, Dest: d.name, Text: a.sender() +
			", the first: message " + a.m.ID.String()})
	}
	if !d.listed {
		d.listed = true
		b.parked = append(b.parked, d)
	}
	d.parked = append(d.parked, a)
	d.countWait(a, 1)
	d.nowLacks(b, k, reason)
	if l := d.waiting[a.m.ID.Producer].of(a); !d.mixed {
		l.sends = append(l.sends, a)
	}
	if a.conn != nil {
		a.conn.parkedBytes += a.wait.size
	}
	if a.tx != nil {
		a.tx.parked = append(a.tx.parked, a)
	}
	if a.conn != nil {
		a.conn.pace()
	}
	after, how := b.opt.SendFailIfNoSpaceAfter, "Wait Timeout"
	if d.policy.Memory.SendFailIfNoSpaceAfter >= 0 {
		after = d.policy.Memory.SendFailIfNoSpaceAfter
	}
	if b.failsForSpace(d) {
		after, how = spoolWait, "reached"
	}
	if after > 0 && a.peer == nil {
		a.wait.timer = b.env.After(after, func() {
			reason := a.reason()
			if d.unpark(a) {
				b.counts.Reasons[reason]++
				a.refuse(noSpace(d, a, reason, how))
			}
		})
	}
	b.lookForRoom(reason)
}

// lookForRoom looks again in a while at the store, when it is the store that has no room; or at the
// spool and what could be spooled, when that would make some.
func (b *Broker) lookForRoom(reason message.Reason) {
	looks := reason == message.StoreFull ||
		b.spool.storage != nil && (reason == message.TempFull || reason == message.MemoryFull)
	if looks && !b.looking {
		b.looking = true
		b.env.After(storeLook, func() {
			b.looking = false
			b.spool.again()
			b.relieve()
		})
	}
}

// unpark takes an arrival out of those that wait. It leaves a hole; the list is made anew when it
// is mostly holes, so that whoever walks it may go on with the old one.
func (d *destination) unpark(a *arrival) bool {
	if !d.parks(a) {
		return false
	}
	d.parked[a.wait.at] = nil
	d.countWait(a, -1)
	if n := d.parkedCount(); n <= len(d.parked)/2 || len(d.parked) <= holesFew {
		list := make([]*arrival, 0, n)
		for _, p := range d.parked {
			if p != nil {
				p.wait.at = len(list)
				list = append(list, p)
			}
		}
		d.parked = list
	}
	a.leavePark()
	return true
}

// holesFew is how long a list of parked sends may be that is made anew for each that leaves.
const holesFew = 16

// leavePark takes an arrival out of those that wait, for whatever it is.
func (b *Broker) leavePark(a *arrival) {
	switch {
	case a.wait.load != nil:
		b.leaveLoad(a)
	case a.wait.dest == nil:
		b.replies.leave(a)
	default:
		a.wait.dest.unpark(a)
	}
}

func (a *arrival) leavePark() {
	if a.conn != nil {
		a.conn.parkedBytes -= a.wait.size
	}
	if a.wait.timer != nil {
		a.wait.timer.Stop()
	}
	a.wait = nil
}

// dropParked gives up what waits for space of a connection that ended: it was not confirmed, and
// who wants it to arrive sends it again. What a peer's bridge sent is asked about (Known).
func (c *Connection) dropParked() {
	c.dropLoads()
	if c.network {
		return
	}
	if c.parkedBytes == 0 {
		return
	}
	for _, d := range c.b.parked {
		for _, a := range d.parked {
			if !d.parks(a) || a.conn != c || a.goesWith(c) {
				continue
			}
			d.unpark(a)
			a.answered = true
			c.b.drop(d, message.ConnectionGone, a.m)
			if a.tx != nil {
				a.tx.loses(a)
			}
		}
	}
	c.b.dropReplies(c)
}

// giveUp ends an arrival that waited as its connection ended, and that no destination has parked.
func (a *arrival) giveUp() {
	a.answered = true
	if d := a.b.find(firstOf(a.wire)); d != nil {
		a.b.drop(d, message.ConnectionGone, a.m)
	} else {
		a.b.counts.Reasons[message.ConnectionGone]++
		a.b.tell(Event{Kind: MessageDropped, Reason: message.ConnectionGone, Dest: a.m.Destination,
			Text: a.m.ID.String(), Count: 1})
	}
	if a.tx != nil {
		a.tx.loses(a)
	}
}

// goesWith reports whether the arrival is in a transaction that ends with the connection.
func (a *arrival) goesWith(c *Connection) bool { return a.tx != nil && a.tx.conn == c }

// relieve marks that room was made: parked sends are tried at the end of the turn.
func (b *Broker) relieve() {
	if len(b.parked) > 0 {
		b.env.Soon(func() {})
	}
}

// unpark lets parked sends go on, as many as one turn may.
func (b *Broker) unpark() {
	if len(b.parked)+len(b.held) == 0 {
		return
	}
	waiting, left := b.parked, unparkMost
	b.parked = nil
	last := 0 // who the turn ended at comes last in the next
	for i, d := range waiting {
		if left > 0 {
			last = i + 1
		}
		b.unparkAt(d, &left)
	}
	waiting = slices.Concat(waiting[last:], waiting[:last])
	for _, d := range waiting {
		if d.listed = d.parkedCount() > 0; d.listed {
			b.parked = append(b.parked, d)
		}
	}
	if left == 0 {
		b.relieve()
	}
	for _, c := range slices.Clone(b.held) {
		c.pace()
	}
}

// unparkAt lets the sends go on that wait at a destination, in order, until each class that waits
// lacks room or the turn has no more left. They go on behind the step that parked them: a second
// look could find less room than the first. What stays behind one of its producer waits for what
// that one does.
func (b *Broker) unparkAt(d *destination, left *int) {
	if *left == 0 {
		return
	}
	d.reclass(b)
	var room [classes]bool
	for k := range class(classes) {
		room[k] = d.parkedOf[k] > 0 && d.hasRoom(b, k)
	}
	stay := map[message.ProducerID]*stays{}
	for _, a := range d.parked {
		if *left == 0 || !d.mayGo(&room) {
			break
		}
		if !d.parks(a) {
			continue // it went with another
		}
		own := b.class(d, a)
		k := own
		if p := stay[a.m.ID.Producer].before(a); p != nil {
			k = p.wait.class
		} else if room[k] = d.hasRoom(b, k); room[k] {
			*left--
			d.unpark(a)
			a.step++
			b.run(a)
			continue
		}
		d.recount(a, k, own&stored != 0)
		if stay[a.m.ID.Producer] == nil {
			stay[a.m.ID.Producer] = &stays{}
		}
		stay[a.m.ID.Producer].add(a)
	}
	for _, reason := range d.lack {
		b.lookForRoom(reason)
	}
}

// hasRoom reports whether there is room for a class that waits, and notes what it lacks.
func (d *destination) hasRoom(b *Broker, k class) bool {
	reason := b.lacks(d, k)
	if reason != "" {
		d.nowLacks(b, k, reason)
	}
	return reason == ""
}

// mayGo reports whether a class that waits has room.
func (d *destination) mayGo(room *[classes]bool) bool {
	for k := range d.parkedOf {
		if d.parkedOf[k] > 0 && room[k] {
			return true
		}
	}
	return false
}

// stays are the last sends of one producer that cannot go on.
type stays struct{ any, stored *arrival }

func (s *stays) add(a *arrival) {
	if s.any = a; a.wait.stored {
		s.stored = a
	}
}

// before gives the one that an arrival must not pass.
func (s *stays) before(a *arrival) *arrival {
	if s == nil {
		return nil
	}
	p := s.any
	if a.peer != nil && a.wait.stored {
		p = s.stored
	}
	if p == nil || p.wait == nil {
		return nil
	}
	return p
}

// refuseParked ends what waits for space on a destination that goes.
func (d *destination) refuseParked() {
	for _, a := range d.parked {
		if !d.unpark(a) {
			continue
		}
		err := message.Errorf(message.InvalidDestination,
			"%s was removed while the send waited for space", d.name)
		a.b.counts.Reasons[message.NoConsumer]++
		a.b.tell(Event{Kind: SendRefused, Reason: message.NoConsumer, Dest: d.name,
			Text: a.m.ID.String() + ": " + err.Error(), Count: 1})
		a.refuse(err)
	}
}
