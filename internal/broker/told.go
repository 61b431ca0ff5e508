package broker

import (
	"hopwire/internal/message"
)

// What follows tells of messages, consumers and producers of destinations whose policies ask for
// it: the topics, properties and bodies are ActiveMQ's. Without such a policy nothing is looked at
// but its switch, and without a listener no advisory is made.

// typed is the part of such an advisory's topic that names the destination: temporary ones are of
// their own kinds.
func typed(d message.Destination) string { return d.Kind.String() + "." + advisoryName(d.Name) }

// about are the properties of an advisory about a message of a destination.
func about(name message.Destination, m *message.Message) []message.Property {
	return []message.Property{
		{Name: "orignalMessageId", Value: m.ID.String()},
		{Name: "orignalDestination", Value: name.String()},
	}
}

// tellDelivered tells that a message came to a destination (advisoryForDelivery), and that nobody
// is there for it (sendAdvisoryIfNoConsumers). taken says that somebody had a topic's message.
func (b *Broker) tellDelivered(d *destination, m *message.Message, taken bool) {
	ask := &d.policy.Advisory
	if !ask.Delivery && !ask.NoConsumers {
		return
	}
	if d.queue == nil {
		b.tellNoConsumer(d, m, taken)
	}
	if ask.Delivery {
		b.adviseOf("MessageDelivered."+typed(d.name), d, m, about(d.name, m))
	}
	if d.queue != nil {
		b.tellNoConsumer(d, m, len(d.consumers)+len(d.nets)+d.browsers > 0)
	}
}

// tellNoConsumer gives a message that is not persistent, and that nobody is there for, to who
// listens to an advisory topic: itself, as it was sent.
func (b *Broker) tellNoConsumer(d *destination, m *message.Message, taken bool) {
	if taken || m.Persistent || !d.policy.Advisory.NoConsumers || !b.heard() {
		return
	}
	for _, h := range d.shares {
		if h.sub.refuses(m) == "" {
			return
		}
	}
	topic := advisoryTopic("NoConsumer." + family(d.name))
	to := m.Clone()
	to.Destination = topic
	b.spread(topic, b.listeners(topic), b.networks.advisory(topic), to)
}

// tellDispatched tells that a message of a destination went to a consumer, which may be a bridge's
// (advisoryForDispatched).
func (b *Broker) tellDispatched(d *destination, to message.ConsumerID, m *message.Message) {
	if d != nil && d.policy.Advisory.Dispatched {
		b.adviseOf("MessageDispatched."+typed(d.name), d, m, append(about(d.name, m),
			message.Property{Name: "consumerId", Value: to.String()}))
	}
}

// tellConsumed tells that a message of a destination is done with (advisoryForConsumed).
func (b *Broker) tellConsumed(d *destination, m *message.Message) {
	if d.policy.Advisory.Consumed {
		b.adviseOf("MessageConsumed."+typed(d.name), d, m, about(d.name, m))
	}
}

// tellDiscarded tells that a consumer does not get a message of a destination, of which there were
// count until now (advisoryForDiscardingMessages).
func (b *Broker) tellDiscarded(d *destination, s *consumer, m *message.Message) {
	s.discarded++
	if d == nil || !d.policy.Advisory.Discarding {
		return
	}
	b.adviseOf("MessageDiscarded."+typed(d.name), d, m, append([]message.Property{
		{Name: "discardedCount", Value: int32(s.discarded)},
		{Name: "consumerId", Value: s.info.ID.String()}}, about(d.name, m)...))
}

// tellFull tells that there is no room in memory for what a producer sends (advisoryWhenFull,
// advisoryForFastProducers).
func (b *Broker) tellFull(d *destination, a *arrival) {
	ask := &d.policy.Advisory
	if !ask.WhenFull && !ask.FastProducers || !d.usage.Full() {
		return
	}
	if ask.WhenFull {
		b.advise("FULL."+typed(d.name), nil, message.Property{Name: "usageName",
			Value: "default:memory:" + d.name.String() + ":memory"},
			message.Property{Name: "usageCount", Value: d.usage.Used()})
	}
	if ask.FastProducers && a.producer != nil {
		b.advise("FastProducer."+typed(d.name), a.producer.info, message.Property{
			Name: "producerId", Value: a.producer.info.ID.String()})
	}
}

// tellSlow tells that a consumer is slow (advisoryForSlowConsumers).
func (b *Broker) tellSlow(d *destination, s *consumer) {
	if d.policy.Advisory.SlowConsumers {
		b.advise("SlowConsumer."+typed(d.name), s.info, message.Property{Name: "consumerId",
			Value: s.info.ID.String()})
	}
}
