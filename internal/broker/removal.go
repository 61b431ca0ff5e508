package broker

import (
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/store"
)

// drop takes x out of a list. Whoever walks the list meanwhile walks a clone.
func drop[T comparable](list *[]T, x T) {
	if i := slices.Index(*list, x); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
}

// removeDestination deletes a destination at a client's word, with all its messages. Unless forced,
// it fails while somebody consumes or has a durable subscription; of a topic always while a durable
// subscription of more than it is in use or keeps messages.
func (b *Broker) removeDestination(d *destination, force bool) error {
	return b.removeFor(d, force, message.DestinationRemoved, "a client removed it")
}

// removeTemp deletes a temporary destination whose owner is gone.
func (b *Broker) removeTemp(d *destination) error {
	return b.removeFor(d, true, message.NoConsumer, "its owner is gone")
}

// removeFor is removeDestination for a reason that its messages are counted under; why is told with
// their number, unless it is "".
func (b *Broker) removeFor(d *destination, force bool, r message.Reason, why string) error {
	err := b.take(d, force, r, why)
	if d.gone {
		if i := b.from(d.id); i < len(b.order) && b.order[i] == d {
			b.order = slices.Delete(b.order, i, i+1)
		}
		if d.name.Kind == message.Topic {
			drop(&b.topics, d)
		}
	}
	return err
}

// dropGone takes the destinations that are gone out of the lists, in one walk.
func (b *Broker) dropGone() {
	gone := func(d *destination) bool { return d.gone }
	b.order = slices.DeleteFunc(b.order, gone)
	b.topics = slices.DeleteFunc(b.topics, gone)
}

// take is removeFor, but for the lists of all destinations.
func (b *Broker) take(d *destination, force bool, r message.Reason, why string) error {
	if d.gone {
		return nil
	}
	if !force && (len(d.consumers) > 0 || len(d.nets) > 0 || len(d.shares) > 0) {
		return message.Errorf(message.IllegalState,
			"Destination still has an active subscription: %s", d.name)
	}
	if err := b.keptByBranch(d); err != nil {
		return err
	}
	if err := d.unsubscribeAll(); err != nil {
		return err
	}
	for _, c := range append([]*consumer(nil), d.consumers...) {
		c.detach(d)
		if slices.Contains(c.members, d.name) {
			b.orphans[d.name] = append(b.orphans[d.name], c)
		}
	}
	for _, n := range append([]*netSub(nil), d.nets...) {
		n.orphan(d)
	}
	if d.headed || d.stored > 0 || d.reserved > 0 {
		b.journal.add(store.Op{Kind: store.DropDestination, Dest: d.id})
		b.journal.keepNextDest()
	}
	b.spool.drop(d)
	d.refuseParked()
	b.forget(d)
	switch {
	case d.queue == nil:
	case why == "":
		b.countDropped(d, r, d.queue.Len())
	default:
		n := d.queue.Len()
		b.dropMany(d, r, "all it had, "+plural.Of(n, "message")+": "+why, n)
	}
	b.memory.Add(-d.usage.Used())
	d.gone = true
	b.unawait(d)
	if d.owner != nil {
		drop(&d.owner.temps, d)
	}
	if d.queue != nil {
		b.firstSeq = max(b.firstSeq, d.queue.NextSeq())
	}
	delete(b.dests, d.name)
	b.unsupported.joined(d.name, -1)
	b.networks.pageLoaded(d)
	b.endBrowses(d)
	b.adviseDestination(d, message.RemoveDestination)
	b.tell(Event{Kind: DestinationRemoved, Dest: d.name})
	return nil
}

// keepNextDest has the next start give no number again that was given: the highest may be gone with
// its header.
func (j *journal) keepNextDest() {
	j.add(putNextDest(j.b.nextDest))
}
