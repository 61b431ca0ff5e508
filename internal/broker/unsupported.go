package broker

import (
	"bytes"
	"strings"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// virtualTopic begins the names of topics that ActiveMQ makes virtual without being told.
const virtualTopic = "VirtualTopic."

// virtualOf gives the virtual topic that a queue of such a name would be a consumer of with
// ActiveMQ: Consumer.NAME.VirtualTopic.X is one of VirtualTopic.X.
func virtualOf(queue message.Destination) (topic message.Destination, ok bool) {
	rest, ok := strings.CutPrefix(queue.Name, "Consumer.")
	if !ok || queue.Kind != message.Queue {
		return topic, false
	}
	_, rest, ok = strings.Cut(rest, ".")
	return message.Destination{Kind: message.Topic, Name: rest},
		ok && strings.HasPrefix(rest, virtualTopic)
}

func isVirtual(d message.Destination) bool {
	return d.Kind == message.Topic && strings.HasPrefix(d.Name, virtualTopic)
}

// unsupported is what clients ask for by names and properties, and that this broker does not do.
type unsupported struct {
	virtual map[message.Destination]int // topics, by how many queues are named after them
}

// joined notes a queue that is named after a virtual topic; by is -1 when it goes.
func (u *unsupported) joined(name message.Destination, by int) {
	topic, ok := virtualOf(name)
	if !ok {
		return
	}
	if u.virtual == nil {
		u.virtual = map[message.Destination]int{}
	}
	if u.virtual[topic] += by; u.virtual[topic] == 0 {
		delete(u.virtual, topic)
	}
}

// Composite is a destination from which ActiveMQ would forward: a name or a pattern.
type Composite struct {
	Name    message.Destination
	Targets string // for people
}

// compositeOf is the composite destination that a file has of a name, nil for none.
func (b *Broker) compositeOf(name message.Destination) *Composite {
	for i := range b.opt.Composites {
		if c := &b.opt.Composites[i]; policy.Matches(c.Name, name) {
			return c
		}
	}
	return nil
}

func (c *Composite) undone() string {
	return "composite destinations are not supported: what is sent here stays here and does not come" +
		" to " + c.Targets
}

// notDone counts a message that ActiveMQ would have done more with than this broker does; first is
// false for the further destinations of one.
func (b *Broker) notDone(d *destination, m *message.Message, a *arrival, first bool) {
	if len(d.shares) == 0 && b.unsupported.virtual[d.name] > 0 {
		b.countUndone(d, message.NotVirtual, m, "virtual topics are not supported: its queues "+
			"Consumer.*."+d.name.Name+" get nothing; make durable subscriptions of the topic, or "+
			"send to the queues")
	}
	if d.composite != nil {
		b.countUndone(d, message.NotVirtual, m, d.composite.undone()+"; send it to these")
	}
	if first && a.peer == nil && scheduled(m) {
		b.countUndone(d, message.NotScheduled, m, "scheduled delivery is not supported: the message is "+
			"delivered at once")
	}
}

// countUndone counts m, and tells of the first such of a destination.
func (b *Broker) countUndone(d *destination, r message.Reason, m *message.Message, text string) {
	b.counts.Reasons[r]++
	if d.reasons[r]++; d.reasons[r] == 1 {
		b.tell(Event{Kind: NotAsMeant, Reason: r, Dest: d.name, Count: 1,
			Text: m.ID.String() + ": " + text})
	}
}

var scheduledProperties = [...]string{"AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_PERIOD",
	"AMQ_SCHEDULED_CRON"}

// scheduled reports whether a message asks to be delivered later, or again. Most have no such
// bytes, so that their properties need not be read.
func scheduled(m *message.Message) bool {
	if !bytes.Contains(m.Properties, []byte("AMQ_SCHEDULED_")) {
		return false
	}
	for _, name := range scheduledProperties {
		if _, ok := m.Property(name); ok {
			return true
		}
	}
	return false
}

// remarkOn is what an explanation says about a destination as a whole; "" for nothing.
func remarkOn(d *destination) string {
	name := d.name
	if d.composite != nil {
		return d.composite.undone() + " (NOT_VIRTUAL)"
	}
	if topic, ok := virtualOf(name); ok {
		return "virtual topics are not supported here: nothing that is sent to " + topic.String() +
			" comes to this queue"
	}
	if isVirtual(name) {
		return "virtual topics are not supported here: what is sent to this topic comes to its " +
			"subscribers, durable ones too, and to no Consumer.* queue"
	}
	return ""
}
