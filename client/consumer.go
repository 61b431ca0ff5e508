package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hopwire/openwire"
)

// consumerOptions are what a ConsumerOption changes.
type consumerOptions struct {
	info        *openwire.ConsumerInfo
	prefetch    int32
	prefetchSet bool
}

// ConsumerOption says how a consumer receives. It counts before the same option in the
// destination's name.
type ConsumerOption func(*consumerOptions)

// WithPrefetchSize is how many messages the broker may send ahead; 0 is pull.
func WithPrefetchSize(n int32) ConsumerOption {
	return func(o *consumerOptions) { o.prefetch, o.prefetchSet = n, true }
}

// WithSelector receives only messages that match a JMS selector.
func WithSelector(selector string) ConsumerOption {
	return func(o *consumerOptions) { o.info.Selector = selector }
}

// WithPriority is the consumer's priority, -128 to 127, 0 by default. The broker prefers consumers
// of higher priority while they have room.
func WithPriority(p int8) ConsumerOption {
	return func(o *consumerOptions) { o.info.Priority = p }
}

// WithNoLocal does not receive messages that were sent over the same connection.
func WithNoLocal() ConsumerOption { return func(o *consumerOptions) { o.info.NoLocal = true } }

// WithExclusive asks for all messages of a queue.
func WithExclusive() ConsumerOption { return func(o *consumerOptions) { o.info.Exclusive = true } }

// WithRetroactive asks for messages that a topic had before, as far as the broker keeps them.
func WithRetroactive() ConsumerOption {
	return func(o *consumerOptions) { o.info.Retroactive = true }
}

// WithDurable makes or continues a topic's durable subscription under a name. The connection needs
// a client id (WithClientID, or jms.clientID in the URI), which stays the same.
func WithDurable(name string) ConsumerOption {
	return func(o *consumerOptions) { o.info.SubscriptionName = name }
}

// Handler is called with each message of a consumer. When it returns an error in a mode other than
// Transacted, the message is delivered again by the redelivery policy; in a transacted session the
// transaction is rolled back. In the modes ClientAck and IndividualAck the handler acknowledges
// itself. The context ends with the connection.
type Handler func(ctx context.Context, m *Message) error

// Consumer receives messages.
type Consumer struct {
	session *Session
	wake    chan struct{} // something changed for those who wait
	closed  chan struct{}

	// Guarded by conn.mu.
	info      *openwire.ConsumerInfo
	queue     []*delivery           // not yet delivered
	delivered []*delivery           // the program has them; not acknowledged
	sequence  int64                 // of arrivals on this link
	extended  int                   // of delivered, how many a DELIVERED ack told the broker
	last      int64                 // broker's sequence of the last message delivered, -1 if none
	until     time.Time             // nothing is delivered before, because of a redelivery
	pull      *openwire.MessagePull // on its way, prefetch 0 only
	cut       int32                 // of a browser: whether the broker has more than it may see
	nulls     int                   // empty dispatches: ends of pulls, end of a browser
	handling  bool                  // its handler has a message
	closing   bool                  // closed by the program, and perhaps not at the broker yet
	err       error                 // why it is closed
}

// delivery is a message that was dispatched to a consumer.
type delivery struct {
	consumer    *Consumer
	message     *openwire.Message
	destination *Destination
	key         messageKey
	counter     int32 // redeliveries so far
	epoch       int   // of the link it came over
	sequence    int64 // of its arrival on that link, per consumer
}

