package broker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// A batch that the store has no room for is tried again after a wait that doubles between these.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
)

// holding is the state of a journal whose store is full. A refused batch comes back; the units in
// it that put messages are held, with all receipts, and everything else goes on: acknowledgements
// are what makes room. The held part is handed over as a whole, with what is collected then.
//
// While anything is held the store's headers are behind the broker's: deltas holds, per
// destination, what the held changes will add to them.
type holding struct {
	deltas  map[*destination]*delta
	wait    time.Duration // before the next trial; 0 is none refused yet
	waiting bool          // a timer runs
	due     bool          // it is time to try
	over    bool          // nothing is tried any more: nobody would be answered
}

// delta is what held changes do to one destination's header.
type delta struct {
	count, bytes int64
	head         uint64 // no held delete is below it; 0 is no held delete
}

func (p *part) empty() bool { return len(p.ops) == 0 && len(p.waits) == 0 && len(p.copies) == 0 }

// count adds a held change to the deltas, or takes it back with sign -1.
func (h *holding) count(op store.Op, n note, sign int64) {
	if n.dest == nil {
		return
	}
	x := h.deltas[n.dest]
	if x == nil {
		x = &delta{}
		h.deltas[n.dest] = x
	}
	switch op.Kind {
	case store.PutMessage, store.PutReference:
		x.count += sign
		x.bytes += sign * n.size
	case store.DeleteMessage:
		x.count -= sign
		x.bytes -= sign * n.size
		if seq := uint64(op.Seq); x.head == 0 || seq < x.head {
			x.head = seq
		}
	}
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
	j.keepAll(&p)
	j.meet(&p)
	j.now = j.join(p, j.now)
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
		j.now = j.join(j.held, j.now)
		j.held = j.newPart()
	default:
		j.split()
	}
	j.hold.due = false
}

// byID is the order in which destinations were made.
func byID(x, y *destination) int { return cmp.Compare(x.id, y.id) }

// join makes one part of two, whose copies may be cancelled again.
func (j *journal) join(first, second part) part {
	out := j.newPart()
	out.ops = slices.Concat(first.ops, second.ops)
	out.notes = slices.Concat(first.notes, second.notes)
	out.waits = slices.Concat(first.waits, second.waits)
	out.ties = slices.Concat(first.ties, second.ties)
	out.copies = first.copies
	for _, c := range second.copies {
		if c.op >= 0 {
			c.op += len(first.ops)
		}
		out.copies = append(out.copies, c)
	}
	for _, c := range out.copies {
		if c.op >= 0 {
			c.copy.PutBatch, c.copy.PutOp = out.gen, c.op
		}
	}
	out.bytes, out.logs = first.bytes+second.bytes, first.logs+second.logs
	out.idle = first.idle + second.idle
	return out
}

// meet settles what was collected about copies while the put of their records was on its way: that
// came back. The end of a copy cancels its put; other changes join the put's unit.
func (j *journal) meet(p *part) {
	type key struct {
		dest store.DestID
		seq  store.Seq
	}
	puts := make(map[key]*queue.Copy, len(p.copies))
	for _, c := range p.copies {
		if c.op >= 0 && p.ops[c.op].Puts() {
			c.copy.PutOp = c.op
			puts[key{c.dest.id, store.Seq(c.copy.Seq)}] = c.copy
		}
	}
	for i := range j.now.ops {
		op := &j.now.ops[i]
		c := puts[key{op.Dest, op.Seq}]
		switch {
		case c == nil || op.Kind != store.DeleteMessage && op.Kind != store.SetRedelivery:
		case op.Kind == store.DeleteMessage && c.Redelivery == c.Message.RedeliveryCounter:
			j.cancel(p, c.PutOp, j.now.notes[i].unit)
			*op = store.Op{}
		default:
			j.now.notes[i].unit = p.notes[c.PutOp].unit
		}
	}
}

// split moves what must wait for room from the collecting part to the held one.
func (j *journal) split() {
	p := j.now
	j.now = j.newPart()
	puts := p.putting()
	at := make([]int, len(p.ops)) // in held
	for i, op := range p.ops {
		at[i] = -1
		// Receipts stay in their order, and so do numbers of producers.
		waits := puts[p.notes[i].unit] && op.Kind != store.PutMeta ||
			op.Kind == store.PutReceipt || op.Kind == store.DropReceipts ||
			op.Kind == store.PutNumber || op.Kind == store.DropNumbers
		switch {
		case op.Kind == store.Nothing:
		case waits:
			at[i] = len(j.held.ops)
			j.held.add(op, p.notes[i])
			j.hold.count(op, p.notes[i], 1)
		default:
			if op.Kind == store.DropDestination {
				j.forget(op.Dest)
			}
			j.now.add(op, p.notes[i])
		}
	}
	for _, c := range p.copies {
		if c.op >= 0 {
			c.op = at[c.op]
		}
		switch {
		case c.op >= 0:
			c.copy.PutBatch, c.copy.PutOp = j.held.gen, c.op
			j.held.copies = append(j.held.copies, c)
		case puts[c.unit]: // what consumed it waits
			j.held.copies = append(j.held.copies, c)
		default: // it is consumed, and needs no room
			j.now.copies = append(j.now.copies, c)
		}
	}
	for _, t := range p.ties {
		if puts[t.unit] {
			j.held.ties = append(j.held.ties, t)
		} else {
			j.now.ties = append(j.now.ties, t)
		}
	}
	j.held.bytes += p.bytes
	j.held.logs += p.logs
	for _, w := range p.waits {
		if w.all || puts[w.unit] {
			j.held.waits = append(j.held.waits, w)
		} else {
			j.now.waits = append(j.now.waits, w)
		}
	}
}

// putting gives the units that wait for room: those that put messages, and those tied to them.
func (p *part) putting() map[uint64]bool {
	puts := map[uint64]bool{}
	for i := range p.ops {
		if p.ops[i].Puts() {
			puts[p.notes[i].unit] = true
		}
	}
	for more := true; more; {
		more = false
		for _, t := range slices.Backward(p.ties) { // who is tied to a unit was so before that was
			if puts[t.by] && !puts[t.unit] {
				puts[t.unit], more = true, true
			}
		}
	}
	return puts
}

// forget cancels what is held of a destination that is dropped.
func (j *journal) forget(id store.DestID) {
	for i, op := range j.held.ops {
		if op.Dest != id {
			continue
		}
		if op.Puts() {
			j.held.uncount(i)
		}
		j.held.ops[i] = store.Op{}
	}
	for d := range j.hold.deltas {
		if d.id == id {
			delete(j.hold.deltas, d)
		}
	}
}
