package broker

import (
	"slices"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// networks is what the broker knows of its bridges: their subscriptions and the peers.
type networks struct {
	subs  map[message.ConsumerID]*netSub
	order []*netSub
	peers []network.Event                        // bridges that are up, in the order of their start
	names map[message.BrokerID]string            // of peers that were linked, some
	came  map[message.ConnectionID]time.Duration // when each of peers came, by its link; monotonic
	cand  candidate
	// loads are what waits for a page of a queue, or for its end.
	loads map[*destination][]func()
	pages map[message.BrokerID]pageEnd // of the rounds about copies in doubt
	// patience is how long copies may be in doubt toward peers that told it, as the store has it.
	patience map[message.BrokerID]time.Duration
	seen     map[message.BrokerID]*sighting

	mirrored map[message.BrokerID]*mirrored
	actors   map[actor]*rights
}

func (n *networks) init() {
	n.subs = map[message.ConsumerID]*netSub{}
	n.loads = map[*destination][]func(){}
	n.pages = map[message.BrokerID]pageEnd{}
	n.actors = map[actor]*rights{}
	n.names = map[message.BrokerID]string{}
	n.came = map[message.ConnectionID]time.Duration{}
	n.seen = map[message.BrokerID]*sighting{}
	n.mirrored = map[message.BrokerID]*mirrored{}
	n.patience = map[message.BrokerID]time.Duration{}
}

// whenLoaded runs f when the next page of the queue was read, or one could not be read for a
// second, or the queue is gone: f looks at where things stand.
func (n *networks) whenLoaded(d *destination, f func()) { n.loads[d] = append(n.loads[d], f) }

func (n *networks) pageLoaded(d *destination) {
	waiting := n.loads[d]
	delete(n.loads, d)
	for _, f := range waiting {
		f()
	}
}

// netSub is a network subscription: a consumer whose deliveries cross a bridge.
type netSub struct {
	b       *Broker
	sub     *network.Subscription
	members []message.Destination
	rights  *rights

	slots    []consumerSlot
	topics   []*destination
	since    int64 // the broker sequence when it began
	inFlight int
	full     bool          // the sink wants no more before Settle or Ready
	settled  time.Duration // when something was answered last, or it got something; monotonic
	backlog  backlog

	refs      uint64                        // number of topic messages delivered
	topicsOut map[message.Destination]int64 // of topics, delivered and not settled
	lost      map[message.Destination]int64 // of topics, that may not have reached the peer
}

// Subscribe implements bridge.Local.
func (b *Broker) Subscribe(s *network.Subscription) error {
	if b.networks.subs[s.Info.ID] != nil {
		return message.Errorf(message.Duplicate, "network subscription %s exists", s.Info.ID)
	}
	b.keepPatience(s)
	n := &netSub{b: b, sub: s, members: s.Info.Destination.Split(),
		since: b.sequence, rights: b.networks.rightsOf(b, s.As, s.Peer)}
	n.backlog = backlog{b: b, of: n}
	if err := n.mayBe(); err != nil {
		return err
	}
	n.backlog.mayBeSpooled(n.members)
	b.networks.subs[s.Info.ID] = n
	b.networks.order = append(b.networks.order, n)
	for _, m := range n.members {
		switch {
		case m.IsAdvisory():
		case m.IsPattern():
			for _, d := range append([]*destination(nil), b.order...) {
				if d.sub == nil && policy.Matches(m, d.name) && n.rights.mayGet(d.name) {
					n.attach(d)
				}
			}
		case m.IsTemp():
			n.attach(b.demanded(m, s.Peer))
		default:
			n.attach(b.destination(m))
		}
	}
	b.adviseSubscription(s.Info, false, s.Selectors.Properties()...)
	if s.Info.Destination.IsAdvisory() {
		n.replay()
	}
	return nil
}

// mayBe refuses a subscription to what cannot be, or that the bridge's user has no right to.
func (n *netSub) mayBe() error {
	if err := testName(n.sub.Info.Destination); err != nil {
		return err
	}
	if err := n.rights.allow(reading, n.sub.Info.Destination); err != nil {
		return err
	}
	for _, m := range n.members {
		switch {
		case m.IsPattern():
		case m.IsTemp() && n.b.dests[m] == nil:
			if err := n.rights.allow(making, m); err != nil {
				return err
			}
		default:
			if err := n.rights.allowMaking(m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *netSub) attach(d *destination) {
	if slices.Contains(d.nets, n) {
		return
	}
	d.stir()
	d.nets = append(d.nets, n)
	if d.queue == nil {
		n.topics = append(n.topics, d)
		n.recall(d)
		return
	}
	slot := d.queue.Attach(n, queue.Traits{Priority: int(n.sub.Info.Priority), Network: true,
		Ahead: n.sub.Ahead, Mark: n.sub.Hopwire})
	n.slots = append(n.slots, consumerSlot{d, slot})
}

// joinNetworks attaches the network subscriptions that name a new destination or a pattern of it.
func (b *Broker) joinNetworks(d *destination) {
	for _, n := range b.networks.order {
		for _, m := range n.members {
			if m == d.name || m.IsPattern() && !m.IsAdvisory() && policy.Matches(m, d.name) &&
				n.rights.mayGet(d.name) {
				n.attach(d)
				break
			}
		}
	}
}

// Wake implements bridge.Local.
func (b *Broker) Wake(id message.ConsumerID) {
	if n := b.networks.subs[id]; n != nil {
		for _, cs := range n.slots {
			cs.slot.Rescan()
		}
		n.drainBacklog()
	}
}

// SetSelectors implements bridge.Local.
func (b *Broker) SetSelectors(id message.ConsumerID, s network.Selectors) {
	n := b.networks.subs[id]
	if n == nil || n.sub.Selectors == s {
		return
	}
	n.sub.Selectors = s
	if !n.sub.Info.Destination.IsAdvisory() && b.heard() {
		b.adviseTo(true, "Consumer."+family(n.sub.Info.Destination), n.sub.Info,
			append(b.consumerCountProperty(n.sub.Info.Destination), s.Properties()...))
	}
}

// Unsubscribe implements bridge.Local.
func (b *Broker) Unsubscribe(id message.ConsumerID) {
	n := b.networks.subs[id]
	if n == nil {
		return
	}
	delete(b.networks.subs, id)
	drop(&b.networks.order, n)
	for _, cs := range n.slots {
		n.giveBack(cs.dest)
		cs.dest.stir()
		drop(&cs.dest.nets, n)
		cs.dest.queue.Detach(cs.slot)
	}
	for _, d := range n.topics {
		d.stir()
		drop(&d.nets, n)
	}
	n.loseTopics()
	n.slots, n.topics = nil, nil
	b.adviseSubscription(n.sub.Info, true)
	b.relieve()
}

// giveBack puts what was delivered and not settled back in place.
func (n *netSub) giveBack(d *destination) {
	for _, c := range d.queue.OutOf(n) {
		d.queue.Place(c)
	}
}

// orphan takes the subscription off a destination that goes.
func (n *netSub) orphan(d *destination) {
	drop(&d.nets, n)
	for _, cs := range n.slots {
		if cs.dest == d {
			n.inFlight -= len(d.queue.OutOf(n))
			d.queue.Detach(cs.slot)
			drop(&n.slots, cs)
			break
		}
	}
	drop(&n.topics, d)
}

func (n *netSub) room() bool { return n.inFlight < int(n.sub.Info.PrefetchSize) && !n.full }

// open reports whether a topic message may go out now.
func (n *netSub) open() bool {
	return n.room() && n.sub.Filter.Gate(n.b.env.Mono()).Outcome == message.Deliver
}

// Gate implements queue.Subscriber.
func (n *netSub) Gate(now time.Duration) message.Verdict {
	v := n.sub.Filter.Gate(now)
	if v.Outcome == message.Deliver && !n.room() {
		return message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
			Reason: message.RemoteWindowFull}
	}
	return v
}

// Verdict implements queue.Subscriber.
func (n *netSub) Verdict(c *queue.Copy, now time.Duration) message.Verdict {
	var d *destination
	if len(n.slots) == 1 {
		d = n.slots[0].dest
	} else {
		d = n.b.dests[c.Message.Destination]
	}
	return n.verdict(d, c.Message, c.Told(), c.Arrived, now)
}

func (n *netSub) verdict(d *destination, m *message.Message, redelivery int32,
	arrived, now time.Duration) message.Verdict {
	k := &n.b.networks.cand
	*k = candidate{b: n.b, dest: d, m: m, redelivery: redelivery, arrived: arrived, now: now}
	return n.sub.Filter.Verdict(k)
}

// Take implements queue.Subscriber.
func (n *netSub) Take(c *queue.Copy) bool {
	n.b.see(n.sub.Peer)
	c.Owner = n
	d := n.b.dests[c.Message.Destination]
	n.carries()
	d.counts.Dispatched++
	n.b.counts.Dispatched++
	n.sub.Filter.Took(d.name, replayOf(d.policy), n.b.env.Mono())
	n.b.forwarded(d, c, n.sub.Peer)
	n.full = !n.sub.Sink.Deliver(network.Delivery{Consumer: n.sub.Info.ID,
		Ref:     message.CopyRef{Destination: d.name, Seq: c.Seq},
		Message: c.Message, Redelivery: c.Told()})
	n.b.tellDispatched(d, n.sub.Info.ID, c.Message)
	return n.room()
}

// carries counts what is on its way.
func (n *netSub) carries() {
	if n.inFlight++; n.inFlight == 1 {
		n.settled = n.b.beat
	}
}

// Claim implements queue.Claimer.
func (n *netSub) Claim(*queue.Copy) bool {
	n.carries()
	return n.room()
}

// Unclaim implements queue.Claimer.
func (n *netSub) Unclaim(*queue.Copy) { n.inFlight-- }

// Settle implements bridge.Local.
func (b *Broker) Settle(id message.ConsumerID, refs []message.CopyRef, how network.Settlement) {
	n := b.networks.subs[id]
	if n == nil {
		return
	}
	n.settled = b.beat
	for _, r := range refs {
		if r.Destination.IsTopic() {
			n.settleTopic(r.Destination, how)
			continue
		}
		d := b.dests[r.Destination]
		if d == nil {
			continue
		}
		if c := d.queue.Outstanding(r.Seq); c != nil && c.Owner == any(n) {
			n.inFlight--
			b.settleForward(n, d, c, how)
		}
	}
	n.ready()
	b.relieve()
}

// Ready implements bridge.Local.
func (b *Broker) Ready(id message.ConsumerID) {
	if n := b.networks.subs[id]; n != nil {
		n.ready()
	}
}

// ready offers more, if there is room.
func (n *netSub) ready() {
	if n.full = false; !n.room() {
		return
	}
	for _, cs := range n.slots {
		cs.slot.Ready()
	}
	n.drainBacklog()
}

func (b *Broker) settleForward(n *netSub, d *destination, c *queue.Copy, how network.Settlement) {
	switch how {
	case network.Acked:
		d.counts.Forwarded++
		b.counts.Forwarded++
		b.consume(d, c)
	case network.Returned:
		b.forwarded(d, c, "")
		d.queue.Place(c)
	case network.Redelivered:
		b.forwarded(d, c, "")
		c.Redelivery++
		b.journal.redelivered(d, c)
		d.queue.Place(c)
	case network.Doubted:
		c.Owner, c.Doubts = nil, append(c.Doubts, n.sub.Peer)
	case network.Poisoned:
		defer b.journal.leave(b.journal.enter())
		b.deadLetter(d, c.Message, "java.lang.Throwable: the peer "+
			string(n.sub.Peer)+" cannot take the message", false)
		b.settle(d, c)
	}
}

// forwarded remembers where the copy of an arrival went; to "" forgets it. After a restart the
// receipts are read for it first.
func (b *Broker) forwarded(d *destination, c *queue.Copy, to message.BrokerID) {
	m := c.Message
	if len(m.BrokerPath) == 0 {
		return
	}
	remember := func() {
		d.receipts.Forwarded(message.Receipt(m, d.name, m.BrokerPath, b.opt.ID), to,
			message.Visits(m.BrokerPath, to))
	}
	if d.receipts != nil {
		remember()
		return
	}
	d.loads.went = append(d.loads.went, remember)
	if !d.loads.reading {
		b.haveReceipts(d, func() {})
	}
}

// Temp implements bridge.Local.
func (b *Broker) Temp(from network.Peer, info *message.DestinationInfo) error {
	peer := from.ID
	if !info.Destination.IsTemp() {
		return message.Errorf(message.InvalidDestination, "%s is no temporary destination",
			info.Destination)
	}
	d := b.find(info.Destination)
	if info.Op == message.RemoveDestination {
		if d != nil && d.ownerPeer == peer {
			return b.endMirror(d)
		}
		b.giveUpReplies(info.Destination)
		return nil
	}
	if d == nil || d.ownerPeer != peer {
		if err := b.networks.rightsOf(b, from.As, peer).allow(making, info.Destination); err != nil {
			return err
		}
	}
	path := info.BrokerPath
	if len(path) == 0 || path[len(path)-1] != peer {
		path = message.AppendPath(path, peer)
	}
	b.mirror(info.Destination, path)
	return nil
}

// Advise implements bridge.Local.
func (b *Broker) Advise(e network.Event) {
	if e.Failed != nil {
		b.advise("NetworkBridge.ForwardFailure", e.Failed, message.Property{Name: "cause",
			Value: e.Cause})
		return
	}
	kept := b.networks.peers[:0]
	for _, p := range b.networks.peers {
		if p.Link != e.Link {
			kept = append(kept, p)
		}
	}
	delete(b.networks.came, e.Link)
	if e.Started {
		if len(b.networks.names) >= namesMost {
			clear(b.networks.names)
		}
		b.networks.names[e.Peer.ID] = e.Peer.Name
		kept = append(kept, e)
		b.networks.came[e.Link] = b.env.Mono()
	}
	b.networks.peers = kept
	b.mirrorLink(e)
	info := e.Peer
	b.advise("NetworkBridge", &info, bridgeProps(e)...)
}

// announces reports whether a bridge tells of the peer's temporary destinations.
func announces(e network.Event) bool { return e.Temps }

func bridgeProps(e network.Event) []message.Property {
	return []message.Property{
		{Name: "started", Value: e.Started},
		{Name: "createdByDuplex", Value: e.CreatedByDuplex},
		{Name: "remoteIp", Value: e.RemoteIP},
	}
}

// existing tells a new listener of the bridges and their subscriptions.
func (n *networks) existing(b *Broker, tell func(string, message.Command, ...message.Property)) {
	for _, s := range n.order {
		b.tellSubscription(tell, s.sub.Info, s.sub.Selectors.Properties()...)
	}
	for _, p := range n.peers {
		info := p.Peer
		tell("NetworkBridge", &info, bridgeProps(p)...)
	}
}

// close ends the subscription from this side.
func (n *netSub) close(why string) {
	if c, ok := n.sub.Sink.(network.Closer); ok {
		c.Closed(why)
	}
	n.b.Unsubscribe(n.sub.Info.ID)
}
