package broker

import (
	"iter"
	"slices"

	"hopwire/internal/broker/queue"
	"hopwire/internal/store"
)

// unit is a list of changes that are one thing to who made them, such as a transaction, or a dead
// letter and the end of its original: they are handed over together, or held together. The receipt
// of what a peer forwarded, and the number that a producer gave it, are in the unit of its copies:
// durable before them it would lose the message, durable after they were consumed double it.
// Changes that nobody made with others and that put nothing, such as acknowledgements, are loose:
// nothing holds them, so they may share a unit.
type unit struct {
	ops       []*op
	waits     []func() // for it to be durable, while it is held
	puts      int      // ops that put a message or a reference, and are not off
	logs      int      // ops that put into logs
	undurable int64    // of journal.undurable
	behind    []*unit  // it is durable no earlier than these, which ended copies that it put
	place     place
	loose     bool // of loose changes alone
	named     bool // in behind of others, by a branch, or left over in held: it is not used again
}

// place is where a unit is.
type place uint8

const (
	collected  place = iota // in the part that collects
	held                    // in the part that waits for room
	handedOver              // on its way or durable
)

// op is one change of a unit.
type op struct {
	store.Op
	dest *destination // whose header counts it, of a put or delete of a copy; of a number
	copy *queue.Copy  // that it puts, or changes while its put is on its way
	size int64        // of the message put or deleted
	log  *logPut      // of the put of a topic's message, and of a reference to it
	off  bool         // it was taken back, and is not written
	unit *unit
	// count is the redelivery count behind a put that was not handed over: it goes with it.
	count *op
}

// part is what goes into one batch, or waits for that, but for headers.
type part struct {
	units []*unit
	meta  []store.Op // goes with the next batch, whatever is held
	drops []store.Op // of receipts and numbers; likewise, ahead of what is put
	waits []wait
	logs  int // of units
	idle  int // of drops: no reason to hand the part over
}

// wait is something to run when changes are durable: those of a unit, nil for none, or all before.
type wait struct {
	f    func()
	unit *unit
	all  bool
}

func (p *part) empty() bool { return len(p.units)+len(p.drops)+len(p.waits) == 0 }

func (p *part) add(u *unit, at place) {
	u.place = at
	p.units = append(p.units, u)
	p.logs += u.logs
}

// join puts a part behind this one.
func (p *part) join(q part) {
	for _, u := range q.units {
		p.add(u, collected)
		p.waitFor(u)
	}
	p.meta, p.drops = append(p.meta, q.meta...), append(p.drops, q.drops...)
	p.waits, p.idle = append(p.waits, q.waits...), p.idle+q.idle
}

// waitFor takes over what waits for a unit.
func (p *part) waitFor(u *unit) {
	for _, f := range u.waits {
		p.waits = append(p.waits, wait{f: f, unit: u})
	}
	u.waits = nil
}

// changes gives those that are not off, unit by unit.
func (p *part) changes() iter.Seq[*op] {
	return func(yield func(*op) bool) {
		for _, u := range p.units {
			for _, o := range u.ops {
				if !o.off && !yield(o) {
					return
				}
			}
		}
	}
}

// unwritten gives the put of a copy's record that was not handed over, nil when there is none.
func unwritten(c *queue.Copy) *op {
	if c == nil {
		return nil
	}
	if o, _ := c.Put.(*op); o != nil && o.unit.place != handedOver {
		return o
	}
	return nil
}

// needsRoom reports whether a unit waits for room: it puts something, or is behind one that waits.
func (u *unit) needsRoom() bool {
	return u.puts > 0 || slices.ContainsFunc(u.behind, func(by *unit) bool {
		return by.place != handedOver && by.needsRoom()
	})
}

// pool keeps what is free of something that each message takes some of. It is made in blocks.
type pool[T any] struct{ free []*T }

// What a pool makes at once, and how much it keeps: one message of a topic with many subscriptions
// takes much. The list of a unit is kept with it up to unitMost.
const (
	poolBlock = 32
	poolMost  = 1 << 15
	unitMost  = 1 << 10
)

func (p *pool[T]) get() *T {
	if len(p.free) == 0 {
		block := make([]T, poolBlock)
		for i := range block {
			p.free = append(p.free, &block[i])
		}
	}
	end := len(p.free) - 1
	x := p.free[end]
	p.free = p.free[:end]
	return x
}

func (p *pool[T]) put(x *T) {
	if len(p.free) < poolMost {
		p.free = append(p.free, x)
	}
}

// newPart gives an empty part.
func (j *journal) newPart() part {
	p := j.spare
	j.spare = part{}
	return p
}

// reuse keeps the memory of a part that is durable.
func (j *journal) reuse(p *part) {
	for _, u := range p.units {
		for _, o := range u.ops {
			o.Message, o.Header, o.ID = nil, nil, nil
			o.dest, o.copy, o.log, o.count = nil, nil, nil, nil // others are small
			j.freeOps.put(o)
		}
		if cap(u.ops) > unitMost {
			u.ops = nil
		}
		*u = unit{ops: u.ops[:0], place: handedOver, named: u.named}
		if !u.named {
			j.freeUnits.put(u)
		}
	}
	if cap(p.units) <= poolMost {
		clear(p.units)
		clear(p.meta)
		clear(p.drops)
		clear(p.waits)
		j.spare = part{units: p.units[:0], meta: p.meta[:0], drops: p.drops[:0],
			waits: p.waits[:0]}
	}
}
