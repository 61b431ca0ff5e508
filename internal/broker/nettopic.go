package broker

import (
	"maps"
	"slices"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// publish offers one topic message.
func (n *netSub) publish(d *destination, m *message.Message) {
	n.publishOf(d, m, n.b.env.Mono())
}

// publishOf offers a topic message that came to the topic at arrived.
func (n *netSub) publishOf(d *destination, m *message.Message, arrived time.Duration) {
	v := n.verdict(d, m, m.RedeliveryCounter, arrived, n.b.env.Mono())
	if v.Outcome != message.Deliver {
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
	n.carries()
	n.refs++
	if !name.IsAdvisory() {
		if n.topicsOut == nil {
			n.topicsOut = map[message.Destination]int64{}
		}
		n.topicsOut[name]++
	}
	n.sub.Filter.Took(name, network.Replay{}, n.b.env.Mono()) // topics have no rate windows
	n.full = !n.sub.Sink.Deliver(network.Delivery{Consumer: n.sub.Info.ID,
		Ref:     message.CopyRef{Destination: name, Seq: n.refs},
		Message: m, Redelivery: m.RedeliveryCounter, Topic: true})
	n.b.tellDispatched(n.b.dests[name], n.sub.Info.ID, m)
}

// paged goes on when a page of the backlog was read.
func (n *netSub) paged() { n.drainBacklog() }

func (n *netSub) drainBacklog() {
	for n.backlog.ready() > 0 && n.open() {
		if it := n.backlog.pop(); !n.b.expiredInBacklog(it) {
			n.deliver(it.name, it.m)
		}
	}
}

// settleTopic takes the answer for a topic's message. It lives in the subscription alone: one that
// the peer may not have got is lost.
func (n *netSub) settleTopic(name message.Destination, how network.Settlement) {
	n.inFlight = max(0, n.inFlight-1)
	if n.topicsOut[name] == 0 {
		return
	}
	n.topicsOut[name]--
	switch how {
	case network.Acked:
		n.b.counts.Forwarded++
		if d := n.b.find(name); d != nil {
			d.counts.Forwarded++
		}
	case network.Redelivered:
		n.lose(name, 1)
	}
}

// loseTopics counts what the end of the subscription takes with it: topics' messages that the peer
// has not answered for, and those that waited for room.
func (n *netSub) loseTopics() {
	n.backlog.each(func(it backlogItem) {
		if it.dest != nil && !n.b.expiredInBacklog(it) {
			n.lose(it.name, 1)
		}
	})
	for _, name := range n.backlog.spilledNames() {
		n.lose(name, n.backlog.recordsOf[name].count)
	}
	n.backlog.release()
	for name, out := range n.topicsOut {
		n.lose(name, out)
	}
	for _, name := range slices.SortedFunc(maps.Keys(n.lost), message.Destination.Compare) {
		n.b.tell(Event{Kind: MessageDropped, Reason: message.BridgeDown, Dest: name,
			Count: n.lost[name], Text: "messages for " + string(n.sub.Peer) +
				", which it had not answered for when its link ended"})
	}
	n.topicsOut, n.lost = nil, nil
}

// lose counts messages that may not have reached the peer; the event is for all of the
// subscription.
func (n *netSub) lose(name message.Destination, count int64) {
	if count == 0 {
		return
	}
	if n.lost == nil {
		n.lost = map[message.Destination]int64{}
	}
	n.lost[name] += count
	n.b.counts.Reasons[message.BridgeDown] += count
	if d := n.b.find(name); d != nil {
		d.reasons[message.BridgeDown] += count
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
			return m == topic || n.rights.may(Read, topic)
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
	tell := func(name string, data message.Command, props ...message.Property) {
		if topic := advisoryTopic(name); n.hears(topic) {
			n.publishAdvisory(b.advisory(topic, data, props))
		}
	}
	b.existing(tell)
	if n.sub.Hopwire {
		b.absent(tell)
	}
}
