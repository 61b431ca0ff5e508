package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hopwire/openwire"
)

// takeOverTime is how long Commit waits after a failover for the broker to send the transaction's
// messages again.
const takeOverTime = 2 * time.Second

// transaction is what a session has in progress.
type transaction struct {
	id     *openwire.LocalTransactionId
	log    []openwire.Command // BEGIN and the messages sent; kept with failover only
	closed []*Producer        // producers of messages in log that were closed meanwhile
}

// replay is what a new link must be told of the transaction.
func (t *transaction) replay() []openwire.Command {
	var out []openwire.Command
	for _, p := range t.closed {
		out = append(out, p.info)
	}
	out = append(out, t.log...)
	for _, p := range t.closed {
		out = append(out, &openwire.RemoveInfo{
			ObjectID: p.info.ProducerID, LastDeliveredSequenceID: -1,
		})
	}
	return out
}

// noteLocked keeps a command for replay.
func (s *Session) noteLocked(cmd openwire.Command) {
	if s.conn.target.failover != nil {
		s.tx.log = append(s.tx.log, cmd)
	}
}

// beginLocked makes sure that there is a transaction.
func (s *Session) beginLocked() error {
	if s.tx != nil {
		return nil
	}
	c := s.conn
	c.nextTx++
	tx := &transaction{id: &openwire.LocalTransactionId{Value: c.nextTx, ConnectionID: c.id}}
	begin := &openwire.TransactionInfo{
		ConnectionID: c.id, TransactionID: tx.id, Type: openwire.TransactionBegin,
	}
	if err := c.sendLocked(begin); err != nil {
		return err
	}
	s.tx = tx
	s.noteLocked(begin)
	return nil
}

// Commit makes the broker accept what the session sent and take away what it received since the
// last Commit or Rollback. ErrInDoubt: the answer was lost. ErrRolledBack: after a failover the
// messages received did not all come again, or the broker ended a consumer that had received some
// as slow; nothing of the transaction holds. Another error means that the broker refused; the
// messages received are delivered again.
func (s *Session) Commit(ctx context.Context) error {
	if s.mode != Transacted {
		return fmt.Errorf("commit: the session's mode is %v", s.mode)
	}
	if err := s.awaitTakeOver(ctx); err != nil {
		return err
	}
	c := s.conn
	results := make(chan error, 1)
	stale, lost := 0, 0
	err := c.withLink(ctx, func(*link) error {
		if s.err != nil {
			return s.err
		}
		ds := s.deliveredLocked()
		if stale, lost = countStale(ds, c.epoch), s.lost; stale+lost > 0 {
			return nil
		}
		if s.tx == nil && len(ds) == 0 {
			results <- nil
			return nil
		}
		return s.commitLocked(ds, results)
	})
	if err != nil {
		return err
	}
	if stale+lost > 0 {
		if err := s.Rollback(ctx); err != nil {
			return errors.Join(ErrRolledBack, err)
		}
		if lost > 0 {
			return fmt.Errorf("%w: of what was received, %d went back to the queue: %w", ErrRolledBack,
				lost, ErrSlowConsumer)
		}
		return fmt.Errorf("%w: of what was received before the connection was replaced, %d "+
			"did not come again", ErrRolledBack, stale)
	}
	select {
	case err := <-results:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrInDoubt, ctx.Err())
	}
}

// commitLocked writes the acknowledgements and the commit.
func (s *Session) commitLocked(ds []*delivery, results chan<- error) error {
	c := s.conn
	if err := s.beginLocked(); err != nil {
		return err
	}
	tx := s.tx
	for _, k := range s.consumers {
		if err := k.ackLocked(k.delivered, openwire.AckStandard, tx.id, nil); err != nil {
			return err
		}
		k.takenLocked(k.delivered)
	}
	commit := &openwire.TransactionInfo{
		ConnectionID: c.id, TransactionID: tx.id, Type: openwire.TransactionCommitOnePhase,
	}
	_, err := c.callLocked(commit, callDoubt, func(answer openwire.DataStructure, err error) {
		if err == nil {
			err = answerError(answer)
		}
		var refused *BrokerError
		switch {
		case err == nil:
			for _, d := range ds {
				d.consumer.rememberLocked(d)
			}
		case errors.As(err, &refused):
			err = errors.Join(err, s.redeliverLocked(ds))
		}
		s.finishLocked()
		results <- err
	})
	s.tx = nil
	return err
}

// finishLocked removes the consumers that were closed during the transaction.
func (s *Session) finishLocked() {
	for _, k := range append([]*Consumer(nil), s.consumers...) {
		if err := k.settleLocked(); err != nil {
			s.conn.reportLocked(err)
		}
	}
}

func countStale(ds []*delivery, epoch int) int {
	n := 0
	for _, d := range ds {
		if d.epoch < epoch {
			n++
		}
	}
	return n
}

// awaitTakeOver gives the broker time to dispatch again, after a failover, what the program already
// holds.
func (s *Session) awaitTakeOver(ctx context.Context) error {
	timer := time.NewTimer(takeOverTime)
	defer timer.Stop()
	for {
		stale := 0
		var moved chan struct{}
		err := s.conn.withLink(ctx, func(*link) error {
			stale = countStale(s.deliveredLocked(), s.conn.epoch)
			if stale > 0 && s.moved == nil {
				s.moved = make(chan struct{})
			}
			moved = s.moved
			return s.err
		})
		if err != nil || stale == 0 {
			return err
		}
		select {
		case <-moved:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Rollback takes back what the session sent, and delivers again what it received since the last
// Commit or Rollback, after the delay of the redelivery policy.
func (s *Session) Rollback(ctx context.Context) error {
	if s.mode != Transacted {
		return fmt.Errorf("rollback: the session's mode is %v", s.mode)
	}
	if err := s.abandon(ctx); err != nil {
		return err
	}
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.lost = 0
	err := s.redeliverLocked(s.deliveredLocked())
	s.finishLocked()
	return err
}

// abandon rolls back at the broker. Without a link there is nothing to do: the broker rolled back
// when it lost the connection.
func (s *Session) abandon(ctx context.Context) error {
	c := s.conn
	c.mu.Lock()
	if s.err != nil {
		c.mu.Unlock()
		return s.err
	}
	tx := s.tx
	s.tx = nil
	if tx == nil || c.link == nil {
		c.mu.Unlock()
		return nil
	}
	results := make(chan error, 1)
	_, err := c.callLocked(&openwire.TransactionInfo{
		ConnectionID: c.id, TransactionID: tx.id, Type: openwire.TransactionRollback,
	}, callNeedless, func(answer openwire.DataStructure, err error) {
		if err == nil {
			err = answerError(answer)
		}
		results <- err
	})
	c.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case err := <-results:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
