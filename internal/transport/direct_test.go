package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestReadsEndAsTheSocketsOwn(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(near *Conn, far *net.TCPConn) error
		text string
		is   error
	}{
		{"the peer closes", func(_ *Conn, far *net.TCPConn) error { return far.Close() },
			"EOF", io.EOF},
		{"the peer resets", func(_ *Conn, far *net.TCPConn) error {
			return errors.Join(far.SetLinger(0), far.Close())
		}, "read tcp NEAR->FAR: read: connection reset by peer", syscall.ECONNRESET},
		{"it is closed", func(near *Conn, _ *net.TCPConn) error { return near.Close() },
			"read tcp NEAR->FAR: use of closed network connection", net.ErrClosed},
		{"a deadline passes", func(near *Conn, _ *net.TCPConn) error {
			return near.SetReadDeadline(time.Unix(1, 0))
		}, "read tcp NEAR->FAR: i/o timeout", os.ErrDeadlineExceeded},
	} {
		near, far := pair(t)
		ends := strings.NewReplacer("NEAR", near.LocalAddr().String(),
			"FAR", near.RemoteAddr().String())
		read := make(chan error)
		go func() {
			_, err := near.Read(make([]byte, 10))
			read <- err
		}()
		if err := c.end(near, far.(*net.TCPConn)); err != nil {
			t.Fatal(err)
		}
		err := <-read
		if want := ends.Replace(c.text); !errors.Is(err, c.is) || err.Error() != want {
			t.Errorf("%s: %v, want %s", c.name, err, want)
		}
	}
}

func TestReadsGiveWhatWasWritten(t *testing.T) {
	near, far := pair(t)
	const total = 1 << 20
	go func() {
		b := make([]byte, 100)
		for i := 0; i < total; i += len(b) {
			for k := range b {
				b[k] = byte((i + k) * 7)
			}
			_, _ = far.Write(b)
		}
	}()
	sizes := []int{1, 10, 1000, 100_000} // the last is above what a bare call moves
	for i, turn := 0, 0; i < total; turn++ {
		b := make([]byte, sizes[turn%len(sizes)])
		n, err := near.Read(b)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		for k := range n {
			if b[k] != byte((i+k)*7) {
				t.Fatalf("byte %d is wrong", i+k)
			}
		}
		i += n
	}
}
