package broker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// A batch that the store has no room for is tried again after a wait that doubles between these.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
)

// holding is the state of a journal whose store is full. A refused batch comes back; the units in
// it that put messages are held, and everything else goes on: acknowledgements are what makes room.
// The held part is handed over as a whole, with what is collected then. But a unit whose copies
// were all consumed puts nothing any more; it goes with the next batch, so that its receipt is
// durable with what consumed them, and so does all that waits for it.
//
// While anything is held the store's headers are behind the broker's: deltas holds, per
// destination, what the held changes will add to them.
type holding struct {
	deltas  map[*destination]*delta
	wait    time.Duration // before the next trial; 0 is none refused yet
	waiting bool          // a timer runs
	due     bool          // it is time to try
	over    bool          // nothing is tried any more: nobody would be answered
	spent   []*unit       // held ones that put nothing; they may be behind others that do
	freed   int           // units that stand in held and went
}

// delta is what held changes do to one destination's header.
type delta struct {
	count, bytes int64
	head         uint64 // no held delete is below it; 0 is no held delete
}

// count adds a held change to the deltas, or takes it back with sign -1.
func (h *holding) count(o *op, sign int64) {
	if o.dest == nil || !o.Puts() && o.Kind != store.DeleteMessage {
		return
	}
	x := h.deltas[o.dest]
	if x == nil {
		x = &delta{}
		h.deltas[o.dest] = x
	}
	if o.Kind == store.DeleteMessage {
		sign = -sign
		if seq := uint64(o.Seq); x.head == 0 || seq < x.head {
			x.head = seq
		}
	}
	x.count += sign
	x.bytes += sign * o.size
}

// header fills in a destination's header as it is without what is held.
func (h *holding) header(d *destination, out *store.Header) {
	d.header(out)
	if x := h.deltas[d]; x != nil {
		out.Count -= x.count
		out.Bytes -= x.bytes
	}
	if d.queue == nil {
		out.Head = h.logHead(d)
	} else {
		out.Head, _ = h.head(d)
	}
}

// refused takes a batch back that the store has no room for.
func (j *journal) refused(p part, err error) {
	if j.hold.wait == 0 {
		j.b.tell(Event{Kind: StoreTrouble, Reason: message.StoreFull, Text: "the store has no room" +
			" and messages wait unconfirmed; consuming goes on and makes room: " + err.Error()})
	}
	j.hold.wait = min(max(retryFirst, 2*j.hold.wait), retryMost)
	if !j.hold.waiting {
		j.hold.waiting = true
		j.b.env.After(j.hold.wait, func() { j.hold.waiting, j.hold.due = false, true })
	}
	now := j.now
	j.now = part{}
	j.now.join(p)
	j.keepAll(&j.now)
	j.meet(now.units)
	j.now.join(now)
	j.split()
	j.b.xa.refused()
}

// hasRoom notes that a batch was taken.
func (j *journal) hasRoom() {
	switch {
	case j.hold.wait == 0:
	case j.held.empty():
		j.hold.wait = 0
		j.b.tell(Event{Kind: StoreTrouble, Reason: message.StoreFull,
			Text: "the store has room again: what waited is written"})
	case j.drained == nil && !j.storage.Space().Full:
		j.hold.due = true
	}
}

// sortHeld decides before a flush what goes with it: everything when it is time to try, else what
// puts nothing.
func (j *journal) sortHeld() {
	switch {
	case j.held.empty():
	case j.hold.due && !j.hold.over:
		for _, d := range slices.SortedFunc(maps.Keys(j.hold.deltas), byID) {
			if !d.gone {
				j.touch(d)
			}
		}
		clear(j.hold.deltas)
		j.sweep()
		now := j.now
		j.now = part{}
		j.now.join(j.held)
		j.now.join(now)
		j.held, j.hold.spent = part{}, nil
	default:
		j.split()
	}
	j.hold.due = false
}

// byID is the order in which destinations were made.
func byID(x, y *destination) int { return cmp.Compare(x.id, y.id) }

// meet settles what was collected about copies while the put of their records was on its way: that
// came back. The end of a copy cancels its put; other changes join the put's unit.
func (j *journal) meet(units []*unit) {
	for _, u := range units {
		for _, o := range u.ops {
			if o.copy == nil || o.Puts() {
				continue
			}
			put := unwritten(o.copy)
			switch {
			case put == nil: // it is durable
				continue
			case o.Kind != store.DeleteMessage:
				j.alter(o.dest, o.copy, &o.Op, o.size)
			case u.needsRoom():
				j.cancel(put, u)
			default:
				j.cancel(put, nil)
			}
			j.off(o)
		}
	}
}

// split moves what must wait for room from the collecting part to the held one.
func (j *journal) split() {
	p := j.now
	j.now = j.newPart()
	j.now.meta, j.now.drops, j.now.idle = p.meta, p.drops, p.idle
	for _, u := range p.units {
		if !u.needsRoom() {
			j.now.add(u, collected)
			continue
		}
		j.held.add(u, held)
		if u.puts == 0 {
			j.hold.spent = append(j.hold.spent, u)
		}
		for _, o := range u.ops {
			if !o.off {
				j.hold.count(o, 1)
			}
		}
	}
	for _, w := range p.waits {
		switch {
		case w.all:
			j.held.waits = append(j.held.waits, w)
		case w.unit != nil && w.unit.place == held:
			w.unit.waits = append(w.unit.waits, w.f)
		default:
			j.now.waits = append(j.now.waits, w)
		}
	}
	for o := range j.now.changes() {
		if o.Kind == store.DropDestination {
			j.forget(o.Dest)
		}
	}
	j.free()
}

// free lets go of what is held and needs no room any more.
func (j *journal) free() {
	j.hold.spent = slices.DeleteFunc(j.hold.spent, func(u *unit) bool {
		if u.needsRoom() {
			return false
		}
		for _, o := range u.ops {
			if o.off {
				continue
			}
			j.hold.count(o, -1)
			if o.dest != nil && !o.dest.gone {
				j.touch(o.dest)
			}
		}
		j.held.logs -= u.logs
		u.named = true
		j.hold.freed++
		j.now.add(u, collected)
		j.now.waitFor(u)
		return true
	})
	if 2*j.hold.freed >= len(j.held.units) {
		j.sweep()
	}
	if len(j.held.units) == 0 { // so all is durable with this
		j.now.waits = append(j.now.waits, j.held.waits...)
		j.held.waits = nil
		clear(j.hold.deltas)
	}
}

// sweep forgets the units that went from the held part.
func (j *journal) sweep() {
	if j.hold.freed > 0 {
		j.held.units = slices.DeleteFunc(j.held.units, func(u *unit) bool { return u.place != held })
		j.hold.freed = 0
	}
}

// forget cancels what is held of a destination that is dropped.
func (j *journal) forget(id store.DestID) {
	for o := range j.held.changes() {
		if o.Dest == id && o.unit.place == held {
			j.off(o)
		}
	}
	for d := range j.hold.deltas {
		if d.id == id {
			delete(j.hold.deltas, d)
		}
	}
}
