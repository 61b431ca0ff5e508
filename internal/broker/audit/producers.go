package audit

import "hopwire/internal/message"

// Producers remembers the running numbers that local producers used, a window of depth numbers
// for each of the last producers. What is older than a window is not known: it is no duplicate.
type Producers struct {
	depth int64 // a multiple of 64
	max   int
	known map[message.ProducerID]*numbers
	head  numbers // ring of all, head.next is the one used longest ago
}

type numbers struct {
	producer   message.ProducerID
	high       int64
	bits       []uint64 // bit of number n: n % depth; grown when needed
	prev, next *numbers
}

// NewProducers makes an audit of maxProducers producers and depth numbers each.
func NewProducers(maxProducers, depth int) *Producers {
	p := &Producers{
		depth: int64(max(1, depth)+63) / 64 * 64,
		max:   max(1, maxProducers),
		known: map[message.ProducerID]*numbers{},
	}
	p.head.prev, p.head.next = &p.head, &p.head
	return p
}

// Seen records a message's number and reports whether it was there already.
func (p *Producers) Seen(id message.MessageID) bool {
	if id.Text != "" || id.Sequence < 0 {
		return false
	}
	w := p.known[id.Producer]
	if w == nil {
		w = p.admit(id)
		w.set(id.Sequence, p.depth)
		return false
	}
	if p.head.prev != w {
		w.unlink()
		w.link(&p.head)
	}
	return w.seen(id.Sequence, p.depth)
}

// Has reports whether a number is recorded, without recording it.
func (p *Producers) Has(id message.MessageID) bool {
	w := p.known[id.Producer]
	if w == nil || id.Text != "" || id.Sequence < 0 || id.Sequence > w.high ||
		w.high-id.Sequence >= p.depth {
		return false
	}
	return w.bits[id.Sequence%p.depth/64]&(1<<(id.Sequence%64)) != 0
}

func (p *Producers) admit(id message.MessageID) *numbers {
	if len(p.known) >= p.max {
		oldest := p.head.next
		oldest.unlink()
		delete(p.known, oldest.producer)
	}
	w := &numbers{producer: id.Producer, high: id.Sequence, bits: make([]uint64, p.depth/64)}
	w.link(&p.head)
	p.known[id.Producer] = w
	return w
}

func (w *numbers) seen(n, depth int64) bool {
	switch {
	case n > w.high:
		for m := max(w.high+1, n-depth+1); m < n; m++ {
			w.bits[m%depth/64] &^= 1 << (m % 64)
		}
		w.high = n
		w.set(n, depth)
		return false
	case w.high-n >= depth:
		return false
	}
	was := w.bits[n%depth/64]&(1<<(n%64)) != 0
	w.set(n, depth)
	return was
}

func (w *numbers) set(n, depth int64) { w.bits[n%depth/64] |= 1 << (n % 64) }

func (w *numbers) unlink() { w.prev.next, w.next.prev = w.next, w.prev }

func (w *numbers) link(head *numbers) {
	w.prev, w.next = head.prev, head
	head.prev.next, head.prev = w, w
}
