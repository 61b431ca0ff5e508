package bridge

import (
	"slices"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// Selector is a parsed JMS selector as a demand table needs it.
type Selector interface {
	Matches(m *message.Message) bool
	Identifiers() []string
}

// choice is a selector of a member; a bridge's subscription can have several.
type choice struct {
	text     string
	selector Selector
}

// peerChanges are what a peer may change in a message, so that a selector that reads them cannot
// be judged at home.
var peerChanges = []string{"JMSRedelivered", "JMSXDeliveryCount", "JMSXUserID",
	"JMSXGroupFirstForConsumer", "JMSActiveMQBrokerInTime", "JMSActiveMQBrokerOutTime",
	"JMSActiveMQBrokerPath"}

// tellStep is how long the next telling of a demand's selectors waits for each byte of the last:
// consumers that come and go fast are told of together, in some 1 MB a second.
const tellStep = time.Microsecond

// member makes the member of a remote consumer; s is what its broker says that it stands for, when
// it is a bridge's subscription there.
func (t *table) member(c *message.ConsumerInfo, s network.Selectors,
	d message.Destination) member {
	m := member{id: c.ID, network: c.NetworkSubscription, path: c.BrokerPath,
		origins: append(slices.Clone(c.NetworkConsumerPath), c.ID)}
	if d.Kind == message.Topic && c.SubscriptionName != "" {
		m.clientID, m.durable = c.ClientID, c.SubscriptionName
	}
	var texts []string
	switch {
	case c.NetworkSubscription && s != "":
		texts, _ = s.Split() // what cannot be read counts as anything
	case c.Selector != "":
		texts = []string{c.Selector}
	}
	m.selects = t.choices(texts, nil)
	m.anything = m.selects == nil
	return m
}

// choices parses selectors; nil when there is none, or one that cannot be judged here. Those that
// known has are taken from it.
func (t *table) choices(texts []string, known []choice) []choice {
	if t.selectors == nil {
		return nil
	}
	parsed := make(map[string]Selector, len(known))
	for _, k := range known {
		parsed[k.text] = k.selector
	}
	var out []choice
	for _, text := range texts {
		s := parsed[text]
		if s == nil {
			var err error
			if s, err = t.selectors(text); err != nil || !judges(s) {
				return nil
			}
		}
		out = append(out, choice{text, s})
	}
	return out
}

func judges(s Selector) bool {
	return !slices.ContainsFunc(s.Identifiers(), func(id string) bool {
		return slices.Contains(peerChanges, id)
	})
}

// reselect gives a bridge's subscription at the peer other selectors. It gives the demands that it
// is behind, and whether they may take more now.
func (t *table) reselect(c *message.ConsumerInfo, s network.Selectors) (in []*demand, wider bool) {
	in = t.where[c.ID]
	for _, d := range in {
		for i := range d.members {
			m := &d.members[i]
			if m.id != c.ID || m.static || !m.network {
				continue
			}
			texts, _ := s.Split()
			selects := t.choices(texts, m.selects)
			wider = wider || !m.anything && (selects == nil || !within(selects, m.selects))
			m.selects, m.anything = selects, selects == nil
			t.touched = append(t.touched, d)
		}
	}
	return in, wider
}

// within reports whether all of a are in b.
func within(a, b []choice) bool {
	have := make(map[string]bool, len(b))
	for _, c := range b {
		have[c.text] = true
	}
	for _, c := range a {
		if !have[c.text] {
			return false
		}
	}
	return true
}

func (m *member) wants(x *message.Message) bool {
	return m.anything || slices.ContainsFunc(m.selects,
		func(c choice) bool { return c.selector.Matches(x) })
}

// wanted reports whether any member takes the message.
func (d *demand) wanted(m *message.Message) bool {
	return slices.ContainsFunc(d.members, func(x member) bool { return x.wants(m) })
}

// refuses reports why no member takes the message. One that is on brokers further away takes none
// that was at a broker on the way there, which would have to turn it away; unless messages may go
// back, or nothing stays where it is refused (back). There is always another way, that which made
// the message come here.
func (d *demand) refuses(m *message.Message, back bool) message.Reason {
	why := message.SelectorNoMatch
	for i := range d.members {
		x := &d.members[i]
		if !x.wants(m) {
			continue
		}
		if back || !slices.ContainsFunc(x.path, func(b message.BrokerID) bool {
			return message.Visited(m.BrokerPath, b)
		}) {
			return ""
		}
		why = message.ReplayOff
	}
	return why
}

// narrow reports whether all members but one judge messages.
func (d *demand) narrow(but message.ConsumerID) bool {
	for i := range d.members {
		if m := &d.members[i]; m.anything && len(m.path) == 0 && (m.id != but || m.static) {
			return false
		}
	}
	return true
}

// selectors is what the members select, for Hopwire peers of the home broker. A topic needs none:
// what nobody takes does not stay anywhere. Nor has a bridge's subscription that is folded with
// others any: in a ring, brokers that fold would tell each other a selector for ever.
func (d *demand) selectors() network.Selectors {
	if d.dest.IsTopic() {
		return ""
	}
	var texts []string
	for i := range d.members {
		m := &d.members[i]
		if m.anything || m.network && len(d.members) > 1 {
			return ""
		}
		for _, c := range m.selects {
			texts = append(texts, c.text)
		}
	}
	return network.JoinSelectors(texts)
}

// reselected takes what a bridge's subscription at the peer, known already, stands for now.
func (b *Bridge) reselected(c *message.ConsumerInfo, s network.Selectors) {
	in, wider := b.table.reselect(c, s)
	for _, d := range in {
		if wider && d.state == active {
			b.home.local.Wake(d.id)
		}
	}
	b.tellChanges()
}

// tellChanges has the home broker told, soon, of what the members of changed demand select now.
func (b *Bridge) tellChanges() {
	touched := b.table.touched
	b.table.touched = nil
	for _, d := range touched {
		if d.telling || d.dest.IsTopic() {
			continue
		}
		d.telling = true
		tell := func() {
			d.telling = false
			b.tell(d)
		}
		if wait := tellStep * time.Duration(len(d.told)); wait < time.Millisecond {
			b.home.env.Soon(tell)
		} else {
			b.home.env.After(wait, tell)
		}
	}
}

func (b *Bridge) tell(d *demand) {
	if b.phase == over || d.state != active || len(d.members) == 0 {
		return
	}
	if s := d.selectors(); s != d.told {
		d.told = s
		b.home.local.SetSelectors(d.id, s)
	}
}
