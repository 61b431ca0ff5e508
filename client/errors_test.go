package client

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

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
