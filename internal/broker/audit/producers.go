package audit

import "hopwire/internal/message"

// Producers remembers the running numbers that local producers used, a window of depth numbers
// for each of the last producers. What is older than a window is not known: it is no duplicate.
// It knows of which producers the store has numbers, too.
type Producers struct {
	depth   int
	max     int
	known   map[message.ProducerID]*numbers
	head    numbers // ring of all, head.next is the one used longest ago
	evicted []message.ProducerID
}

type numbers struct {
	producer   message.ProducerID
	used       *message.Numbers
	kept       bool // the store has some
	by         any  // who had them kept last
	prev, next *numbers
}

// NewProducers makes an audit of maxProducers producers and depth numbers each.
func NewProducers(maxProducers, depth int) *Producers {
	p := &Producers{depth: depth, max: max(1, maxProducers),
		known: map[message.ProducerID]*numbers{}}
	p.head.prev, p.head.next = &p.head, &p.head
	return p
}

// Depth is how many numbers of a producer are known at least.
func (p *Producers) Depth() int { return p.depth }

// Numbered reports whether an id has a running number.
func Numbered(id message.MessageID) bool { return id.Text == "" && id.Sequence >= 0 }

// Seen records a message's number and reports whether it was there already.
func (p *Producers) Seen(id message.MessageID) bool {
	if !Numbered(id) {
		return false
	}
	w := p.known[id.Producer]
	if w == nil {
		for len(p.known) >= p.max {
			p.evict(p.head.next)
		}
		w = p.admit(id.Producer, message.NewNumbers(p.depth), &p.head)
	}
	if p.head.prev != w {
		w.unlink()
		w.link(&p.head)
	}
	return w.used.Add(id.Sequence)
}

// Has reports whether a number is recorded, without recording it.
func (p *Producers) Has(id message.MessageID) bool {
	w := p.known[id.Producer]
	return w != nil && Numbered(id) && w.used.Has(id.Sequence)
}

// Restore adds what the store has of a producer, as used longer ago than all that is here. What
// there is no room for is evicted.
func (p *Producers) Restore(producer message.ProducerID, used *message.Numbers) {
	w := p.known[producer]
	switch {
	case w == nil && len(p.known) >= p.max:
		p.evicted = append(p.evicted, producer)
		return
	case w == nil:
		w = p.admit(producer, message.NewNumbers(p.depth), p.head.next)
	}
	w.used.Join(used)
	w.kept = true
}

// Keep says that the store gets the number that was seen last of a producer. It reports whether it
// had none of by yet, which is whoever sends for that producer now.
func (p *Producers) Keep(producer message.ProducerID, by any) (first bool) {
	w := p.known[producer]
	if w == nil {
		return false
	}
	first = !w.kept || w.by != by
	w.kept, w.by = true, by
	return first
}

// Release says that the store need not have a producer's numbers any more, and reports whether it
// had some. What is in memory stays.
func (p *Producers) Release(producer message.ProducerID) bool {
	w := p.known[producer]
	if w == nil || !w.kept {
		return false
	}
	w.kept, w.by = false, nil
	return true
}

// Evicted gives those producers that were forgotten since it was asked last and of which the store
// has numbers.
func (p *Producers) Evicted() []message.ProducerID {
	out := p.evicted
	p.evicted = nil
	return out
}

func (p *Producers) evict(w *numbers) {
	w.unlink()
	delete(p.known, w.producer)
	if w.kept {
		p.evicted = append(p.evicted, w.producer)
	}
}

// admit adds a producer to the ring before another.
func (p *Producers) admit(producer message.ProducerID, used *message.Numbers,
	before *numbers) *numbers {
	w := &numbers{producer: producer, used: used}
	w.link(before)
	p.known[producer] = w
	return w
}

func (w *numbers) unlink() { w.prev.next, w.next.prev = w.next, w.prev }

func (w *numbers) link(before *numbers) {
	w.prev, w.next = before.prev, before
	before.prev.next, before.prev = w, w
}
