package broker

import (
	"cmp"
	"slices"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
)

// inheritance is how a new retroactive subscription gets what its topics have stored for other
// durable subscriptions: what is in memory at once, and what the store alone has page by page.
type inheritance struct {
	s    *subscription
	of   map[message.Destination]*share
	seen map[origin]bool
	rest []*subscription // the others
	at   uint64          // where the next page of the first of them begins
	to   uint64
}

// origin tells messages apart: copies of one have several sequences when one was inherited before.
type origin struct {
	id   message.MessageID
	dest message.Destination
}

// inherit begins the inheritance and reports whether it goes on later: when others have some in the
// store alone, everything is read there, for its order.
func (s *subscription) inherit() (more bool) {
	i := &inheritance{s: s, of: map[message.Destination]*share{}, seen: map[origin]bool{}}
	others := map[*subscription]bool{s: true}
	for _, h := range s.shares {
		i.of[h.log.name] = h
		for _, o := range h.log.shares {
			if !others[o.sub] {
				others[o.sub] = true
				i.rest = append(i.rest, o.sub)
				more = more || o.sub.dest.queue.StoredOnly() > 0
			}
		}
	}
	if more {
		i.begin()
		return true
	}
	var here, later []*queue.Copy
	find := func(c *queue.Copy) bool {
		switch tx, _ := c.Owner.(*transaction); {
		case !i.first(c):
		case tx != nil && tx.committing: // nobody gets it yet
			later = append(later, c)
		default:
			here = append(here, c)
		}
		return true
	}
	for _, o := range i.rest {
		o.dest.queue.EachOut(func(c *queue.Copy) { find(c) })
		o.dest.queue.EachPending(find)
	}
	bySeq := func(x, y *queue.Copy) int { return cmp.Compare(x.Seq, y.Seq) }
	slices.SortFunc(here, bySeq)
	i.take(here)
	if len(later) > 0 {
		slices.SortFunc(later, bySeq)
		s.b.journal.whenAllDurable(func() {
			if !s.dest.gone {
				i.take(later)
			}
		})
	}
	return false
}

// first reports whether a copy is of a message for the subscription that was not seen before.
func (i *inheritance) first(c *queue.Copy) bool {
	m := c.Message
	o := origin{m.ID, m.Destination}
	if !m.Persistent || i.seen[o] || i.of[m.Destination] == nil {
		return false
	}
	i.seen[o] = true
	return true
}

// begin reads the first of the rest.
func (i *inheritance) begin() {
	q := i.rest[0].dest.queue
	i.at, i.to = q.OldestStored(), q.NextSeq()
	i.read()
}

// read takes in the next page, and goes on when that is durable.
func (i *inheritance) read() {
	o := i.rest[0]
	o.dest.host.readStored(i.at, i.to, func(copies []*queue.Copy, complete uint64) {
		if i.s.dest.gone {
			return
		}
		if complete == i.at {
			i.s.b.tell(Event{Kind: StoreTrouble, Dest: i.s.dest.name, Text: "durable subscription " +
				i.s.String() + " does not get all that is stored for others: it cannot be read"})
			complete = i.to
		}
		var fresh []*queue.Copy
		for _, c := range copies {
			if i.first(c) {
				fresh = append(fresh, c)
			}
		}
		i.take(fresh)
		i.at = complete
		i.s.b.journal.whenAllDurable(i.next)
	})
}

func (i *inheritance) next() {
	if i.at < i.to {
		i.read()
		return
	}
	if i.rest = i.rest[1:]; len(i.rest) > 0 {
		i.begin()
	}
}

// take puts messages into the subscription, as if they came now.
func (i *inheritance) take(copies []*queue.Copy) {
	s, b := i.s, i.s.b
	defer b.journal.leave(b.journal.enter())
	for _, c := range copies {
		m := c.Message
		h := i.of[m.Destination]
		if h.log.gone || m.Expired(b.env.Wall()) {
			continue // the other subscription counts its copy
		}
		if why := s.refuses(m); why != "" {
			s.dest.reasons[why]++
			continue
		}
		var log *logPut
		m, seq := b.anew(m)
		if b.opt.Persistent {
			log = b.journal.log(h.log, seq, m)
			h.keep(seq)
		}
		s.dest.reserveTo(b, seq)
		b.kept(s.dest, b.addLogged(s.dest, m, seq), log, nil)
	}
}

// anew gives a message that was in the logs, or came before what is in them, as one that comes to
// them now, and its sequence there.
func (b *Broker) anew(m *message.Message) (*message.Message, uint64) {
	m = m.Clone()
	b.sequence++
	m.BrokerSequence = b.sequence
	return m, b.nextLogged(m)
}
