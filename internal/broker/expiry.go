package broker

import (
	"cmp"
	"slices"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// A search for expired messages looks at so many at a time before it lets others have the loop:
// copies in memory, and stored ones, which cost a read.
const (
	expiryCopies = 2000
	expiryRefs   = 400
)

// expiryHole is how far apart expired messages may be to be read with what lies between them.
const expiryHole = 16

// expiryPeriod is the shortest time between two searches of any queue (expireMessagesPeriod).
func (b *Broker) expiryPeriod() time.Duration {
	shortest := policy.Unconfigured().Expiry.Period
	for _, e := range append([]*policy.Entry{b.opt.Policies.Default}, b.opt.Policies.Entries...) {
		if e != nil && e.Expiry.Period > 0 {
			shortest = min(shortest, e.Expiry.Period)
		}
	}
	return shortest
}

// scheduleExpiry looks for expired messages now and then, also on queues nobody reads. Every queue
// that is searched at all is searched as often as the one whose policy asks for it most often. A
// search that takes longer than the period is not joined by another.
func (b *Broker) scheduleExpiry() {
	b.env.After(b.expiryPeriod(), func() {
		if b.stopping() {
			return
		}
		if !b.expiring {
			b.expiring = true
			s := &expirySearch{b: b, now: b.env.Wall()}
			s.memory()
		}
		b.scheduleExpiry()
	})
}

// expirySearch is one search of all queues, in slices: first what is in memory, then what is only
// in the store.
type expirySearch struct {
	b   *Broker
	now int64

	dest store.DestID // what is in memory: goes on at this queue
	at   queue.Cursor

	after *store.ExpiredRef // what is stored: goes on behind it
	refs  []store.ExpiredRef
	last  bool         // there are no more than refs
	in    *destination // that the references are of
}

// expires reports whether the queue is searched at all.
func (d *destination) expires() bool {
	return d.queue != nil && !d.gone && d.policy.Expiry.Period != 0
}

// memory ends expired copies that wait in memory.
func (s *expirySearch) memory() {
	b := s.b
	left, more := expiryCopies, false
	for i := b.from(s.dest); i < len(b.order); i++ {
		d := b.order[i]
		if d.id != s.dest {
			s.dest, s.at = d.id, queue.Cursor{}
		}
		if !d.expires() {
			continue
		}
		var over []*queue.Copy
		s.at, left, more = d.queue.Scan(s.at, left, func(c *queue.Copy) {
			if c.Message.Expired(s.now) {
				over = append(over, c)
			}
		})
		for _, c := range over {
			b.expire(d, c)
		}
		if more {
			s.later(s.memory)
			return
		}
	}
	if b.opt.Persistent {
		s.stored()
		return
	}
	s.end()
}

// later goes on with the search when others had the loop.
func (s *expirySearch) later(f func()) {
	s.b.env.Soon(func() {
		if s.b.stopping() {
			s.end()
			return
		}
		f()
	})
}

func (s *expirySearch) end() { s.b.expiring = false }

// trouble ends a search that cannot read; the next begins at its time.
func (s *expirySearch) trouble(err error) {
	s.b.tell(Event{Kind: StoreTrouble,
		Text: "expired messages could not be looked up: " + err.Error()})
	s.end()
}

// stored asks for the next expired messages in the store.
func (s *expirySearch) stored() {
	s.b.journal.whenHandedOver(func() {
		s.b.journal.storage.Expired(s.after, s.now, expiryRefs,
			func(refs []store.ExpiredRef, err error) {
				if err != nil {
					s.trouble(err)
					return
				}
				if s.last = len(refs) < expiryRefs; len(refs) > 0 {
					end := refs[len(refs)-1]
					s.after = &end
				}
				slices.SortFunc(refs, func(a, b store.ExpiredRef) int {
					return cmp.Or(cmp.Compare(a.Dest, b.Dest), cmp.Compare(a.Seq, b.Seq))
				})
				s.refs = refs
				s.next()
			})
	})
}

// next reads the next expired copies that are only in the store. What is in memory is out or
// in doubt, or ends by itself; what belongs to a queue that is not searched stays.
func (s *expirySearch) next() {
	for len(s.refs) > 0 {
		if d := s.enter(s.refs[0].Dest); d != nil && d.expires() && !s.crowds(d) {
			if n := s.row(d); n > 0 {
				s.read(d, s.refs[0].Seq, s.refs[n-1].Seq+1)
				return
			}
		}
		s.refs = s.refs[1:]
	}
	if s.last {
		s.enter(0)
		s.end()
		return
	}
	s.later(s.stored)
}

// crowds reports whether the dead letters of a destination would wait in memory for room in the
// store: they are better off there, as they are.
func (s *expirySearch) crowds(d *destination) bool {
	to := d.policy.DeadLetter.Target(d.name, "")
	return d.policy.DeadLetter.ProcessExpired && !to.IsZero() && to != d.name &&
		!s.b.journal.held.empty()
}

// enter goes over to the references of another destination, and gives it; nil when it is gone.
func (s *expirySearch) enter(id store.DestID) *destination {
	d := s.b.byID(id)
	if s.in != nil && s.in != d && s.in.sub != nil {
		s.in.host.trim()
	}
	s.in = d
	return d
}

// row counts the references at the beginning that are worth one read: near each other, the first
// of a copy that is not in memory.
func (s *expirySearch) row(d *destination) (n int) {
	first := s.refs[0]
	if gap, ok := d.queue.Gap(uint64(first.Seq)); !ok || gap != uint64(first.Seq) {
		return 0
	}
	for n = 1; n < len(s.refs); n++ {
		r := s.refs[n]
		if r.Dest != first.Dest || r.Seq-s.refs[n-1].Seq > expiryHole ||
			r.Seq-first.Seq >= queue.PageCopies {
			break
		}
	}
	return n
}

// read ends the expired copies from <= sequence < to.
func (s *expirySearch) read(d *destination, from, to store.Seq) {
	through := d.queue.Aside()
	s.b.journal.whenHandedOver(func() {
		s.b.journal.storage.Page(store.PageRequest{Dest: d.id, From: from, To: to,
			Bytes: queue.PageBytes},
			func(page []store.Stored, err error) {
				defer through()
				if err != nil {
					s.trouble(err)
					return
				}
				complete := to
				if len(page) > 0 {
					complete = page[len(page)-1].Next() // only an empty page tells that none follows
				}
				if !d.gone {
					s.expire(d, d.host.copies(page))
				}
				for len(s.refs) > 0 && s.refs[0].Dest == d.id && s.refs[0].Seq < complete {
					s.refs = s.refs[1:]
				}
				s.next()
			})
	})
}

func (s *expirySearch) expire(d *destination, copies []*queue.Copy) {
	for _, c := range copies {
		if c.Message.Expired(s.now) && len(c.Doubts) == 0 && d.queue.TakeStored(c, s) {
			d.usage.Add(c.Message.Size())
			s.take(d, c)
		}
	}
}

// take ends a copy that was taken from the store. Its record is there until the batch that ends it
// is durable, which a full store makes late.
func (s *expirySearch) take(d *destination, c *queue.Copy) {
	defer s.b.journal.leave(s.b.journal.enter())
	spooled := c.Spooled
	s.b.expire(d, c)
	s.b.whenErased(spooled, func() { d.queue.Erased(c.Seq) })
}

// byID gives a destination by its number, nil when it is gone.
func (b *Broker) byID(id store.DestID) *destination {
	if i := b.from(id); i < len(b.order) && b.order[i].id == id {
		return b.order[i]
	}
	return nil
}
