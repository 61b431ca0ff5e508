package broker

import (
	"math"
	"slices"
	"time"

	"hopwire/internal/broker/audit"
	"hopwire/internal/broker/queue"
	"hopwire/internal/broker/window"
	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/internal/selector"
)

// consumer is a client's subscription. On queues it is offered copies through a slot per queue; on
// topics every message comes to it and waits in its backlog. One window covers all its queues, and
// its topics if it has both: what it acknowledges is a range of all that it got.
type consumer struct {
	b        *Broker
	conn     *Connection
	info     *message.ConsumerInfo
	selector *selector.Selector
	members  []message.Destination // of the destination, as written
	mixed    bool                  // members are queues and topics: the window has both

	window    *window.Window[*queue.Copy]
	slots     []consumerSlot
	topics    []*destination
	backlog   backlog
	pending   pendingLimit // of the backlog
	inFlight  int          // topic messages dispatched and not acknowledged
	delivered int          // of the acknowledged ones, those that were only reported as delivered
	topicMax  int          // prefetch for topics
	durable   *subscription
	since     int64            // the broker sequence when it began
	recalled  *audit.Producers // what it was given of topics' memories
	browse    *browse
	pull      *pull
	ended     bool
	slow      bool          // has no room while more waits; see slows
	slowSince time.Duration // monotonic
	often     int           // how often it was found slow since it was not
	aborting  bool          // its client is told to close it
	lastAck   time.Duration // monotonic; since it has something, if it had nothing
	discarded int           // topic messages that it did not get
	counts    struct{ dispatched, acked int64 }
}

type consumerSlot struct {
	dest *destination
	slot *queue.Slot
}

// addConsumer opens a consumer and answers: before its first dispatch, but for a durable one, whose
// answer waits until its subscription is stored.
func (c *Connection) addConsumer(info *message.ConsumerInfo) {
	if c.consumers[info.ID] != nil {
		c.answer(info, nil)
		return
	}
	s, err := c.newConsumer(info)
	if err != nil {
		c.refuse(&info.Header, err)
		return
	}
	c.consumers[info.ID] = s
	c.order = append(c.order, s)
	if info.SubscriptionName == "" {
		c.answer(info, nil)
		s.begin()
		return
	}
	s.begin()
	// The subscription must be there after a crash.
	c.b.journal.whenDurable(func() { c.answer(info, nil) })
}

func (c *Connection) newConsumer(info *message.ConsumerInfo) (*consumer, error) {
	if err := c.mustHave(info.ID.SessionID()); err != nil {
		return nil, err
	}
	if err := testName(info.Destination); err != nil {
		return nil, err
	}
	if err := c.rights.allow(reading, info.Destination); err != nil {
		return nil, err
	}
	if info.SubscriptionName != "" {
		if err := c.mayBeDurable(info); err != nil {
			return nil, err
		}
		info.ClientID = c.clientID // bridges know the subscription by it
	}
	sel, err := selector.Parse(info.Selector)
	if err != nil {
		return nil, message.Errorf(message.InvalidSelector, "%w", err)
	}
	s := &consumer{b: c.b, conn: c, info: info, selector: sel,
		members: info.Destination.Split()}
	s.backlog = backlog{b: c.b, of: s}
	for _, m := range s.members {
		s.mixed = s.mixed || m.IsTopic() != s.members[0].IsTopic()
		if m.IsPattern() || m.IsAdvisory() || len(s.members) > 1 && !c.rights.mayName(m) {
			continue
		}
		if _, err := c.b.reach(c, m); err != nil {
			return nil, err
		}
	}
	for _, w := range sel.Warnings() {
		c.b.tell(Event{Kind: ConsumerWarning, Dest: info.Destination, Of: w, Text: w})
	}
	return s, nil
}

// begin attaches the consumer to what it names.
func (s *consumer) begin() {
	entry := s.b.opt.Policies.Find(s.members[0])
	asked := int(s.info.PrefetchSize)
	s.window = window.New[*queue.Copy](
		entry.Window(s.members[0], asked, s.info.SubscriptionName != "", s.info.Browser),
		entry.Prefetch.Extension)
	s.topicMax = s.window.Prefetch()
	s.limitPending(entry)
	if s.pending.most < 0 {
		s.backlog.mayBeSpooled(s.members)
	}
	s.since, s.lastAck = s.b.sequence, s.b.env.Mono()
	if s.info.Browser {
		s.startBrowse()
		s.b.adviseConsumer(s, false)
		return
	}
	fresh := false
	if s.info.SubscriptionName != "" {
		s.durable, fresh = s.subscribe()
	}
	wild := false
	for _, m := range s.members {
		switch {
		case m.IsAdvisory():
			s.b.advisories.add(m, s)
		case m.IsPattern():
			wild = true
		case !s.conn.rights.mayName(m): // one of several: it is joined when somebody makes it
			s.b.orphans[m] = append(s.b.orphans[m], s)
		default:
			s.attach(s.b.destination(m))
		}
	}
	if wild {
		s.b.wild = append(s.b.wild, s)
		for _, d := range append([]*destination(nil), s.b.order...) {
			if d.sub == nil && s.matches(d.name) {
				s.attach(d)
			}
		}
	}
	if s.durable != nil {
		if s.info.Retroactive {
			s.durable.recall(fresh && s.durable.inherit())
		}
		d := s.durable.dest
		s.slots = []consumerSlot{{d, d.queue.Attach(s, queue.Traits{Priority: s.priority(d)})}}
	}
	s.b.adviseConsumer(s, false)
	s.b.advisories.replay(s)
}

