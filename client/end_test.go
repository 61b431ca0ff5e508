package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"hopwire/openwire"
	"hopwire/openwire/primitive"
)

// The end of the caller's context is no word about the broker.
func TestTheEndOfTheContextIsTheErrorOfDial(t *testing.T) {
	s := newScript(t) // it accepts nothing: whoever connects hears nothing
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	passed, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	hangs := WithDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	})
	for i, c := range []struct {
		ctx  context.Context
		uri  string
		o    []Option
		want error
	}{
		{gone, s.uri(), nil, context.Canceled},
		{passed, s.uri(), nil, context.DeadlineExceeded},
		{soon(), s.uri(), nil, context.DeadlineExceeded},
		{soon(), s.uri(), []Option{hangs}, context.DeadlineExceeded},
		{gone, s.failover(""), nil, context.Canceled},
		{passed, s.failover(""), nil, context.DeadlineExceeded},
		{soon(), s.failover(""), []Option{hangs}, context.DeadlineExceeded},
	} {
		conn, err := Dial(c.ctx, c.uri, c.o...)
		if conn != nil || !errors.Is(err, c.want) || errors.Is(err, ErrUnavailable) ||
			strings.Contains(fmt.Sprint(err), "connectionTimeout") {
			t.Errorf("%d: dial gives %v, %v; want %v", i, conn, err, c.want)
		}
	}
}

// Whoever looks at a result and forgets its error finds nothing.
func TestNothingIsMadeWithAnError(t *testing.T) {
	s := newScript(t)
	c, _ := s.dialed(s.uri())
	session := must[*Session](t)(c.Session(bound(t), AutoAck))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, makes := range map[string]func() (bool, error){
		"Session": func() (bool, error) { x, err := c.Session(over, AutoAck); return x == nil, err },
		"Producer": func() (bool, error) {
			x, err := session.Producer(over, Queue("Q"))
			return x == nil, err
		},
		"Consumer": func() (bool, error) {
			x, err := session.Consumer(over, Queue("Q"))
			return x == nil, err
		},
		"Consume": func() (bool, error) {
			x, err := session.Consume(over, Queue("Q"),
				func(context.Context, *Message) error { return nil })
			return x == nil, err
		},
		"Browser": func() (bool, error) {
			x, err := session.Browser(over, Queue("Q"))
			return x == nil, err
		},
		"Requester": func() (bool, error) { x, err := c.Requester(over); return x == nil, err },
		"TempQueue": func() (bool, error) { x, err := c.TempQueue(over); return x == nil, err },
	} {
		if none, err := makes(); !none || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: gives nothing: %v; error %v", name, none, err)
		}
	}
}

func TestNoMessageIsMadeOfWhatItCannotHold(t *testing.T) {
	wrong := struct{}{}
	if m, err := NewMap(primitive.Map{{Key: "k", Value: wrong}}); m != nil || err == nil {
		t.Errorf("a map gives %v, %v", m, err)
	}
	if m, err := NewStream(primitive.List{wrong}); m != nil || err == nil {
		t.Errorf("a stream gives %v, %v", m, err)
	}
}

// Its subscription would be kept for ever under an id that no connection has again.
func TestADurableConsumerNeedsAClientID(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s := session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	_, err := s.Consumer(bound(t), Topic("T"), WithDurable("sub"))
	if err == nil || !strings.Contains(err.Error(), "WithDurable needs WithClientID") {
		t.Errorf("without a client id: %v", err)
	}
	c, p = b.dialed(b.uri() + "?jms.clientID=me")
	s = session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	ok(t, during(t, func() error {
		_, err := s.Consumer(bound(t), Topic("T"), WithDurable("sub"))
		return err
	}, func() { p.answer(expect[*openwire.ConsumerInfo](p)) }))
}
