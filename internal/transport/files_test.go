package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func TestListenersLeaveAPartOfTheOpenFiles(t *testing.T) {
	for limit, want := range map[uint64]uint64{0: 0, 64: 32, 256: 128, 512: 256, 1024: 256, 4096: 1024,
		8800: 2200, 1 << 20: 2200, 1<<64 - 1: 2200} {
		if got := ReservedFiles(limit); got != want {
			t.Errorf("of %d files %d are kept, want %d", limit, got, want)
		}
	}
}

// Connections that would take what is left of the open files are refused and counted; when others
// have ended there is room again.
func TestConnectionsLeaveFilesToOthers(t *testing.T) {
	var log bytes.Buffer
	l, err := Listen("tcp://127.0.0.1:0", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	limit := uint64(f.Fd()+20) * 2 // below 512 a half is kept
	if err := f.Close(); err != nil || limit > 512 {
		t.Fatalf("%d files are open, %v", limit/2, err)
	}
	l.files = func() uint64 { return limit }
	served := make(chan *Conn, 100)
	ended := make(chan error)
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- l.Serve(ctx, func(c *Conn) { served <- c }) }()
	was := int64(0)
	refused := func(c net.Conn) (is bool) {
		is, was = l.isRefused(t, c, served, was)
		return is
	}
	var far []net.Conn
	for n := 0; ; n++ {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil || n > 100 {
			t.Fatalf("%d connections: %v", n, err)
		}
		far = append(far, c)
		if refused(c) {
			break
		}
	}
	if n := l.Open(); n < 2 || n > 20 || n != len(far)-1 {
		t.Errorf("%d connections are served, of %d", n, len(far))
	}
	for _, c := range far {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if refused(c) {
		t.Error("with others gone it is refused")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "ulimit -n") {
		t.Errorf("the log: %s", text)
	}
}

// isRefused waits until a new connection is served, or is one more that is refused.
func (l *Listener) isRefused(t *testing.T, c net.Conn, served chan *Conn, were int64,
) (is bool, now int64) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		select {
		case k := <-served:
			t.Cleanup(func() { _ = k.Close() })
			return false, were
		case <-time.After(time.Millisecond):
		}
		if n := l.Refused(); n > were {
			_ = c.SetReadDeadline(deadline)
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("who is refused reads %v", err)
			}
			return true, n
		}
	}
	t.Fatal("it is neither served nor refused")
	return false, 0
}
