package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hopwire/openwire"
)

// AckMode is when received messages count as consumed.
type AckMode int

// The modes of a session.
const (
	// AutoAck acknowledges each message when Receive returns it or its handler returned nil.
	AutoAck AckMode = iota
	// ClientAck acknowledges by Message.Ack everything that the session delivered so far.
	ClientAck
	// DupsOKAck is AutoAck that acknowledges several messages at once; after a failure more of them
	// come again.
	DupsOKAck
	// IndividualAck acknowledges by Message.Ack that message alone.
	IndividualAck
	// Transacted sends and acknowledges by Commit, and takes both back by Rollback.
	Transacted
)

// String is the name that ActiveMQ's command line uses.
func (m AckMode) String() string {
	names := [...]string{
		"AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "DUPS_OK_ACKNOWLEDGE", "INDIVIDUAL_ACKNOWLEDGE",
		"SESSION_TRANSACTED",
	}
	if m < 0 || int(m) >= len(names) {
		return fmt.Sprintf("AckMode(%d)", int(m))
	}
	return names[m]
}

// Session is a series of sends and receives with one way of acknowledging. Its handlers run one at
// a time.
type Session struct {
	conn *Conn
	mode AckMode
	info *openwire.SessionInfo
	turn sync.Mutex // held while a handler runs

	// Guarded by conn.mu.
	producers []*Producer
	consumers []*Consumer
	nextChild int64
	tx        *transaction  // nil until something was sent or acknowledged
	lost      int           // received in the transaction by consumers that the broker ended
	handling  int           // handlers that have a message, of consumers that are gone, too
	moved     chan struct{} // closed when a stale delivery was taken over; nil if nobody waits
	quiet     chan struct{} // closed when a handler returns; nil if nobody waits
	err       error         // why it is closed
}

// Session opens a session.
func (c *Conn) Session(ctx context.Context, mode AckMode) (*Session, error) {
	if mode < AutoAck || mode > Transacted {
		return nil, fmt.Errorf("session: no such mode %d", mode)
	}
	s := &Session{conn: c, mode: mode}
	err := c.withLink(ctx, func(*link) error {
		c.nextID++
		s.info = &openwire.SessionInfo{
			SessionID: &openwire.SessionId{ConnectionID: c.id.Value, Value: c.nextID},
		}
		if err := c.sendLocked(s.info); err != nil {
			return err
		}
		c.sessions = append(c.sessions, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Mode is how the session acknowledges.
func (s *Session) Mode() AckMode { return s.mode }

// Close closes the session's consumers and producers. An open transaction is rolled back. Close
// waits for handlers that run, as long as the context allows; called by one of them it does nothing
// and returns ErrOwnHandler.
func (s *Session) Close(ctx context.Context) error {
	c, me := s.conn, goroutine()
	c.mu.Lock()
	if c.handlers[me] == s {
		c.mu.Unlock()
		return fmt.Errorf("closing the session: %w", ErrOwnHandler)
	}
	if s.err != nil {
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	err := s.hush(ctx)
	c.mu.Lock()
	producers := slices.Clone(s.producers)
	consumers := slices.Clone(s.consumers)
	open := s.tx != nil
	c.mu.Unlock()
	if open {
		lost := s.abandon(ctx)
		if _, gone := errors.AsType[*BrokerError](lost); !gone { // else it was rolled back before
			err = errors.Join(err, lost)
		}
	}
	for _, k := range consumers {
		c.mu.Lock()
		k.closeLocked()
		err = errors.Join(err, k.finishLocked())
		c.mu.Unlock()
	}
	for _, p := range producers {
		err = errors.Join(err, p.Close(ctx))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err != nil {
		return err
	}
	if tx := s.tx; tx != nil { // a send beside the closing began it
		s.tx = nil
		err = errors.Join(err, c.sendLocked(&openwire.TransactionInfo{
			ConnectionID: c.id, TransactionID: tx.id, Type: openwire.TransactionRollback,
		}))
	}
	err = errors.Join(err, c.sendLocked(&openwire.RemoveInfo{
		ObjectID: s.info.SessionID, LastDeliveredSequenceID: -1,
	}))
	c.sessions = slices.DeleteFunc(c.sessions, func(x *Session) bool { return x == s })
	s.endLocked(ErrClosed)
	return err
}

// hush ends receiving and waits for the handlers that run.
func (s *Session) hush(ctx context.Context) error {
	c := s.conn
	for {
		c.mu.Lock()
		busy := s.handling > 0
		for _, k := range s.consumers {
			k.closeLocked()
		}
		if busy && s.quiet == nil {
			s.quiet = make(chan struct{})
		}
		quiet := s.quiet
		c.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-quiet:
		case <-c.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// endLocked ends everything in the session without telling the broker.
func (s *Session) endLocked(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
	for _, k := range s.consumers {
		k.endLocked(err)
	}
	for _, p := range s.producers {
		p.endLocked(err)
	}
}

// interruptLocked makes everything that was dispatched stale.
func (s *Session) interruptLocked() {
	for _, k := range slices.Clone(s.consumers) { // a browser ends
		k.interruptLocked()
	}
	for _, p := range s.producers {
		p.interruptLocked()
	}
}

// deliveredLocked are all deliveries that the program has and that are not acknowledged.
func (s *Session) deliveredLocked() []*delivery {
	var all []*delivery
	for _, k := range s.consumers {
		all = append(all, k.delivered...)
	}
	return all
}

// Recover delivers again, after the delay of the redelivery policy, what the session delivered and
// the program has not acknowledged. It is for ClientAck and IndividualAck; a transacted session
// has Rollback.
func (s *Session) Recover() error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.mode != ClientAck && s.mode != IndividualAck {
		return fmt.Errorf("recover: a session of mode %v has nothing to recover", s.mode)
	}
	return s.redeliverLocked(s.deliveredLocked())
}

// redeliverLocked puts deliveries back to the front of their consumers' queues.
func (s *Session) redeliverLocked(ds []*delivery) error {
	var err error
	for _, k := range s.consumers {
		var mine []*delivery
		for _, d := range ds {
			if d.consumer == k {
				mine = append(mine, d)
			}
		}
		if len(mine) > 0 {
			err = errors.Join(err, k.redeliverLocked(mine, time.Now()))
		}
	}
	return err
}
