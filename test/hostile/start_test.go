package hostile

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hopwire/test/wait"
)

// refusal runs the process to its end, and checks its exit code and its one line of complaint.
func refusal(t *testing.T, p *process, code int, want ...string) {
	t.Helper()
	mark := p.log.mark()
	p.launch()
	if got := p.exit(patience); got != code {
		t.Errorf("exit code %d, want %d: %s", got, code, p.log.since(mark))
	}
	var complaints []string
	for line := range strings.Lines(p.log.since(mark)) {
		if strings.HasPrefix(line, "hopwire:") {
			complaints = append(complaints, strings.TrimSpace(line))
		}
	}
	t.Logf("%q", complaints)
	if len(complaints) != 1 {
		t.Fatalf("it says:\n%s", p.log.since(mark))
	}
	for _, w := range want {
		if !strings.Contains(complaints[0], w) {
			t.Errorf("%s\ndoes not tell %q", complaints[0], w)
		}
	}
	if strings.Contains(p.log.since(mark), "goroutine ") {
		t.Error("it panicked")
	}
}

func TestAFolderInUseIsWaitedForByName(t *testing.T) {
	first := newProcess(t, setup{})
	second := newProcess(t, setup{data: first.data, unborn: true})
	second.launch()
	line := second.awaitLog(0, "in use by")
	t.Log(line)
	if !strings.Contains(line, "pid "+strconv.Itoa(first.cmd.Process.Pid)) ||
		!strings.Contains(line, first.data) {
		t.Errorf("the line is %s", line)
	}
	third := newProcess(t, setup{data: first.data, unborn: true, flags: []string{"--no-wait"}})
	refusal(t, third, 3, "in use by pid "+strconv.Itoa(first.cmd.Process.Pid))
	first.kill()
	began := time.Now()
	second.awaitLog(0, "ready\n")
	t.Logf("the slave took over after %v", time.Since(began).Round(time.Millisecond))
	if n := second.log.count(0, `msg="waiting as slave"`); n != 1 {
		t.Errorf("it was told %d times", n)
	}
	login(t, second.addr(), "client").alive()
	if code := second.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestASlaveThatWaitsCanBeStopped(t *testing.T) {
	first := newProcess(t, setup{})
	second := newProcess(t, setup{data: first.data, unborn: true})
	second.launch()
	second.awaitLog(0, "in use by")
	code := second.stop()
	if code != 0 || second.log.count(0, "hopwire:") > 0 {
		t.Errorf("exit code %d:\n%s", code, second.log.tail(300))
	}
	login(t, first.addr(), "client").alive()
}

func TestAPortInUseIsNamedWithItsLine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	p := newProcess(t, setup{port: port, unborn: true})
	refusal(t, p, 3, p.file()+":5", strconv.Itoa(port), "in use")
}

func TestABadConfigurationIsOneLineWithItsPlace(t *testing.T) {
	for _, c := range []struct {
		name string
		s    setup
		want string
	}{
		{"unknown attribute", setup{attrs: `persistnt="true"`}, "persistent"},
		{"unknown element", setup{body: "<destinationPolicies/>"}, "destinationPolicy"},
		{"broken XML", setup{body: "<systemUsage>"}, "systemUsage"},
		{"value of another kind", setup{attrs: `useJmx="maybe"`}, "useJmx"},
		{"unknown option", setup{uri: "?fooOption=1"}, "fooOption"},
		{"placeholder", setup{attrs: `useJmx="${nowhere}"`}, "nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.unborn = true
			p := newProcess(t, c.s)
			refusal(t, p, 2, p.file()+":", c.want)
		})
	}
	for name, content := range map[string]string{"empty": "", "no XML": "brokerName=x\n",
		"binary": "\x00\x01\x02\xff", "endless": strings.Repeat("<a>", 20_000),
		"entities": `<!DOCTYPE a [<!ENTITY b "&c;&c;"><!ENTITY c "&b;">]><a>&b;</a>`} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, setup{unborn: true})
			if err := os.WriteFile(p.file(), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			refusal(t, p, 2, p.file())
		})
	}
	t.Run("missing", func(t *testing.T) {
		p := newProcess(t, setup{unborn: true})
		os.Remove(p.file())
		refusal(t, p, 2, p.file(), "no such file")
	})
	t.Run("a folder", func(t *testing.T) {
		p := newProcess(t, setup{unborn: true})
		os.Remove(p.file())
		if err := os.Mkdir(p.file(), 0o700); err != nil {
			t.Fatal(err)
		}
		refusal(t, p, 2, p.file())
	})
}

func TestLeftoversOfAKilledBrokerAreNoHindrance(t *testing.T) {
	p := newProcess(t, setup{})
	socket := filepath.Join(p.status().DataFolder, "control.sock")
	p.kill()
	if _, err := os.Stat(socket); err != nil {
		t.Fatalf("a killed broker leaves no socket, so this tests nothing: %v", err)
	}
	p.start()
	if s := p.status(); s.Broker != "x" {
		t.Errorf("%+v", s)
	}
	p.kill()
	// Not a socket, and not even a file: what is in the way is told.
	os.Remove(socket)
	if err := os.WriteFile(socket, []byte("leftover"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start()
	p.status()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "status")
	cmd.Env = append(os.Environ(), "TMPDIR="+p.dir)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "broker x") != 1 {
		t.Errorf("hopwire status: %v\n%s", err, out)
	}
	p.stop()
	if _, err := os.Stat(socket); err == nil {
		t.Error("a stopped broker leaves its socket")
	}
	if err := os.MkdirAll(filepath.Join(socket, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	at := p.log.mark()
	p.start()
	p.awaitLog(at, "will not find this broker")
	p.awaitLog(at, socket)
	if code := p.stop(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
}

func TestAFolderThatCannotBeWrittenIsNamed(t *testing.T) {
	dir := smallDisk(t, 64)
	p := newProcess(t, setup{data: filepath.Join(dir, "d"), unborn: true})
	remount(t, dir, true)
	refusal(t, p, 3, filepath.Join(dir, "d"), "read-only")
	remount(t, dir, false)
	p.start()
	login(t, p.addr(), "client").alive()
	p.stop()
	remount(t, dir, true)
	refusal(t, p, 3, filepath.Join(dir, "d"), "read-only")
	remount(t, dir, false)
}

func TestStoppingIsQuickAndClean(t *testing.T) {
	p := newProcess(t, setup{})
	var idle []*raw
	for i := range 50 {
		k := login(t, p.addr(), fmt.Sprint("idle", i))
		k.subscribe(1, queueName("Q"), 10)
		idle = append(idle, k)
	}
	began := time.Now()
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	t.Logf("stopped with %d clients in %v", len(idle), time.Since(began).Round(time.Millisecond))
	for _, k := range idle {
		closes(t, k.c)
	}
	wait.For(t, patience, "off the list", func() (string, bool) {
		list, _ := filepath.Glob(filepath.Join(p.dir, "hopwire-*", "*"))
		return fmt.Sprint(list), len(list) == 0
	})
}
