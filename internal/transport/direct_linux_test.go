package transport

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hopwire/internal/loop"
)

// TestABusyLoopDoesNotKeepSocketsWaiting: on one CPU only the scheduler's monitor takes it from a
// goroutine that does not wait, and the monitor sleeps until a system call wakes it.
func TestABusyLoopDoesNotKeepSocketsWaiting(t *testing.T) {
	const busy = time.Second
	if os.Getenv("TRANSPORT_TEST_BUSY") != "" {
		beBusy(t, busy)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", t.Name())
	cmd.Env = append(os.Environ(), "TRANSPORT_TEST_BUSY=1", "GOMAXPROCS=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i := range ends {
		if ends[i], err = net.Dial("tcp", strings.TrimSpace(addr)); err != nil {
			t.Fatal(err)
		}
		defer ends[i].Close()
	}
	b := make([]byte, 1)
	if _, err := ends[1].Read(b); err != nil { // it is ready
		t.Fatal(err)
	}
	calm := time.NewTimer(100 * time.Millisecond) // the monitor falls asleep
	<-calm.C
	if _, err := ends[0].Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := ends[0].Read(b); err != nil { // it is busy
		t.Fatal(err)
	}
	asked := time.Now()
	if _, err := ends[1].Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := ends[1].Read(b); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(asked); waited > busy/2 {
		t.Errorf("the other socket was answered after %v", waited)
	}
}

// beBusy accepts two connections. A byte on the first makes a loop busy for a while, in slices; one
// on the second is answered.
func beBusy(t *testing.T, busy time.Duration) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(l.Addr())
	var ends [2]*Conn
	for i := range ends {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = Wrap(c, DefaultOptions())
	}
	lp := loop.New()
	go lp.Run(t.Context())
	go func() {
		b := make([]byte, 1)
		ends[1].writeNow(b)
		for {
			if _, err := ends[1].Read(b); err != nil {
				return
			}
			ends[1].writeNow(b)
		}
	}()
	b := make([]byte, 1)
	if _, err := ends[0].Read(b); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	lp.Post(func() {
		until := lp.Mono() + busy
		var slice func()
		slice = func() {
			if lp.Mono() < until {
				lp.Soon(slice)
			} else {
				close(ended)
			}
		}
		slice()
		ends[0].writeNow(b)
	})
	<-ended
	_, _ = ends[1].Read(b) // until the parent is done
}
