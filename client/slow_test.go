package client

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"hopwire/openwire"
)

// A consumer that is ended as slow says what the program has seen, and the session may go on.
func TestASlowConsumerIsClosedAtTheBroker(t *testing.T) {
	for mode := range Transacted {
		b := newScript(t)
		c, p := b.dialed(b.uri())
		s := session(t, c, mode)
		expect[*openwire.SessionInfo](p)
		k, info := p.consume(s)
		p.deliver(info, 1, 2, 3)
		holds(k, 3)
		texts(t, k, 2)
		if mode == AutoAck {
			p.ack()
			p.ack()
		}
		p.write(&openwire.ConsumerControl{ConsumerID: info.ConsumerID, Close: true})
		if mode == DupsOKAck {
			if got := p.ack(); got != "2 1-2 2" {
				t.Errorf("%v: what the program has is acknowledged by %s", mode, got)
			}
		}
		r := expect[*openwire.RemoveInfo](p)
		if r.LastDeliveredSequenceID != 2 || !reflect.DeepEqual(r.ObjectID, info.ConsumerID) {
			t.Errorf("%v: the client sent %+v", mode, r)
		}
		if m, err := k.Receive(bound(t)); !errors.Is(err, ErrSlowConsumer) {
			t.Errorf("%v: receive gives %v, %v", mode, m, err)
		}
		p.consume(s)
	}
}

func TestASlowHandlersConsumerIsToldToTheErrorHandler(t *testing.T) {
	b := newScript(t)
	reported := make(chan error, 1)
	c, p := b.dialed(b.uri(), WithErrorHandler(func(err error) { reported <- err }))
	s := session(t, c, DupsOKAck)
	expect[*openwire.SessionInfo](p)
	_, info, goOn := p.busy(s)
	p.write(&openwire.ConsumerControl{ConsumerID: info.ConsumerID, Close: true})
	if r := expect[*openwire.RemoveInfo](p); r.LastDeliveredSequenceID != 1 {
		t.Errorf("the client sent %+v", r)
	}
	short, cancel := context.WithTimeout(bound(t), 50*time.Millisecond)
	defer cancel()
	if err := s.Close(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a session whose handler runs closes: %v", err)
	}
	close(goOn)
	if err := <-reported; !errors.Is(err, ErrSlowConsumer) {
		t.Errorf("reported %v", err)
	}
}

// What was received by a consumer that is ended as slow goes to others: what was sent for it is
// taken back.
func TestATransactionOfASlowConsumerRollsBack(t *testing.T) {
	for _, sends := range []bool{true, false} {
		b := newScript(t)
		c, p := b.dialed(b.uri())
		s, q := p.produce(c, Transacted)
		k, info := p.consume(s)
		p.deliver(info, 1, 2)
		texts(t, k, 2)
		if sends {
			ok(t, q.Send(bound(t), NewText("x")))
			expect[*openwire.TransactionInfo](p)
			expect[*openwire.Message](p)
		}
		p.write(&openwire.ConsumerControl{ConsumerID: info.ConsumerID, Close: true})
		if r := expect[*openwire.RemoveInfo](p); r.LastDeliveredSequenceID != 2 {
			t.Errorf("the client sent %+v", r)
		}
		if _, err := k.Receive(bound(t)); !errors.Is(err, ErrSlowConsumer) {
			t.Errorf("receive gives %v", err)
		}
		err := during(t, func() error { return s.Commit(bound(t)) }, func() {
			if sends {
				x := expect[*openwire.TransactionInfo](p)
				if x.Type != openwire.TransactionRollback {
					t.Errorf("the client sent %+v", x)
				}
				p.answer(x)
			}
		})
		if !errors.Is(err, ErrRolledBack) {
			t.Errorf("commit with sends %t gives %v", sends, err)
		}
		ok(t, s.Commit(bound(t))) // of nothing
	}
}
