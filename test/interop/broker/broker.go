package broker

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"hopwire/test/wait"
)

// Kind is whose broker runs.
type Kind int

// The kinds of broker: Debian's ActiveMQ 5.17.2, the hopwire binary of this tree, and ActiveMQ
// 6.3.1.
const (
	ActiveMQ Kind = iota
	Hopwire
	ActiveMQ6
)

func (k Kind) String() string { return [...]string{"activemq", "hopwire", "activemq6"}[k] }

// Real reports whether it is an ActiveMQ, of either line.
func (k Kind) Real() bool { return k != Hopwire }

// startTime and stopTime bound how long a broker may take to greet and to end by itself.
const (
	startTime = 60 * time.Second
	stopTime  = 30 * time.Second
)

// Broker is one broker: its files, its port, and the process that may be running on them.
type Broker struct {
	t    testing.TB
	kind Kind
	name string
	o    Options
	port int
	dir  string
	run  *running
}

// running is one process of a broker.
type running struct {
	process *os.Process
	ended   chan struct{}
	err     error // how it ended; read after ended is closed
}

// Start writes the configuration of a broker, starts it and waits until it greets.
func Start(t testing.TB, k Kind, o Options) *Broker {
	t.Helper()
	if o.Name == "" {
		o.Name = "broker"
	}
	if o.Port == 0 {
		o.Port = FreePort(t)
	}
	b := &Broker{t: t, kind: k, name: o.Name, o: o, port: o.Port, dir: t.TempDir()}
	b.write("activemq.xml", o.render(o.Port, filepath.Join(b.dir, "data")))
	t.Cleanup(func() {
		b.Kill9()
		if t.Failed() {
			t.Logf("%s %s, the end of its log:\n%s", b.kind, b.name, b.Log(4<<10))
		}
	})
	b.Restart()
	return b
}

// For is the broker as one of several tests beside each other sees it: what fails is that test. It
// must not start or stop the broker.
func (b *Broker) For(t testing.TB) *Broker {
	other := *b
	other.t = t
	return &other
}

// Name is the broker's name.
func (b *Broker) Name() string { return b.name }

// Kind is whose broker it is.
func (b *Broker) Kind() Kind { return b.kind }

// Newer reports whether it is of the line of ActiveMQ 6, or has its defaults.
func (b *Broker) Newer() bool { return b.kind == ActiveMQ6 || b.o.Compat >= 6 }

// Port is the port of its OpenWire listener; it stays the same over restarts.
func (b *Broker) Port() int { return b.port }

// Addr is its OpenWire listener as host:port.
func (b *Broker) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// URL is its OpenWire listener as ActiveMQ writes it.
func (b *Broker) URL() string { return "tcp://" + b.Addr() }

// Dir is the folder with its activemq.xml, its log and its data.
func (b *Broker) Dir() string { return b.dir }

// PID is the id of its process, 0 if none runs.
func (b *Broker) PID() int {
	if b.run == nil {
		return 0
	}
	return b.run.process.Pid
}

// Stop asks the broker to end in good order and waits until it has.
func (b *Broker) Stop() {
	b.t.Helper()
	if b.run == nil {
		return
	}
	_ = b.run.process.Signal(syscall.SIGTERM) // it may be gone, which is what is asked for
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-b.run.ended:
		b.run = nil
	case <-timer.C:
		b.t.Fatalf("%s %s did not stop within %v", b.kind, b.name, stopTime)
	}
}

// Kill9 ends the process at once, as a crash does.
func (b *Broker) Kill9() {
	if b.run == nil {
		return
	}
	_ = b.run.process.Kill() // it may be gone, which is what is asked for
	<-b.run.ended
	b.run = nil
}

// Pause stops the process without ending it, as a hung machine does; Resume lets it go on.
func (b *Broker) Pause() { b.signal(syscall.SIGSTOP) }

// Resume lets a paused broker go on.
func (b *Broker) Resume() { b.signal(syscall.SIGCONT) }

func (b *Broker) signal(s syscall.Signal) {
	b.t.Helper()
	if b.run == nil {
		b.t.Fatalf("%s %s does not run", b.kind, b.name)
	}
	if err := b.run.process.Signal(s); err != nil {
		b.t.Fatalf("%s %s: %v", b.kind, b.name, err)
	}
}

// Restart starts the broker on the same port and data, stopping it first if it runs, and waits
// until it greets.
func (b *Broker) Restart() {
	b.t.Helper()
	b.Stop()
	var cmd *exec.Cmd
	switch b.kind {
	case ActiveMQ:
		cmd = b.activemq()
	case ActiveMQ6:
		cmd = b.activemq6()
	case Hopwire:
		cmd = b.hopwire()
	default:
		b.t.Fatalf("broker: no kind %d", b.kind)
	}
	file := filepath.Join(b.dir, "out.log")
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		b.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if b.run, err = launch(cmd); err != nil {
		b.t.Fatalf("%s %s: %v", b.kind, b.name, err)
	}
	wait.For(b.t, startTime, fmt.Sprintf("greeted by %s %s", b.kind, b.name), b.greets)
}

// launch starts a command that dies with this process. The kernel ties that to the starting thread,
// which therefore waits until the command has ended.
func launch(cmd *exec.Cmd) (*running, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	r := &running{ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		r.process = cmd.Process
		started <- err
		if err == nil {
			r.err = cmd.Wait()
			close(r.ended)
		}
	}()
	return r, <-started
}

// greets looks whether the broker accepts a connection and says its first words: a length, the type
// 1 of a WireFormatInfo, and its magic.
func (b *Broker) greets() (string, bool) {
	select {
	case <-b.run.ended:
		b.t.Fatalf("%s %s ended: %v\n%s", b.kind, b.name, b.run.err, b.Log(4<<10))
	default:
	}
	conn, err := net.DialTimeout("tcp", b.Addr(), time.Second)
	if err != nil {
		return err.Error(), false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err.Error(), false
	}
	hello := make([]byte, 13)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return err.Error(), false
	}
	return fmt.Sprintf("first bytes %q", hello), bytes.Equal(hello[4:], []byte("\x01ActiveMQ"))
}

// Log returns at most the last n bytes of what the broker logged and printed.
func (b *Broker) Log(n int) string {
	var all []byte
	for _, name := range []string{"out.log", "broker.log"} {
		text, err := os.ReadFile(filepath.Join(b.dir, name))
		if err == nil {
			all = append(all, text...)
		}
	}
	return string(all[max(0, len(all)-n):])
}

func (b *Broker) write(name, text string) string {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return file
}

// FreePort finds a port that nobody listens on, below those that the kernel gives to outgoing
// connections, so that it is still free when a broker comes back to it.
func FreePort(t testing.TB) int {
	t.Helper()
	const first, last = 20000, 32000
	for range 100 {
		port := first + rand.IntN(last-first)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("broker: no free port among 100 tried")
	return 0
}
