package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/openwire"
)

func TestAReplacedConnectionIsToldEverythingInOrderUnderTheOldIDs(t *testing.T) {
	b := newScript(t)
	states := make(chan State, 10)
	c, p := b.dialed(b.failover(""), WithStateHandler(func(s State, _ error) { states <- s }))
	s, q := p.produce(c, Transacted)
	_, info := p.consume(s)
	var temp *openwire.DestinationInfo
	ok(t, during(t, func() error { _, err := c.TempQueue(bound(t)); return err }, func() {
		temp = expect[*openwire.DestinationInfo](p)
		p.answer(temp)
	}))
	send(t, q, "in the transaction")
	begin := expect[*openwire.TransactionInfo](p)
	logged := expect[*openwire.Message](p)
	_, plain := p.produce(c, AutoAck)

	var sent *openwire.Message
	err := during(t, func() error { return plain.Send(bound(t), NewText("x")) }, func() {
		sent = expect[*openwire.Message](p)
		p.conn.Close() // the confirmation is lost
		p = b.accept()
		p.welcome(true)
		if x := expect[*openwire.DestinationInfo](p); x.CommandID != temp.CommandID {
			t.Errorf("the temporary queue comes back as %+v", x)
		}
		expect[*openwire.SessionInfo](p)
		expect[*openwire.ProducerInfo](p)
		if x := expect[*openwire.ConsumerInfo](p); x.CommandID != info.CommandID ||
			*x.ConsumerID != *info.ConsumerID || x.PrefetchSize != 1000 {
			t.Errorf("the consumer comes back as %+v", x)
		}
		expect[*openwire.SessionInfo](p)
		expect[*openwire.ProducerInfo](p)
		if x := expect[*openwire.TransactionInfo](p); x.CommandID != begin.CommandID ||
			x.Type != openwire.TransactionBegin {
			t.Errorf("the transaction begins with %+v", x)
		}
		if x := expect[*openwire.Message](p); x.CommandID != logged.CommandID ||
			x.MessageID.ProducerSequenceID != logged.MessageID.ProducerSequenceID {
			t.Errorf("the transaction goes on with %+v", x)
		}
		again := expect[*openwire.Message](p)
		if again.CommandID != sent.CommandID || !again.ResponseRequired ||
			keyOf(again.MessageID) != keyOf(sent.MessageID) {
			t.Errorf("sent %+v\nthen %+v", sent, again)
		}
		p.answer(again)
	})
	ok(t, err)
	if a, b := <-states, <-states; a != Interrupted || b != Resumed {
		t.Errorf("states %v, %v", a, b)
	}
}

func TestHalfAFrameIsALostConnection(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.failover(""))
	s := session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	k, info := p.consume(s)
	m := &openwire.MessageDispatch{
		ConsumerID: info.ConsumerID, Destination: Queue("Q"), Message: &openwire.Message{},
	}
	m.Message.SetText("torn")
	frame := p.frame(m)
	_, err := p.conn.Write(frame[:len(frame)/2])
	ok(t, err)
	p.conn.Close()
	p = b.accept()
	p.welcome(true)
	expect[*openwire.SessionInfo](p)
	info = expect[*openwire.ConsumerInfo](p)
	p.deliver(info, 1)
	if got := texts(t, k, 1); got[0] != "1" {
		t.Fatal(got)
	}
	if got := p.ack(); got != "2 1-1 1" {
		t.Fatal(got)
	}
}

func TestACommitWithoutAnswerIsInDoubtAndNotRepeated(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.failover(""))
	s, q := p.produce(c, Transacted)
	send(t, q, "x")
	expect[*openwire.TransactionInfo](p)
	expect[*openwire.Message](p)
	err := during(t, func() error { return s.Commit(bound(t)) }, func() {
		expect[*openwire.TransactionInfo](p)
		p.conn.Close()
	})
	if !errors.Is(err, ErrInDoubt) {
		t.Fatalf("commit gives %v", err)
	}
	p = b.accept()
	p.welcome(true)
	expect[*openwire.SessionInfo](p)
	expect[*openwire.ProducerInfo](p)
	send(t, q, "y")
	if x := expect[*openwire.TransactionInfo](p); x.Type != openwire.TransactionBegin {
		t.Fatalf("after the doubt came %+v", x)
	}
}

