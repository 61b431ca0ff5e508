package transport

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tcpPair gives both ends of a TCP connection.
func tcpPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// vanish makes the machine at that end deaf and dumb on this connection: nothing that comes in is
// seen, so nothing is answered.
func vanish(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	if e := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(drop)), Filter: &drop[0]})
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
}

// watched is a connection that is held, with keep-alives of one byte.
func watched(t *testing.T, near *net.TCPConn, silence time.Duration) (c *Conn, dead chan error) {
	c = Wrap(near, DefaultOptions())
	dead = make(chan error, 1)
	c.Hold(true)
	c.Watch(silence, silence, func() { _, _ = c.Write([]byte{0}) }, func(err error) { dead <- err })
	t.Cleanup(func() { c.Close() })
	return c, dead
}

const shortSilence = 600 * time.Millisecond

func TestAHeldPeerThatVanishesIsFoundWithinTheSilence(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	_, dead := watched(t, near, shortSilence)
	if _, err := far.Write(make([]byte, 1000)); err != nil { // never read
		t.Fatal(err)
	}
	late := time.NewTimer(3 * shortSilence)
	defer late.Stop()
	select {
	case err := <-dead:
		t.Fatalf("a peer that is held and there was given up: %v", err)
	case <-late.C:
	}
	vanish(t, far)
	began := time.Now()
	late.Reset(20 * shortSilence)
	select {
	case err := <-dead:
		if err == nil {
			t.Error("no reason is told")
		}
		if took := time.Since(began); took > 3*shortSilence {
			t.Errorf("it took %v, the silence is %v", took, shortSilence)
		}
	case <-late.C:
		t.Fatal("it is not found")
	}
}

func TestAHeldPeerThatReadsNothingIsNotGone(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	_ = far.SetReadBuffer(4 << 10)
	c, dead := watched(t, near, shortSilence)
	go func() { _, _ = c.Write(make([]byte, 16<<20)) }() // until it is closed: the window is shut
	late := time.NewTimer(4 * shortSilence)
	defer late.Stop()
	select {
	case err := <-dead:
		t.Fatalf("given up: %v", err)
	case <-late.C:
	}
}

func TestAHeldPeerWhoseProcessEndedFailsTheNextWrites(t *testing.T) {
	t.Parallel()
	near, far := tcpPair(t)
	c, _ := watched(t, near, shortSilence)
	if _, err := far.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	far.Close()
	end := time.Now().Add(3 * shortSilence)
	for time.Now().Before(end) {
		if _, err := c.Write([]byte{0}); err != nil {
			return
		}
	}
	t.Error("writes go on")
}
