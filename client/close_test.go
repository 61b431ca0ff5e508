package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hopwire/openwire"
)

// handling is a connection whose handler got a message and does what the test says.
func handling(t *testing.T, h func(*Conn, *Session) error) (*Conn, *Session, *peer, chan error) {
	t.Helper()
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s := session(t, c, AutoAck)
	result := make(chan error, 1)
	var id *openwire.ConsumerId
	ok(t, during(t, func() error {
		_, err := s.Consume(bound(t), Queue("q"), func(context.Context, *Message) error {
			result <- h(c, s)
			return nil
		})
		return err
	}, func() {
		expect[*openwire.SessionInfo](p)
		info := expect[*openwire.ConsumerInfo](p)
		id = info.ConsumerID
		p.answer(info)
	}))
	p.write(&openwire.MessageDispatch{ConsumerID: id, Destination: Queue("q"),
		Message: &openwire.Message{
			Type:        openwire.TypeTextMessage,
			Destination: Queue("q"),
			MessageID: &openwire.MessageId{ProducerSequenceID: 1,
				ProducerID: &openwire.ProducerId{ConnectionID: "x", SessionID: 1, Value: 1}},
		}})
	return c, s, p, result
}

func TestAHandlerCannotCloseWhatWaitsForIt(t *testing.T) {
	for what, h := range map[string]func(*Conn, *Session) error{
		"connection": func(c *Conn, _ *Session) error { return c.Close(context.Background()) },
		"session":    func(_ *Conn, s *Session) error { return s.Close(context.Background()) },
	} {
		c, _, p, result := handling(t, h)
		select {
		case err := <-result:
			if !errors.Is(err, ErrOwnHandler) {
				t.Errorf("closing the %s gives %v", what, err)
			}
		case <-time.After(within):
			t.Fatalf("closing the %s waits for itself", what)
		}
		expect[*openwire.MessageAck](p) // the connection is as it was
		ok(t, during(t, func() error { return c.Close(bound(t)) }, func() { p.goodbye() }))
	}
}

func TestCloseKeepsItsBoundWhileAHandlerRuns(t *testing.T) {
	release := make(chan struct{})
	running := make(chan struct{})
	c, _, p, result := handling(t, func(*Conn, *Session) error {
		close(running)
		<-release
		return nil
	})
	<-running
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	closed := make(chan error, 2)
	go func() { closed <- c.Close(ctx); closed <- c.Close(ctx) }()
	for range 2 {
		select {
		case err := <-closed:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Close gives %v", err)
			}
		case <-time.After(within):
			t.Fatal("Close waits for longer than its context")
		}
	}
	close(release)
	ok(t, <-result)
	ok(t, c.Close(bound(t)))
	p.conn.Close()
}

func TestTheErrorAndStateHandlersMayClose(t *testing.T) {
	for _, what := range []string{"error", "state"} {
		b := newScript(t)
		ready := make(chan *Conn, 1)
		result := make(chan error, 1)
		closing := func() { c := <-ready; result <- c.Close(context.Background()) }
		option := WithErrorHandler(func(error) { closing() })
		if what == "state" {
			option = WithStateHandler(func(State, error) { closing() })
		}
		var p *peer
		c := new(*Conn)
		ok(t, during(t, func() (err error) {
			*c, err = Dial(bound(t), b.uri(), option)
			return err
		}, func() { p = b.accept(); p.welcome(false) }))
		ready <- *c
		p.conn.Close() // the connection fails, which both hear of
		select {
		case err := <-result:
			ok(t, err)
		case <-time.After(within):
			t.Fatalf("Close by the %s handler waits for itself", what)
		}
		ok(t, (*c).Close(bound(t)))
	}
}

func TestErrorsAboutAURIShowNoOptions(t *testing.T) {
	for _, uri := range []string{
		"tcp://h:1?jms.password=secret&oops=1",
		"http://h:1?jms.password=secret",
		"tcp://?jms.password=secret",
		"tcp://h:port?jms.password=secret",
		"tcp://me:secret@h:1?oops=1",
		"tcp://h:1?jms.password=secret&wireFormat.version=x",
		"tcp://h:1?jms.password=%secret",
		"failover:(tcp://a:1?jms.password=secret,tcp://b:1)?oops=1",
		"failover:(tcp://a:1?jms.password=secret",
		"failover:(tcp://a:1)jms.password?secret",
		"failover:(tcp://me:secret@a:1,http://b)?jms.password=secret",
	} {
		_, err := Dial(context.Background(), uri)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
