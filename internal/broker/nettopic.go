package broker

import (
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// publish offers one topic message.
func (n *netSub) publish(d *destination, m *message.Message) {
	now := n.b.env.Mono()
	if v := n.verdict(d, m, m.RedeliveryCounter, now, now); v.Outcome != message.Deliver {
		d.reasons[v.Reason]++
		return
	}
	if n.backlog.len() == 0 && n.open() {
		n.deliver(d.name, m)
		return
	}
	n.backlog.push(backlogItem{d, d.name, m})
}

func (n *netSub) deliver(name message.Destination, m *message.Message) {
	n.inFlight++
	n.refs++
	n.sub.Filter.Took(name, network.Replay{}, n.b.env.Mono()) // topics have no rate windows
	n.full = !n.sub.Sink.Deliver(network.Delivery{Consumer: n.sub.Info.ID,
		Ref:     message.CopyRef{Destination: name, Seq: n.refs},
		Message: m, Redelivery: m.RedeliveryCounter, Topic: true})
}

func (n *netSub) drainBacklog() {
	for n.backlog.len() > 0 && n.open() {
		it := n.backlog.pop()
		if !it.m.Expired(n.b.env.Wall()) {
			n.deliver(it.name, it.m)
		}
	}
}

// advisory gives the network subscriptions that listen to an advisory topic: a duplex peer's.
func (n *networks) advisory(topic message.Destination) []*netSub {
	var out []*netSub
	for _, s := range n.order {
		if s.sub.Info.Destination.IsAdvisory() && s.hears(topic) {
			out = append(out, s)
		}
	}
	return out
}

func (n *netSub) hears(topic message.Destination) bool {
	for _, m := range n.members {
		if hearsOf(m, topic, n.sub.Hopwire) {
			return true
		}
	}
	return false
}

func (n *netSub) publishAdvisory(m *message.Message) {
	if n.backlog.len() == 0 && n.open() {
		n.deliver(m.Destination, m)
		return
	}
	n.backlog.push(backlogItem{nil, m.Destination, m})
	if n.backlog.advisories <= advisoryBacklogBytes {
		return
	}
	n.backlog.release()
	n.b.env.Soon(func() {
		if n.b.networks.subs[n.sub.Info.ID] == n {
			n.close("the peer takes no advisories: too many wait for it; it may begin anew")
		}
	})
}

// replay tells a duplex peer of what is there already.
func (n *netSub) replay() {
	b := n.b
	if !b.opt.Advisories {
		return
	}
	b.existing(func(name string, data message.Command, props ...message.Property) {
		if topic := advisoryTopic(name); n.hears(topic) {
			n.publishAdvisory(b.advisory(topic, data, props))
		}
	})
}
