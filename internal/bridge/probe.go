package bridge

import (
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
)

const (
	// probeTimeout is how long the peer has to show that it publishes advisories.
	probeTimeout = 3 * time.Second
	// probeAgain is how often a degraded bridge tries once more.
	probeAgain = 30 * time.Second
)

// probe is a short-lived consumer of connection advisories: its replay must name our own
// connection, or the peer publishes no advisories that this bridge may read.
type probe struct {
	id    message.ConsumerID // zero: none was opened
	timer loop.Timer
	again time.Duration // when a degraded bridge probes next
}

// startProbe opens the probe. An ActiveMQ peer's half of a duplex link would never close it
// again, and to the initiator of one our half is no connection of its own; there is no probe in
// these cases.
func (b *Bridge) startProbe() {
	if !b.probes() {
		return
	}
	b.probe.id = message.ConsumerID{Connection: b.remote, Session: 1, Value: 2}
	b.send(&message.ConsumerInfo{ID: b.probe.id,
		Destination:  message.Destination{Kind: message.Topic, Name: connectionTopic},
		PrefetchSize: b.opts.advisoryPrefetch(), DispatchAsync: true})
	b.probe.again = b.home.env.Mono() + probeAgain
	b.probe.timer = b.home.env.After(probeTimeout, func() {
		b.probe.timer = nil
		b.closeProbe()
		b.degrade("the peer shows no advisories: advisorySupport may be off there, " +
			"or this bridge may not read them")
	})
}

func (b *Bridge) probes() bool {
	return !b.opts.StaticBridge && !b.accepted && (!b.duplex || b.hello.HopwireLevel > 0)
}

// letIn reports whether the peer let this bridge in, as far as that shows: a wrong password is
// answered only after everything was sent. The answer to the probe shows it at the latest; where
// there is no probe nothing may come for long.
func (b *Bridge) letIn() bool { return b.proven || !b.probes() }

// prove notes that the peer acted on our login.
func (b *Bridge) prove() {
	if b.proven {
		return
	}
	b.proven = true
	if b.phase == running {
		b.onPhase()
	}
}

// saw takes a replayed connection; ours proves the signal.
func (p *probe) saw(b *Bridge, m *message.Message) {
	c, ok := m.Data.(*message.ConnectionInfo)
	if ok && c.ID == b.remote && !b.denial.on {
		b.demandSeen()
	}
}

func (b *Bridge) closeProbe() {
	b.send(&message.RemoveInfo{Object: b.probe.id, LastDelivered: message.LastDeliveredUnset})
}

// stop ends the wait of a link that ends.
func (p *probe) stop() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// ping is the keep-alive round trip behind the return of copies to an ActiveMQ peer. Times are
// those of sending; what came back proves that the peer handled all that was sent before.
type ping struct {
	wanted time.Duration // a copy waits for one that is sent then or later
	sent   time.Duration
	proven time.Duration // the last one that came back
	out    bool
}

// send asks for a round trip while one is wanted that was not sent yet; one at a time.
func (p *ping) send(b *Bridge) {
	if p.out || p.wanted <= p.sent {
		return
	}
	p.out, p.sent = true, b.home.env.Mono()
	c := &message.KeepAliveInfo{}
	c.ResponseRequired = true
	b.link.Send(c)
}

func (p *ping) back() {
	if p.out {
		p.out, p.proven = false, p.sent
	}
}
