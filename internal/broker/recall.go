package broker

import (
	"time"

	"hopwire/internal/broker/audit"
	"hopwire/internal/broker/queue"
	"hopwire/internal/broker/recall"
	"hopwire/internal/message"
)

// keptPercent is how much of a memory limit, a topic's or the broker's, may be taken by what topics
// keep for those who come later. Nobody acknowledges it, so sends must never wait for it alone.
const keptPercent = 50

// trimEvery is the shortest time between two looks at the age of what a topic keeps (ActiveMQ's
// timed policy looks once a second).
const trimEvery = time.Second

// retention is what a topic keeps for consumers that come later.
type retention struct {
	memory   *recall.Memory // nil while it has none
	trimming bool           // a timer looks at the age of what memory has
}

// remember has a topic keep a message as its policy says, and gives it as it is published: without
// the mark of a retained one.
func (b *Broker) remember(d *destination, m *message.Message) *message.Message {
	marked := recall.Marked(m)
	if d.memory == nil && !marked {
		return m
	}
	if d.memory == nil {
		d.memory = recall.New(d.policy.Recovery)
	}
	before := d.memory.Bytes()
	if marked {
		plain, image, err := recall.Unmark(m)
		if err != nil {
			b.dropMany(d, message.NotEncodable, m.ID.String()+" is not retained: "+err.Error(), 1)
			return m
		}
		m = plain
		d.memory.Retain(image)
	}
	d.memory.Add(m, b.env.Mono())
	b.charge(d, before)
	b.boundKept(d)
	b.trimLater(d)
	return m
}

// unmarked gives a message as durable subscriptions keep it.
func unmarked(m *message.Message) *message.Message {
	if recall.Marked(m) {
		if plain, _, err := recall.Unmark(m); err == nil {
			return plain
		}
	}
	return m
}

// charge takes into account what a topic keeps more or less than before.
func (b *Broker) charge(d *destination, before int64) {
	change := d.memory.Bytes() - before
	d.usage.Add(change)
	b.keptBytes += change
	if change < 0 {
		b.relieve()
	}
}

// boundKept has topics keep less when it is too much: the topic for its own limit, and those that
// keep most for the broker's.
func (b *Broker) boundKept(d *destination) {
	if limit := d.usage.Limit(); limit > 0 {
		b.shed(d, d.memory.Bytes()-limit/100*keptPercent)
	}
	limit := b.memory.Limit() / 100 * keptPercent
	if limit == 0 || b.keptBytes <= limit {
		return
	}
	// Some more, so that the topics are not compared for each message.
	for goal := limit - limit/16; b.keptBytes > goal; {
		most := d
		for _, o := range b.order {
			if o.memory != nil && o.memory.Bytes() > most.memory.Bytes() {
				most = o
			}
		}
		b.shed(most, min(b.keptBytes-goal, max(most.memory.Bytes()/2, 1)))
	}
}

// shed has a topic give up so many bytes of what it keeps, the oldest first.
func (b *Broker) shed(d *destination, bytes int64) {
	if bytes <= 0 {
		return
	}
	before := d.memory.Bytes()
	n := d.memory.Shed(bytes)
	b.charge(d, before)
	b.dropMany(d, message.MemoryFull, "the oldest of what the topic keeps for retroactive"+
		" consumers: that takes half of the memory limit; raise memoryLimit or memoryUsage, or"+
		" keep less", n)
}

// trimLater looks at the age of what a topic keeps when the oldest is too old.
func (b *Broker) trimLater(d *destination) {
	at, ok := d.memory.Due()
	if !ok || d.trimming {
		return
	}
	d.trimming = true
	b.env.After(max(trimEvery, at-b.env.Mono()), func() {
		d.trimming = false
		if !d.gone && !b.stopping() {
			b.trim(d)
			b.trimLater(d)
		}
	})
}

func (b *Broker) trim(d *destination) {
	before := d.memory.Bytes()
	d.memory.Trim(b.env.Mono())
	b.charge(d, before)
}

// forget ends what a topic keeps: it goes.
func (b *Broker) forget(d *destination) {
	if d.memory != nil {
		b.keptBytes -= d.memory.Bytes()
	}
}

