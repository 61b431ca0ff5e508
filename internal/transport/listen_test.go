package transport

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a listener that gives errors and connections in turn.
type script struct {
	turns  chan any
	closed chan struct{}
	once   sync.Once
}

func newScript(turns ...any) *script {
	s := &script{turns: make(chan any, len(turns)), closed: make(chan struct{})}
	for _, x := range turns {
		s.turns <- x
	}
	return s
}

func (s *script) Accept() (net.Conn, error) {
	select {
	case x := <-s.turns:
		if err, ok := x.(error); ok {
			return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
		}
		return x.(net.Conn), nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *script) Close() error   { s.once.Do(func() { close(s.closed) }); return nil }
func (s *script) Addr() net.Addr { return &net.TCPAddr{} }

// TestRunningOutOfFilesIsToldAndWaitedOut: accept meets EMFILE; the line says what to raise, once,
// and the next connection is served.
func TestRunningOutOfFilesIsToldAndWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		s := newScript(syscall.EMFILE, syscall.EMFILE, syscall.ECONNABORTED, syscall.EMFILE, near)
		var log bytes.Buffer
		u, err := ParseURI("tcp://h:1")
		if err != nil {
			t.Fatal(err)
		}
		l := NewListener(s, u, DefaultOptions(), slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(context.Background())
		began := time.Now()
		got := make(chan *Conn, 1)
		ended := make(chan error)
		go func() { ended <- l.Serve(ctx, func(c *Conn) { got <- c }) }()
		c := <-got
		if waited := time.Since(began); waited < 300*time.Millisecond || waited > time.Second {
			t.Errorf("three pauses took %v", waited)
		}
		if l.Open() != 1 {
			t.Errorf("%d open", l.Open())
		}
		_ = c.Close()
		_ = c.Close()
		if l.Open() != 0 {
			t.Errorf("%d open after the close", l.Open())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		text := log.String()
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, "ulimit -n") {
			t.Errorf("the log: %s", text)
		}
	})
}

func TestTheLimitOfOpenFilesIsRaised(t *testing.T) {
	limit, err := RaiseOpenFiles()
	if err != nil || limit != OpenFileLimit() {
		t.Errorf("limit %d, now %d, %v", limit, OpenFileLimit(), err)
	}
}

func TestAnIdleWriterHoldsNoBufferAndABusyOneWritesInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := Wrap(near, DefaultOptions())
		left := 3 * flushBytes
		w := NewWriter(c, func(b []byte, limit int) ([]byte, bool, error) {
			n := min(left, limit)
			left -= n
			return append(b, make([]byte, n)...), left > 0, nil
		})
		done := make(chan struct{})
		ended := make(chan error)
		go func() { ended <- w.Run(done, []byte("first")) }()
		w.Wake()
		total := 0
		buf := make([]byte, 4*flushBytes)
		for total < 5+3*flushBytes {
			n, err := far.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			if total == 0 && string(buf[:n]) != "first" || n > flushBytes {
				t.Fatalf("a piece of %d bytes at %d", n, total)
			}
			total += n
		}
		close(done)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = c.Close()
	})
}
