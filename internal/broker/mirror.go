package broker

import (
	"slices"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// mirrorPatience is how long a mirror of a peer's temporary destination may go unconfirmed: without
// a link to the peer, and over a new link until the peer has announced what it still has. A reply
// on its way outlives a short cut.
const mirrorPatience = time.Minute

// ownership is whose a temporary destination is: owner is a connection here; ownerPeer is a peer
// that has it, by way of the brokers in ownerPath, of which it is the last. With no owner it is a
// mirror; with both its owner came from there, or went there, and one of them does not know yet.
type ownership struct {
	owner     *Connection
	ownerPeer message.BrokerID
	ownerPath []message.BrokerID
	unsure    bool // a mirror: all links to ownerPeer ended since it announced the destination
}

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
		switch {
		case d.ownerPeer != e.Peer.ID:
		case d.owner != nil:
			d.vouch(nil) // over a new link it is announced again
		default:
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
			_ = b.removeFor(d, true, reason, "replies: "+why) // forced: nothing can forbid it
		}
	}
}

// mirror makes the mirror of a temporary destination that a peer announces, or notes that the peer
// has it, too. A peer that has it by way of the one who told of it first tells nothing new; any
// other knows where the owner is by now: it may have failed over from the one to the other.
func (b *Broker) mirror(name message.Destination, path []message.BrokerID) {
	d, peer := b.find(name), path[len(path)-1]
	switch {
	case d == nil:
		b.add(name, path)
		return
	case d.ownerPeer == peer && d.unsure:
		if o := b.networks.mirrored[peer]; o != nil {
			o.since = b.env.Mono() // the replay goes on
		}
	case d.ownerPeer != "" && d.ownerPeer != peer && !d.unsure &&
		message.Visited(path, d.ownerPeer):
		return
	}
	changed := d.owner == nil && !slices.Equal(d.ownerPath, path)
	if d.vouch(path); changed {
		b.adviseDestination(d, message.AddDestination)
	}
}

// demanded gives the temporary destination that a peer has a consumer of.
func (b *Broker) demanded(name message.Destination, peer message.BrokerID) *destination {
	if d := b.find(name); d != nil {
		return d
	}
	return b.add(name, []message.BrokerID{peer})
}

// vouch notes by way of whom a temporary destination's owner is reached, if it is not here.
func (d *destination) vouch(path []message.BrokerID) {
	d.ownerPath, d.ownerPeer, d.unsure = path, "", false
	if len(path) > 0 {
		d.ownerPeer = path[len(path)-1]
	}
}

// own has a connection own a temporary destination that it announces: one that nobody has, or its
// own by name, whoever had it.
func (c *Connection) own(d *destination) {
	its := d.name.TempOwner() == c.id
	switch {
	case d.owner == c, !its && (d.owner != nil || d.ownerPeer != ""):
		return
	case d.owner != nil:
		drop(&d.owner.temps, d)
	case d.unsure:
		d.vouch(nil)
	}
	d.owner = c
	c.temps = append(c.temps, d)
	if d.ownerPeer != "" { // whose peers think that it is there
		c.b.adviseDestination(d, message.AddDestination)
	}
}

// disown takes a temporary destination from a connection that ends. It is gone with it, unless a
// peer has it by now, to which its owner failed over.
func (c *Connection) disown(d *destination) {
	if d.ownerPeer == "" {
		_ = c.b.removeTemp(d) // forced: nothing can forbid it
		return
	}
	drop(&c.temps, d)
	d.owner = nil
	c.b.adviseDestination(d, message.AddDestination)
}

// endMirror acts on the word of the peer that had a temporary destination: it has it no more.
func (b *Broker) endMirror(d *destination) error {
	if d.owner != nil {
		d.vouch(nil)
		return nil
	}
	return b.removeTemp(d)
}
