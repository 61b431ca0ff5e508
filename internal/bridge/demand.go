package bridge

import (
	"slices"
	"time"

	"hopwire/internal/bridge/wants"
	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// member is one remote consumer in a demand.
type member struct {
	id       message.ConsumerID
	static   bool
	network  bool     // itself a bridge's subscription
	texts    []string // of its selectors; "" alone takes anything
	clientID string   // of a durable
	durable  string   // subscription name
	path     []message.BrokerID
	origins  []message.ConsumerID // it and the consumers behind it, for duplicate suppression
}

// demandState is where a demand stands in its life:
//
//	waiting, suppressed, refused  when the link runs, when what suppressed it may have gone, or
//	          when it is time to ask again: active, suppressed or refused; without members: gone
//	active    without members: draining; when another bridge serves all of them: yielding
//	draining  when a consumer comes: active; after the last answer, or drainTimeout: gone
//	yielding  after the last answer, or drainTimeout: suppressed, or gone when it has no members
type demandState uint8

const (
	waiting    demandState = iota // not subscribed yet: doubts first
	suppressed                    // another bridge serves its consumers
	refused                       // the home broker took no subscription
	active                        // subscribed
	draining                      // nobody wants it; answers are outstanding
	yielding                      // another bridge serves its consumers; answers are outstanding
	gone
)

var demandStates = [...]string{waiting: "waiting", suppressed: "suppressed", refused: "refused",
	active: "active", draining: "draining", yielding: "suppressed", gone: "gone"}

// subscribed reports whether the home broker has a subscription for the demand.
func (s demandState) subscribed() bool { return s == active || s.ending() }

// ending reports whether the subscription ends when the last answer is there.
func (s demandState) ending() bool { return s == draining || s == yielding }

// refusal is that the home broker took no subscription.
type refusal struct {
	text   string
	reason message.Reason
	again  time.Duration // when it is asked next
	wait   time.Duration // before that
}

// settlements are copies by how they ended.
type settlements [network.Poisoned + 1][]message.CopyRef

// demand is one network subscription at home and the remote consumers behind it.
type demand struct {
	bridge   *Bridge
	id       message.ConsumerID
	dest     message.Destination
	alone    bool // never folded
	durable  bool
	state    demandState
	since    time.Duration // when it was subscribed
	members  []member
	wants    wants.Set // the members' selectors
	wider    bool      // members came that take more than those before
	priority int8
	path     []message.BrokerID // that the subscription has, without the peer
	inFlight int
	window   int               // copies it may have in flight now; grows to the prefetch
	overlaps bool              // a topic demand that shares names with another
	recalls  bool              // a retroactive consumer is behind it, and it was never subscribed
	renewed  bool              // it takes the place of one that was subscribed
	told     network.Selectors // what Hopwire peers of the home broker know of the members
	telling  bool              // they are about to be told anew

	settles    settlements // ended, not yet told the home broker
	dirty      bool
	warned     bool    // that a durable subscriber gets nothing while the link is down
	refusal    refusal // of the last that asked, in state refused
	taking     bool    // the peer took a message: from then on not each has to ask for an answer
	rates      rates
	taken      int64
	drainTimer loop.Timer
}

// consumed reports whether a consumer is behind the demand, and not the static list alone: between
// two brokers that list a queue of each other, replay would send what nobody consumes to and fro.
func (d *demand) consumed() bool {
	return slices.ContainsFunc(d.members, func(m member) bool { return !m.static })
}

func (d *demand) isStatic() bool { return len(d.members) > 0 && d.members[0].static }

// onlyNetworks reports whether all members are bridges' subscriptions.
func (d *demand) onlyNetworks() bool {
	for i := range d.members {
		if !d.members[i].network {
			return false
		}
	}
	return true
}

// nearest is the member with the shortest path, the first of equals.
func (d *demand) nearest() *member {
	best := &d.members[0]
	for i := range d.members {
		if len(d.members[i].path) < len(best.path) {
			best = &d.members[i]
		}
	}
	return best
}

// strayed reports whether the path of an open subscription is no longer that of a nearest member.
// A path nobody has is how demand outlives its consumers: in a ring, brokers that fold would hold
// each other's subscriptions for ever.
func (d *demand) strayed() bool {
	if d.state != active || len(d.members) == 0 {
		return false
	}
	if len(d.nearest().path) < len(d.path) {
		return true
	}
	for i := range d.members {
		if slices.Equal(d.members[i].path, d.path) {
			return false
		}
	}
	return true
}

var (
	_ network.Filter   = (*demand)(nil)
	_ network.Remarker = (*demand)(nil)
)
