package disk

import (
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// rangeSize is the number of removed keys in a row over which a range tombstone is laid.
const rangeSize = 256

// Of a log, what is below its head is removed when the head rose by rangeSize, or by apartSize when
// there are bodies that have records of their own: one by one when it is less than fewSize.
const (
	apartSize = 16
	fewSize   = 64
)

// role says what a destination's message records are, and how they end.
type role uint8

const (
	queue        role = iota // messages, removed one by one
	log                      // messages, removed by raising the head
	subscription             // references, removed one by one
	prepared                 // what a prepared branch sent, removed as a whole
)

func roleOf(h *store.Header) role {
	switch {
	case h.Prepared != nil:
		return prepared
	case h.Subscription != nil:
		return subscription
	case h.IsLog():
		return log
	}
	return queue
}

// dest is what is remembered of a destination. Its size does not depend on the backlog.
// Readers look at the first group, under the store's lock; the second belongs to Apply.
type dest struct {
	header bool // one was put; without it there are no messages
	head   store.Seq
	role   role
	loaded bool // facts and bodies are right; before that anything may be there
	facts  span // sequences that may have a record of facts

	terms    *terms // of a subscription
	reserved store.Seq
	bytes    int64     // of the messages, by the last header
	mean     int64     // about the size of one
	laid     store.Seq // nothing is to be removed below it
	gone     int       // of a subscription: references removed since laid was raised
	runs     []run     // removed messages in a row at or above laid, at most maxRuns, ascending
	bodies   span      // sequences that may have a record of their own for the body
	pieces   span      // sequences that may have their body in pieces
	peers    map[message.BrokerID]*receipts
}

// weigh takes the sizes from a header, and gives by how much they grew.
func (d *dest) weigh(h *store.Header) (more int64) {
	more = h.Bytes - d.bytes
	if d.bytes = h.Bytes; h.Count > 0 {
		d.mean = h.Bytes / h.Count
	}
	return more
}

// span is a range of sequences [lo, hi); everything outside of it is known not to be there.
type span struct{ lo, hi store.Seq }

func (p *span) add(seq store.Seq) {
	if p.lo >= p.hi {
		p.lo, p.hi = seq, seq+1
		return
	}
	p.lo, p.hi = min(p.lo, seq), max(p.hi, seq+1)
}

func (p *span) join(q span) {
	if q.lo < q.hi {
		p.add(q.lo)
		p.add(q.hi - 1)
	}
}

func (p span) has(seq store.Seq) bool { return seq >= p.lo && seq < p.hi }

func (p span) meets(from, to store.Seq) bool { return p.lo < p.hi && from < p.hi && p.lo < to }

// receipts is what is remembered of the receipts of one peer.
type receipts struct {
	low  uint64 // the mark: those below it are dropped
	laid uint64 // those below it are under a range tombstone
	next uint64 // none was put at or above it
	// No number below base may come, nor one of put, all of which are above base.
	base uint64
	put  map[uint64]struct{}
	// blind: low and next cannot be read. The numbers that come are the broker's, who was told.
	blind bool
}

// run is a row of removed sequences [from, to) of which [from, laid) is under a range tombstone.
type run struct{ from, laid, to store.Seq }

const maxRuns = 16

// removed notes that [from, to) was removed and gives the range over which a tombstone is to be
// laid now, if any: what is not yet under one of the row that it belongs to.
func (d *dest) removed(from, to store.Seq) (lo, hi store.Seq) {
	i := slices.IndexFunc(d.runs, func(r run) bool { return r.to == from })
	if i < 0 {
		if to-from < rangeSize && len(d.runs) == maxRuns {
			d.forgetShortest()
		}
		if len(d.runs) == maxRuns {
			d.runs = slices.Delete(d.runs, 0, 1)
		}
		d.runs = append(d.runs, run{from, from, from})
		i = len(d.runs) - 1
	}
	r := &d.runs[i]
	r.to = to
	if r.to-r.laid < rangeSize {
		return 0, 0
	}
	lo, r.laid = r.laid, r.to
	return lo, r.to
}

func (d *dest) forgetShortest() {
	shortest := 0
	for i, r := range d.runs {
		if r.to-r.laid < d.runs[shortest].to-d.runs[shortest].laid {
			shortest = i
		}
	}
	d.runs = slices.Delete(d.runs, shortest, shortest+1)
}

// raise notes that everything below head is under a range tombstone.
func (d *dest) raise(head store.Seq) {
	d.laid, d.gone = head, 0
	d.runs = slices.DeleteFunc(d.runs, func(r run) bool { return r.to <= head })
}