// recallable makes a topic forget what nobody should get any more, and reports whether it has
// something for whoever asks.
func (b *Broker) recallable(d *destination, asks bool) bool {
	if d.memory == nil || !asks {
		return false
	}
	b.trim(d)
	before := d.memory.Bytes()
	if n := d.memory.Expire(b.env.Wall()); n > 0 {
		b.counts.Reasons[message.Expired] += n
		d.reasons[message.Expired] += n
	}
	b.charge(d, before)
	return d.memory.Bytes() > 0
}

// eachKept gives what a topic keeps, the retained message first.
func (d *destination) eachKept(give func(*message.Message)) {
	if m := d.memory.Image(); m != nil {
		give(m)
	}
	for m := range d.memory.Kept() {
		give(m)
	}
}

// recall gives a retroactive consumer what a topic keeps, before anything new.
func (s *consumer) recall(d *destination) {
	asks := s.durable == nil && (s.info.Retroactive || d.policy.AlwaysRetroactive)
	if !s.b.recallable(d, asks) {
		return
	}
	if s.recalled == nil {
		s.recalled = audit.NewProducers(d.policy.MaxProducersToAudit, d.policy.MaxAuditDepth)
	}
	d.eachKept(func(m *message.Message) {
		s.recalled.Seen(m.ID, false)
		s.publish(d, d.name, m)
	})
}

// recall gives the bridge of a retroactive consumer what a topic keeps.
func (n *netSub) recall(d *destination) {
	asks := !n.sub.Renewed && (n.sub.Info.Retroactive || d.policy.AlwaysRetroactive)
	if n.b.recallable(d, asks) {
		// It arrived before there was any subscription of the bridge.
		d.eachKept(func(m *message.Message) { n.publishOf(d, m, 0) })
	}
}

// recall puts what the topics keep into a durable subscription whose consumer is back: what is
// retained always, and the rest of a topic that the subscription has nothing of. While it inherits,
// it counts as one that has something of each.
func (s *subscription) recall(inherits bool) {
	b, has := s.b, s.has()
	for _, h := range s.shares {
		d := h.log
		if !b.recallable(d, true) {
			continue
		}
		empty := !inherits && !has(d)
		image := d.memory.Image()
		d.eachKept(func(m *message.Message) {
			if why := s.refuses(m); why != "" {
				s.dest.reasons[why]++
				return
			}
			if m != image && !empty {
				return
			}
			m, seq := b.anew(m)
			s.dest.reserveTo(b, seq)
			b.kept(s.dest, b.addLogged(s.dest, m, seq), nil, nil)
		})
	}
}

// has tells which topics the subscription has messages of that wait; of those in the store alone it
// is not known, so that all count.
func (s *subscription) has() func(*destination) bool {
	q := s.dest.queue
	if q.StoredOnly() > 0 {
		return func(*destination) bool { return true }
	}
	found := map[message.Destination]bool{}
	q.EachPending(func(c *queue.Copy) bool {
		found[c.Message.Destination] = true
		return true
	})
	return func(d *destination) bool { return found[d.name] }
}

// offerAgain gives a topic's message that was here before to those who came since: a peer has it
// kept for retroactive consumers. It reports whether there are any.
func (b *Broker) offerAgain(d *destination, a *arrival) bool {
	if !d.name.IsTopic() || a.m.Expired(b.env.Wall()) {
		return false
	}
	last, offered := d.receipts.LastIn(a.key), false
	for _, s := range d.consumers {
		if s.durable != nil || s.since < last || s.recalled != nil && s.recalled.Has(a.m.ID) {
			continue
		}
		if !offered {
			b.stamp(a)
		}
		offered = true
		s.publish(d, d.name, a.m)
	}
	for _, n := range d.nets {
		if n.since < last {
			continue
		}
		if !offered {
			b.stamp(a)
		}
		offered = true
		n.publishOf(d, a.m, 0)
	}
	if offered {
		d.receipts.LetIn(a.key, b.sequence)
	}
	return offered
}