// matches reports whether a pattern of the consumer takes the destination, and its user may read
// from that. Advisory topics are no destinations in this sense.
func (s *consumer) matches(d message.Destination) bool {
	for _, m := range s.members {
		if m.IsPattern() && !m.IsAdvisory() && policy.Matches(m, d) {
			return s.conn.rights.mayGet(d)
		}
	}
	return false
}

// lose ends that a consumer is one of the destination.
func (d *destination) lose(s *consumer) {
	d.stir()
	n := len(d.consumers)
	if drop(&d.consumers, s); s.durable != nil && len(d.consumers) < n {
		d.durables--
	}
}

// attach joins the consumer to one destination.
func (s *consumer) attach(d *destination) {
	if slices.Contains(d.consumers, s) {
		return
	}
	d.stir()
	d.consumers = append(d.consumers, s)
	if s.durable != nil {
		d.durables++
	}
	if d.queue == nil {
		s.topics = append(s.topics, d)
		s.recall(d)
		return
	}
	slot := d.queue.Attach(s, queue.Traits{Priority: s.priority(d), Exclusive: queue.Exclusive{
		On:       s.info.Exclusive || d.policy.Dispatch.AllConsumersExclusive,
		Priority: int(s.info.Priority)}})
	s.slots = append(s.slots, consumerSlot{d, slot})
}

func (s *consumer) priority(d *destination) int {
	if !d.policy.Dispatch.UseConsumerPriority {
		return 0
	}
	return int(s.info.Priority)
}

// detach takes the consumer off one destination that goes.
func (s *consumer) detach(d *destination) {
	if p := s.pull; p != nil && p.waits == d {
		defer p.nothing()
	}
	d.lose(s)
	for _, cs := range s.slots {
		if cs.dest == d {
			d.queue.Detach(cs.slot)
			drop(&s.slots, cs)
			break
		}
	}
	drop(&s.topics, d)
}

// Gate implements queue.Subscriber.
func (s *consumer) Gate(time.Duration) message.Verdict {
	if s.window.Room() == 0 {
		return message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
			Reason: message.WindowFull}
	}
	if !s.linked() {
		return message.Verdict{Outcome: message.Refuse, Wake: message.WakeEvent,
			Reason: message.LinkFull}
	}
	return message.Verdict{}
}

// linked reports whether the connection has room for more; what is pulled comes one at a time.
func (s *consumer) linked() bool { return s.window.Prefetch() == 0 || s.conn.out.Room() }

// Verdict implements queue.Subscriber.
func (s *consumer) Verdict(c *queue.Copy, _ time.Duration) message.Verdict {
	if s.durable != nil { // it keeps what it wants
		if !s.conn.rights.may(Read, c.Message.Destination) {
			return message.Refused(message.AccessDenied) // kept when its user was not known
		}
		return message.Verdict{}
	}
	return s.verdict(c.Message, c.Told())
}

func (s *consumer) verdict(m *message.Message, redelivery int32) message.Verdict {
	if s.info.NoLocal && m.ID.Producer.Connection == s.conn.id {
		return message.Refused(message.NoLocal)
	}
	if m.TargetConsumer != (message.ConsumerID{}) && m.TargetConsumer != s.info.ID {
		return message.Refused(message.NotTarget)
	}
	if s.selector != nil &&
		!s.selector.Matches(message.View{Message: m, Redelivery: redelivery}) {
		return message.Refused(message.SelectorNoMatch)
	}
	return message.Verdict{}
}

// Take implements queue.Subscriber.
func (s *consumer) Take(c *queue.Copy) bool {
	c.Owner = s
	d := s.destOf(c)
	name := d.source(c.Message)
	more := s.window.Add(c, c.Message, name, s.conn.given+1)
	if s.window.Len() == 1 {
		s.lastAck = s.b.beat // from here on it has something to acknowledge
	}
	s.dispatched(d)
	m := c.Message
	if c.GroupFirst {
		m = m.Clone()
		m.GroupFirst = true
	}
	s.conn.deliver(s, name, m, c.Told())
	if s.pull != nil {
		s.pull.answered()
	}
	if d.sub != nil {
		d = s.b.dests[name]
	}
	s.b.tellDispatched(d, s.info.ID, m) // which may be told to itself, apart
	return more && s.linked()
}

// destOf finds the queue that the copy belongs to.
func (s *consumer) destOf(c *queue.Copy) *destination {
	if len(s.slots) == 1 {
		return s.slots[0].dest
	}
	return s.b.dests[c.Message.Destination]
}

