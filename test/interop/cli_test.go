package interop

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/wait"
)

// desk is where a person runs hopwire: a folder with files and a list of running brokers of its
// own.
type desk struct {
	t   *testing.T
	dir string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir, err := os.MkdirTemp("", "hw") // short: sockets live below it
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &desk{t, dir}
}

// file writes the configuration of a persistent broker.
func (d *desk) file(name string, port int, inside string) string {
	d.t.Helper()
	return d.text(name+".xml", fmt.Sprintf(`<beans>
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="%s" dataDirectory="%s">
  %s
  <transportConnectors>
    <transportConnector name="openwire" uri="tcp://127.0.0.1:%d"/>
  </transportConnectors>
</broker></beans>
`, name, filepath.Join(d.dir, name), inside, port))
}

func (d *desk) text(name, text string) string {
	d.t.Helper()
	file := filepath.Join(d.dir, name)
	must(d.t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

func (d *desk) command(args ...string) *exec.Cmd {
	d.t.Helper()
	cmd := broker.Command(d.t, args...)
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "TMPDIR="+d.dir)
	return cmd
}

// run runs a command to its end and asks for its exit code and what it says.
func (d *desk) run(code int, says string, args ...string) {
	d.t.Helper()
	cmd := d.command(args...)
	out, _ := cmd.CombinedOutput() // the exit code is looked at
	if !regexp.MustCompile(says).Match(out) {
		d.t.Errorf("hopwire %s says\n%swant %s", strings.Join(args, " "), out, says)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		d.t.Errorf("hopwire %s ended with %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
	}
}

// started is a hopwire start that runs.
type started struct {
	*desk
	cmd   *exec.Cmd
	out   wait.Output
	ended chan struct{}
}

func (d *desk) start(args ...string) *started {
	d.t.Helper()
	s := &started{desk: d, cmd: d.command(append([]string{"start"}, args...)...),
		ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	must(d.t, s.cmd.Start())
	go func() {
		_ = s.cmd.Wait() // its exit code is looked at
		close(s.ended)
	}()
	d.t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		<-s.ended
	})
	return s
}

// says waits until it has said something.
func (s *started) says(want string) *started {
	s.t.Helper()
	wait.For(s.t, patience, "said: "+want, func() (string, bool) {
		out := s.out.String()
		return out, strings.Contains(out, want)
	})
	return s
}

// ends waits for its end and asks for its exit code.
func (s *started) ends(code int) {
	s.t.Helper()
	wait.For(s.t, patience, "ended", func() (string, bool) {
		select {
		case <-s.ended:
			return "", true
		default:
			return s.out.String(), false
		}
	})
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("it ended with %d, want %d:\n%s", got, code, s.out.String())
	}
}

func (s *started) signal(sig os.Signal) {
	s.t.Helper()
	must(s.t, s.cmd.Process.Signal(sig))
}

// link is a networkConnector to a port.
func link(port int, more string) string {
	return fmt.Sprintf(`<networkConnectors><networkConnector name="link" `+
		`uri="static:(%s)">%s</networkConnector></networkConnectors>`, tcp(port), more)
}

func tcp(port int) string { return fmt.Sprintf("tcp://127.0.0.1:%d", port) }

// produce sends persistent messages.
func (d *desk) produce(port, n int, queue string) {
	d.t.Helper()
	d.run(0, "", "producer", "--brokerUrl", tcp(port), "--destination", "queue://"+queue,
		"--messageCount", fmt.Sprint(n), "--persistent")
}

func TestTwoFilesRunInOneProcessAndCanBeAskedAndStopped(t *testing.T) {
	d := newDesk(t)
	portA, portB := broker.FreePort(t), broker.FreePort(t)
	s := d.start(d.file("a", portA, link(portB, "")), d.file("b", portB, "")).says("ready")
	wait.For(t, patience, "linked", func() (string, bool) {
		out, err := d.command("status").CombinedOutput()
		return fmt.Sprintf("%s%v", out, err),
			regexp.MustCompile(`bridge +link +-> b .* RUNNING`).Match(out)
	})
	d.produce(portA, 3, "ORDERS")
	d.run(0, `(?s)^broker a .*queue://ORDERS +3 `, "status", "-b", "a")
	d.run(0, `ORDERS: 3 messages(?s).*3  NO_DEMAND|ORDERS: 3 messages(?s).*3  NO_CONSUMER`,
		"explain", "ORDERS")
	d.run(1, "NOTHING", "explain", "NOTHING")
	d.run(3, "no broker named c", "status", "-b", "c")
	d.run(0, "broker b stopped", "stop", "-b", "b")
	d.run(0, "broker a stopped", "stop")
	s.says("stopped").ends(0)
	d.run(3, "no broker is running", "status")
	d.run(3, "no broker is running", "stop")
	d.run(3, "no broker is running", "explain", "ORDERS")
}

func TestMistakesInFilesAndArgumentsEndWith2(t *testing.T) {
	d := newDesk(t)
	port := broker.FreePort(t)
	d.run(2, `none.xml`, "start", filepath.Join(d.dir, "none.xml"))
	d.run(2, `broken.xml:1`, "start", d.text("broken.xml", "<beans><broker></beans>"))
	d.run(2, `odd.xml:3:\d+: .*nonsense`, "start", d.file("odd", port, "<nonsense/>"))
	d.run(2, `bad.xml:3:\d+: .*duplx`, "start", d.file("bad", port, strings.Replace(
		link(port, ""), "name=", `duplx="true" name=`, 1)))
	d.run(2, "nonsense", "start", "--nonsense", "x.xml")
	d.run(2, "(?i)unexpected|unknown", "nonsense")
	d.run(2, "file", "start")
}

func TestAPortOrAFolderInUseEndsWith3(t *testing.T) {
	d := newDesk(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	d.run(3, `port.xml:5:\d+: .*address already in use`, "start",
		d.file("port", l.Addr().(*net.TCPAddr).Port, ""))
	file := d.file("lock", broker.FreePort(t), "")
	first := d.start(file).says("ready")
	d.run(3, "in use|locked|held", "start", "--no-wait", file)
	slave := d.start(file).says(fmt.Sprint(first.cmd.Process.Pid))
	first.signal(syscall.SIGTERM)
	first.says("stopped").ends(0)
	slave.says("ready")
	slave.signal(syscall.SIGINT)
	slave.says("stopped").ends(0)
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	d := newDesk(t)
	portA, portB := broker.FreePort(t), broker.FreePort(t)
	b := d.start(d.file("b", portB, "")).says("ready")
	include := `<staticallyIncludedDestinations><queue physicalName="Q"/>` +
		`</staticallyIncludedDestinations>`
	a := d.start("--log-level=debug", d.file("a", portA, link(portB, include))).says("RUNNING")
	b.signal(syscall.SIGSTOP) // it will never answer what it is sent
	d.produce(portA, 3, "Q")
	wait.For(t, patience, "forwarding", func() (string, bool) {
		out, _ := d.command("status", "-b", "a").CombinedOutput()
		return string(out), strings.Contains(string(out), "3 unanswered")
	})
	a.signal(syscall.SIGTERM)
	a.says("STOPPING") // and waits for the answers
	wait.For(t, patience, "a second signal", func() (string, bool) {
		_ = a.cmd.Process.Signal(syscall.SIGTERM) // one that comes at once is taken for the first
		out := a.out.String()
		return out, strings.Contains(out, "second signal")
	})
	a.ends(1)
}
