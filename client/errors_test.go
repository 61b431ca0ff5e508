package client

import (
	"errors"
	"net"
	"strings"
	"testing"
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
		{l.Addr().String(), "?connectionTimeout=50", "no answer within 50ms (connectionTimeout)", false},
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
