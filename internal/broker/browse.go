package broker

import (
	"slices"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
)

// browse is a browser's walk through its queues. It holds no copies: what it saw may be consumed
// by others meanwhile. It goes on as far as the browser's prefetch lets it.
type browse struct {
	s     *consumer
	todo  []*destination // todo[0] is walked through
	named []*destination // that count it
	view  *queue.View
	next  []*queue.Copy // of todo[0], to be shown before the view goes on
	total int
	limit int   // 0 is none
	cut   int32 // whether there is more than limit: one of the values that the end mark has
	past  int   // copies looked at since limit was reached
	pulls int   // of a browser without prefetch: how many more it wants
	read  bool  // a page is on its way
	later bool  // the walk goes on by itself
	done  bool
}

// What the end mark of a browser says of its page, as its RedeliveryCounter.
const (
	cutPage  = 1 // there is more
	cutMaybe = 2 // nothing more was found in the next browsePast copies, and there are others
)

// browsePast is how many copies a walk looks at for one more than its limit.
const browsePast = 1000

// browseSlice is how many copies a walk looks at before it yields the loop.
const browseSlice = 1000

func (s *consumer) startBrowse() {
	b := &browse{s: s, limit: s.b.opt.Policies.Find(s.members[0]).MaxBrowsePageSize}
	s.browse = b
	for _, m := range s.members {
		if m.IsPattern() {
			for d := range s.b.named() {
				if d.queue != nil && s.matches(d.name) {
					b.todo = append(b.todo, d)
				}
			}
			continue
		}
		if m.IsAdvisory() || !s.conn.rights.mayName(m) {
			continue
		}
		if d := s.b.destination(m); d.queue != nil {
			b.todo, b.named = append(b.todo, d), append(b.named, d)
			d.browsers++
			d.stir()
		}
	}
	b.walk()
}

func (b *browse) stop() {
	b.done = true
	for _, d := range b.named {
		d.browsers--
		d.stir()
	}
	b.named = nil
}

// more lets a browser without prefetch have one more message. Behind the end there is only the end.
func (b *browse) more() {
	if b.done {
		b.end()
		return
	}
	b.pulls++
	b.walk()
}

func (b *browse) end() {
	b.done, b.todo, b.view, b.next = true, nil, nil, nil
	// Hopwire's client reads the counter, others look at no field of the mark.
	b.s.conn.out.Send(&message.MessageDispatch{Consumer: b.s.info.ID, RedeliveryCounter: b.cut})
}

// acked takes a browser's acknowledgement: it removes nothing and makes room.
func (b *browse) acked(a *message.MessageAck) {
	b.s.countAck(a)
	b.walk()
}

func (b *browse) room() bool {
	if b.s.topicMax == 0 {
		return b.pulls > 0
	}
	return b.s.inFlight < b.s.topicMax && b.s.linked()
}

// walk sends what there is and there is room for, page by page, and then the end mark.
func (b *browse) walk() {
	for n := 0; !b.done && !b.read; n++ {
		if n == browseSlice {
			b.goOn()
			return
		}
		if len(b.todo) == 0 {
			b.end()
			return
		}
		d := b.todo[0]
		if len(b.next) > 0 {
			c := b.next[0]
			full := b.limit > 0 && b.total >= b.limit
			if full && b.past == browsePast {
				b.cut = cutMaybe
				b.end()
				return
			}
			if full {
				b.past++
			}
			if !b.wants(c) {
				b.next = b.next[1:]
				continue
			}
			if full {
				b.cut = cutPage
				b.end()
				return
			}
			if !b.room() {
				return
			}
			b.next = b.next[1:]
			b.show(d, c)
			continue
		}
		if b.view == nil {
			b.view = d.queue.View()
		}
		c, from, to := b.view.Next()
		switch {
		case c != nil:
			b.next = append(b.next[:0], c)
		case to > 0:
			b.page(d, from, to)
			return
		default:
			b.todo, b.view = b.todo[1:], nil
		}
	}
}

// goOn lets the walk go on after what else waits on the loop.
func (b *browse) goOn() {
	if b.later {
		return
	}
	b.later = true
	b.s.b.env.Soon(func() {
		b.later = false
		b.walk()
	})
}

// wants reports whether the browser is to see the copy: not what was sent or acknowledged in a
// transaction that is not over, or whose commit is on its way.
func (b *browse) wants(c *queue.Copy) bool {
	_, committing := c.Owner.(*transaction)
	return !committing && c.Tx == nil && !c.Message.Expired(b.s.b.env.Wall()) &&
		b.s.verdict(c.Message, c.Told()).Outcome == message.Deliver
}

func (b *browse) show(d *destination, c *queue.Copy) {
	b.total++
	if b.s.topicMax == 0 {
		b.pulls--
	} else {
		b.s.inFlight++
	}
	b.s.conn.deliver(b.s, d.name, c.Message, c.Told())
}

// page reads the stored copies that come next.
func (b *browse) page(d *destination, from, to uint64) {
	b.read = true
	view := b.view
	b.s.b.spool.whenHandedOver(func() {
		d.host.readStored(from, to, func(copies []*queue.Copy, complete uint64) {
			if b.done || b.view != view {
				return
			}
			b.read = false
			if complete == from {
				complete = to // unreadable: the browser sees the rest
			}
			b.view.Read(complete)
			b.next = copies
			b.walk()
		})
	})
}

// forget takes a queue out of the walk that is removed.
func (b *browse) forget(d *destination) {
	i := slices.Index(b.todo, d)
	if i < 0 {
		return
	}
	b.todo = slices.Delete(b.todo, i, i+1)
	if i == 0 {
		b.view, b.next, b.read = nil, nil, false
	}
	b.walk()
}

// endBrowses takes a queue that is removed out of all walks: no page of it is answered any more.
func (b *Broker) endBrowses(d *destination) {
	for _, c := range b.connOrder {
		for _, s := range append([]*consumer(nil), c.order...) {
			if s.browse != nil {
				s.browse.forget(d)
			}
		}
	}
}
