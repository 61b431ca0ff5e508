package bridge

import (
	"strings"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// Limits of replay.
const (
	// replayStep is what the delay of a second return doubles from when the policy has none.
	replayStep = 20 * time.Millisecond
	// replayCap bounds the delay that grows with each return to the same broker.
	replayCap = time.Minute
	// returnWait is how long a copy stays before it goes back to an ActiveMQ broker, whose late
	// acknowledgement of the first crossing would delete it there; returnCap is how long when
	// the peer does not answer a keep-alive meanwhile.
	returnWait = time.Second
	returnCap  = 5 * time.Second
	returnStep = 250 * time.Millisecond
)

// frameMargin is what a message's ids, path and headers may add to its size on the wire, beyond
// the allowance that Message.Size has already.
const frameMargin = 1024

// Gate implements network.Filter: the demand as a whole.
func (d *demand) Gate(now time.Duration) message.Verdict {
	switch {
	case d.state != active && (!d.state.ending() || !d.dest.IsTopic()): // what waited goes out
		return gateClosed(message.NoDemand)
	case d.bridge.stopping:
		return gateClosed(message.BridgeDown)
	case d.window < int(d.bridge.opts.PrefetchSize) && d.inFlight >= d.window:
		return gateClosed(message.RemoteWindowFull)
	case !d.bridge.link.Room():
		return gateClosed(message.LinkFull)
	}
	if d.dest.IsPattern() {
		return message.Verdict{} // each destination has its own rate
	}
	return d.rates.verdict(d.dest, now)
}

func gateClosed(r message.Reason) message.Verdict {
	return message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent, Reason: r}
}

// Took implements network.Filter.
func (d *demand) Took(dest message.Destination, p network.Replay, now time.Duration) {
	d.taken++
	d.rates.take(dest, p, now)
}

// Verdict implements network.Filter: one copy.
func (d *demand) Verdict(c network.Candidate) message.Verdict {
	m := c.Message()
	dest, topic := d.concrete(m), d.dest.IsTopic()
	if topic && d.state != active {
		return never(message.NoDemand, true)
	}
	if dest.IsAdvisory() {
		if r := d.refusesAdvisory(m); r != "" {
			return never(r, true)
		}
	}
	if d.dest.IsPattern() {
		if r := d.bridge.table.rules.refuses(dest); r != "" {
			return never(r, topic)
		}
	}
	// What never changes comes first, so that a refusal that does is worth its wake.
	visits := message.Visits(m.BrokerPath, d.bridge.table.peer)
	if r := d.routeless(c, m, topic, visits); r != "" {
		return never(r, topic)
	}
	if r := d.unwanted(c, m, topic); r != "" {
		return never(r, topic)
	}
	if limit := d.bridge.hello.MaxFrame; limit > 0 && m.Size()+frameMargin > limit {
		return never(message.FrameTooBig, topic)
	}
	if r := d.bridge.unfit[m.ID]; r != "" {
		return never(r, topic)
	}
	if visits > 0 {
		if v := d.replay(c, visits); v.Outcome != message.Deliver {
			return v
		}
	}
	if v := d.bridge.parked.verdict(dest, c.Now()); v.Outcome != message.Deliver {
		if topic {
			return never(v.Reason, true)
		}
		return v
	}
	if topic {
		return message.Verdict{} // a topic's copies cannot wait for a rate window
	}
	return d.rates.verdict(dest, c.Now())
}

// concrete is the destination of a copy: a message may be shared by copies in several, so only a
// pattern has to ask it.
func (d *demand) concrete(m *message.Message) message.Destination {
	if d.dest.IsPattern() {
		return m.Destination
	}
	return d.dest
}

// never is a refusal that nothing about the copy will change.
func never(r message.Reason, topic bool) message.Verdict {
	if topic {
		return message.Verdict{Outcome: message.Discard, Reason: r}
	}
	return message.Refused(r)
}

