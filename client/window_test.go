package client

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"hopwire/openwire"
)

// interrupted waits until the connection has no link.
func interrupted(c *Conn) {
	for {
		c.mu.Lock()
		gone := c.link == nil
		c.mu.Unlock()
		if gone {
			return
		}
		runtime.Gosched()
	}
}

// over is a context that is done.
func over(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// windowed makes a producer with a window that one message more than fills.
func (p *peer) windowed(c *Conn) *Producer {
	p.t.Helper()
	s := session(p.t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	var made *Producer
	ok(p.t, during(p.t, func() (err error) {
		made, err = s.Producer(bound(p.t), Queue("Q"), WindowBytes(1000), NonPersistent())
		return err
	}, func() { p.answer(expect[*openwire.ProducerInfo](p)) }))
	return made
}

func TestASendThatFailedLeavesTheWindowAsItWas(t *testing.T) {
	s := newScript(t)
	c, p := s.dialed(s.failover(""))
	made := p.windowed(c)
	p.conn.Close()
	interrupted(c)
	for range 3 {
		if err := made.Send(over(t), NewText("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("a send without a link: %v", err)
		}
	}
	q := s.accept()
	q.welcome(true)
	expect[*openwire.SessionInfo](q)
	expect[*openwire.ProducerInfo](q)
	q.answer(made.info)
	ok(t, made.Send(bound(t), NewText("x")))
	if m := expect[*openwire.Message](q); m.MessageID.ProducerSequenceID != 4 {
		t.Errorf("it is message %v", m.MessageID)
	}
}

// A confirmation waits behind the error handler, on the same goroutine.
func TestAnErrorHandlerMayCloseWhatWaitsForConfirmations(t *testing.T) {
	s := newScript(t)
	var c *Conn
	closed := make(chan error, 1)
	c, p := s.dialed(s.uri(), WithErrorHandler(func(error) { closed <- c.Close(bound(t)) }))
	_, made := p.produce(c, AutoAck)
	told := make(chan struct{})
	ok(t, made.SendAsync(bound(t), NewText("x"), func(error) { close(told) }))
	m := expect[*openwire.Message](p)
	p.write(&openwire.ConnectionError{Exception: &openwire.Throwable{Class: "c", Message: "m"}},
		&openwire.Response{CorrelationID: m.CommandID})
	p.goodbye()
	ok(t, <-closed)
	<-told
}

func TestAReceiveBesideAHandlerDoesNotHideTheHandler(t *testing.T) {
	s := newScript(t)
	c, p := s.dialed(s.uri())
	ses := session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	k, info, out := p.busy(ses)
	p.deliver(info, 2)
	if _, err := k.Receive(bound(t)); err != nil {
		t.Fatal(err)
	}
	if got := p.ack(); got != "2 2-2 1" {
		t.Errorf("acknowledged: %s", got)
	}
	closed := make(chan error, 1)
	go func() { closed <- ses.Close(bound(t)) }()
	<-k.closed
	close(out)
	if got := p.ack(); got != "2 1-1 1" { // before the consumer is removed
		t.Errorf("acknowledged: %s", got)
	}
	p.read() // the consumer
	p.read() // the session
	ok(t, <-closed)
}

// What the program gave up waiting for is not left at the broker until the connection ends.
func TestWhatWasGivenUpIsRemoved(t *testing.T) {
	s := newScript(t)
	c, p := s.dialed(s.uri())
	ses := session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	for what, ask := range map[string]func(context.Context) error{
		"producer": func(ctx context.Context) error {
			_, err := ses.Producer(ctx, Queue("Q"))
			return err
		},
		"consumer": func(ctx context.Context) error {
			_, err := ses.Consumer(ctx, Queue("Q"))
			return err
		},
		"temporary queue": func(ctx context.Context) error {
			_, err := c.TempQueue(ctx)
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var asked openwire.Command
		err := during(t, func() error { return ask(ctx) }, func() {
			asked = p.read()
			cancel()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
		switch x := p.read().(type) {
		case *openwire.RemoveInfo:
		case *openwire.DestinationInfo:
			if x.OperationType != openwire.DestinationRemove {
				t.Errorf("%s: %+v", what, x)
			}
		default:
			t.Errorf("%s: after %T came %T", what, asked, x)
		}
	}
}
