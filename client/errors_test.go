package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"hopwire/openwire"
)

// A connection that cannot be made says why in words, once, behind the address.
func TestAConnectionThatCannotBeMadeSaysWhyInWords(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	shut, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shut.Close()
	for _, c := range []struct {
		at, options, want string
		hangUp            bool
	}{
		{shut.Addr().String(), "", "connection refused", false},
		{l.Addr().String(), "", "the peer closed the connection", true},
		{l.Addr().String(), "?connectionTimeout=50", "no answer within 50ms (connectionTimeout);" +
			" is that an OpenWire port? ActiveMQ's is usually 61616", false},
	} {
		if c.hangUp {
			go func() {
				if err := (<-accepted).(*net.TCPConn).CloseWrite(); err != nil {
					t.Error(err)
				}
			}()
		}
		_, err := Dial(t.Context(), "tcp://"+c.at+c.options)
		if want := c.at + ": broker unavailable: " + c.want; err == nil || err.Error() != want ||
			!errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "dial tcp") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	l.Close()
	for c := range accepted {
		c.Close()
	}
}

// The peer's first bytes tell what the port is, and it is no option of a frame's size that helps.
func TestAPortThatIsNoBrokersIsTold(t *testing.T) {
	for first, want := range map[string]string{
		"HTTP/1.1 400 Busy\r\nServer: x\r\n": `text ("HTTP/1.1 400 Busy"): no OpenWire port`,
		"<!DOCTYPE html>\n":                  `text ("<!DOCTYPE html>"): no OpenWire port`,
		"SSH-2.0-OpenSSH_9.2\r\n":            `text ("SSH-2.0-OpenSSH_9.2"): no OpenWire port`,
		"AMQP\x00\x01\x00\x00":               "AMQP: no OpenWire port",
		"\x15\x03\x03\x00\x02\x02\x46":       "TLS: no plain OpenWire port",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = c.Write([]byte(first))
			_, _ = io.Copy(io.Discard, c)
		}()
		_, err = Dial(t.Context(), "tcp://"+l.Addr().String())
		var s *openwire.StrangerError
		if !errors.Is(err, ErrUnavailable) || !errors.As(err, &s) ||
			!strings.Contains(err.Error(), "the peer answers with "+want+"; ActiveMQ's is usually 61616") {
			t.Errorf("%q: %v", first, err)
		}
		l.Close()
		<-done
	}
}

// What a broker answers about a destination that is not there is its name and nothing else.
func TestARefusalSaysWhatIsWrong(t *testing.T) {
	const gone = "org.apache.activemq.DestinationDoesNotExistException"
	for _, c := range []struct{ class, text, want string }{
		{gone, "temp-queue://ID:a:1", "broker: no such temporary destination: temp-queue://ID:a:1"},
		{gone, "temp-topic://ID:a:1", "broker: no such temporary destination: temp-topic://ID:a:1"},
		{gone, "queue://A", "broker: no such destination: queue://A"},
		{gone, "", "broker: " + gone},
		{"javax.jms.InvalidDestinationException", "no name", "broker: no name"},
	} {
		e := &BrokerError{c.class, c.text}
		if e.Error() != c.want {
			t.Errorf("%s, want %s", e, c.want)
		}
	}
}

// An option that means nothing where it is given is an error, and one that says what to do instead.
func TestAnOptionThatHasNoEffectIsRefused(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s, q := p.produce(c, AutoAck)
	_, free := p.produce(c, AutoAck)
	free.info.Destination = nil
	making := func(o SendOption) func() error {
		return func() error { _, err := s.Producer(bound(t), Queue("Q"), o); return err }
	}
	sending := func(q *Producer, m *Message, o ...SendOption) func() error {
		return func() error {
			err := q.Send(bound(t), m, o...)
			if later := q.SendAsync(bound(t), m, nil, o...); fmt.Sprint(later) != fmt.Sprint(err) {
				t.Errorf("SendAsync gives %v, Send %v", later, err)
			}
			return err
		}
	}
	browsing := func(d *Destination) func() error {
		return func() error { _, err := s.Browser(bound(t), d); return err }
	}
	addressed := NewText("x")
	addressed.Destination = Queue("Q")
	const own = "send: Window and WindowBytes are for Session.Producer"
	const nowhere = "send: no destination: give one to Session.Producer, or by client.To to Send," +
		" which does not read the Destination of the Message"
	for _, x := range []struct {
		want string
		does func() error
	}{
		{"Window 0; it is at least 1", making(Window(0))},
		{"Window -3; it is at least 1", making(Window(-3))},
		{"WindowBytes -1; 0 is no limit", making(WindowBytes(-1))},
		{"TTL -1s; 0 is never", making(TTL(-time.Second))},
		{"TTL -1s; 0 is never", sending(q, NewText("x"), TTL(-time.Second))},
		{own, sending(q, NewText("x"), Window(1000))},
		{own, sending(q, NewText("x"), WindowBytes(0))},
		{nowhere, sending(free, addressed)},
		{"browser of topic://T: only queues can be browsed", browsing(Topic("T"))},
		{"browser of temp-topic://T: only queues can be browsed",
			browsing(&Destination{Type: openwire.TypeTempTopic, PhysicalName: "T"})},
	} {
		if err := x.does(); err == nil || err.Error() != x.want {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}
