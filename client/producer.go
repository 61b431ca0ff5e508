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

// defaultWindow is how many messages SendAsync has under way at most.
const defaultWindow = 1000

// sendOptions are what a SendOption changes.
type sendOptions struct {
	to          *Destination
	transient   bool
	priority    int8
	ttl         time.Duration
	window      int
	windowBytes int32
	windowed    bool // one of both is given
	noTimestamp bool
	err         error
}

// SendOption says how messages are sent: given to Session.Producer for all of them, given to Send
// for one.
type SendOption func(*sendOptions)

// To is the destination of a message of a producer that has none itself. The Destination of the
// Message is none: it says where the message was sent last.
func To(d *Destination) SendOption { return func(o *sendOptions) { o.to = d } }

// Persistent sends messages that survive the broker's end; this is the default.
func Persistent() SendOption { return func(o *sendOptions) { o.transient = false } }

// NonPersistent sends messages that end with the broker, and does not wait for confirmations.
func NonPersistent() SendOption { return func(o *sendOptions) { o.transient = true } }

// Priority is 0 to 9, 4 by default.
func Priority(p int) SendOption {
	return func(o *sendOptions) {
		if p < 0 || p > 9 {
			o.err = fmt.Errorf("priority %d; it may be 0 to 9", p)
		}
		o.priority = int8(p)
	}
}

// TTL is the time after which a message expires; 0, the default, is never.
func TTL(d time.Duration) SendOption {
	return func(o *sendOptions) {
		if d < 0 {
			o.err = fmt.Errorf("TTL %v; 0 is never", d)
		}
		o.ttl = d
	}
}

// NoTimestamp leaves the timestamp of messages to the broker; such messages do not expire.
func NoTimestamp() SendOption { return func(o *sendOptions) { o.noTimestamp = true } }

// Window is how many messages of SendAsync may be unconfirmed, 1000 by default, at least 1. It is
// for Session.Producer only.
func Window(messages int) SendOption {
	return func(o *sendOptions) {
		if messages < 1 {
			o.err = fmt.Errorf("Window %d; it is at least 1", messages)
		}
		o.window, o.windowed = messages, true
	}
}

// WindowBytes is how many bytes of messages that are sent without confirmation a broker lets a
// producer have under way; 0, the default, is no limit. It is for Session.Producer only.
func WindowBytes(n int32) SendOption {
	return func(o *sendOptions) {
		if n < 0 {
			o.err = fmt.Errorf("WindowBytes %d; 0 is no limit", n)
		}
		o.windowBytes, o.windowed = n, true
	}
}

// Producer sends messages to one destination, or each message to its own.
type Producer struct {
	session  *Session
	info     *openwire.ProducerInfo
	defaults sendOptions

	// Guarded by conn.mu.
	sequence int64
	underWay int           // messages of SendAsync without confirmation
	unheard  int           // and those whose confirmation the program has not heard of
	bytes    int64         // sent and not acknowledged by ProducerAck
	lost     int           // how often bytes were forgotten with a link
	progress chan struct{} // closed when underWay or bytes fall; nil if nobody waits
	err      error         // why it is closed
}

// Producer makes a producer of messages to d; nil if each message says by To where it goes. The
// name may carry the options ?producer.windowSize= and ?producer.dispatchAsync=.
func (s *Session) Producer(ctx context.Context, d *Destination, opts ...SendOption,
) (*Producer, error) {
	p := &Producer{session: s, defaults: sendOptions{priority: 4, window: defaultWindow}}
	for _, o := range opts {
		o(&p.defaults)
	}
	if p.defaults.err != nil {
		return nil, p.defaults.err
	}
	p.defaults.windowed = false // of a send it would be
	p.info = &openwire.ProducerInfo{
		DispatchAsync: s.conn.settings.dispatchAsync, WindowSize: p.defaults.windowBytes,
	}
	if d != nil {
		var err error
		if p.info.Destination, err = p.readOptions(d); err != nil {
			return nil, err
		}
	}
	c := s.conn
	c.mu.Lock()
	s.nextChild++
	p.info.ProducerID = &openwire.ProducerId{
		ConnectionID: c.id.Value, SessionID: s.info.SessionID.Value, Value: s.nextChild,
	}
	c.mu.Unlock()
	_, err := c.request(ctx, p.info, func() error { return cmp.Or(s.err, p.err) }, func() {
		s.producers = append(s.producers, p)
		c.producers[*p.info.ProducerID] = p
	})
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.producers[*p.info.ProducerID] == p {
			err = errors.Join(err, c.undoLocked(err, &openwire.RemoveInfo{
				ObjectID: p.info.ProducerID, LastDeliveredSequenceID: -1,
			}))
		}
		p.forgetLocked(err)
		return nil, err
	}
	return p, nil
}

