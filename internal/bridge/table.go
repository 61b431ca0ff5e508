package bridge

import (
	"slices"

	"hopwire/internal/bridge/wants"
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// table is the demand of one peer: which remote consumers there are and which subscriptions they
// come to. It decides; Bridge acts.
type table struct {
	opts      *Options
	rules     rules
	self      message.BrokerID
	peer      message.BrokerID
	selectors func(text string) (Selector, error)
	demands   []*demand // in order of their making
	touched   []*demand // whose members changed since Bridge looked
	where     map[message.ConsumerID][]*demand
	by        map[message.Destination][]*demand
	patterns  []*demand // of topics
	refusals  refusals  // what consumerTTL keeps away
}

func newTable(o *Options, self, peer message.BrokerID,
	selectors func(string) (Selector, error)) *table {
	return &table{opts: o, rules: newRules(o), self: self, peer: peer, selectors: selectors,
		where: map[message.ConsumerID][]*demand{}, by: map[message.Destination][]*demand{},
		refusals: newRefusals()}
}

// admit tells why a remote consumer makes no demand here; "" when it does, as far as its path
// and kind go.
func (t *table) admit(c *message.ConsumerInfo) message.Reason {
	switch {
	case c.Browser:
		return message.NotTarget
	case len(c.BrokerPath) > 0 && t.opts.ConsumerTTL > -1 &&
		len(c.BrokerPath) >= int(t.opts.ConsumerTTL):
		return message.TTLConsumer
	case message.Visited(c.BrokerPath, t.self):
		return message.AlreadyVisited
	}
	return ""
}

// add enters a remote consumer. It gives the reason when that makes no demand at all. A consumer
// that is known already changes nothing. A durable subscriber that is back under a new id takes its
// own place; empty are the demands that it is not behind any more.
func (t *table) add(c *message.ConsumerInfo,
	s network.Selectors) (empty []*demand, why message.Reason) {
	if why = t.admit(c); why != "" {
		if why == message.TTLConsumer {
			t.tooFar(c)
		}
		return nil, why
	}
	t.refusals.remove(keyOf(c))
	if len(t.where[c.ID]) > 0 {
		return nil, ""
	}
	permitted := false
	for _, part := range c.Destination.Split() {
		dests, refusal := t.rules.permit(part)
		if refusal != "" {
			why = refusal
			continue
		}
		for _, d := range dests {
			permitted = true
			t.enter(c, s, d)
		}
	}
	if permitted {
		why = ""
	}
	return t.replaced(c), why
}

// replaced takes out what a durable subscription was before c took its place.
func (t *table) replaced(c *message.ConsumerInfo) (empty []*demand) {
	if c.SubscriptionName == "" {
		return nil
	}
	return t.removeIf(t.demands, func(m member) bool {
		return m.durable == c.SubscriptionName && m.clientID == c.ClientID && m.id != c.ID
	})
}

// addDirect enters a consumer that the peer opened on the link itself: lists and paths do not
// apply (OpenWire duplex).
func (t *table) addDirect(c *message.ConsumerInfo) (empty []*demand) {
	if len(t.where[c.ID]) > 0 {
		return nil
	}
	for _, part := range c.Destination.Split() {
		t.enter(c, "", part)
	}
	return t.replaced(c)
}

// addStatic enters the static list: one consumer more on each of its destinations. No peer can name
// these: they are in no index, whatever id a peer's consumer has.
func (t *table) addStatic() {
	for i, d := range t.rules.static {
		if t.rules.excluded.Covers(d) {
			continue
		}
		n := &demand{dest: d}
		n.join(member{id: message.ConsumerID{Session: -1, Value: int64(i)}, static: true,
			texts: []string{""}}, nil)
		t.enlist(n)
	}
}

// enter puts one consumer on one destination into a demand.
func (t *table) enter(c *message.ConsumerInfo, s network.Selectors, d message.Destination) {
	alone := !t.folds(c, d)
	durable := d.Kind == message.Topic && c.SubscriptionName != ""
	into := t.joinable(d, alone, durable)
	if into == nil {
		into = &demand{dest: d, alone: alone, durable: durable}
		t.enlist(into)
	} else {
		t.touched = append(t.touched, into)
	}
	into.recalls = into.recalls || c.Retroactive && !into.state.subscribed() && !into.renewed
	texts, parsed := t.texts(c, s, &into.wants)
	into.join(t.member(c, texts, d), parsed)
	t.where[c.ID] = append(t.where[c.ID], into)
}

// enlist makes a demand part of the table.
func (t *table) enlist(n *demand) {
	t.demands = append(t.demands, n)
	t.by[n.dest] = append(t.by[n.dest], n)
	t.markOverlaps(n)
}

// joinable finds the demand that a consumer of d joins: one that is about to end only if there is
// no other.
func (t *table) joinable(d message.Destination, alone, durable bool) (found *demand) {
	for _, old := range t.by[d] {
		fits := !alone || old.isStatic() && t.opts.ConduitSubscriptions
		if !fits || old.alone || old.durable != durable {
			continue
		}
		if !old.state.ending() {
			return old
		}
		found = old
	}
	return found
}

// folds reports whether a consumer shares one subscription with others of its destination.
func (t *table) folds(c *message.ConsumerInfo, d message.Destination) bool {
	if d.IsTopic() {
		return true
	}
	if !t.opts.ConduitSubscriptions {
		return false
	}
	return !c.NetworkSubscription || t.opts.ConduitNetworkQueueSubscriptions
}

// remove takes a remote consumer out. It gives the demands that nobody wants any more, in order.
// A durable stays until its subscription is removed. Unknown ids are ignored.
func (t *table) remove(id message.ConsumerID) (empty []*demand) {
	t.refusals.remove(refusedKey{id: id})
	return t.removeIf(t.where[id], func(m member) bool {
		return m.id == id && m.durable == "" && !m.static
	})
}

// removeDurable takes a durable subscription of the peer out.
func (t *table) removeDurable(clientID, name string) (empty []*demand) {
	t.refusals.remove(refusedKey{clientID: clientID, durable: name})
	return t.removeIf(t.demands, func(m member) bool {
		return m.durable == name && m.clientID == clientID && name != ""
	})
}

func (t *table) removeIf(in []*demand, out func(member) bool) (empty []*demand) {
	for _, d := range slices.Clone(in) {
		before := len(d.members)
		for _, m := range d.members {
			if out(m) {
				t.forget(m.id, d)
				for _, text := range m.texts {
					d.wants.Part(text, m.path)
				}
			}
		}
		d.members = slices.DeleteFunc(d.members, out)
		if len(d.members) < before {
			t.touched = append(t.touched, d)
		}
		if len(d.members) == 0 && before > 0 {
			empty = append(empty, d)
		}
	}
	return empty
}

func (t *table) forget(id message.ConsumerID, d *demand) {
	rest := slices.DeleteFunc(slices.Clone(t.where[id]), func(x *demand) bool { return x == d })
	if len(rest) == 0 {
		delete(t.where, id)
		return
	}
	t.where[id] = rest
}

// drop takes a demand out of the table.
func (t *table) drop(d *demand) {
	for _, m := range d.members {
		t.forget(m.id, d)
	}
	t.demands = slices.DeleteFunc(t.demands, func(x *demand) bool { return x == d })
	t.by[d.dest] = slices.DeleteFunc(t.by[d.dest], func(x *demand) bool { return x == d })
	if len(t.by[d.dest]) == 0 {
		delete(t.by, d.dest)
	}
	t.unmarkOverlaps(d)
}

// renew moves the members of a demand to a new one that takes its place.
func (t *table) renew(d *demand) *demand {
	n := &demand{dest: d.dest, alone: d.alone, durable: d.durable, members: d.members,
		wants: d.wants, renewed: true}
	d.members, d.wants = nil, wants.Set{}
	for _, m := range n.members {
		for i, x := range t.where[m.id] {
			if x == d {
				t.where[m.id][i] = n
			}
		}
	}
	t.enlist(n)
	return n
}

// subscription is the consumer that stands for the demand at the home broker: it has the path of
// the nearest of its members.
func (t *table) subscription(d *demand, id message.ConsumerID,
	clientID, home string) *message.ConsumerInfo {
	near := d.nearest()
	path := message.AppendPath(near.path, t.peer)
	info := &message.ConsumerInfo{
		ID:                  id,
		Destination:         d.dest,
		ClientID:            clientID,
		PrefetchSize:        t.opts.PrefetchSize,
		Priority:            t.opts.priority(len(path)),
		DispatchAsync:       true,
		Retroactive:         d.recalls,
		NetworkSubscription: true,
		BrokerPath:          path,
		NetworkConsumerPath: slices.Clone(near.origins),
		Filter: &message.NetworkFilter{Broker: t.peer, MessageTTL: t.opts.MessageTTL,
			ConsumerTTL: t.opts.ConsumerTTL},
	}
	if m := &d.members[0]; d.alone && !m.network {
		info.Selector = m.texts[0]
	}
	if d.durable {
		info.SubscriptionName = "NC-DS_" + home + "_" + d.dest.Name
	}
	return info
}