func (s *consumer) dispatched(d *destination) {
	s.counts.dispatched++
	d.counts.Dispatched++
	s.b.counts.Dispatched++
}

// ready tells all queues that the window has room.
func (s *consumer) ready() {
	if s.window.Room() == 0 {
		return
	}
	if len(s.slots) > 0 {
		s.slow = false
	}
	for _, cs := range s.slots {
		cs.slot.Ready()
	}
}

// end closes the consumer; last says what its application saw.
func (s *consumer) end(last int64) {
	if s.ended {
		return
	}
	s.ended = true
	c := s.conn
	delete(c.consumers, s.info.ID)
	drop(&c.order, s)
	if s.browse != nil {
		s.browse.stop()
		s.b.adviseConsumer(s, true)
		return
	}
	if s.pull != nil {
		s.pull.cancel()
	}
	s.b.wild = without(s.b.wild, s)
	for _, m := range s.members {
		if left := without(s.b.orphans[m], s); len(left) > 0 {
			s.b.orphans[m] = left
		} else {
			delete(s.b.orphans, m)
		}
	}
	s.b.advisories.drop(s)
	s.giveBack(last)
	for _, cs := range s.slots {
		cs.dest.stir()
		drop(&cs.dest.consumers, s)
		cs.dest.queue.Detach(cs.slot)
	}
	for _, d := range s.topics {
		d.lose(s)
	}
	s.backlog.release()
	s.slots, s.topics = nil, nil
	if s.durable != nil {
		s.durable.left()
	}
	s.b.adviseConsumer(s, true)
	s.b.relieve()
}

// giveBack returns what the window holds to its queues. The count goes up for what the
// application may have seen: everything on its way when that is unknown, nothing when nothing was
// delivered, else up to the message with that broker sequence. When that one is acknowledged
// already, the application saw nothing of what is left. What an open transaction acknowledged stays
// in the window and is the transaction's.
func (s *consumer) giveBack(last int64) {
	seen := last == message.LastDeliveredUnknown || last >= 0 && s.holds(last)
	written := uint64(math.MaxUint64)
	if last == message.LastDeliveredUnknown {
		written = s.conn.out.Written()
	}
	back := map[*destination][]*queue.Copy{}
	var order []*destination
	s.window.Each(func(e *window.Entry[*queue.Copy]) {
		saw := seen && e.Number <= written
		if e.Message.BrokerSequence == last {
			seen = false
		}
		c := e.Ref
		d := s.home(e.Destination, c)
		if d == nil {
			return
		}
		if tx := s.conn.transaction(e.Transaction()); tx != nil {
			c.Owner = tx
			return
		}
		if saw {
			c.Redelivery++
			s.b.journal.redelivered(d, c)
		}
		if back[d] == nil {
			order = append(order, d)
		}
		back[d] = append(back[d], c)
	})
	for _, d := range order {
		d.queue.Return(back[d])
	}
}

// giveBackOf returns what a transaction acknowledged and did not commit, of a consumer that is
// ended or does not know. Of a topic's message nothing is returned; the client is done with it.
func (s *consumer) giveBackOf(tx *transaction) {
	back := map[*destination][]*queue.Copy{}
	var order []*destination
	s.window.Commit(tx.id, func(e *window.Entry[*queue.Copy]) {
		d := s.home(e.Destination, e.Ref)
		if d == nil || e.Ref.Owner != any(tx) && e.Ref.Owner != any(s) {
			return
		}
		e.Ref.Redelivery++
		s.b.journal.redelivered(d, e.Ref)
		if back[d] == nil {
			order = append(order, d)
		}
		back[d] = append(back[d], e.Ref)
	})
	for _, d := range order {
		d.queue.Return(back[d])
	}
	if !s.ended {
		s.ready()
		s.drainBacklog()
	}
}

// holds reports whether the message with that broker sequence is in the window.
func (s *consumer) holds(sequence int64) bool {
	found := false
	s.window.Each(func(e *window.Entry[*queue.Copy]) {
		found = found || e.Message.BrokerSequence == sequence
	})
	return found
}

// without is drop for lists that are walked meanwhile: it makes another.
func without[T comparable](list []T, x T) []T {
	if i := slices.Index(list, x); i >= 0 {
		return append(list[:i:i], list[i+1:]...)
	}
	return list
}

// control executes a ConsumerControl: a new prefetch.
func (c *Connection) control(cmd *message.ConsumerControl) {
	s := c.consumers[cmd.Consumer]
	if s == nil || s.window == nil {
		return
	}
	n := s.b.opt.Policies.Find(s.members[0]).Window(s.members[0], int(cmd.Prefetch),
		s.durable != nil, s.info.Browser)
	s.window.SetPrefetch(n)
	s.topicMax = s.window.Prefetch()
	if s.browse != nil {
		s.browse.walk()
		return
	}
	s.ready()
	s.drainBacklog()
}