func (p *Producer) readOptions(d *Destination) (*Destination, error) {
	plain, query, err := splitOptions(d)
	if err != nil {
		return nil, err
	}
	err = apply(query, map[string]setter{
		"producer.windowSize":    number32(&p.info.WindowSize),
		"producer.dispatchAsync": truth(&p.info.DispatchAsync),
	})
	if err != nil {
		return nil, fmt.Errorf("destination %s: %w", FormatDestination(plain), err)
	}
	return plain, nil
}

// Send sends a message. Persistent ones outside a transaction are confirmed by the broker before
// Send returns; if the context ends before, the message may have been taken or not. Others are
// written, and trouble with them is told to the error handler or by Commit.
func (p *Producer) Send(ctx context.Context, m *Message, opts ...SendOption) error {
	s := p.session
	c := s.conn
	o, err := p.options(opts)
	if err != nil {
		return err
	}
	confirm := c.settings.alwaysSync || c.settings.sendTimeout > 0 ||
		!o.transient && !c.settings.asyncSend
	if s.mode == Transacted || !confirm {
		return p.write(ctx, m, o)
	}
	if t := c.settings.sendTimeout; t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t)
		defer cancel()
	}
	w, err := p.make(m, o)
	if err != nil {
		return err
	}
	_, err = c.request(ctx, w, p.whyClosedLocked, nil)
	return err
}

// SendAsync sends a message and has confirmed called, by a goroutine of the connection and in the
// order of the confirmations, when the broker has taken or refused it. It waits while the window
// is full. confirmed may be nil; Flush then tells nothing of failures. In a transaction the
// confirmation means that the broker has the message, not that it is committed.
func (p *Producer) SendAsync(ctx context.Context, m *Message, confirmed func(error),
	opts ...SendOption,
) error {
	o, err := p.options(opts)
	if err != nil {
		return err
	}
	if err := p.await(ctx, func() bool { return p.underWay < p.defaults.window }, func() {
		p.underWay++
		p.unheard++
	}); err != nil {
		return err
	}
	c := p.session.conn
	w, err := p.make(m, o)
	if err == nil {
		err = c.withLink(ctx, func(*link) error {
			if err := p.enlistLocked(w); err != nil {
				return err
			}
			k, err := c.callLocked(w, callAgain, func(answer openwire.DataStructure, err error) {
				if err == nil {
					err = answerError(answer)
				}
				p.confirmedLocked(confirmed, err)
			})
			if err != nil {
				return err
			}
			k.open = p.whyClosedLocked
			if p.session.mode == Transacted {
				p.session.noteLocked(w)
			}
			return nil
		})
	}
	if err != nil {
		c.mu.Lock()
		p.confirmedLocked(nil, err)
		c.mu.Unlock()
	}
	return err
}

// confirmedLocked makes room in the window and tells the program.
func (p *Producer) confirmedLocked(confirmed func(error), err error) {
	p.underWay--
	wakeAll(&p.progress)
	if confirmed == nil {
		p.unheard--
		return
	}
	c := p.session.conn
	c.postLocked(func() {
		confirmed(err)
		c.mu.Lock()
		defer c.mu.Unlock()
		p.unheard--
		wakeAll(&p.progress)
	})
}

// Flush waits until every message of SendAsync is confirmed or refused, and the program was told.
// Called by a confirmation or a handler of errors or states, behind which others are told, it does
// not wait for these.
func (p *Producer) Flush(ctx context.Context) error {
	c, me := p.session.conn, goroutine()
	return p.await(ctx, func() bool {
		return p.unheard == 0 || p.underWay == 0 && c.caller == me
	}, func() {})
}

