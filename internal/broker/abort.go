package broker

import (
	"fmt"
	"slices"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/policy"
)

// abortGrace is how long a client has to close a consumer itself that it is told to close.
const abortGrace = time.Second

// checkLeast is the shortest time between two looks for slow consumers.
const checkLeast = 10 * time.Millisecond

// watchSlow looks, for each policy with a slowConsumerStrategy, for consumers that are to end.
func (b *Broker) watchSlow() {
	for _, e := range append([]*policy.Entry{b.opt.Policies.Default}, b.opt.Policies.Entries...) {
		if e != nil && e.SlowConsumer.Kind != policy.SlowConsumersStay {
			b.checkSlow(e)
		}
	}
}

func (b *Broker) checkSlow(e *policy.Entry) {
	b.env.After(max(checkLeast, e.SlowConsumer.CheckPeriod), func() {
		if b.stopping() {
			return
		}
		b.abortSlow(e)
		b.checkSlow(e)
	})
}

// abortSlow ends the consumers under a policy that are slow for too long or too often. Bridges'
// subscriptions are among them unless the policy ignores them.
func (b *Broker) abortSlow(e *policy.Entry) {
	for _, c := range slices.Clone(b.connOrder) {
		if c.network && e.SlowConsumer.IgnoreNetworkConsumers {
			continue
		}
		for _, s := range slices.Clone(c.order) {
			if s.ended || s.aborting || s.browse != nil ||
				s.info.NetworkSubscription && e.SlowConsumer.IgnoreNetworkConsumers {
				continue
			}
			if d, why := s.overdue(e); why != "" {
				s.abort(d, why)
			}
		}
	}
	if e.SlowConsumer.IgnoreNetworkConsumers {
		return
	}
	for _, n := range slices.Clone(b.networks.order) {
		if d, why := n.overdue(e); why != "" && b.networks.subs[n.sub.Info.ID] == n {
			why = fmt.Sprintf("%s (slowConsumerStrategy, ignoreNetworkConsumers=false)", why)
			b.countAborted(d, ofBridge+b.peerText(n.sub.Peer)+" is closed: "+why)
			n.close(why)
		}
	}
}

// countAborted counts a consumer that was ended and tells of it.
func (b *Broker) countAborted(d *destination, what string) {
	b.counts.Reasons[message.SlowConsumer]++
	d.reasons[message.SlowConsumer]++
	b.tell(Event{Kind: ConsumerAborted, Reason: message.SlowConsumer, Dest: d.name, Count: 1,
		Text: what})
}

// under gives a destination of the consumer that a policy is for, with whether more waits for it at
// one of those than it has room for; nil when there is none.
func (s *consumer) under(e *policy.Entry) (d *destination, more bool) {
	full := s.full()
	for _, cs := range s.slots {
		if cs.dest.policy != e {
			continue
		}
		if d = cs.dest; full && s.waits(cs) {
			return d, true
		}
	}
	for _, t := range s.topics {
		if t.policy == e && s.durable == nil {
			return t, s.backlog.len() > 0
		}
	}
	return d, false
}

// overdue tells why a consumer is to end, and at which destination; "" when it may stay.
func (s *consumer) overdue(e *policy.Entry) (d *destination, why string) {
	d, more := s.under(e)
	if d == nil {
		return nil, ""
	}
	o, now := &e.SlowConsumer, s.b.env.Mono()
	held := s.window.Len() + s.inFlight - s.window.Apart()
	if o.Kind == policy.AbortSlowAck {
		late := now - s.lastAck
		if o.MaxTimeSinceLastAck < 0 || late <= o.MaxTimeSinceLastAck ||
			held == 0 && o.IgnoreIdleConsumers {
			s.often = 0
			return d, ""
		}
		s.often++
		if o.Over(late-o.MaxTimeSinceLastAck, s.often) {
			return d, fmt.Sprintf("it has acknowledged nothing for %v and has %s",
				late.Round(time.Second/10), plural.Of(held, "message"))
		}
		return d, ""
	}
	if !s.slow || !more {
		s.often = 0
		if len(s.topics) == 0 {
			s.slow = false // what waited went to others
		}
		return d, ""
	}
	if slow := now - s.slowSince; o.Over(slow, s.often) {
		return d, fmt.Sprintf("it has no room for %v and has %s that it did not acknowledge",
			slow.Round(time.Second/10), plural.Of(held, "message"))
	}
	return d, ""
}

// abort has the client close the consumer, and does it a little later if the client does not; or
// ends its connection. What it has goes back to the queues, for others.
func (s *consumer) abort(d *destination, why string) {
	b, o := s.b, &d.policy.SlowConsumer
	what := who(s) + " at " + s.conn.remote.Address + " is aborted (slowConsumerStrategy): " + why
	b.countAborted(d, what)
	if o.AbortConnection {
		s.conn.close(what)
		return
	}
	s.aborting = true
	s.conn.out.Send(&message.ConsumerControl{Consumer: s.info.ID, Close: true})
	b.env.After(abortGrace, func() {
		if !b.stopping() {
			s.end(message.LastDeliveredUnknown)
		}
	})
}

// overdue tells why a bridge's subscription is to end, and at which destination; "" when it may
// stay.
func (n *netSub) overdue(e *policy.Entry) (d *destination, why string) {
	now, o := n.b.env.Mono(), &e.SlowConsumer
	more := n.backlog.len() > 0
	for _, cs := range n.slots {
		if cs.dest.policy == e {
			if d = cs.dest; n.waits(cs) {
				more = true
				break
			}
		}
	}
	for _, t := range n.topics {
		if t.policy == e {
			d = t
		}
	}
	if d == nil || n.inFlight == 0 {
		return d, ""
	}
	late := now - n.settled
	switch {
	case o.Kind == policy.AbortSlowAck && o.MaxTimeSinceLastAck >= 0:
		late -= o.MaxTimeSinceLastAck
	case o.Kind == policy.AbortSlow && more && !n.room():
	default:
		return d, ""
	}
	if o.MaxSlowDuration <= 0 || late < o.MaxSlowDuration {
		return d, ""
	}
	return d, fmt.Sprintf("the peer has answered nothing for %v and has %s",
		(now - n.settled).Round(time.Second/10), plural.Of(n.inFlight, "message"))
}