// Consumer makes a consumer of messages of d, which may be a pattern or a list. The options
// consumer.prefetchSize, maximumPendingMessageLimit, noLocal, dispatchAsync, retroactive,
// selector, exclusive and priority may be given after '?' in the name; another is an error.
func (s *Session) Consumer(ctx context.Context, d *Destination, opts ...ConsumerOption,
) (*Consumer, error) {
	k, err := s.newConsumer(d, false, opts)
	if err != nil {
		return nil, err
	}
	if err := k.register(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

// Consume makes a consumer that calls a handler, by a goroutine of its own.
func (s *Session) Consume(ctx context.Context, d *Destination, h Handler, opts ...ConsumerOption,
) (*Consumer, error) {
	k, err := s.Consumer(ctx, d, opts...)
	if err != nil {
		return nil, err
	}
	s.conn.tasks.Go("handler", func(ctx context.Context) error { return k.run(ctx, h) })
	return k, nil
}

func (s *Session) newConsumer(d *Destination, browser bool, opts []ConsumerOption,
) (*Consumer, error) {
	plain, query, err := splitOptions(d)
	if err != nil {
		return nil, err
	}
	c := s.conn
	o := consumerOptions{info: &openwire.ConsumerInfo{
		Destination: plain, Browser: browser, DispatchAsync: c.settings.dispatchAsync,
		Exclusive: c.settings.exclusive && !isTopic(plain) && !browser, ClientID: c.info.ClientID,
	}}
	if err := apply(query, o.setters()); err != nil {
		return nil, fmt.Errorf("destination %s: %w", FormatDestination(plain), err)
	}
	for _, f := range opts {
		f(&o)
	}
	o.info.PrefetchSize = o.prefetch
	if !o.prefetchSet {
		o.info.PrefetchSize = c.settings.defaultPrefetch(o.info)
	}
	if o.info.PrefetchSize < 0 {
		return nil, fmt.Errorf("consumer of %s: prefetch %d; 0 is pull", FormatDestination(plain),
			o.info.PrefetchSize)
	}
	if o.info.SubscriptionName != "" && plain.Type != openwire.TypeTopic {
		return nil, fmt.Errorf("consumer of %s: a durable subscription is for topics",
			FormatDestination(plain))
	}
	if o.info.SubscriptionName != "" && c.settings.clientID == "" {
		return nil, fmt.Errorf("consumer of %s: WithDurable needs WithClientID, or nobody can continue"+
			" the subscription", FormatDestination(plain))
	}
	return &Consumer{
		session: s, info: o.info, last: -1, wake: make(chan struct{}, 1),
		closed: make(chan struct{}),
	}, nil
}

func (s *settings) defaultPrefetch(info *openwire.ConsumerInfo) int32 {
	switch {
	case info.Browser:
		return s.prefetch.Browser
	case info.SubscriptionName != "":
		return s.prefetch.Durable
	case isTopic(info.Destination):
		return s.prefetch.Topic
	}
	return s.prefetch.Queue
}

func (k *Consumer) register(ctx context.Context) error {
	s := k.session
	c := s.conn
	c.mu.Lock()
	s.nextChild++
	id := openwire.ConsumerId{
		ConnectionID: c.id.Value, SessionID: s.info.SessionID.Value, Value: s.nextChild,
	}
	k.info.ConsumerID = &id
	c.mu.Unlock()
	_, err := c.request(ctx, k.info, func() error { return cmp.Or(s.err, k.err) }, func() {
		s.consumers = append(s.consumers, k)
		c.consumers[id] = k
	})
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.consumers[id] == k {
		err = errors.Join(err, c.undoLocked(err, &openwire.RemoveInfo{
			ObjectID: k.info.ConsumerID, LastDeliveredSequenceID: -1,
		}))
	}
	k.forgetLocked(err)
	return err
}

// Destination is what the consumer receives from.
func (k *Consumer) Destination() *Destination {
	k.session.conn.mu.Lock()
	defer k.session.conn.mu.Unlock()
	return k.info.Destination
}

// Receive waits for the next message. Messages of a consumer that has a handler go to either.
func (k *Consumer) Receive(ctx context.Context) (*Message, error) {
	return k.receive(ctx, true)
}

// ReceiveNoWait returns a message that is there, or nil. With prefetch 0 it asks the broker and
// waits for its answer.
func (k *Consumer) ReceiveNoWait(ctx context.Context) (*Message, error) {
	if k.pulls() {
		return k.pullOnce(ctx)
	}
	return k.take(true)
}

func (k *Consumer) receive(ctx context.Context, ack bool) (*Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, err := k.take(ack)
		if m != nil || err != nil {
			return m, err
		}
		if err := k.ask(ctx); err != nil {
			return nil, err
		}
		if err := k.await(ctx); err != nil {
			return nil, err
		}
	}
}

// await waits until something may have come, or a redelivery is due.
func (k *Consumer) await(ctx context.Context) error {
	c := k.session.conn
	c.mu.Lock()
	var due <-chan time.Time
	if wait := time.Until(k.until); wait > 0 && len(k.queue) > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	c.mu.Unlock()
	select {
	case <-k.wake:
	case <-due:
	case <-k.closed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// take hands out the first message of the queue; nil if there is none.
func (k *Consumer) take(ack bool) (*Message, error) {
	c := k.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := k.takeLocked(time.Now())
	if d == nil || err != nil {
		return nil, err
	}
	m := d.received()
	if !ack {
		k.handling = true
		k.session.handling++
	}
	switch k.session.mode {
	case AutoAck, DupsOKAck:
		if ack {
			err = k.autoLocked(d)
		}
	case ClientAck, IndividualAck, Transacted:
		err = k.extendLocked()
	}
	return m, err
}

// autoLocked acknowledges what the program is done with: at once, or in batches with DupsOKAck.
func (k *Consumer) autoLocked(d *delivery) error {
	if k.session.mode == AutoAck {
		return k.consumedLocked([]*delivery{d}, openwire.AckStandard)
	}
	if 2*len(k.delivered) < int(k.info.PrefetchSize) && len(k.queue) > 0 {
		return nil
	}
	return k.consumedLocked(k.delivered, openwire.AckStandard)
}

// takeLocked moves the first message that is fit to be delivered from queue to delivered.
func (k *Consumer) takeLocked(now time.Time) (*delivery, error) {
	if k.err != nil {
		return nil, k.err
	}
	if k.closing {
		return nil, ErrClosed
	}
	if now.Before(k.until) {
		return nil, nil
	}
	for len(k.queue) > 0 {
		d := k.queue[0]
		k.queue[0] = nil
		if k.queue = k.queue[1:]; len(k.queue) > 0 {
			signal(k.wake)
		}
		unfit, err := k.unfitLocked(d, now)
		if err != nil {
			return nil, err
		}
		if unfit {
			continue
		}
		k.delivered = append(k.delivered, d)
		if id := d.message.MessageID; id != nil {
			k.last = id.BrokerSequenceID
		}
		return d, nil
	}
	return nil, nil
}

// arriveLocked takes a dispatch.
func (k *Consumer) arriveLocked(x *openwire.MessageDispatch) error {
	c := k.session.conn
	k.pull = nil
	if x.Message == nil {
		k.nulls++
		k.cut = x.RedeliveryCounter
		signal(k.wake)
		return nil
	}
	k.sequence++
	d := &delivery{
		consumer: k, message: x.Message, destination: x.Destination,
		key: keyOf(x.Message.MessageID), counter: x.RedeliveryCounter, epoch: c.epoch,
		sequence: k.sequence,
	}
	if d.destination == nil {
		d.destination = x.Message.Destination
	}
	if k.info.Browser {
		k.queue = append(k.queue, d)
		signal(k.wake)
		return nil
	}
	if c.audit.duplicate(d.place(), c.epoch) {
		c.audit.add(d.place(), c.epoch)
		signal(k.wake) // who pulled has to pull again
		return k.writeAcksLocked([]*delivery{d}, openwire.AckStandard, nil, nil)
	}
	for _, held := range k.delivered {
		if held.epoch < c.epoch && held.key == d.key {
			held.epoch, held.sequence, held.message = d.epoch, d.sequence, d.message
			wakeAll(&k.session.moved)
			signal(k.wake)
			return nil
		}
	}
	if k.closing {
		return nil // the broker gets it back when the consumer is removed
	}
	k.queue = append(k.queue, d)
	signal(k.wake)
	return nil
}

// interruptLocked drops what the lost link brought; the broker sends it again.
func (k *Consumer) interruptLocked() {
	k.queue, k.sequence, k.extended = nil, 0, 0
	k.until = time.Time{}
	if k.info.Browser {
		k.forgetLocked(ErrInterrupted)
	}
}

// Close removes the consumer. Messages that it did not deliver go back to the broker, and those
// delivered and not acknowledged too, except that the ones of a transaction stay until its end.
// A handler that runs is not waited for; its message still counts as it decides.
func (k *Consumer) Close() error {
	c := k.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.goneLocked() || k.closing {
		return nil
	}
	k.closeLocked()
	return k.settleLocked()
}

// settleLocked removes a closed consumer at the broker as soon as nothing holds it any more.
func (k *Consumer) settleLocked() error {
	if !k.closing || k.handling || k.session.mode == Transacted && len(k.delivered) > 0 {
		return nil
	}
	return k.finishLocked()
}

// goneLocked tells whether the broker no longer knows the consumer.
func (k *Consumer) goneLocked() bool { return k.err != nil }

// closeLocked ends receiving.
func (k *Consumer) closeLocked() {
	if k.err == nil && !k.closing {
		k.closing = true
		k.queue = nil
		close(k.closed)
	}
}

// finishLocked removes the consumer at the broker.
func (k *Consumer) finishLocked() error { return k.leaveLocked(ErrClosed) }

// leaveLocked is finishLocked for a reason.
func (k *Consumer) leaveLocked(why error) error {
	if k.goneLocked() {
		return nil
	}
	var err error
	if k.session.mode == DupsOKAck {
		done := k.delivered
		if k.handling && len(done) > 0 {
			done = done[:len(done)-1]
		}
		err = k.consumedLocked(done, openwire.AckStandard)
	}
	c := k.session.conn
	if sent := c.sendLocked(&openwire.RemoveInfo{
		ObjectID: k.info.ConsumerID, LastDeliveredSequenceID: k.last,
	}); err == nil {
		err = sent
	}
	k.forgetLocked(why)
	return err
}

// abortLocked closes a consumer because the broker asks for it. What a transaction received by it
// goes to others, so that only a rollback is left.
func (k *Consumer) abortLocked() {
	s := k.session
	err := fmt.Errorf("consumer of %s: %w: %w", FormatDestination(k.info.Destination), ErrClosed,
		ErrSlowConsumer)
	if s.mode == Transacted {
		s.lost += len(k.delivered)
	}
	if err := k.leaveLocked(err); err != nil {
		s.conn.reportLocked(err)
	}
}

// forgetLocked ends a consumer without telling the broker.
func (k *Consumer) forgetLocked(err error) {
	k.session.consumers = slices.DeleteFunc(k.session.consumers, func(x *Consumer) bool {
		return x == k
	})
	k.endLocked(err)
}

func (k *Consumer) endLocked(err error) {
	delete(k.session.conn.consumers, *k.info.ConsumerID)
	if k.err != nil {
		return
	}
	k.err = err
	k.queue = nil
	if !k.closing {
		close(k.closed)
	}
}