// await waits until a condition holds, and then does something under the same lock.
func (p *Producer) await(ctx context.Context, holds func() bool, then func()) error {
	c := p.session.conn
	for {
		c.mu.Lock()
		if p.err != nil {
			err := p.err
			c.mu.Unlock()
			return err
		}
		if holds() {
			then()
			c.mu.Unlock()
			return nil
		}
		if p.progress == nil {
			p.progress = make(chan struct{})
		}
		progress := p.progress
		c.mu.Unlock()
		select {
		case <-progress:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// write sends without confirmation.
func (p *Producer) write(ctx context.Context, m *Message, o sendOptions) error {
	w, err := p.make(m, o)
	if err != nil {
		return err
	}
	giveBack, err := p.takeWindow(ctx, int64(1024+len(w.MarshalledProperties)+len(w.Content)))
	if err != nil {
		return err
	}
	c := p.session.conn
	err = c.withLink(ctx, func(*link) error {
		if err := p.enlistLocked(w); err != nil {
			return err
		}
		if err := c.sendLocked(w); err != nil {
			return err
		}
		if p.session.mode == Transacted {
			p.session.noteLocked(w)
		}
		return nil
	})
	if err != nil {
		giveBack()
	}
	return err
}

// takeWindow waits for room in the window and takes it; giveBack is for what was not sent.
func (p *Producer) takeWindow(ctx context.Context, bytes int64) (giveBack func(), err error) {
	window := int64(p.info.WindowSize)
	if window <= 0 {
		return func() {}, nil
	}
	c := p.session.conn
	lost := 0
	err = p.await(ctx, func() bool { return p.bytes < window }, func() {
		p.bytes += bytes
		lost = p.lost
	})
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p.lost == lost { // else it went with the link
			p.acceptedLocked(bytes)
		}
	}, err
}

// whyClosedLocked is nil while the producer is open.
func (p *Producer) whyClosedLocked() error { return p.err }

// enlistLocked puts a message into the session's transaction if it has one.
func (p *Producer) enlistLocked(w *openwire.Message) error {
	if p.err != nil {
		return p.err
	}
	if p.session.mode != Transacted {
		return nil
	}
	if err := p.session.beginLocked(); err != nil {
		return err
	}
	w.TransactionID = p.session.tx.id
	return nil
}

func (p *Producer) options(opts []SendOption) (sendOptions, error) {
	o := p.defaults
	for _, f := range opts {
		f(&o)
	}
	switch {
	case o.err != nil:
		return o, o.err
	case o.windowed:
		return o, fmt.Errorf("send: Window and WindowBytes are for Session.Producer")
	case p.info.Destination != nil && o.to == nil:
		o.to = p.info.Destination
	case p.info.Destination != nil && *o.to != *p.info.Destination:
		return o, fmt.Errorf("send to %s: the producer is for %s; make one without a destination",
			FormatDestination(o.to), FormatDestination(p.info.Destination))
	case o.to == nil:
		return o, fmt.Errorf("send: no destination: give one to Session.Producer, or by client.To to" +
			" Send, which does not read the Destination of the Message")
	}
	return o, nil
}

// make turns the program's message into a command and fills in what sending adds to it.
func (p *Producer) make(m *Message, o sendOptions) (*openwire.Message, error) {
	w := m.wire
	if m.changed {
		if err := w.SetProperties(m.properties); err != nil {
			return nil, err
		}
	}
	c := p.session.conn
	c.mu.Lock()
	p.sequence++
	id := &openwire.MessageId{ProducerID: p.info.ProducerID, ProducerSequenceID: p.sequence}
	c.mu.Unlock()
	m.ID, m.Destination, m.Persistent, m.Priority = formatID(id), o.to, !o.transient, int(o.priority)
	m.Timestamp, m.Expiration = time.Time{}, time.Time{}
	x := &openwire.Message{
		Type: w.Type, ProducerID: p.info.ProducerID, Destination: o.to, MessageID: id,
		GroupID: m.GroupID, GroupSequence: m.GroupSequence, CorrelationID: m.CorrelationID,
		Persistent: !o.transient, Priority: o.priority, ReplyTo: m.ReplyTo, JMSType: m.Type,
		Content: w.Content, MarshalledProperties: w.MarshalledProperties, Compressed: w.Compressed,
		RemoteBlobURL: w.RemoteBlobURL, MIMEType: w.MIMEType, DeletedByBroker: w.DeletedByBroker,
	}
	if x.Type == 0 {
		x.Type = openwire.TypeMessage
	}
	if !o.noTimestamp {
		m.Timestamp = time.Now().Truncate(time.Millisecond)
		x.Timestamp = m.Timestamp.UnixMilli()
		if o.ttl > 0 {
			m.Expiration = m.Timestamp.Add(o.ttl)
			x.Expiration = m.Expiration.UnixMilli()
		}
	}
	if c.settings.compress {
		x.Compress()
	}
	return x, nil
}

// Close waits for the confirmations of SendAsync and removes the producer.
func (p *Producer) Close(ctx context.Context) error {
	c := p.session.conn
	c.mu.Lock()
	over := p.err != nil
	c.mu.Unlock()
	if over {
		return nil
	}
	err := p.Flush(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.err != nil {
		return err
	}
	if tx := p.session.tx; tx != nil {
		tx.closed = append(tx.closed, p)
	}
	sendErr := c.sendLocked(&openwire.RemoveInfo{
		ObjectID: p.info.ProducerID, LastDeliveredSequenceID: -1,
	})
	p.forgetLocked(ErrClosed)
	if err == nil {
		err = sendErr
	}
	return err
}

func (p *Producer) forgetLocked(err error) {
	p.session.producers = slices.DeleteFunc(p.session.producers, func(x *Producer) bool {
		return x == p
	})
	p.endLocked(err)
}

func (p *Producer) endLocked(err error) {
	delete(p.session.conn.producers, *p.info.ProducerID)
	if p.err == nil {
		p.err = err
	}
	wakeAll(&p.progress)
}

// interruptLocked forgets acknowledgements that will not come any more.
func (p *Producer) interruptLocked() {
	p.lost++
	p.acceptedLocked(p.bytes)
}

// acceptedLocked notes that the broker has taken messages of so many bytes.
func (p *Producer) acceptedLocked(size int64) {
	p.bytes = max(p.bytes-size, 0)
	wakeAll(&p.progress)
}
