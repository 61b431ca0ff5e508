package bridge

import (
	"maps"
	"slices"
	"strings"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// rampStart is how many copies a demand may have in flight when it opens; each answer allows one
// more, up to the prefetch, so that a reconnected bridge does not flood its peer.
const rampStart = 128

// Deliver implements network.Sink: the copy goes out at once.
func (d *demand) Deliver(x network.Delivery) (more bool) {
	b := d.bridge
	late := d.state.ending() && x.Topic // had waited for room
	if b.phase != running || d.state != active && !late {
		b.settle(d, x.Ref, network.Returned) // not at once: the broker is in the middle of it
		return false
	}
	m := b.outgoing(x)
	// By the destination: any client may call its message an advisory (JMSType).
	ask := !m.Destination.IsAdvisory() && (m.Persistent || b.opts.AlwaysSyncSend || !b.proven ||
		!d.taking && !d.dest.IsPattern())
	m.ResponseRequired = ask
	id := b.send(m)
	if !ask {
		if !m.Destination.IsAdvisory() { // they are the link's own, as those that come are
			b.count.forwarded++
		}
		b.settle(d, x.Ref, network.Acked)
		return b.link.Room()
	}
	if len(b.pending) == 0 {
		b.heard = b.home.env.Mono()
	}
	b.pending[id] = pending{demand: d, ref: x.Ref, msg: x.Message}
	d.inFlight++
	b.parked.sent(m.Destination)
	return d.inFlight < d.window && b.link.Room()
}

// roomy goes on with what waited for the peer to read.
func (b *Bridge) roomy() {
	if b.phase != running {
		return
	}
	for _, d := range slices.Clone(b.table.demands) {
		if d.state.subscribed() {
			b.home.local.Ready(d.id)
		}
	}
}

// Closed implements network.Closer: somebody at home closed the subscription.
func (d *demand) Closed(reason string) {
	b := d.bridge
	if b.phase == over {
		return
	}
	b.closing = d
	b.fail(message.Unavailable, "the home broker closed the subscription to %v: %s", d.dest,
		reason)
}

// outgoing is the message as it crosses: one broker more in its path, sent by the bridge's own
// producer, in no transaction.
func (b *Bridge) outgoing(x network.Delivery) *message.Message {
	m := x.Message.Clone()
	m.BrokerPath = message.AppendPath(m.BrokerPath, b.self.ID)
	m.Producer = b.producer()
	if !x.Ref.Destination.IsZero() {
		m.Destination = x.Ref.Destination
	}
	if m.OriginalTransaction.IsZero() {
		m.OriginalTransaction = m.Transaction
	}
	m.Transaction = message.TransactionID{}
	m.RedeliveryCounter = x.Redelivery
	m.BrokerOutTime = b.home.env.Wall()
	return m
}

// answered takes the peer's answer to a forward.
func (b *Bridge) answered(r *message.Response) {
	if b.denial.answered(b, r) {
		return
	}
	p, ok := b.pending[r.Correlation]
	if !ok {
		b.unasked(r)
		return
	}
	delete(b.pending, r.Correlation)
	b.count.answered++
	b.heard = b.home.env.Mono()
	d := p.demand
	d.inFlight--
	if r.Exception != nil {
		b.refused(p, r.Exception)
	} else {
		b.prove()
		d.taking = true
		b.count.forwarded++ // one that is refused comes again
		b.settle(d, p.ref, network.Acked)
		if d.window < int(b.opts.PrefetchSize) {
			d.window++
		}
		if dest := p.destination(); b.parked.taken(dest) {
			b.wakeAll(dest)
		}
	}
	if d.state.ending() && d.inFlight == 0 {
		b.drained(d)
	}
	if b.stopping && len(b.pending) == 0 {
		b.shutDown()
	}
}

func (p pending) destination() message.Destination {
	if p.ref.Destination.IsZero() {
		return p.msg.Destination
	}
	return p.ref.Destination
}

// refused takes an exception in answer to a forward. The message did not get there: it goes back
// and its destination waits; only replies to requesters that are gone can never cross.
func (b *Bridge) refused(p pending, x *message.Throwable) {
	dest := p.destination()
	if dest.IsTemp() && missing(x) {
		b.settle(p.demand, p.ref, network.Poisoned)
		b.parked.unprobe(dest)
		b.count.add(message.NoConsumer)
		b.event(Event{Kind: ForwardPoisoned, Destination: dest, Text: x.Error(),
			Reason: message.NoConsumer})
		if b.opts.AdvisoryForFailedForward {
			b.home.local.Advise(network.Event{Peer: b.peer, CreatedByDuplex: b.accepted,
				RemoteIP: b.hello.Remote, Failed: p.msg, Cause: x.Error()})
		}
		return
	}
	reason := unsendable(x)
	if reason != "" && b.setAside(p, reason, x) {
		return
	}
	if reason == "" {
		reason = reasonOf(x)
	}
	b.settle(p.demand, p.ref, network.Returned)
	b.count.add(reason)
	if b.parked.refuse(dest, reason, x.Error(), b.home.env.Mono()) {
		b.event(Event{Kind: ForwardRefused, Destination: dest, Reason: reason, Text: x.Error()})
	}
}

// reasonOf is what a peer's exception about a message means here.
func reasonOf(x *message.Throwable) message.Reason {
	if strings.Contains(x.Class, "ResourceAllocation") {
		return message.RemoteWindowFull
	}
	return message.RemoteDenied
}

func missing(x *message.Throwable) bool {
	return strings.Contains(x.Class, "InvalidDestination") ||
		strings.Contains(x.Class, "DestinationDoesNotExist") ||
		strings.Contains(x.Message, "deleted Destination")
}

// settle notes how a copy ends; the home broker is told of all of a turn's at once.
func (b *Bridge) settle(d *demand, ref message.CopyRef, how network.Settlement) {
	d.settles[how] = append(d.settles[how], ref)
	if !d.dirty {
		d.dirty = true
		b.dirty = append(b.dirty, d)
	}
	if !b.flushing {
		b.flushing = true
		b.home.env.Soon(b.flush)
	}
}

// flush tells the home broker of settlements; it asks the gates again, which answers may have
// opened.
func (b *Bridge) flush() {
	b.flushing = false
	dirty := b.dirty
	b.dirty = nil
	for _, d := range dirty {
		ended := d.settles // telling may bring deliveries, and with them more
		d.dirty, d.settles = false, settlements{}
		for how, refs := range ended {
			if len(refs) > 0 {
				b.home.local.Settle(d.id, refs, network.Settlement(how))
			}
		}
	}
}

// abandon ends what was not answered when the link ends. It reports whether copies are in doubt
// now.
func (b *Bridge) abandon() (doubted bool) {
	b.takeBack(func(p pending) network.Settlement {
		if b.hello.HopwireLevel > 0 && p.destination().IsQueue() {
			doubted = true
			return network.Doubted
		}
		return network.Redelivered
	})
	return doubted
}

// takeBack settles what was not answered, in the order it was sent.
func (b *Bridge) takeBack(how func(pending) network.Settlement) {
	for _, id := range slices.Sorted(maps.Keys(b.pending)) {
		p := b.pending[id]
		p.demand.inFlight--
		b.settle(p.demand, p.ref, how(p))
	}
	clear(b.pending)
}

// wakeAll makes the home broker look again at what waits for a destination.
func (b *Bridge) wakeAll(dest message.Destination) {
	for _, d := range b.table.demands {
		if d.state == active && policy.Matches(d.dest, dest) {
			b.home.local.Wake(d.id)
		}
	}
}
