package broker

import (
	"iter"
	"slices"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/policy"
	"hopwire/internal/selector"
	"hopwire/internal/store"
)

// subscriptionKey names a durable subscription.
type subscriptionKey struct{ clientID, name string }

// subscription is a durable subscription: a queue of its own, into which go the messages of its
// topics that it wants, whether its consumer is there or not. What it keeps is stored once for all
// subscriptions (log.go).
type subscription struct {
	b        *Broker
	key      subscriptionKey
	dest     *destination // its queue; named as what is subscribed to, and not found by that name
	members  []message.Destination
	patterns []message.Destination // of members
	record   store.Subscription    // as the store keeps it; is not changed
	text     string                // of the selector
	selector *selector.Selector
	noLocal  bool

	shares []*share // of the topics there are of what is subscribed to
	keeps  shares   // those with last > 0

	reader *rights // its last consumer's; nil may read everything, or was not there since the start

	active *consumer
	since  time.Duration // when it became active, or was left; monotonic
}

// durables are the durable subscriptions: all in the order of their making, and by what they name,
// so that a topic or subscription that is new does not look at all there are.
type durables struct {
	list     []*subscription
	naming   map[message.Destination][]*subscription // a topic, in the order of their making
	patterns []*subscription                         // patterns among others
}

func (l *durables) add(s *subscription) {
	l.list = append(l.list, s)
	for m := range s.names() {
		l.naming[m] = append(l.naming[m], s)
	}
	if len(s.patterns) > 0 {
		l.patterns = append(l.patterns, s)
	}
}

func (l *durables) remove(s *subscription) {
	drop(&l.list, s)
	drop(&l.patterns, s)
	for m := range s.names() {
		list := l.naming[m]
		if drop(&list, s); len(list) > 0 {
			l.naming[m] = list
		} else {
			delete(l.naming, m)
		}
	}
}

// join has a new topic keep its messages for the subscriptions that are of it.
func (l *durables) join(topic *destination) {
	for _, s := range l.naming[topic.name] {
		s.join(topic)
	}
	for _, s := range l.patterns {
		if s.coversBesides(topic.name) {
			s.join(topic)
		}
	}
}

// names gives the topics that the subscription names, each once.
func (s *subscription) names() iter.Seq[message.Destination] {
	return func(yield func(message.Destination) bool) {
		for i, m := range s.members {
			if !m.IsPattern() && !slices.Contains(s.members[:i], m) && !yield(m) {
				return
			}
		}
	}
}

// coversBesides reports whether a pattern of the subscription takes a topic that it does not name.
func (s *subscription) coversBesides(topic message.Destination) bool {
	if !slices.ContainsFunc(s.patterns, func(p message.Destination) bool {
		return policy.Matches(p, topic)
	}) {
		return false
	}
	return len(s.patterns) == len(s.members) || topic.IsPattern() ||
		!slices.Contains(s.members, topic)
}

// refuses tells why a message is not for the subscription, "" when it is. What its own connection
// sends counts as local while that is there.
func (s *subscription) refuses(m *message.Message) message.Reason {
	if s.noLocal && s.active != nil && m.ID.Producer.Connection == s.active.conn.id {
		return message.NoLocal
	}
	if s.selector != nil && !s.selector.Matches(message.View{Message: m}) {
		return message.SelectorNoMatch
	}
	if !s.reader.may(Read, m.Destination) { // one of those that a pattern takes
		return message.AccessDenied
	}
	return ""
}

// mayBeDurable refuses consumers that cannot have a durable subscription.
func (c *Connection) mayBeDurable(info *message.ConsumerInfo) error {
	for _, m := range info.Destination.Split() {
		switch {
		case m.IsAdvisory():
			return message.Errorf(message.NotFound,
				"Cannot create a durable subscription for an advisory Topic")
		case m.Kind != message.Topic:
			return message.Errorf(message.InvalidDestination,
				"a durable subscription is of topics, not of %s", m)
		}
	}
	switch {
	case c.b.opt.RejectDurableConsumers:
		return message.Errorf(message.NotFound,
			"Durable consumers are refused by this broker (rejectDurableConsumers)")
	case info.Browser:
		return message.Errorf(message.InvalidDestination, "a browser has no durable subscription")
	}
	if s := c.b.subscriptions[subscriptionKey{c.clientID, info.SubscriptionName}]; s != nil {
		return s.mayBeTaken()
	}
	return nil
}

