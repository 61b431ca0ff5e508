package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

// inside serves a listener without a port and gives what it accepts.
func inside(t *testing.T) (*Inside, <-chan *Conn) {
	t.Helper()
	i, accepted := NewInside("shop"), make(chan *Conn, 8)
	l := ListenInside(i, nil)
	done := make(chan error, 1)
	go func() { done <- l.Serve(t.Context(), func(c *Conn) { accepted <- c }) }()
	t.Cleanup(func() {
		_ = i.Close() // it has no error
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return i, accepted
}

func TestInsideEachEndMayWriteWhileTheOtherDoesNotRead(t *testing.T) {
	i, accepted := inside(t)
	for n, want := range []string{"vm://shop#1", "vm://shop#2"} {
		c, err := i.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := <-accepted
		if got := s.Remote(); got != want {
			t.Errorf("connection %d comes from %s, not %s", n, got, want)
		}
		for _, end := range []net.Conn{c, s} {
			if _, err := end.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
		}
		for _, end := range []net.Conn{c, s} {
			b := make([]byte, 5)
			if _, err := io.ReadFull(end, b); err != nil || string(b) != "hello" {
				t.Errorf("%q, %v", b, err)
			}
		}
		c.Close()
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after the close: %v", err)
		}
		s.Close()
	}
}

func TestInsideADialEndsWithItsContextOrTheListener(t *testing.T) {
	i := NewInside("nobody accepts")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	_ = i.Close() // it has no error
	if _, err := i.Dial(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := i.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestInsideOneDirectionMayEndBeforeTheOther(t *testing.T) {
	i, accepted := inside(t)
	c, err := i.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := <-accepted
	defer s.Close()
	if !s.CloseWrite() {
		t.Skip("this system has no socket pairs")
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the other end reads %v, not the end", err)
	}
	if _, err := c.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if _, err := io.ReadFull(s, b); err != nil || string(b) != "late" {
		t.Errorf("%q, %v", b, err)
	}
}