// failedOver has a consumer receive the messages 1 and 2, and then loses the connection.
func failedOver(t *testing.T, mode AckMode) (
	c *Conn, s *Session, k *Consumer, got []*Message, p *peer, info *openwire.ConsumerInfo,
) {
	t.Helper()
	b := newScript(t)
	c, p = b.dialed(b.failover(""))
	s = session(t, c, mode)
	expect[*openwire.SessionInfo](p)
	k, info = p.consume(s)
	p.deliver(info, 1, 2, 3)
	for range 2 {
		got = append(got, must[*Message](t)(k.Receive(bound(t))))
	}
	p.conn.Close()
	p = b.accept()
	p.welcome(true)
	expect[*openwire.SessionInfo](p)
	return c, s, k, got, p, expect[*openwire.ConsumerInfo](p)
}

func TestWhatWasAcknowledgedIsNotShownTwice(t *testing.T) {
	_, _, k, _, p, info := failedOver(t, AutoAck)
	p.deliver(info, 1, 2, 3)
	if got := texts(t, k, 1); got[0] != "3" {
		t.Fatalf("after the failover came %s", got)
	}
	for _, want := range []string{"2 1-1 1", "2 2-2 1", "2 3-3 1"} {
		if got := p.ack(); got != want {
			t.Errorf("ack %s, want %s", got, want)
		}
	}
	// On the same connection a broker sends a message again because somebody wants it so.
	p.deliver(info, 1)
	if got := texts(t, k, 1); got[0] != "1" {
		t.Fatal(got)
	}
}

func TestAHeldMessageIsTakenOverAndItsAckCounts(t *testing.T) {
	_, _, k, got, p, info := failedOver(t, ClientAck)
	p.deliver(info, 4, 2, 1, 3)
	if more := texts(t, k, 2); !slices.Equal(more, []string{"4", "3"}) {
		t.Fatalf("after the failover came %q", more)
	}
	ok(t, got[0].Ack())
	if got := p.ack(); got != "2 4-3 4" {
		t.Fatalf("ack %s", got)
	}
}

func TestAnAckBeforeTheSecondDispatchIsRemembered(t *testing.T) {
	_, _, k, got, p, info := failedOver(t, IndividualAck)
	ok(t, got[0].Ack())
	p.deliver(info, 1, 2, 3)
	if more := texts(t, k, 1); more[0] != "3" {
		t.Fatalf("after the failover came %q", more)
	}
	if got := p.ack(); got != "2 1-1 1" {
		t.Fatalf("ack %s", got)
	}
	ok(t, got[1].Ack())
	if got := p.ack(); got != "4 0-2 1" {
		t.Fatalf("ack %s", got)
	}
}

func TestATransactionSurvivesWhenItsMessagesComeAgain(t *testing.T) {
	_, s, _, _, p, info := failedOver(t, Transacted)
	err := during(t, func() error { return s.Commit(bound(t)) }, func() {
		p.deliver(info, 1, 2, 3)
		expect[*openwire.TransactionInfo](p)
		if got := p.ack(); got != "2 1-2 2 tx" {
			t.Errorf("ack %s", got)
		}
		p.answer(expect[*openwire.TransactionInfo](p))
	})
	ok(t, err)
}

func TestATransactionIsRolledBackWhenItsMessagesDoNotComeAgain(t *testing.T) {
	_, s, k, _, p, info := failedOver(t, Transacted)
	p.deliver(info, 2)
	if err := s.Commit(bound(t)); !errors.Is(err, ErrRolledBack) {
		t.Fatalf("commit gives %v", err)
	}
	if got := p.ack(); got != "3 2-2 1" {
		t.Fatalf("ack %s", got)
	}
	if got := texts(t, k, 1); got[0] != "2" {
		t.Fatalf("redelivered %s", got)
	}
}

func TestAPullIsAskedForAgain(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.failover(""))
	s := session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	k, _ := p.consume(s, WithPrefetchSize(0))
	err := during(t, func() error { _, err := k.Receive(bound(t)); return err }, func() {
		first := expect[*openwire.MessagePull](p)
		p.conn.Close()
		p = b.accept()
		p.welcome(true)
		expect[*openwire.SessionInfo](p)
		info := expect[*openwire.ConsumerInfo](p)
		if x := expect[*openwire.MessagePull](p); x.CommandID != first.CommandID {
			t.Errorf("pulled by %+v, then by %+v", first, x)
		}
		p.deliver(info, 1)
	})
	ok(t, err)
}