// mayBeTaken refuses a second consumer, and names the first.
func (s *subscription) mayBeTaken() error {
	if s.active == nil {
		return nil
	}
	return message.Errorf(message.NotFound, "Durable consumer is in use for client: %s and "+
		"subscriptionName: %s; it is connected from %s since %v", s.key.clientID, s.key.name,
		s.active.conn.remote.Address, (s.b.env.Mono() - s.since).Round(time.Second))
}

// subscribe gives the durable subscription of a consumer: the one there is, when it is of the same
// destination and selector, else a new one, from now on.
func (s *consumer) subscribe() (d *subscription, isNew bool) {
	b := s.b
	key := subscriptionKey{s.conn.clientID, s.info.SubscriptionName}
	d = b.subscriptions[key]
	if d != nil && (d.dest.name != s.info.Destination || d.text != s.info.Selector ||
		d.noLocal != s.info.NoLocal) {
		d.remove(message.Unsubscribed, "begins anew, as its selector or destination changed")
		d = nil
	}
	if isNew = d == nil; isNew {
		d = b.newSubscription(key, s.info.Destination, store.Subscription{
			Selector: s.info.Selector, NoLocal: s.info.NoLocal}, b.nextDest)
		b.nextDest++
		d.selector = s.selector
		b.journal.touch(d.dest)
	}
	d.reader = s.conn.rights
	d.active, d.since = s, b.env.Mono()
	return d, isNew
}

// newSubscription makes a subscription and has its topics know it.
func (b *Broker) newSubscription(key subscriptionKey, name message.Destination,
	r store.Subscription, id store.DestID) *subscription {
	s := &subscription{b: b, key: key, members: name.Split(), text: r.Selector, noLocal: r.NoLocal,
		since: b.env.Mono()}
	s.record = store.Subscription{ClientID: key.clientID, Name: key.name, Selector: s.text,
		NoLocal: s.noLocal}
	for _, m := range s.members {
		if m.IsPattern() {
			s.patterns = append(s.patterns, m)
		}
	}
	s.dest = b.newDestination(name, id, b.opt.Policies.Find(s.members[0]))
	s.dest.sub = s
	s.dest.makeQueue(b, 1)
	b.order = append(b.order, s.dest)
	b.subscriptions[key] = s
	b.durables.add(s)
	for m := range s.names() {
		if d := b.dests[m]; d != nil {
			s.join(d)
		}
	}
	if len(s.patterns) > 0 {
		for _, d := range b.topics {
			if s.coversBesides(d.name) {
				s.join(d)
			}
		}
	}
	return s
}

// restoreSubscription makes a subscription from its header, without a consumer.
func (b *Broker) restoreSubscription(h *store.Header) *destination {
	r := h.Subscription
	s := b.newSubscription(subscriptionKey{r.ClientID, r.Name}, h.Destination, *r, h.ID)
	sel, err := selector.Parse(r.Selector)
	if err != nil { // an older or newer version took it: nothing may be lost
		b.tell(Event{Kind: ConsumerWarning, Dest: h.Destination, Text: "durable subscription " +
			s.String() + " has a selector that cannot be read, and keeps everything: " + err.Error()})
	}
	s.selector = sel
	return s.dest
}

// makeSubscribed makes the topics that restored subscriptions name, and looks after their logs.
func (b *Broker) makeSubscribed() {
	for _, s := range b.durables.list {
		for m := range s.names() {
			b.destination(m)
		}
		if s.dest.stored == 0 {
			continue
		}
		head := s.dest.queue.OldestStored()
		for _, h := range s.shares {
			if h.log.logged >= head {
				h.keep(h.log.logged)
			}
		}
	}
	for _, d := range b.topics {
		b.journal.touchLog(d) // what nobody needs of it may be there still
	}
}

// remove ends the subscription with all that it keeps, and tells why if that is anything, or nobody
// asked for it.
func (s *subscription) remove(r message.Reason, why string) {
	b, d := s.b, s.dest
	kept := d.queue.Len() + d.queue.Withheld()
	if kept > 0 {
		b.counts.Reasons[r] += kept
	}
	if kept > 0 || r != message.Unsubscribed {
		b.tell(Event{Kind: SubscriptionRemoved, Reason: r, Count: kept, Dest: d.name, Of: s.String(),
			Text: "durable subscription " + s.String() + " " + why + "; " + plural.Of(kept, "message") +
				" that it kept " + plural.Form(kept, "is", "are") + " dropped" + s.keptToo()})
	}
	s.end()
}

