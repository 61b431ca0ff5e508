package sim

import (
	"time"

	"hopwire/internal/message"
)

// AckMode is how an application acknowledges.
type AckMode uint8

// The modes.
const (
	Auto       AckMode = iota // each message when the application has handled it
	ClientAck                 // Batch messages with one acknowledgement
	Individual                // each by itself, in the order of handling
	Transacted                // Batch messages in a transaction
	Manual                    // when Consumer.Ack is called
)

// Wants says what a consumer is like.
type Wants struct {
	From     message.Destination
	Prefetch int // default 1000; negative: none, it pulls
	Selector string
	Mode     AckMode
	Batch    int           // ClientAck and Transacted; default 1
	Work     time.Duration // how long the application handles one message
	NoLocal  bool
	Durable  string // name of its durable subscription
	// Handle sees each message when the application gets it; nil does nothing.
	Handle func(*message.Message)
}

// Consumer is an application's consumer.
type Consumer struct {
	c      *Client
	id     message.ConsumerID
	wants  Wants
	buffer []*message.MessageDispatch // arrived and not handled
	busy   bool
	closed bool
	open   []*Delivery // handled and not acknowledged
	last   int64       // broker sequence of the last message handled
	Got    int         // messages handled
	browse func(*message.Message)
}

// Consume opens a consumer.
func (c *Client) Consume(w Wants) *Consumer {
	if c.node == nil {
		return &Consumer{c: c, closed: true}
	}
	if w.Prefetch == 0 {
		w.Prefetch = 1000
	}
	w.Batch = max(1, w.Batch)
	c.numbers++
	s := &Consumer{c: c, wants: w, last: message.LastDeliveredUnset,
		id: message.ConsumerID{Connection: c.id, Session: 1, Value: c.numbers}}
	c.consumers[s.id] = s
	c.order = append(c.order, s)
	c.send(&message.ConsumerInfo{ID: s.id, Destination: w.From, Selector: w.Selector,
		PrefetchSize: int32(max(0, w.Prefetch)), NoLocal: w.NoLocal,
		SubscriptionName: w.Durable, DispatchAsync: true})
	c.w.trace("%s: consumes %s at %s", c.name, w.From, c.node.cfg.Name)
	if w.Prefetch < 0 {
		s.pull()
	}
	return s
}

func (s *Consumer) pull() {
	s.c.send(&message.MessagePull{Consumer: s.id, Destination: s.wants.From})
}

func (s *Consumer) took(d *message.MessageDispatch) {
	if s.browse != nil {
		s.browse(d.Message)
		return
	}
	if d.Message == nil {
		return
	}
	s.buffer = append(s.buffer, d)
	s.work()
}

// work handles what arrived, one after the other.
func (s *Consumer) work() {
	for !s.busy && !s.closed && len(s.buffer) > 0 {
		d := s.buffer[0]
		s.buffer = s.buffer[1:]
		if s.wants.Work == 0 {
			s.handle(d)
			continue
		}
		s.busy = true
		s.c.w.After(s.wants.Work, func() {
			s.busy = false
			if !s.closed {
				s.handle(d)
				s.work()
			}
		})
	}
}

func (s *Consumer) handle(d *message.MessageDispatch) {
	s.Got++
	s.last = d.Message.BrokerSequence
	x := s.c.w.ledger.delivered(d, s)
	if s.wants.Handle != nil {
		s.wants.Handle(d.Message)
	}
	if s.wants.Mode == ClientAck && s.holds(x.Fate) {
		s.Ack(len(s.open)) // an acknowledgement by ids cannot name the same message twice
	}
	s.open = append(s.open, x)
	switch s.wants.Mode {
	case Manual:
	case Transacted:
		s.ackIn(x)
	case Auto, Individual:
		s.Ack(1)
	case ClientAck:
		if len(s.open) >= s.wants.Batch {
			s.Ack(len(s.open))
		}
	}
	if s.wants.Prefetch < 0 && !s.closed {
		s.pull()
	}
}

func (s *Consumer) holds(f *Fate) bool {
	for _, d := range s.open {
		if d.Fate == f {
			return true
		}
	}
	return false
}

// Ack acknowledges the first n of what was handled and not acknowledged.
func (s *Consumer) Ack(n int) {
	n = min(n, len(s.open))
	if s.closed || n == 0 {
		return
	}
	acks := s.open[:n:n]
	s.open = s.open[n:]
	a := s.ackOf(acks)
	if s.wants.Mode == Individual {
		a.Type = message.IndividualAck
	}
	id := s.c.send(a)
	s.c.end.does[id] = func(l *life) {
		for _, d := range acks {
			s.c.w.ledger.acked(d, l)
		}
	}
}

func (s *Consumer) ackOf(acks []*Delivery) *message.MessageAck {
	first, last := acks[0], acks[len(acks)-1]
	for _, d := range acks {
		d.Acked = true
	}
	return &message.MessageAck{Consumer: s.id, Destination: last.Fate.Dest,
		Type: message.StandardAck, First: first.Fate.ID, Last: last.Fate.ID, HasFirst: true,
		HasLast: true, Count: int32(len(acks))}
}

// ackIn acknowledges in the client's transaction, and commits when the batch is full.
func (s *Consumer) ackIn(x *Delivery) {
	c := s.c
	c.Begin()
	a := s.ackOf(s.open)
	a.Transaction = c.tx.id
	c.tx.acks = append(c.tx.acks, x)
	s.open = nil
	c.send(a)
	if len(c.tx.acks) >= s.wants.Batch {
		c.Commit(func(error) {})
	}
}

// Close closes the consumer. What it got and the application did not see goes back.
func (s *Consumer) Close() {
	if s.closed {
		return
	}
	s.closed = true
	c := s.c
	if s.wants.Mode == Transacted && c.tx != nil {
		c.Commit(func(error) {})
	}
	c.w.trace("%s: closes its consumer of %s at %s", c.name, s.wants.From, c.node.cfg.Name)
	delete(c.consumers, s.id)
	for i, o := range c.order {
		if o == s {
			c.order = append(c.order[:i:i], c.order[i+1:]...)
			break
		}
	}
	c.send(&message.RemoveInfo{Object: s.id, LastDelivered: s.last})
}

// Closed reports whether the consumer is closed, or its connection.
func (s *Consumer) Closed() bool { return s.closed }

// Waiting is how many messages arrived and were not handled yet.
func (s *Consumer) Waiting() int { return len(s.buffer) }

// Open is how many messages were handled and not acknowledged.
func (s *Consumer) Open() int { return len(s.open) }

// Stall makes the application handle nothing more; what it has is neither handled nor given back
// until the consumer is closed.
func (s *Consumer) Stall() { s.busy = true }

// Browse shows f the messages of a queue, and nil at the end.
func (c *Client) Browse(d message.Destination, f func(*message.Message)) {
	s := &Consumer{c: c, wants: Wants{From: d}, browse: f}
	c.numbers++
	s.id = message.ConsumerID{Connection: c.id, Session: 1, Value: c.numbers}
	c.consumers[s.id] = s
	c.order = append(c.order, s)
	c.send(&message.ConsumerInfo{ID: s.id, Destination: d, Browser: true, PrefetchSize: 500})
}
