package broker

import (
	"slices"
	"strings"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// advisories are who listens to advisory topics. These topics are no destinations: nothing is kept
// of them, and an advisory nobody listens to is not made.
type advisories struct {
	exact map[string][]*consumer // by topic name
	wild  []wildAdvisory
	peers []*consumer // bridges of Hopwire brokers
}

type wildAdvisory struct {
	pattern message.Destination
	sub     *consumer
}

func (a *advisories) add(m message.Destination, s *consumer) {
	if s.ofHopwire() {
		a.peers = appendOnce(a.peers, s)
	}
	if m.IsPattern() {
		a.wild = append(a.wild, wildAdvisory{m, s})
		return
	}
	a.exact[m.Name] = append(a.exact[m.Name], s)
}

func (a *advisories) drop(s *consumer) {
	for _, m := range s.members {
		if !m.IsAdvisory() || m.IsPattern() {
			continue
		}
		if left := without(a.exact[m.Name], s); len(left) > 0 {
			a.exact[m.Name] = left
		} else {
			delete(a.exact, m.Name)
		}
	}
	kept := a.wild[:0]
	for _, w := range a.wild {
		if w.sub != s {
			kept = append(kept, w)
		}
	}
	clear(a.wild[len(kept):])
	a.wild = kept
	a.peers = without(a.peers, s)
}

// listeners gives who listens to an advisory topic, each once.
func (b *Broker) listeners(topic message.Destination) []*consumer {
	a := &b.advisories
	out := a.exact[topic.Name]
	for _, w := range a.wild {
		if policy.Matches(w.pattern, topic) && w.sub.conn.rights.may(Read, topic) {
			out = appendOnce(slices.Clip(out), w.sub)
		}
	}
	if wideDemand(topic) {
		for _, s := range a.peers {
			if s.hears(topic) {
				out = appendOnce(slices.Clip(out), s)
			}
		}
	}
	return out
}

// wideDemand reports whether an advisory topic tells of a consumer of a pattern. A Hopwire peer is
// told of it when any name is in both its filter and the pattern; ActiveMQ compares the topic's
// name, so that a consumer of "wc.>" is not seen by a bridge that includes "wc.foo".
func wideDemand(topic message.Destination) bool {
	return topic.IsPattern() && strings.HasPrefix(topic.Name, message.AdvisoryPrefix+"Consumer.")
}

// hearsOf reports whether one name that a subscription listens to is told of an advisory.
func hearsOf(m, topic message.Destination, hopwire bool) bool {
	return m == topic || m.IsPattern() && policy.Matches(m, topic) ||
		hopwire && wideDemand(topic) && policy.Overlap(m, topic)
}

func advisoryTopic(name string) message.Destination {
	return message.Destination{Kind: message.Topic, Name: message.AdvisoryPrefix + name}
}

// heard reports whether anybody listens to any advisory: when not, no topic is even named.
func (b *Broker) heard() bool {
	if !b.opt.Advisories {
		return false
	}
	a := &b.advisories
	if len(a.exact) > 0 || len(a.wild) > 0 || len(a.peers) > 0 {
		return true
	}
	for _, n := range b.networks.order {
		if n.sub.Info.Destination.IsAdvisory() {
			return true
		}
	}
	return false
}

// advise publishes an advisory to whoever listens.
func (b *Broker) advise(name string, data message.Command, props ...message.Property) {
	if !b.heard() {
		return
	}
	b.adviseTo(false, name, data, props)
}

// adviseTo publishes an advisory to whoever listens, or to the bridges of Hopwire peers only.
func (b *Broker) adviseTo(hopwire bool, name string, data message.Command,
	props []message.Property) {
	topic := advisoryTopic(name)
	subs := b.listeners(topic)
	nets := b.networks.advisory(topic)
	if hopwire {
		subs = slices.DeleteFunc(slices.Clone(subs),
			func(s *consumer) bool { return !s.ofHopwire() })
		nets = slices.DeleteFunc(nets, func(n *netSub) bool { return !n.sub.Hopwire })
	}
	if len(subs) == 0 && len(nets) == 0 {
		return
	}
	b.spread(topic, subs, nets, b.advisory(topic, data, props))
}

// spread gives a message to those who listen to an advisory topic.
func (b *Broker) spread(topic message.Destination, subs []*consumer, nets []*netSub,
	m *message.Message) {
	for _, s := range subs {
		s.publish(nil, topic, m)
	}
	for _, n := range nets {
		n.publishAdvisory(m)
	}
}

// advisory makes the message: non-persistent, priority 0, type Advisory, with its origin.
func (b *Broker) advisory(topic message.Destination, data message.Command,
	props []message.Property) *message.Message {
	producer := message.ProducerID{Connection: b.ownConnection()}
	m := &message.Message{
		Body:         message.PlainBody,
		ID:           message.MessageID{Producer: producer, Sequence: b.newID()},
		Producer:     producer,
		Destination:  topic,
		Type:         "Advisory",
		BrokerInTime: b.env.Wall(),
		Data:         data,
	}
	all := append([]message.Property{
		{Name: "originBrokerId", Value: string(b.opt.ID)},
		{Name: "originBrokerName", Value: b.opt.Name},
		{Name: "originBrokerURL", Value: b.opt.URL},
	}, props...)
	if err := m.SetProperties(all...); err != nil {
		b.counts.Reasons[message.FrameTooBig]++
	}
	return m
}

func (b *Broker) adviseConnection(c *Connection) { b.advise("Connection", c.info) }

func (b *Broker) adviseConnectionGone(c *Connection) {
	b.advise("Connection", &message.RemoveInfo{Object: c.id,
		LastDelivered: message.LastDeliveredUnset})
}

func (b *Broker) adviseDestination(d *destination, op message.DestinationOp) {
	if !b.heard() {
		return
	}
	b.advise(d.name.Kind.String(), d.info(op))
}

// info tells of a destination, and of a mirror by way of whom its owner is reached.
func (d *destination) info(op message.DestinationOp) *message.DestinationInfo {
	info := &message.DestinationInfo{Destination: d.name, Op: op}
	if d.name.IsTemp() {
		info.Connection = d.name.TempOwner()
	}
	if d.owner != nil {
		info.Connection = d.owner.id
	} else {
		info.BrokerPath = d.ownerPath
	}
	return info
}

// family is the part of a consumer or producer advisory's topic that names the destination:
// temporary ones are in the family of their kind.
func family(d message.Destination) string {
	if d.IsQueue() {
		return "Queue." + advisoryName(d.Name)
	}
	return "Topic." + advisoryName(d.Name)
}

// advisoryName replaces the comma of a composite, as ActiveMQ does.
func advisoryName(name string) string {
	return strings.ReplaceAll(name, ",", "&sbquo;")
}

func (b *Broker) adviseConsumer(s *consumer, gone bool) { b.adviseSubscription(s.info, gone) }

// adviseSubscription tells of a consumer, a client's or a bridge's.
func (b *Broker) adviseSubscription(info *message.ConsumerInfo, gone bool,
	props ...message.Property) {
	if info.Destination.IsAdvisory() || !b.heard() {
		return
	}
	var data message.Command = info
	if gone {
		data = &message.RemoveInfo{Object: info.ID, LastDelivered: message.LastDeliveredUnset}
	}
	b.advise("Consumer."+family(info.Destination), data,
		append(b.consumerCountProperty(info.Destination), props...)...)
}

func (b *Broker) consumerCountProperty(name message.Destination) []message.Property {
	return []message.Property{{Name: "consumerCount", Value: int32(b.consumerCount(name))}}
}

// consumerCount is the number of subscriptions on a destination: bridges', browsers, and durable
// ones whose consumer is away included.
func (b *Broker) consumerCount(name message.Destination) int {
	d := b.find(name)
	if d == nil {
		return 0
	}
	return len(d.consumers) - d.durables + len(d.shares) + len(d.nets) + d.browsers
}

func (b *Broker) adviseProducer(p *producer, gone bool) {
	if p.dest == nil || !b.heard() {
		return
	}
	var data message.Command = p.info
	if gone {
		data = &message.RemoveInfo{Object: p.info.ID, LastDelivered: message.LastDeliveredUnset}
	}
	b.advise("Producer."+family(p.info.Destination), data, message.Property{Name: "producerCount",
		Value: int32(p.dest.producerCount)})
}

// adviseMessage tells of a message: its copy without a body.
func (b *Broker) adviseMessage(kind string, d *destination, m *message.Message,
	props ...message.Property) {
	b.adviseOf(kind+"."+family(d.name), d, m, props)
}

// adviseOf tells of a message of a destination under a name: its copy, without a body unless the
// policy wants it (includeBodyForAdvisory).
func (b *Broker) adviseOf(name string, d *destination, m *message.Message,
	props []message.Property) {
	if m.Destination.IsAdvisory() || !b.heard() {
		return
	}
	topic := advisoryTopic(name)
	if len(b.listeners(topic)) == 0 && len(b.networks.advisory(topic)) == 0 {
		return
	}
	told := m.Clone()
	if !d.policy.Advisory.IncludeBody {
		told.Content = nil
	}
	b.advise(name, told, props...)
}

// replay tells a new listener, and nobody else, of what is there already.
func (a *advisories) replay(s *consumer) {
	if !s.b.opt.Advisories || !slices.ContainsFunc(s.members, message.Destination.IsAdvisory) {
		return
	}
	b := s.b
	tell := func(name string, data message.Command, props ...message.Property) {
		topic := advisoryTopic(name)
		if !s.hears(topic) {
			return
		}
		m := b.advisory(topic, data, props)
		m.TargetConsumer = s.info.ID
		s.publish(nil, topic, m)
	}
	b.existing(tell)
	if s.ofHopwire() {
		b.absent(tell)
	}
}

// ofHopwire reports whether the consumer is the bridge of a Hopwire broker.
func (s *consumer) ofHopwire() bool { return s.conn.network && s.conn.peer.Hopwire }

// hears reports whether the consumer listens to an advisory topic.
func (s *consumer) hears(topic message.Destination) bool {
	for _, m := range s.members {
		if hearsOf(m, topic, s.ofHopwire()) {
			return m == topic || s.conn.rights.may(Read, topic)
		}
	}
	return false
}

// existing tells that the broker is a master, and of every connection, destination, producer,
// consumer and peer that is there, in the order of their making.
func (b *Broker) existing(tell func(string, message.Command, ...message.Property)) {
	tell("MasterBroker", nil) // ActiveMQ's last image of it
	for _, c := range b.connOrder {
		tell("Connection", c.info)
	}
	for d := range b.named() {
		tell(d.name.Kind.String(), d.info(message.AddDestination))
	}
	for _, c := range b.connOrder {
		for _, p := range sortedProducers(c.producers) {
			if p.dest != nil {
				tell("Producer."+family(p.info.Destination), p.info, message.Property{
					Name: "producerCount", Value: int32(p.dest.producerCount)})
			}
		}
		for _, s := range c.order {
			b.tellSubscription(tell, s.info)
		}
	}
	b.networks.existing(b, tell)
}

func (b *Broker) tellSubscription(tell func(string, message.Command, ...message.Property),
	info *message.ConsumerInfo, props ...message.Property) {
	if !info.Destination.IsAdvisory() {
		tell("Consumer."+family(info.Destination), info,
			append(b.consumerCountProperty(info.Destination), props...)...)
	}
}

// adviseUnsubscribed tells that a durable subscription is no more.
func (b *Broker) adviseUnsubscribed(s *subscription) {
	b.advise("Consumer."+family(s.dest.name), &message.RemoveSubscriptionInfo{
		ClientID: s.key.clientID, SubscriptionName: s.key.name},
		b.consumerCountProperty(s.dest.name)...)
}