// end ends the subscription with all that it keeps.
func (s *subscription) end() {
	b, d := s.b, s.dest
	b.journal.add(store.Op{Kind: store.DropDestination, Dest: d.id})
	b.journal.keepNextDest()
	b.spool.drop(d)
	b.memory.Add(-d.usage.Used())
	d.gone = true
	delete(b.subscriptions, s.key)
	drop(&b.order, d)
	b.durables.remove(s)
	for _, h := range s.shares {
		h.log.shares = slices.DeleteFunc(h.log.shares, func(o *share) bool { return o == h })
	}
	s.through(0, false, b.journal.touchLog)
}

// unsubscribeAll removes the durable subscriptions of a topic that goes. One that is in use, or has
// messages of other topics too, forbids it.
func (d *destination) unsubscribeAll() error {
	for _, h := range d.shares {
		s := h.sub
		if s.active != nil {
			return message.Errorf(message.IllegalState,
				"Destination still has an active subscription: %s (durable subscription %s)", d.name, s)
		}
		if s.dest.name != d.name && (s.dest.queue.Len()+s.dest.queue.Withheld() > 0 ||
			s.b.journal.hold.deltas[s.dest] != nil) {
			return message.Errorf(message.IllegalState, "%s cannot be removed: durable subscription"+
				" %s of %s keeps messages, maybe of it", d.name, s, s.dest.name)
		}
	}
	for _, h := range slices.Clone(d.shares) {
		if h.sub.dest.name == d.name {
			h.sub.remove(message.Unsubscribed, "goes with its topic")
		} else {
			h.sub.part(d)
		}
	}
	return nil
}

// left tells that the consumer of the subscription is gone.
func (s *subscription) left() {
	s.active, s.since = nil, s.b.env.Mono()
}

// watchOffline removes, now and then, subscriptions whose consumer stays away.
func (b *Broker) watchOffline() {
	limit, every := b.opt.OfflineDurableTimeout, b.opt.OfflineDurableCheck
	if limit <= 0 || every <= 0 {
		return
	}
	b.env.After(every, func() {
		if b.stopping() {
			return
		}
		for _, s := range slices.Clone(b.durables.list) {
			if s.active != nil || b.env.Mono()-s.since < limit {
				continue
			}
			s.remove(message.OfflineTimeout, "is removed: its consumer is away for "+
				(b.env.Mono()-s.since).Round(time.Second).String()+
				" (offlineDurableSubscriberTimeout)")
			b.adviseUnsubscribed(s)
		}
		b.watchOffline()
	})
}

// unsubscribe executes a RemoveSubscriptionInfo.
func (c *Connection) unsubscribe(cmd *message.RemoveSubscriptionInfo) {
	if err := c.endSubscription(cmd.SubscriptionName); err != nil {
		c.answer(cmd, err)
		return
	}
	c.b.journal.whenDurable(func() { c.answer(cmd, nil) })
}

func (c *Connection) endSubscription(name string) error {
	if err := c.mustBe(c.id); err != nil {
		return err
	}
	s := c.b.subscriptions[subscriptionKey{c.clientID, name}]
	if s == nil {
		return message.Errorf(message.InvalidDestination,
			"No durable subscription exists for clientID: %s and subscriptionName: %s",
			c.clientID, name)
	}
	if s.active != nil {
		return message.Errorf(message.NotFound, "Durable consumer is in use")
	}
	s.remove(message.Unsubscribed, "is removed by its client")
	c.b.adviseUnsubscribed(s)
	return nil
}

// String names the subscription for people.
func (s *subscription) String() string { return s.key.name + " of client " + s.key.clientID }

// source is the destination that a message of d's queue was sent to.
func (d *destination) source(m *message.Message) message.Destination {
	if d.sub != nil {
		return m.Destination
	}
	return d.name
}

// home gives the queue that has a copy of the consumer's out; none when it was removed since.
func (s *consumer) home(name message.Destination, c *queue.Copy) *destination {
	if s.durable == nil {
		return s.b.home(name, c)
	}
	if d := s.durable.dest; !d.gone && d.queue.Outstanding(c.Seq) == c {
		return d
	}
	return nil
}

// absent tells a Hopwire peer's bridge of durable subscriptions whose consumers are away: what they
// subscribe to is wanted here all the same. ActiveMQ does not tell of them so.
func (b *Broker) absent(tell func(string, message.Command, ...message.Property)) {
	for _, s := range b.durables.list {
		if s.active != nil {
			continue
		}
		b.tellSubscription(tell, &message.ConsumerInfo{
			ID:               message.ConsumerID{Connection: "OFFLINE", Value: int64(s.dest.id)},
			Destination:      s.dest.name,
			ClientID:         s.key.clientID,
			SubscriptionName: s.key.name,
			Selector:         s.text,
			NoLocal:          s.noLocal,
			PrefetchSize:     100,
		})
	}
}
