package broker

import (
	"fmt"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/store"
)

// Limits of a purge: a page of what is in the store alone, which is read apart from those that
// dispatch holds, and how many copies it ends before it yields the loop.
const (
	purgePageCopies = 2000
	purgePageBytes  = 4 << 20
	purgeSlice      = 250
)

// Purged is what became of a queue that was purged, and what of it stays as somebody has it.
type Purged struct {
	Dropped    int64 // messages
	InFlight   int64 // delivered, or on their way to a consumer or peer
	Transacted int64 // sent or acknowledged in a transaction that is not over, prepared ones too
	InDoubt    int64 // a peer may have them
	Parked     int   // sends that wait for room: they come in now
}

// Purge drops what waits in a queue when it begins, and nobody has. It works in slices, and in
// pages of what is in the store alone. by tells who asked, "" for nobody that is known; done is
// called when it is durable. An error of kind NotFound says that there is no such queue, one of
// kind Unavailable that the broker stops, and what was dropped until then.
func (b *Broker) Purge(name message.Destination, by string, done func(Purged, error)) {
	d := b.find(name)
	switch {
	case b.stopping():
		done(Purged{}, message.Errorf(message.Unavailable, "%s is not purged: broker %s is stopping",
			name, b.opt.Name))
		return
	case name.IsTopic():
		if n, some := b.dropDamageOf(d); some {
			out := Purged{Dropped: n}
			b.purged(d, by, n, out.text(), func() { done(out, nil) })
			return
		}
		done(Purged{}, message.Errorf(message.IllegalState, "%s is a topic, which keeps no messages"+
			" but those of its durable subscriptions; as far as they were read they can be, which hopwire"+
			" explain does, and hopwire remove-durable ends a subscription with what it keeps", name))
		return
	case d == nil || d.queue == nil:
		done(Purged{}, b.hasNo(name))
		return
	}
	p := &purge{b: b, d: d, view: d.queue.View(), by: by, done: done}
	p.out.Transacted = d.queue.Withheld()
	p.out.Parked = d.parkedCount()
	b.purges = append(b.purges, p)
	p.walk()
}

// purge is a walk through a queue that ends what nobody has.
type purge struct {
	b       *Broker
	d       *destination
	view    *queue.View
	page    []*queue.Copy // read, and not looked at
	through func()        // of page
	clean   bool          // all of page was taken
	from    uint64        // where page begins
	to      uint64        // and what it is complete below
	out     Purged
	by      string // who asked
	over    bool
	done    func(Purged, error)
}

// walk looks at a slice of copies, and goes on when others had the loop.
func (p *purge) walk() {
	if p.over {
		return
	}
	var stored, spooled []uint64
	defer func() {
		p.erased(false, stored)
		p.erased(true, spooled)
		p.b.relieve()
	}()
	for range purgeSlice {
		if p.d.gone {
			p.finish()
			return
		}
		if p.through != nil {
			if len(p.page) == 0 {
				p.turnPage()
				continue
			}
			c := p.page[0]
			p.page = p.page[1:]
			from := &stored
			if c.Spooled {
				from = &spooled
			}
			if p.stored(c) {
				*from = append(*from, c.Seq)
			}
			continue
		}
		switch c, from, to := p.view.Next(); {
		case c != nil:
			p.look(c)
		case to > 0:
			p.read(from, to)
			return
		default:
			p.finish()
			return
		}
	}
	p.b.env.Soon(p.walk)
}

// erased has the queue told when records are gone.
func (p *purge) erased(spooled bool, list []uint64) {
	if q := p.d.queue; len(list) > 0 {
		p.b.whenErased(spooled, func() {
			for _, seq := range list {
				q.Erased(seq)
			}
		})
	}
}

// look ends a copy in memory, or counts who has it.
func (p *purge) look(c *queue.Copy) {
	_, sent := c.Owner.(*transaction)
	switch {
	case !c.Out():
		p.b.consume(p.d, c)
		p.out.Dropped++
	case len(c.Doubts) > 0:
		p.out.InDoubt++
	case sent || c.Tx != nil:
		p.out.Transacted++
	default:
		p.out.InFlight++
	}
}

// stored ends a copy that was read, unless it was brought to memory, or ended, meanwhile. It
// reports whether it was taken from the store.
func (p *purge) stored(c *queue.Copy) bool {
	if len(c.Doubts) > 0 && p.d.queue.InStore(c.Seq) {
		p.out.InDoubt++
		p.clean = false
		return false
	}
	if p.d.queue.TakeStored(c, p) {
		p.d.usage.Add(c.Message.Size())
		p.b.consume(p.d, c)
		p.out.Dropped++
		return true
	}
	p.clean = false // it may go back to the store meanwhile
	if x := p.d.queue.InMemory(c.Seq); x != nil {
		p.look(x)
	}
	return false
}

// read reads the next page of what is in the store alone. What this turn removed of it is no more
// among what is taken.
func (p *purge) read(from, to uint64) {
	through := p.d.queue.Aside()
	p.b.journal.storage.Page(store.PageRequest{Dest: p.d.id, From: store.Seq(from),
		To: store.Seq(to), Count: purgePageCopies, Bytes: purgePageBytes},
		func(page []store.Stored, err error) {
			if p.over {
				through()
				return
			}
			if err != nil && !p.d.gone {
				through()
				p.b.tell(Event{Kind: StoreTrouble, Dest: p.d.name,
					Text: "a page of stored messages could not be read, to purge them: " + err.Error()})
				p.b.env.After(time.Second, func() { p.walk() })
				return
			}
			p.through, p.clean, p.from, p.to = through, true, from, to
			if len(page) > 0 && !p.d.gone {
				p.to = uint64(page[len(page)-1].Next()) // only an empty page tells that none follows
				p.page = p.d.host.copies(page)
			}
			p.walk()
		})
}

// turnPage leaves a page that was looked at.
func (p *purge) turnPage() {
	if p.clean {
		p.d.queue.Absent(p.from, p.to)
	}
	p.view.Read(p.to)
	p.through()
	p.through = nil
}

// finish ends the purge when all was looked at, and takes what cannot be read.
func (p *purge) finish() {
	if !p.d.gone {
		p.out.Dropped += p.d.host.dropDamage()
	}
	p.end(p.out.text(), nil)
}

// cutOff ends the purge as the broker stops.
func (p *purge) cutOff() {
	text := p.out.text() + "; cut off by the stop of the broker, and the rest is there"
	p.end(text, message.Errorf(message.Unavailable, "%s %s", p.d.name, text))
}

func (p *purge) end(text string, err error) {
	p.over = true
	drop(&p.b.purges, p)
	if p.through != nil {
		p.through()
		p.through, p.page = nil, nil
	}
	p.b.countDropped(p.d, message.Purged, p.out.Dropped)
	p.b.purged(p.d, p.by, p.out.Dropped, text, func() { p.done(p.out, err) })
}

// purged tells of a purge when what it dropped is durable.
func (b *Broker) purged(d *destination, by string, dropped int64, text string, done func()) {
	b.journal.whenDurable(func() {
		b.tell(Event{Kind: ByHand, Reason: message.Purged, Dest: d.name, By: by,
			Count: dropped, Text: text})
		done()
	})
}

// text tells what was dropped and what stays.
func (p *Purged) text() string {
	text := "purged: " + plural.Of(p.Dropped, "message") + " dropped"
	if p.InFlight+p.Transacted+p.InDoubt > 0 {
		text += fmt.Sprintf("; not purged: %d in flight, %d in transactions, %d in doubt", p.InFlight,
			p.Transacted, p.InDoubt)
	}
	return text
}