func TestReconnectingEndsAfterMaxReconnectAttempts(t *testing.T) {
	b := newScript(t)
	failed := make(chan error, 10)
	c, p := b.dialed(b.failover("&maxReconnectAttempts=2"),
		WithErrorHandler(func(err error) { failed <- err }))
	s := session(t, c, AutoAck)
	b.l.Close()
	p.conn.Close()
	select {
	case <-c.Done():
	case <-bound(t).Done():
		t.Fatal("the connection goes on")
	}
	if err := c.Err(); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("failed by %v", err)
	}
	if err := <-failed; !errors.Is(err, ErrUnavailable) {
		t.Fatalf("reported %v", err)
	}
	if _, err := s.Consumer(bound(t), Queue("Q")); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("a consumer of the failed connection: %v", err)
	}
}

func TestStartupAttemptsAreBounded(t *testing.T) {
	b := newScript(t)
	b.l.Close()
	_, err := Dial(bound(t), b.failover("&startupMaxReconnectAttempts=3"))
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("dial gives %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, b.failover("")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("dial gives %v", err)
	}
}

func TestSendsWaitForAConnectionNoLongerThanTheTimeout(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.failover("&timeout=50"))
	_, q := p.produce(c, AutoAck)
	b.l.Close()
	p.conn.Close()
	waitDown(t, c)
	if err := q.Send(bound(t), NewText("x")); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("send gives %v", err)
	}
}

func waitDown(t *testing.T, c *Conn) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.Addr() != "" {
		select {
		case <-tick.C:
		case <-bound(t).Done():
			t.Fatal("the connection is not noticed to be lost")
		}
	}
}

func TestCloseWorksWhileThereIsNoConnection(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.failover(""))
	s, _ := p.produce(c, AutoAck)
	p.consume(s)
	b.l.Close()
	p.conn.Close()
	waitDown(t, c)
	ok(t, c.Close(bound(t)))
}

func TestABrowserDoesNotOutliveItsConnection(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.failover(""))
	s := session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	var browser *Browser
	ok(t, during(t, func() (err error) {
		browser, err = s.Browser(bound(t), Queue("Q"))
		return err
	}, func() { p.answer(expect[*openwire.ConsumerInfo](p)) }))
	p.conn.Close()
	p = b.accept()
	p.welcome(true)
	if _, err := browser.Next(bound(t)); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("next gives %v", err)
	}
}

func TestAsyncSendsAreConfirmedAcrossAFailover(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.failover(""))
	_, q := p.produce(c, AutoAck)
	var confirmed []string
	for i := range 3 {
		ok(t, q.SendAsync(bound(t), NewText(fmt.Sprint(i)), func(err error) {
			confirmed = append(confirmed, fmt.Sprint(i, err))
		}))
	}
	var ids []int32
	for range 3 {
		ids = append(ids, expect[*openwire.Message](p).CommandID)
	}
	p.write(&openwire.Response{CorrelationID: ids[1]})
	waitPending(t, c, 2)
	p.conn.Close()
	p = b.accept()
	p.welcome(true)
	expect[*openwire.SessionInfo](p)
	expect[*openwire.ProducerInfo](p)
	for _, id := range []int32{ids[0], ids[2]} {
		m := expect[*openwire.Message](p)
		if m.CommandID != id {
			t.Errorf("sent again: command %d, want %d", m.CommandID, id)
		}
		p.answer(m)
	}
	ok(t, q.Flush(bound(t)))
	cut(c)
	if want := []string{"1 <nil>", "0 <nil>", "2 <nil>"}; !slices.Equal(confirmed, want) {
		t.Errorf("confirmed %q, want %q", confirmed, want)
	}
}

func waitPending(t *testing.T, c *Conn, n int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		c.mu.Lock()
		left := len(c.pending)
		c.mu.Unlock()
		if left == n {
			return
		}
		select {
		case <-tick.C:
		case <-bound(t).Done():
			t.Fatalf("%d calls wait, want %d", left, n)
		}
	}
}
