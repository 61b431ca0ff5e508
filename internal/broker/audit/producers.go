package audit

import (
	"container/list"
	"iter"

	"hopwire/internal/message"
)

// Producers remembers the running numbers that local producers used, a window of depth numbers
// each. What is older than a window is not known: it is no duplicate. Producers are in two lists,
// those that are awaited, as they may send again what they sent, and the others. Of each list the
// last max are known, by when they were used: so the others push out none that is awaited.
type Producers struct {
	depth           int
	max             int
	known           map[message.ProducerID]*numbers
	awaited, others list.List // of *numbers, the one used longest ago first
	forgotten       []Forgotten
}

type numbers struct {
	producer message.ProducerID
	used     *message.Numbers
	in       *list.List // awaited or others
	at       *list.Element
	stored   bool // the store has some of them; in == awaited then
}

// Forgotten is a producer that was awaited and made room for others.
type Forgotten struct {
	Producer message.ProducerID
	Stored   bool // the store has numbers of it
}

// NewProducers makes an audit of maxProducers producers and depth numbers each.
func NewProducers(maxProducers, depth int) *Producers {
	return &Producers{depth: depth, max: max(1, maxProducers),
		known: map[message.ProducerID]*numbers{}}
}

// Depth is how many numbers of a producer are known at least.
func (p *Producers) Depth() int { return p.depth }

// Numbered reports whether an id has a running number.
func Numbered(id message.MessageID) bool { return id.Text == "" && id.Sequence >= 0 }

// Seen records a message's number and reports whether it was there already. With await the producer
// may send it again; news says that it is awaited from here on.
func (p *Producers) Seen(id message.MessageID, await bool) (was, news bool) {
	if !Numbered(id) {
		return false, false
	}
	w := p.known[id.Producer]
	if w == nil {
		w = &numbers{producer: id.Producer, used: message.NewNumbers(p.depth)}
		p.known[id.Producer] = w
	}
	was = w.used.Add(id.Sequence)
	if await || w.in == &p.awaited {
		return was, p.use(w, &p.awaited)
	}
	p.use(w, &p.others)
	return was, false
}

// Has reports whether a number is recorded, without recording it.
func (p *Producers) Has(id message.MessageID) bool {
	w := p.known[id.Producer]
	return w != nil && Numbered(id) && w.used.Has(id.Sequence)
}

// Restore adds what the store has of a producer, which is awaited: as used longer ago than all that
// are, so that it is forgotten where there is no room. The window is the audit's from then on. It
// reports whether the producer is awaited from here on.
func (p *Producers) Restore(producer message.ProducerID, used *message.Numbers) (news bool) {
	w := p.known[producer]
	switch {
	case w != nil && w.in == &p.awaited:
		w.used.Join(used)
		w.stored = true
		return false
	case p.awaited.Len() >= p.max:
		p.forgotten = append(p.forgotten, Forgotten{producer, true})
		return false
	case w == nil:
		w = &numbers{producer: producer, used: used.Fit(p.depth)}
		p.known[producer] = w
	default:
		w.used.Join(used)
	}
	p.use(w, &p.awaited)
	p.awaited.MoveToFront(w.at)
	w.stored = true
	return true
}

// Keep says that the store gets the number that was seen last of a producer that is awaited.
func (p *Producers) Keep(producer message.ProducerID) {
	if w := p.known[producer]; w != nil && w.in == &p.awaited {
		w.stored = true
	}
}

// Kept reports whether the store has numbers of a producer, or gets them.
func (p *Producers) Kept(producer message.ProducerID) bool {
	w := p.known[producer]
	return w != nil && w.stored
}

// Release says that a producer sends nothing again, and reports whether the store has numbers of
// it, which it need not any more. What is in memory stays, among the others.
func (p *Producers) Release(producer message.ProducerID) (stored bool) {
	w := p.known[producer]
	if w == nil || w.in != &p.awaited {
		return false
	}
	stored, w.stored = w.stored, false
	p.use(w, &p.others)
	return stored
}

// Awaited gives the producers that may send again.
func (p *Producers) Awaited() iter.Seq[message.ProducerID] {
	return func(yield func(message.ProducerID) bool) {
		for e := p.awaited.Front(); e != nil; e = e.Next() {
			if !yield(e.Value.(*numbers).producer) {
				return
			}
		}
	}
}

// Forgotten gives those that were awaited and made room since it was asked last.
func (p *Producers) Forgotten() []Forgotten {
	out := p.forgotten
	p.forgotten = nil
	return out
}

// use makes a producer the one of a list that was used last, and reports whether it was not in it.
func (p *Producers) use(w *numbers, l *list.List) (news bool) {
	if w.in == l {
		l.MoveToBack(w.at)
		return false
	}
	if w.in != nil {
		w.in.Remove(w.at)
	}
	w.in, w.at = l, l.PushBack(w)
	if l.Len() > p.max {
		p.forget(l.Remove(l.Front()).(*numbers))
	}
	return true
}

func (p *Producers) forget(w *numbers) {
	delete(p.known, w.producer)
	if w.in == &p.awaited {
		p.forgotten = append(p.forgotten, Forgotten{w.producer, w.stored})
	}
}
