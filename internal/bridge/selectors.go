package bridge

import (
	"slices"
	"time"

	"hopwire/internal/bridge/wants"
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// Selector is a parsed JMS selector as a demand needs it.
type Selector = wants.Selector

// tellStep is how long the next telling of a demand's selectors waits for each byte of the last:
// consumers that come and go fast are told of together, in some 1 MB a second.
const tellStep = time.Microsecond

// member makes the member of a remote consumer that has the selectors.
func (t *table) member(c *message.ConsumerInfo, texts []string,
	d message.Destination) member {
	m := member{id: c.ID, network: c.NetworkSubscription, texts: texts, path: c.BrokerPath,
		origins: append(slices.Clone(c.NetworkConsumerPath), c.ID)}
	if d.Kind == message.Topic && c.SubscriptionName != "" {
		m.clientID, m.durable = c.ClientID, c.SubscriptionName
	}
	return m
}

// texts gives the selectors of a remote consumer, and the parsed forms of those that have has not:
// "" alone when it takes anything, or what cannot be judged here.
func (t *table) texts(c *message.ConsumerInfo, s network.Selectors,
	have *wants.Set) ([]string, map[string]Selector) {
	var texts []string
	switch {
	case c.NetworkSubscription && s != "":
		texts, _ = s.Split() // what cannot be read counts as anything
	case c.Selector != "":
		texts = []string{c.Selector}
	}
	parsed := map[string]Selector{}
	for _, text := range texts {
		if have.Has(text) {
			continue
		}
		if t.selectors == nil {
			return []string{""}, nil
		}
		x, err := t.selectors(text)
		if err != nil || !wants.Judged(x) {
			return []string{""}, nil
		}
		parsed[text] = x
	}
	if len(texts) == 0 {
		texts = []string{""}
	}
	return texts, parsed
}

// join makes a member part of the demand, with its selectors.
func (d *demand) join(m member, parsed map[string]Selector) {
	if !m.static && !d.consumed() {
		d.wider = true // messages may go back now
	}
	for _, text := range m.texts {
		if d.wants.Join(text, parsed[text], m.path) {
			d.wider = true
		}
	}
	d.members = append(d.members, m)
}

// reselect gives a bridge's subscription at the peer other selectors. It gives the demands that it
// is behind.
func (t *table) reselect(c *message.ConsumerInfo, s network.Selectors) []*demand {
	in := t.where[c.ID]
	for _, d := range in {
		for i := range d.members {
			m := &d.members[i]
			if m.id != c.ID || m.static || !m.network {
				continue
			}
			texts, parsed := t.texts(c, s, &d.wants)
			for _, text := range texts {
				d.wider = d.wants.Join(text, parsed[text], m.path) || d.wider
			}
			for _, text := range m.texts {
				d.wants.Part(text, m.path)
			}
			m.texts = texts
			t.touched = append(t.touched, d)
		}
	}
	return in
}

// selectors is what the members select, for Hopwire peers of the home broker. A topic needs none:
// what nobody takes does not stay anywhere. Nor has a bridge's subscription that is folded with
// others any: in a ring, brokers that fold would tell each other a selector for ever.
func (d *demand) selectors() network.Selectors {
	if d.dest.IsTopic() || len(d.members) > 1 &&
		slices.ContainsFunc(d.members, func(m member) bool { return m.network }) {
		return ""
	}
	return network.JoinSelectors(d.wants.Texts())
}

// reselected takes what a bridge's subscription at the peer, known already, stands for now.
func (b *Bridge) reselected(c *message.ConsumerInfo, s network.Selectors) {
	for _, d := range b.table.reselect(c, s) {
		b.widened(d)
	}
	b.tellChanges()
}

// widened has the home broker look again, if members take more now.
func (b *Bridge) widened(d *demand) {
	if d.wider && d.state == active {
		b.home.local.Wake(d.id)
	}
	d.wider = false
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
