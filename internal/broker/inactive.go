package broker

import (
	"slices"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// A sweep looks at so many destinations, and removes so many, before it lets others have the loop.
const (
	sweepLooks    = 2000
	sweepRemovals = 100
)

// linkSettles is how long a peer's link must be there before what it forwarded over the link before
// that is taken for answered: it asks about copies in doubt first, and a link whose answers do not
// get through ends earlier.
const linkSettles = time.Minute

// idleness is what is known of a destination that nobody uses.
type idleness struct {
	idle      bool          // it was when a sweep looked last, and nobody came since
	idleSince time.Duration // when a sweep found it so first; monotonic
	idleCount int64         // of messages that had come until then
	commits   int           // under way, with so many messages for it that are in no queue
	// Whose receipts the store has of it, if forwarded is set; while none are in memory.
	forwarders []message.BrokerID
	forwarded  bool
}

// stir notes that somebody comes to the destination, or leaves it.
func (d *destination) stir() { d.idle = false }

// watchInactive removes, now and then, the destinations that nobody used for so long as their
// policy says (gcInactiveDestinations). Between the sweeps it costs nothing.
func (b *Broker) watchInactive() {
	every := b.opt.PurgePeriod
	if every <= 0 || !b.mayPurge() {
		return
	}
	b.env.After(every, func() {
		if b.stopping() {
			return
		}
		if !b.sweeping {
			b.sweeping = true
			(&sweep{b: b}).goOn()
		}
		b.watchInactive()
	})
}

// mayPurge reports whether the policy of any destination says that it goes when nobody uses it.
func (b *Broker) mayPurge() bool {
	p := b.opt.Policies
	if p.Default != nil && p.Default.GC.Inactive {
		return true
	}
	for _, e := range p.Entries {
		if e.GC.Inactive {
			return true
		}
	}
	return false
}

// sweep is one look at all destinations, in slices.
type sweep struct {
	b       *Broker
	next    store.DestID // goes on at this one
	removed int
}

// goOn looks at some destinations and goes on when others had the loop.
func (s *sweep) goOn() {
	b := s.b
	if b.stopping() {
		b.sweeping = false
		return
	}
	away := b.absentPeers()
	var idle []*destination
	looked := 0
	for i := b.from(s.next); i < len(b.order); i++ {
		d := b.order[i]
		if looked++; looked > sweepLooks || len(idle) == sweepRemovals {
			b.purgeInactive(idle)
			b.env.Soon(s.goOn)
			return
		}
		s.next = d.id + 1
		if !s.over(d) {
			continue
		}
		if d.mayBeKnown() && len(away) > 0 {
			if !b.hasReceipts(d) && !d.forwarded {
				s.next = d.id // looks at this one again
				b.purgeInactive(idle)
				s.askWhose(d)
				return
			}
			if slices.ContainsFunc(away, d.hasOf) {
				continue // it may ask whether a copy arrived
			}
		}
		s.removed++
		idle = append(idle, d)
	}
	b.purgeInactive(idle)
	b.sweeping = false
}

// askWhose asks the store whose receipts it has of a destination, and goes on. They are not brought
// into memory, where they would stay: nobody uses it.
func (s *sweep) askWhose(d *destination) {
	b := s.b
	goOn := func() { b.env.Soon(s.goOn) }
	b.journal.whenHandedOver(func() {
		b.journal.storage.Receipts(d.id, func(read store.Receipts, err error) {
			switch {
			case err != nil: // the next sweep asks again
				s.next = d.id + 1
				b.trouble(d, message.ReceiptsUnread, 1, "it could not be read whose receipts an unused"+
					" destination has: "+err.Error())
			case read.Damage != nil:
				if !b.haveReceipts(d, goOn) {
					return
				}
			default:
				d.forwarders, d.forwarded = nil, true
				for i := range read.Peers {
					if p := &read.Peers[i]; len(p.List) > 0 {
						d.forwarders = append(d.forwarders, p.Peer)
					}
				}
			}
			goOn()
		})
	})
}

// hasOf reports whether there are receipts of a peer.
func (d *destination) hasOf(peer message.BrokerID) bool {
	if d.receipts != nil {
		return d.receipts.Of(peer)
	}
	return slices.Contains(d.forwarders, peer)
}

// over marks a destination that nobody uses, and reports whether its time is over.
func (s *sweep) over(d *destination) bool {
	b := s.b
	if !d.policy.GC.Inactive || d.policy.GC.After <= 0 || b.uses(d) {
		d.idle = false
		return false
	}
	came, now := d.counts.Enqueued+d.counts.Duplicates+d.counts.Expired, b.env.Mono()
	if !d.idle || d.idleCount != came {
		d.idle, d.idleSince, d.idleCount = true, now, came
		return false
	}
	after := d.policy.GC.After
	if b.tookForwards(d) { // of a link that may be dead, which is found to be so meanwhile
		after = max(after, linkSettles)
	}
	most := b.opt.PurgeMost
	return now-d.idleSince >= after && (most <= 0 || s.removed < most) &&
		!b.keeps(d)
}

// uses reports whether anybody uses a destination, or it has anything that would be lost with it.
func (b *Broker) uses(d *destination) bool {
	if d.gone || d.sub != nil || d.name.IsTemp() || d.producerCount+d.browsers+len(d.pulls) > 0 ||
		len(d.shares) > 0 || d.stored > 0 || d.memory != nil && d.memory.Bytes() > 0 {
		return true
	}
	if d.queue != nil && d.queue.Len()+d.queue.Withheld() > 0 {
		return true
	}
	if !d.policy.GC.WithNetworkConsumers {
		return len(d.consumers)+len(d.nets) > 0
	}
	return slices.ContainsFunc(d.consumers,
		func(c *consumer) bool { return !c.info.NetworkSubscription })
}

// keeps reports whether something goes on at a destination that it must be there for.
func (b *Broker) keeps(d *destination) bool {
	return d.parkedCount() > 0 || d.commits > 0 || d.loads.reading || b.keptByBranch(d) != nil ||
		slices.ContainsFunc(b.purges, func(p *purge) bool { return p.d == d })
}

// mayBeKnown reports whether there may be receipts of what peers forwarded to the destination.
func (d *destination) mayBeKnown() bool {
	return d.receipts != nil || d.reserved > 0 || d.headed && d.queue == nil
}

// tookForwards reports whether a peer forwarded to the destination since the broker's start.
func (b *Broker) tookForwards(d *destination) bool {
	if d.receipts == nil {
		return false
	}
	for peer := range b.networks.seen {
		if peer != nobody && d.receipts.Of(peer) {
			return true
		}
	}
	return false
}

// absentPeers gives the peers that may ask whether something that they forwarded arrived: those
// that are not linked, or not for long enough to have asked.
func (b *Broker) absentPeers() (away []message.BrokerID) {
	for peer := range b.networks.seen {
		if peer != nobody && !b.unseen(peer) && !b.linked(peer) {
			away = append(away, peer)
		}
	}
	return away
}

// linked reports whether a peer has a link here over which it forwards, and so asks, that is not
// new.
func (b *Broker) linked(peer message.BrokerID) bool {
	settled := b.env.Mono() - linkSettles
	for _, e := range b.networks.peers {
		if e.Duplex && e.Peer.ID == peer && b.networks.came[e.Link] <= settled {
			return true
		}
	}
	return slices.ContainsFunc(b.connOrder, func(c *Connection) bool {
		return c.network && c.peer.ID == peer && c.since <= settled
	})
}

// purgeInactive removes destinations that nobody uses. Bridges' subscriptions, if they do not
// count, are of them again when they are made again.
func (b *Broker) purgeInactive(list []*destination) {
	for _, d := range list {
		if b.take(d, true, message.Inactive, "") != nil {
			continue
		}
		b.counts.Reasons[message.Inactive]++
		b.tell(Event{Kind: DestinationInactive, Reason: message.Inactive, Dest: d.name, Count: 1,
			Text: "nobody used it for " + (b.env.Mono() - d.idleSince).Round(time.Second).String() +
				" (gcInactiveDestinations)"})
	}
	if len(list) > 0 {
		b.dropGone()
	}
}
