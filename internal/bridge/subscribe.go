package bridge

import (
	"slices"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// demanded opens what a remote consumer's arrival brought, keeps what was about to go, and lets go
// of what it is not behind any more.
func (b *Bridge) demanded(empty []*demand, id message.ConsumerID) {
	for _, d := range slices.Clone(b.table.where[id]) {
		switch d.state {
		case draining:
			b.revive(d)
		case waiting, suppressed, refused: // another bridge may not serve this consumer
			b.open(d)
		default:
			d.wider = d.wider || d.overlaps
			b.widened(d)
		}
	}
	b.tellChanges()
	if len(empty) > 0 {
		b.removed(empty)
		return
	}
	b.straighten(b.table.where[id])
}

// straighten gives demand whose path is no longer true a new subscription. The old one drains.
func (b *Bridge) straighten(demands []*demand) {
	if b.phase != running || b.stopping {
		return
	}
	for _, d := range slices.Clone(demands) {
		if !d.strayed() || d.durable {
			continue
		}
		b.table.renew(d)
		b.openWaiting()
		b.drain(d)
	}
}

// removed lets go of demand that nobody is behind any more.
func (b *Bridge) removed(empty []*demand) {
	for _, d := range empty {
		b.drain(d)
	}
	b.straighten(b.table.touched)
	b.tellChanges()
	b.home.reconsider()
}

// openWaiting subscribes to all demand that waits, in the order it came.
func (b *Bridge) openWaiting() {
	if b.phase != running || b.stopping {
		return
	}
	for _, d := range slices.Clone(b.table.demands) {
		b.open(d)
	}
}

// open subscribes to one demand that has no subscription, when it may.
func (b *Bridge) open(d *demand) {
	if b.phase != running || b.stopping {
		return
	}
	now := b.home.env.Mono()
	switch d.state {
	case waiting, suppressed:
		b.subscribe(d, now)
	case refused:
		if now >= d.refusal.again {
			b.subscribe(d, now)
		}
	}
}

func (b *Bridge) subscribe(d *demand, now time.Duration) {
	d.bridge = b
	if b.home.redundant(d, b.opts.priority(len(d.nearest().path)+1), false) {
		if d.state != suppressed {
			b.count.pass(message.DuplicateMessage) // of a subscription; no message is one
		}
		d.state, d.refusal = suppressed, refusal{}
		return
	}
	b.consumers++
	d.id = message.ConsumerID{Connection: b.local, Session: 1, Value: b.consumers}
	info := b.table.subscription(d, d.id, b.localClientID(), b.self.Name)
	d.priority, d.path, d.told = info.Priority, d.nearest().path, d.selectors()
	d.window = min(rampStart, int(b.opts.PrefetchSize))
	d.state, d.since, d.wider = active, now, false
	s := &network.Subscription{Info: info, Peer: b.peer.ID, Filter: d, Sink: d, Selectors: d.told,
		Hopwire: b.hello.HopwireLevel > 0, Ahead: b.opts.ForwardAhead, Renewed: d.renewed, As: b.as}
	if b.accepted {
		s.Patience = b.opts.InDoubtTimeout
	}
	err := b.home.local.Subscribe(s)
	if err != nil {
		b.notTaken(d, err, now)
		return
	}
	d.refusal, d.recalls = refusal{}, false
	b.event(Event{Kind: DemandOpened, Destination: d.dest})
	if d.durable && !d.warned {
		d.warned = true
		b.count.add(message.NotDurable)
		b.event(Event{Kind: DemandNotDurable, Destination: d.dest, Reason: message.NotDurable,
			Text: "a durable subscriber at the peer gets what is published here while the bridge " +
				"is linked, and nothing of what is published meanwhile"})
	}
	b.home.outdone(d)
}

// demandRefused tells that the home broker refused what the peer asks for, and gives the reason.
func (b *Bridge) demandRefused(d message.Destination, err error) message.Reason {
	why := message.DemandRefused
	if message.KindOf(err) == message.Denied {
		why = message.AccessDenied
	}
	b.count.add(why)
	b.event(Event{Kind: DemandRefused, Destination: d, Reason: why, Text: err.Error()})
	return why
}

// drain ends demand that nobody wants any more, a subscription after the answers that are
// outstanding.
func (b *Bridge) drain(d *demand) {
	switch d.state {
	case waiting, suppressed, refused:
		b.forget(d)
	case active:
		b.windUp(d, draining)
	}
}

// windUp ends a subscription after the answers that are outstanding; how is draining or yielding.
func (b *Bridge) windUp(d *demand, how demandState) {
	d.state = how
	if d.inFlight == 0 {
		b.drained(d)
		return
	}
	if b.hello.HopwireLevel > 0 {
		return // it answers each copy, or the link ends and it can be asked
	}
	d.drainTimer = b.home.env.After(drainTimeout, func() {
		d.drainTimer = nil
		b.giveUp(d)
	})
}

// giveUp takes back the copies a draining demand waits for.
func (b *Bridge) giveUp(d *demand) {
	var ids []int32
	for id, p := range b.pending {
		if p.demand == d {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		p := b.pending[id]
		delete(b.pending, id)
		b.parked.unprobe(p.destination())
		b.settle(d, p.ref, network.Redelivered)
		b.count.add(message.RemoteSilent)
	}
	d.inFlight = 0
	b.flush()
	b.finish(d)
}

// drained ends a subscription without outstanding answers. Telling the home broker of the last
// ones may bring copies of a topic that waited for room: they go out, too.
func (b *Bridge) drained(d *demand) {
	for d.dirty {
		b.flush()
	}
	if d.inFlight == 0 && d.state.ending() {
		b.finish(d)
	}
}

func (b *Bridge) finish(d *demand) {
	yields := d.state == yielding
	b.unsubscribe(d)
	if yields && len(d.members) > 0 {
		d.state = suppressed
		return
	}
	b.forget(d)
}

// revive keeps a draining demand: a new consumer is there.
func (b *Bridge) revive(d *demand) {
	d.stopDrain()
	d.state = active
	b.home.local.Wake(d.id)
}

func (d *demand) stopDrain() {
	if d.drainTimer != nil {
		d.drainTimer.Stop()
		d.drainTimer = nil
	}
}

func (b *Bridge) unsubscribe(d *demand) {
	d.stopDrain()
	d.state = gone
	b.home.local.Unsubscribe(d.id)
	b.home.reconsider()
}

// forget takes a demand out of the table.
func (b *Bridge) forget(d *demand) {
	d.state = gone
	b.table.drop(d)
	b.event(Event{Kind: DemandClosed, Destination: d.dest})
}
