package broker

import (
	"strconv"
	"time"

	"hopwire/internal/broker/audit"
	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// arrival is one message on its way into the broker, and who waits to hear that it is safe.
type arrival struct {
	b    *Broker
	m    *message.Message
	wire message.Destination // as it came, before names were resolved

	conn     *Connection // nil when a bridge received it
	header   message.Header
	producer *producer
	again    bool          // without conn: it may be sent again (numbers.go)
	peer     *network.Peer // set when it came over a bridge
	done     func(error)   // a bridge's answer

	key      message.ReceiptKey
	keyed    bool
	step     int
	unsafe   int // stored copies that are neither durable nor consumed
	answered bool
	internal bool // the broker's own: no limits, no duplicates
	wait     *parking
	tx       *transaction // it waits for its commit
	part     bool         // of who had a part in tx when it came
	charged  *destination // whose usage it is in meanwhile
}

// outcome is what a step says of an arrival.
type outcome uint8

const (
	proceed    outcome = iota
	parkedHere         // it comes back to this step
	finished           // refused, or nothing more to do
)

// step is one named step of a send.
type step struct {
	name string
	run  func(*Broker, *arrival) outcome
}

// authorizeStep names the step that is there only when there is an authorizer.
const authorizeStep = "authorize"

// sendSteps are what happens to every message sent, in this order. Steps that can wait come first;
// from the receipt on everything is one event.
func sendSteps() []step {
	return []step{
		{"names", (*Broker).testNames},
		{authorizeStep, (*Broker).authorize},
		{"receipts", (*Broker).loadReceipts},
		{"space", (*Broker).awaitSpace},
		{"receipt", (*Broker).testReceipt},
		{"stamp", (*Broker).stamp},
		{"deliver", (*Broker).deliverSend},
	}
}

// transactedSteps are what happens to a message sent in a transaction before that commits.
func transactedSteps() []step {
	return []step{
		{"names", (*Broker).testNames},
		{authorizeStep, (*Broker).authorize},
		{"receipts", (*Broker).loadReceipts},
		{"space", (*Broker).awaitSpace},
		{"keep", (*Broker).keep},
	}
}

// SendSteps names the steps of a send in their order.
func SendSteps() []string {
	var names []string
	for _, s := range sendSteps() {
		names = append(names, s.name)
	}
	return names
}

// run takes the arrival through its steps from where it stands.
func (b *Broker) run(a *arrival) {
	defer b.journal.leave(b.journal.enter())
	steps := b.steps
	if a.tx != nil {
		steps = b.transactedSteps
	}
	for a.step < len(steps) {
		switch steps[a.step].run(b, a) {
		case proceed:
			a.step++
		default:
			return
		}
	}
}

// send takes a message from a client or a peer's bridge.
func (c *Connection) send(m *message.Message) {
	a := &arrival{b: c.b, m: m, wire: m.Destination, conn: c, header: m.Header}
	if c.last == nil || c.last.info.ID != m.Producer {
		c.last = c.producers[m.Producer]
	}
	a.producer = c.last
	if c.network {
		peer := c.peer
		a.peer = &peer
	}
	if !c.opened {
		a.refuse(message.Errorf(message.IllegalState,
			"Cannot send: the connection had not been registered"))
		return
	}
	if a.producer == nil {
		a.refuse(message.Errorf(message.IllegalState,
			"Cannot send: producer %s had not been registered", m.Producer))
		return
	}
	if !m.Transaction.IsZero() {
		if c.network {
			a.refuse(message.Errorf(message.Protocol,
				"message %s of peer %s is in a transaction: bridges send in none", m.ID, c.peer.Name))
			return
		}
		c.sendIn(a)
		return
	}
	c.b.run(a)
}

// testNames refuses what cannot be sent to: bad names, and temporary destinations that are gone;
// one that may come soon is waited for.
func (b *Broker) testNames(a *arrival) outcome {
	if b.dests[a.m.Destination] != nil {
		return proceed
	}
	if err := b.maySend(a.m.Destination); err != nil {
		if b.awaitTemp(a) {
			return parkedHere
		}
		b.counts.Reasons[message.NoConsumer]++
		a.refuse(err)
		return finished
	}
	return proceed
}

func (b *Broker) maySend(to message.Destination) error {
	if err := testName(to); err != nil {
		return err
	}
	for _, d := range to.Split() {
		if d.IsAdvisory() != to.IsAdvisory() {
			return message.Errorf(message.InvalidDestination,
				"%.80s mixes advisory topics with other destinations", to.Name)
		}
		if err := b.mayReach(d); err != nil {
			return err
		}
	}
	return nil
}

// mayReach refuses what cannot be made by naming it: temporary destinations that are gone. A bridge
// of ActiveMQ drops a message that is answered so, and only when the text is the bare name.
func (b *Broker) mayReach(d message.Destination) error {
	if d.IsTemp() && b.dests[d] == nil {
		return message.Errorf(message.NoTempDestination, "%s", d)
	}
	return nil
}

// reach gives a destination that a connection names, made if it may be.
func (b *Broker) reach(c *Connection, name message.Destination) (*destination, error) {
	if name.IsTemp() && b.dests[name] == nil {
		if name.TempOwner() != c.id {
			return nil, b.mayReach(name)
		}
		if err := c.rights.allow(making, name); err != nil {
			return nil, err
		}
		d := b.destination(name)
		c.own(d)
		return d, nil
	}
	if err := c.rights.allowMaking(name); err != nil {
		return nil, err
	}
	return b.destination(name), nil
}

// testReceipt recognises an arrival that was here before, and claims it otherwise.
func (b *Broker) testReceipt(a *arrival) outcome {
	if a.internal || a.m.Destination.IsAdvisory() {
		return proceed
	}
	// A temporary destination that went while its transaction was open is not made again.
	if first := firstOf(a.wire); b.mayReach(first) != nil {
		return proceed
	}
	d := b.wireDestination(a.wire)
	if a.peer != nil {
		return b.claimFromPeer(d, a)
	}
	// What a client that failed over sends again is recognised whatever the policy says.
	again := a.conn != nil && a.conn.info.FailoverReconnect
	known := b.seen(d, a) && (again || d.policy.EnableAudit && d.name.IsQueue())
	if !known && again && d.receipts != nil {
		known = d.receipts.Look(message.Receipt(a.m, a.wire, a.m.BrokerPath, b.opt.ID)) !=
			audit.Unknown
	}
	if known {
		b.duplicate(d, a)
		// The first copy may not be durable yet; what was collected until now carries it.
		b.journal.whenAllDurable(func() { a.answer(nil) })
		return finished
	}
	return proceed
}

// wireDestination gives the destination that keeps the receipts for a name on the wire: the first
// member of a composite. It makes it.
func (b *Broker) wireDestination(wire message.Destination) *destination {
	return b.destination(firstOf(wire))
}

// firstOf gives the first member of a composite. One without members, which no name may be, is its
// own.
func firstOf(wire message.Destination) message.Destination {
	if !wire.IsComposite() {
		return wire
	}
	if members := wire.Split(); len(members) > 0 {
		return members[0]
	}
	return wire
}

// duplicate counts a message that was here before; d is nil when its destination is gone.
func (b *Broker) duplicate(d *destination, a *arrival) {
	b.counts.Duplicates++
	b.counts.Reasons[message.DuplicateMessage]++
	if d != nil {
		d.counts.Duplicates++
		d.reasons[message.DuplicateMessage]++
	}
	b.tell(Event{Kind: DuplicateKnown, Reason: message.DuplicateMessage, Dest: firstOf(a.wire),
		Text: a.m.ID.String(), Count: 1})
}

// stamp sets what each broker sets on arrival.
func (b *Broker) stamp(a *arrival) outcome {
	m := a.m
	b.sequence++
	m.BrokerSequence = b.sequence
	m.BrokerInTime = b.env.Wall()
	m.CommandID, m.ResponseRequired = 0, false
	if m.Priority > 9 {
		m.Priority = 9
	}
	m.Transaction = message.TransactionID{}
	b.expectReply(a)
	return proceed
}

// deliverSend resolves the names and puts a copy everywhere, in one batch.
func (b *Broker) deliverSend(a *arrival) outcome {
	before := b.journal.puts
	for i, t := range b.resolve(a.m) {
		b.notDone(t.dest, t.m, a, i == 0)
		b.put(t.dest, t.m, a)
	}
	if b.journal.puts > before {
		b.keepNumber(a)
	}
	a.settle()
	return finished
}

// target is one copy's destination after names were resolved.
type target struct {
	dest *destination
	m    *message.Message
}

// resolve gives the destinations that a message goes to: the members of a composite get copies
// that name the composite as their original destination.
func (b *Broker) resolve(m *message.Message) []target {
	if m.Destination.IsAdvisory() {
		b.counts.Reasons[message.AdvisoryTopic]++
		b.tell(Event{Kind: MessageDropped, Reason: message.AdvisoryTopic, Dest: m.Destination,
			Text: m.ID.String() + ": advisory topics carry what the broker tells alone", Count: 1})
		return nil
	}
	if !m.Destination.IsComposite() {
		if b.mayReach(m.Destination) != nil {
			b.unreachable(m.Destination, m)
			return nil
		}
		return []target{{b.destination(m.Destination), m}}
	}
	var out []target
	for i, name := range m.Destination.Split() {
		if b.mayReach(name) != nil {
			b.unreachable(name, m)
			continue
		}
		c := m.Clone()
		if i > 0 { // a consumer says by it how far it came, and may get several copies
			b.sequence++
			c.BrokerSequence = b.sequence
		}
		c.Destination = name
		if c.OriginalDestination.IsZero() {
			c.OriginalDestination = m.Destination
		}
		out = append(out, target{b.destination(name), c})
	}
	return out
}

// unreachable drops a message to a temporary destination that was there when the send was taken.
func (b *Broker) unreachable(name message.Destination, m *message.Message) {
	b.counts.Reasons[message.NoConsumer]++
	b.tell(Event{Kind: MessageDropped, Reason: message.NoConsumer, Dest: name,
		Text: m.ID.String() + ": the destination is gone with its connection", Count: 1})
}

// put enqueues or publishes one copy.
func (b *Broker) put(d *destination, m *message.Message, a *arrival) {
	if b.late(d, m, a) {
		return
	}
	if b.answerStatistics(d, m) {
		return
	}
	if d.queue == nil {
		b.retain(d, unmarked(m), a, b.addLogged)
		b.publish(d, m)
		return
	}
	d.reserve(b)
	c := d.queue.Add(m, b.env.Mono())
	b.enqueued(d, c, a)
	b.tellDelivered(d, m, false)
}

// late ends a copy whose time was over before it got anywhere, and reports whether that is so.
func (b *Broker) late(d *destination, m *message.Message, a *arrival) bool {
	if !m.Expired(b.env.Wall()) {
		return false
	}
	b.countExpired(d, m)
	b.deadLetterOf(a, d, m, expiredCause(m), true)
	return true
}

// enqueued counts a new copy and stores it.
func (b *Broker) enqueued(d *destination, c *queue.Copy, a *arrival) {
	size := c.Message.Size()
	d.usage.Add(size)
	d.counts.Enqueued++
	d.counts.Bytes += size
	b.counts.Enqueued++
	if b.isStored(d, c.Message) {
		b.journal.put(d, c)
		if a != nil {
			a.unsafe++
			c.Arrival = a
		}
	} else {
		b.spool.added(d)
	}
}

// settle answers an arrival all of whose copies are safe; others answer when they are.
func (a *arrival) settle() {
	if a.unsafe == 0 && !a.keyed {
		a.answer(nil)
	}
}

// safe tells that a stored copy is durable, or was consumed.
func (a *arrival) safe(c *queue.Copy) {
	if c.Arrival != any(a) {
		return
	}
	c.Arrival = nil
	if a.unsafe--; a.unsafe == 0 && !a.keyed {
		a.answer(nil)
	}
}

// answer tells whoever sent the message that it is safe, or what is wrong.
func (a *arrival) answer(err error) {
	if a.answered {
		return
	}
	a.answered = true
	if err == nil && a.peer != nil {
		a.countReceived()
	}
	if a.done != nil {
		a.done(err)
	}
	if a.conn == nil || a.conn.closed {
		return
	}
	switch {
	case err != nil:
		a.conn.refuse(&a.header, err)
	case a.header.ResponseRequired:
		a.conn.out.Respond(a.header.CommandID)
	case a.producer != nil && a.producer.info.WindowSize > 0:
		a.conn.out.Send(&message.ProducerAck{Producer: a.producer.info.ID,
			Size: int32(a.m.Size())})
	}
}

// countReceived counts what a peer forwarded and this broker took: what it refuses comes again.
func (a *arrival) countReceived() {
	if a.wire.IsAdvisory() {
		return
	}
	a.b.counts.Received++
	if a.conn != nil {
		a.conn.received++
	}
}

// refuse ends an arrival with an error.
func (a *arrival) refuse(err error) {
	a.step = len(a.b.steps)
	a.answer(err)
	if a.tx != nil {
		a.tx.refused(a, err)
	}
}

// arrivedBefore puts the moment a stored message arrived on the monotonic clock: now minus its age,
// which a clock that jumped cannot make negative.
func (b *Broker) arrivedBefore(m *message.Message) time.Duration {
	age := max(0, b.env.Wall()-m.BrokerInTime)
	return b.env.Mono() - time.Duration(age)*time.Millisecond
}

// replayOf is what the destination's policy says about replay and rates.
func replayOf(p *policy.Entry) network.Replay {
	f := p.Bridge
	if !f.Conditional {
		return network.Replay{}
	}
	return network.Replay{WhenNoConsumers: f.ReplayWhenNoConsumers, SelectorAware: f.SelectorAware,
		Delay: f.ReplayDelay, RateLimit: f.RateLimit, RateDuration: f.RateDuration}
}

func expiredCause(m *message.Message) string {
	return "java.lang.Throwable: Message Expired. Expiration:" +
		strconv.FormatInt(m.Expiration, 10)
}

// oversized refuses a message above the frame limit. A transaction that it was sent in without
// asking an answer can only roll back.
func (c *Connection) oversized(m *message.Oversized) {
	why := m.Err()
	if c.b.spoils(&m.Header) {
		c.transaction(m.Transaction).spoil(c, why)
	}
	c.countTooBig(m)
	c.refuse(&m.Header, why)
}

// countTooBig counts a message above the frame limit.
func (c *Connection) countTooBig(m *message.Oversized) {
	c.b.counts.Reasons[message.FrameTooBig]++
	c.b.tell(Event{Kind: SendRefused, Reason: message.FrameTooBig, Dest: m.Destination,
		Text: m.ID.String() + ": " + m.Err().Error(), Count: 1})
}
