package audit

import "hopwire/internal/message"

// Producers remembers the running numbers that local producers used, a window of depth numbers
// for each of the last producers. What is older than a window is not known: it is no duplicate.
// It knows of which producers the store has numbers, too. Who can send nothing again makes room
// first, and then those of which memory alone has numbers.
type Producers struct {
	depth   int
	max     int
	known   map[message.ProducerID]*numbers
	rings   [ranks]numbers // heads; the next of each is the one used longest ago
	evicted []message.ProducerID
}

type numbers struct {
	producer   message.ProducerID
	used       *message.Numbers
	rank       rank
	prev, next *numbers
}

// rank says what is lost with the numbers of a producer.
type rank int

const (
	ended    rank = iota // it sends nothing again: it is closed, or its client does not fail over
	expected             // it may send again, and the store has nothing of it
	kept                 // the store has some of its numbers
	ranks
)

// NewProducers makes an audit of maxProducers producers and depth numbers each.
func NewProducers(maxProducers, depth int) *Producers {
	p := &Producers{depth: depth, max: max(1, maxProducers),
		known: map[message.ProducerID]*numbers{}}
	for i := range p.rings {
		h := &p.rings[i]
		h.prev, h.next = h, h
	}
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
			p.evict(p.first())
		}
		w = p.admit(id.Producer, message.NewNumbers(p.depth), ended)
	}
	p.use(w, w.rank)
	return w.used.Add(id.Sequence)
}

// Has reports whether a number is recorded, without recording it.
func (p *Producers) Has(id message.MessageID) bool {
	w := p.known[id.Producer]
	return w != nil && Numbered(id) && w.used.Has(id.Sequence)
}

// Restore adds what the store has of a producer, as used longer ago than all that is here. It is
// evicted when there is no room but that of others of which the store has numbers. The window is
// the audit's from then on.
func (p *Producers) Restore(producer message.ProducerID, used *message.Numbers) {
	w := p.known[producer]
	if w == nil && len(p.known) >= p.max {
		least := p.first()
		if least.rank == kept {
			p.evicted = append(p.evicted, producer)
			return
		}
		p.evict(least)
	}
	switch {
	case w == nil:
		w = p.admit(producer, used.Fit(p.depth), kept)
		w.move(p.rings[kept].next)
		return
	case w.rank != kept:
		p.use(w, kept)
	}
	w.used.Join(used)
}

// Expect says that a producer may send again what was seen of it.
func (p *Producers) Expect(producer message.ProducerID) {
	if w := p.known[producer]; w != nil && w.rank == ended {
		p.use(w, expected)
	}
}

// Keep says that the store gets the number that was seen last of a producer.
func (p *Producers) Keep(producer message.ProducerID) {
	if w := p.known[producer]; w != nil {
		p.use(w, kept)
	}
}

// Release says that a producer sends nothing again, and reports whether the store has numbers of
// it, which it need not any more. What is in memory stays until somebody needs the room.
func (p *Producers) Release(producer message.ProducerID) bool {
	w := p.known[producer]
	if w == nil {
		return false
	}
	had := w.rank == kept
	w.rank = ended
	w.move(p.rings[ended].next)
	return had
}

// Evicted gives those producers that were forgotten since it was asked last and of which the store
// has numbers.
func (p *Producers) Evicted() []message.ProducerID {
	out := p.evicted
	p.evicted = nil
	return out
}

// first is the producer to be forgotten first; there is one.
func (p *Producers) first() *numbers {
	for i := range p.rings {
		if h := &p.rings[i]; h.next != h {
			return h.next
		}
	}
	return nil
}

func (p *Producers) evict(w *numbers) {
	w.unlink()
	delete(p.known, w.producer)
	if w.rank == kept {
		p.evicted = append(p.evicted, w.producer)
	}
}

// admit adds a producer.
func (p *Producers) admit(producer message.ProducerID, used *message.Numbers, r rank) *numbers {
	w := &numbers{producer: producer, used: used, rank: r}
	w.link(&p.rings[r])
	p.known[producer] = w
	return w
}

// use makes a producer the one of a rank that was used last.
func (p *Producers) use(w *numbers, r rank) {
	w.rank = r
	w.move(&p.rings[r])
}

func (w *numbers) unlink() { w.prev.next, w.next.prev = w.next, w.prev }

// move puts it before another of its ring, or of another ring; that may be itself.
func (w *numbers) move(before *numbers) {
	if w != before && w.next != before {
		w.unlink()
		w.link(before)
	}
}

func (w *numbers) link(before *numbers) {
	w.prev, w.next = before.prev, before
	before.prev.next, before.prev = w, w
}