// routeless is the loop and TTL test: the reason why the message can never cross, "" when it can.
// Replay, of queues only, ignores the TTL, which counts brokers and not visits: a message that
// replay sent to and fro has been at no more brokers than one that came straight.
func (d *demand) routeless(c network.Candidate, m *message.Message, topic bool,
	visits int) message.Reason {
	switch ttl := d.bridge.opts.MessageTTL; {
	case visits > 0 && topic:
		return message.AlreadyVisited
	case visits > 0 && (!c.Replay().WhenNoConsumers || !d.consumed()):
		return message.ReplayOff
	case visits == 0 && ttl > -1 && message.Brokers(m.BrokerPath) >= int(ttl):
		return message.TTLMessage
	}
	return ""
}

// replay decides whether a message may go back now to a broker where it was.
func (d *demand) replay(c network.Candidate, visits int) message.Verdict {
	p := c.Replay()
	if c.LocalConsumer(p.SelectorAware) {
		return message.Verdict{Outcome: message.Refuse, Wake: message.WakeConsumers,
			Reason: message.LocalConsumerPresent}
	}
	now, at := c.Now(), c.Arrived()+replayDelay(p.Delay, visits)
	if d.bridge.hello.HopwireLevel == 0 {
		at = max(at, d.bridge.returns(c.Arrived(), now))
	}
	if now < at {
		return message.RefusedUntil(message.ReplayDelay, at)
	}
	return message.Verdict{}
}

// replayDelay is the policy's delay, doubled with each return after the first.
func replayDelay(delay time.Duration, visits int) time.Duration {
	if visits <= 1 {
		return delay
	}
	grown := max(delay, replayStep)
	for range visits - 1 {
		if grown *= 2; grown >= replayCap {
			grown = replayCap
			break
		}
	}
	return max(delay, grown)
}

// returns tells when a copy may go back to an ActiveMQ peer, or when to ask again: the peer must
// certainly have handled our answer to the copy's first crossing. That is a second after it came,
// when a keep-alive that was sent later than that came back. Asking makes the link send those.
func (b *Bridge) returns(arrived, now time.Duration) time.Duration {
	ready := arrived + returnWait
	b.ping.wanted = max(b.ping.wanted, ready)
	if now < ready || b.ping.proven >= ready {
		return ready
	}
	return min(arrived+returnCap, now+returnStep)
}

// unwanted reports why no remote consumer behind the demand takes the message.
func (d *demand) unwanted(c network.Candidate, m *message.Message, topic bool) message.Reason {
	if !topic || !d.overlaps {
		return d.wants.Refuse(m, topic || c.Replay().WhenNoConsumers)
	}
	t := d.bridge.table
	dest := d.concrete(m)
	if t.owner(d, dest, c.Arrived()) != d {
		return message.DuplicateMessage
	}
	for _, x := range t.demands {
		if policy.Matches(x.dest, dest) && x.wants.Take(m) {
			return ""
		}
	}
	return message.SelectorNoMatch
}

// interpreted reports whether bridges act on the advisories of a topic themselves.
func interpreted(d message.Destination) bool {
	return strings.HasPrefix(d.Name, consumerAdvisory) ||
		strings.HasPrefix(d.Name, message.AdvisoryPrefix+"VirtualDestination.Consumer.") ||
		d.Name == tempQueueTopic || d.Name == tempTopicTopic
}

// refusesAdvisory tests the command inside an advisory: what bridges interpret goes to a peer's
// bridge only, and consumers obey TTL and path.
func (d *demand) refusesAdvisory(m *message.Message) message.Reason {
	if interpreted(d.concrete(m)) && d.onlyNetworks() {
		return message.NotTarget
	}
	c, ok := m.Data.(*message.ConsumerInfo)
	if !ok {
		return ""
	}
	if ttl := d.bridge.opts.ConsumerTTL; ttl > -1 && len(c.BrokerPath) >= int(ttl) &&
		len(c.BrokerPath) > 0 {
		return message.TTLConsumer
	}
	if message.Visited(c.BrokerPath, d.bridge.table.peer) {
		return message.AlreadyVisited
	}
	return ""
}
