package bridge

import (
	"strings"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// advisories is the consumer of advisories at the peer: what it got and has not acknowledged.
type advisories struct {
	id    message.ConsumerID // zero for a static bridge
	last  *message.Message
	count int32
	fresh bool // something came since the last tick

	opened int64 // how often it was opened anew
}

// took counts an advisory; at a percentage of the window it acknowledges all.
func (a *advisories) took(b *Bridge, m *message.Message) {
	a.last, a.fresh = m, true
	a.count++
	limit := int64(b.opts.advisoryPrefetch()) * int64(b.opts.AdvisoryAckPercentage)
	if int64(a.count)*100 > limit {
		a.ack(b)
	}
}

// idle acknowledges after a second without advisories, so that the peer does not take this
// consumer for a slow one.
func (a *advisories) idle(b *Bridge) {
	if a.count > 0 && !a.fresh {
		a.ack(b)
	}
	a.fresh = false
}

func (a *advisories) ack(b *Bridge) {
	b.send(&message.MessageAck{Consumer: a.id, Destination: a.last.Destination,
		Type: message.StandardAck, Last: a.last.ID, HasLast: true, Count: a.count})
	a.count, a.last = 0, nil
}

// dispatched takes what a consumer of ours at the peer got.
func (b *Bridge) dispatched(c *message.MessageDispatch) {
	b.prove()
	switch c.Consumer {
	case b.probe.id:
		b.probe.saw(b, c.Message)
	case b.advisories.id:
		b.advised(c.Message)
	default:
		b.useless(message.NotTarget)
	}
}

// advised acts on an advisory and counts it.
func (b *Bridge) advised(m *message.Message) {
	b.prove()
	b.count.advisory++
	if strings.HasPrefix(m.Destination.Name, consumerAdvisory) {
		b.demandSeen()
	}
	switch c := m.Data.(type) {
	case *message.ConsumerInfo:
		b.consumerSeen(c, b.selectorsIn(m))
	case *message.RemoveInfo:
		if id, ok := c.Object.(message.ConsumerID); ok {
			b.removed(b.table.remove(id))
		}
	case *message.RemoveSubscriptionInfo:
		b.removed(b.table.removeDurable(c.ClientID, c.SubscriptionName))
	case *message.DestinationInfo:
		b.temp(c)
	default:
		b.useless(message.NotTarget)
	}
	if b.phase != over {
		b.advisories.took(b, m)
	}
}

// consumerSeen takes a consumer of the peer, or what has changed behind a bridge's subscription
// there.
func (b *Bridge) consumerSeen(c *message.ConsumerInfo, s network.Selectors) {
	if b.hello.HopwireLevel > 0 && c.NetworkSubscription && len(b.table.where[c.ID]) > 0 {
		b.reselected(c, s)
		return
	}
	empty, why := b.table.add(c, s)
	if why != "" {
		b.count.pass(why)
	}
	b.demanded(empty, c.ID)
}

// selectorsIn reads from an advisory of a Hopwire peer what a subscription stands for.
func (b *Bridge) selectorsIn(m *message.Message) network.Selectors {
	if b.hello.HopwireLevel == 0 {
		return ""
	}
	v, _ := m.Property(network.SelectorsProperty)
	s, _ := v.(string)
	return network.Selectors(s)
}

// blindSpots names what a bridge that asks for the advisories of named destinations cannot see
// at a peer that matches them by name; "" for none.
func (b *Bridge) blindSpots() string {
	if b.hello.HopwireLevel > 0 || b.opts.StaticBridge || len(b.opts.DynamicallyIncluded) == 0 ||
		b.opts.DestinationFilter == ">" {
		return ""
	}
	return "consumers whose wildcard is wider than dynamicallyIncludedDestinations are not " +
		"seen at this peer; set destinationFilter=\">\" to see them"
}

// temp takes the peer's temporary destinations along, under the tests that consumers pass.
func (b *Bridge) temp(c *message.DestinationInfo) {
	ttl := b.opts.ConsumerTTL
	if c.Destination.IsTemp() && c.Op == message.AddDestination &&
		message.Visited(c.BrokerPath, b.self.ID) {
		// What the peer has by way of us it does not have itself, whatever it said before.
		_ = b.home.local.Temp(b.from(), &message.DestinationInfo{Destination: c.Destination,
			Op: message.RemoveDestination})
	}
	switch {
	case !c.Destination.IsTemp() || !b.opts.BridgeTempDestinations:
		b.count.pass(message.NotIncluded)
		return
	case ttl > -1 && len(c.BrokerPath) > 0 && len(c.BrokerPath) >= int(ttl):
		b.count.pass(message.TTLConsumer)
		return
	case message.Visited(c.BrokerPath, b.self.ID):
		b.count.pass(message.AlreadyVisited)
		return
	}
	info := *c
	info.Connection = b.local
	info.BrokerPath = message.AppendPath(c.BrokerPath, b.peer.ID)
	if err := b.home.local.Temp(b.from(), &info); err != nil {
		b.demandRefused(c.Destination, err)
	}
}

// useless counts a command that this link has no use for: ActiveMQ tells more than is asked for,
// and what is for a consumer of ours that is closed may be on its way.
func (b *Bridge) useless(r message.Reason) {
	b.count.pass(r)
	b.event(Event{Kind: Dropped, Reason: r})
}

func aboutAdvisories(text string) bool {
	return strings.Contains(text, message.AdvisoryPrefix)
}

// demandSeen: the signal works after all, and nobody shows it to a bridge that was not let in.
func (b *Bridge) demandSeen() {
	b.prove()
	if b.probe.timer != nil {
		b.probe.stop()
		b.closeProbe()
	}
	b.denial = denial{}
	if b.unseen != "" {
		b.unseen = ""
		b.onPhase()
	}
}

// degrade: demand cannot be seen; static destinations go on.
func (b *Bridge) degrade(why string) {
	if b.unseen == "" {
		b.unseen = why
		b.onPhase()
	}
}
