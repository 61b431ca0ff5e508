package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"hopwire/test/wait"
)

const patience = 10 * time.Second

// echo is a server that sends back what it gets.
func echo(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // the test breaks it
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// pour sends beside the test, which learns from what comes back how far it got.
func pour(c net.Conn, text string) {
	go func() { _, _ = io.WriteString(c, text) }()
}

// hears asks that a text comes back in time.
func hears(t *testing.T, c net.Conn, want string) {
	t.Helper()
	deadline(t, c, patience)
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %.40q, %v; want %.40q", got[:n], err, want)
	}
}

// silent asks that nothing comes back for a while.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	deadline(t, c, 100*time.Millisecond)
	got := make([]byte, 10)
	n, err := c.Read(got)
	var ne net.Error
	if n > 0 || !errors.As(err, &ne) || !ne.Timeout() {
		t.Fatalf("got %q, %v; want silence", got[:n], err)
	}
}

// broken asks that the connection ends in time, and returns what came before.
func broken(t *testing.T, c net.Conn) string {
	t.Helper()
	deadline(t, c, patience)
	got, err := io.ReadAll(c)
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		t.Fatalf("the connection is still open after %v", patience)
	}
	return string(got)
}

// refused asks that a new connection ends, be it at once or while it is made.
func refused(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer c.Close()
	broken(t, c)
}

func deadline(t *testing.T, c net.Conn, d time.Duration) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		t.Fatal(err)
	}
}

func TestBytesPassUnchangedAndAnEndIsPassedOn(t *testing.T) {
	p := Start(t, echo(t))
	c := dial(t, p.Addr())
	sent := strings.Repeat("0123456789", 100000)
	pour(c, sent)
	hears(t, c, sent)
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := broken(t, c); got != "" {
		t.Errorf("after the end came %q", got)
	}
	if up, down := p.Passed(Up), p.Passed(Down); up != 1000000 || down != 1000000 {
		t.Errorf("passed %d up, %d down", up, down)
	}
}

func TestABreakEndsOnlyWhatIsOpen(t *testing.T) {
	p := Start(t, echo(t))
	c := dial(t, p.Addr())
	send(t, c, "a")
	hears(t, c, "a")
	p.Break()
	broken(t, c)
	c = dial(t, p.Addr())
	send(t, c, "b")
	hears(t, c, "b")
	if n := p.Connections(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestACutLastsUntilItIsHealed(t *testing.T) {
	p := Start(t, echo(t))
	c := dial(t, p.Addr())
	send(t, c, "a")
	hears(t, c, "a")
	p.Cut()
	broken(t, c)
	refused(t, p.Addr())
	p.Heal()
	c = dial(t, p.Addr())
	send(t, c, "b")
	hears(t, c, "b")
}

func TestAStallHoldsOneDirectionAndLosesNothing(t *testing.T) {
	for _, d := range []Direction{Up, Down, Both} {
		p := Start(t, echo(t))
		c := dial(t, p.Addr())
		send(t, c, "a")
		hears(t, c, "a")
		up := p.Passed(Up)
		p.Stall(d)
		send(t, c, "bc")
		silent(t, c)
		if got := p.Passed(Up) - up; (got == 2) != (d == Down) {
			t.Errorf("stalled %d: %d bytes went up", d, got)
		}
		p.Heal()
		hears(t, c, "bc")
	}
}

func TestAStallReachesTheSender(t *testing.T) {
	p := Start(t, echo(t))
	p.Stall(Up)
	c := dial(t, p.Addr())
	if err := c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := c.Write(make([]byte, 64<<20))
	if err == nil {
		t.Errorf("%d bytes were taken", n)
	}
}

func TestSwallowedBytesAreTakenAndTheConnectionEndsOnHeal(t *testing.T) {
	p := Start(t, echo(t))
	c, other := dial(t, p.Addr()), dial(t, p.Addr())
	send(t, c, "a")
	hears(t, c, "a")
	p.Swallow(Up)
	send(t, c, "lost")
	silent(t, c)
	p.Heal()
	if got := broken(t, c); got != "" {
		t.Errorf("%q came out of a hole", got)
	}
	send(t, other, "b")
	hears(t, other, "b")
}

func TestADelayMovesBytesButKeepsTheRate(t *testing.T) {
	p := Start(t, echo(t))
	p.Delay(50 * time.Millisecond)
	c := dial(t, p.Addr())
	start := time.Now()
	for range 100 {
		send(t, c, "x")
	}
	hears(t, c, strings.Repeat("x", 100))
	if took := time.Since(start); took < 100*time.Millisecond || took > 2*time.Second {
		t.Errorf("a round trip of 100 writes took %v with 50ms each way", took)
	}
}

func TestACutAfterBytesTearsAtThatByte(t *testing.T) {
	for _, n := range []int64{0, 1, 7, 20000} {
		p := Start(t, echo(t))
		p.CutAfterBytes(Down, n)
		c := dial(t, p.Addr())
		pour(c, strings.Repeat("x", 30000))
		if got := broken(t, c); int64(len(got)) != n {
			t.Errorf("%d bytes came, want %d", len(got), n)
		}
		refused(t, p.Addr())
	}
}

func TestATargetThatIsAwayEndsTheConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	refused(t, Start(t, l.Addr().String()).Addr())
}

func TestClosingLeavesNoGoroutine(t *testing.T) {
	p := Start(t, echo(t))
	for range 5 {
		c := dial(t, p.Addr())
		send(t, c, "a")
		hears(t, c, "a")
		p.Delay(time.Hour)
		send(t, c, "b")
		p.Delay(0)
	}
	p.Stall(Both)
	p.Close()
	p.Close()
	wait.For(t, patience, "free of the proxy's goroutines", func() (string, bool) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		return string(stacks), !bytes.Contains(stacks, []byte("proxy.(*Proxy)"))
	})
}
