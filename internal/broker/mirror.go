package broker

import (
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// mirrorPatience is how long a mirror of a peer's temporary destination may go unconfirmed: without
// a link to the peer, and over a new link until the peer has announced what it still has. A reply
// on its way outlives a short cut.
const mirrorPatience = time.Minute

// mirrored is a peer whose temporary destinations are mirrored here. A peer tells of their removal
// only while a link is up, and over a new link of those only that are there: what it does not
// announce again is gone.
type mirrored struct {
	links int           // bridges that are up and tell of them
	since time.Duration // when links changed, or one of those in question was announced again
	timed bool
}

// mirrorLink notes that a link to a peer, which tells of temporary destinations, is up or down.
func (b *Broker) mirrorLink(e network.Event) {
	if !e.Temps {
		return
	}
	o := b.networks.mirrored[e.Peer.ID]
	if o == nil {
		o = &mirrored{}
		b.networks.mirrored[e.Peer.ID] = o
	}
	o.since = b.env.Mono()
	if e.Started {
		o.links++
		return
	}
	if o.links--; o.links > 0 {
		return
	}
	for _, d := range b.order {
		if d.ownerPeer == e.Peer.ID {
			d.unsure = true
			b.timeMirrors(e.Peer.ID, o)
		}
	}
	b.forgetMirrored(e.Peer.ID, o)
}

// forgetMirrored forgets a peer that nothing is to be known of.
func (b *Broker) forgetMirrored(peer message.BrokerID, o *mirrored) {
	if o.links == 0 && !o.timed {
		delete(b.networks.mirrored, peer)
	}
}

func (b *Broker) timeMirrors(peer message.BrokerID, o *mirrored) {
	if !o.timed {
		o.timed = true
		b.env.After(o.since+mirrorPatience-b.env.Mono(), func() {
			o.timed = false
			b.sweepMirrors(peer, o)
			b.forgetMirrored(peer, o)
		})
	}
}

// sweepMirrors removes the mirrors of a peer that nobody is sure of: that it has not announced
// again, and that no other bridge leads to.
func (b *Broker) sweepMirrors(peer message.BrokerID, o *mirrored) {
	if b.env.Mono() < o.since+mirrorPatience {
		b.timeMirrors(peer, o)
		return
	}
	reason, why := message.BridgeDown, "no bridge leads to its broker"
	if o.links > 0 {
		reason, why = message.NoConsumer, "its broker has it no more"
	}
	o.since = b.env.Mono()
	for _, d := range append([]*destination(nil), b.order...) {
		switch {
		case d.ownerPeer != peer || !d.unsure:
		case len(d.nets) > 0 || len(d.consumers) > 0:
			b.timeMirrors(peer, o)
		default:
			if d.queue != nil {
				b.dropMany(d, reason, "replies: "+why, d.queue.Len())
			}
			_ = b.removeDestination(d, true) // forced: nothing can forbid it
		}
	}
}

// mirror makes the mirror of a peer's temporary destination, or notes that the peer still has it.
func (b *Broker) mirror(name message.Destination, peer message.BrokerID) *destination {
	d := b.find(name)
	if d == nil {
		return b.add(name, peer)
	}
	if d.ownerPeer == peer && d.unsure {
		d.unsure = false
		if o := b.networks.mirrored[peer]; o != nil {
			o.since = b.env.Mono() // the replay goes on
		}
	}
	return d
}
