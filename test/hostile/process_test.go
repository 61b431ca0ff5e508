package hostile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/test/wait"
)

// patience is how long a test waits for what should come soon.
const patience = 20 * time.Second

// program builds the command once.
var program = sync.OnceValues(func() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	dir, err := os.MkdirTemp("", "hostile-bin-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "hopwire")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/hopwire")
	cmd.Dir = filepath.Join(filepath.Dir(file), "..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// built is the folder of the binary.
var built string

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// process is one run of the command hopwire start, or several after each other on one folder.
type process struct {
	t      testing.TB
	name   string
	dir    string // short, as a socket is in it
	data   string // the data folder
	port   int
	shell  string // what a shell does before it starts the broker
	flags  []string
	cmd    *exec.Cmd
	ended  chan struct{}
	failed error
	log    *logged
}

// setup is what the configuration says beyond a name and a port.
type setup struct {
	name   string // default "x"
	attrs  string // of <broker>
	body   string // elements of <broker>
	uri    string // options of the connector's uri, with "?"
	data   string // default: a folder of the test
	shell  string
	flags  []string
	port   int  // default: a free one
	unborn bool // do not start yet
}

// newProcess writes the configuration and starts the broker.
func newProcess(t testing.TB, s setup) *process {
	t.Helper()
	dir, err := os.MkdirTemp("", "hw")
	if err != nil {
		t.Fatal(err)
	}
	if s.name == "" {
		s.name = "x"
	}
	if s.port == 0 {
		s.port = freePort(t)
	}
	if s.data == "" {
		s.data = filepath.Join(dir, "d")
	}
	p := &process{t: t, name: s.name, dir: dir, data: s.data, port: s.port, shell: s.shell,
		flags: s.flags, log: &logged{}}
	if len(p.flags) == 0 {
		p.flags = []string{"--log-level=info"}
	}
	p.write(s)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s, the end of its log:\n%s", p.name, p.log.tail(6000))
		}
		os.RemoveAll(dir)
	})
	if !s.unborn {
		p.start()
	}
	return p
}

func (p *process) file() string { return filepath.Join(p.dir, "broker.xml") }

func (p *process) write(s setup) {
	p.t.Helper()
	text := fmt.Sprintf(`<beans xmlns="http://www.springframework.org/schema/beans">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="%s" dataDirectory="%s" %s>
%s
    <transportConnectors>
      <transportConnector name="openwire" uri="tcp://127.0.0.1:%d%s"/>
    </transportConnectors>
  </broker>
</beans>
`, s.name, p.data, s.attrs, s.body, p.port, strings.ReplaceAll(s.uri, "&", "&amp;"))
	if err := os.WriteFile(p.file(), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// command is the command line for the broker's file.
func (p *process) command() *exec.Cmd {
	p.t.Helper()
	path, err := program()
	if err != nil {
		p.t.Fatal(err)
	}
	args := append([]string{"start", p.file()}, p.flags...)
	cmd := exec.Command(path, args...)
	if p.shell != "" {
		cmd = exec.Command("sh", append([]string{"-c", p.shell + `; exec "$0" "$@"`, path},
			args...)...)
	}
	cmd.Env = append(os.Environ(), "TMPDIR="+p.dir)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	return cmd
}

// launch starts the process and does not wait for anything.
func (p *process) launch() {
	p.t.Helper()
	p.cmd = p.command()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		p.failed = cmd.Wait()
		close(ended)
	}(p.cmd, p.ended)
}

// start starts the process and waits until its port is open; it gives the time that took.
func (p *process) start() time.Duration {
	p.t.Helper()
	at := p.log.mark()
	began := time.Now()
	p.launch()
	p.awaitLog(at, "ready\n")
	return time.Since(began)
}

// kill ends the process as a crash does.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.cmd = nil
}

// stop ends the process in good order and gives its exit code.
func (p *process) stop() int {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.exit(patience)
}

// exit waits for the end of the process and gives its exit code.
func (p *process) exit(within time.Duration) int {
	p.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		p.t.Fatalf("%s did not end within %v", p.name, within)
	}
	p.cmd = nil
	var code *exec.ExitError
	switch {
	case p.failed == nil:
		return 0
	case errors.As(p.failed, &code):
		return code.ExitCode()
	}
	p.t.Fatal(p.failed)
	return -1
}

func (p *process) addr() string { return "127.0.0.1:" + strconv.Itoa(p.port) }

func (p *process) url() string { return "tcp://" + p.addr() }

// control is the way to the running broker.
func (p *process) control() *control.Client {
	p.t.Helper()
	list, _ := filepath.Glob(filepath.Join(p.dir, "hopwire-*", p.name+".*"))
	for _, entry := range list {
		if strings.HasSuffix(entry, "."+strconv.Itoa(p.cmd.Process.Pid)) {
			socket, err := os.ReadFile(entry)
			if err != nil {
				p.t.Fatal(err)
			}
			return control.Dial(p.name, string(socket))
		}
	}
	p.t.Fatalf("%s is not on the list of running brokers", p.name)
	return nil
}

func (p *process) status() *manage.Status {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := p.control().Status(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *process) explain(queue string) *manage.Explanation {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	x, err := p.control().Explain(ctx, queue, "")
	if err != nil {
		p.t.Fatal(err)
	}
	return x
}

// queue is one destination's figures; the zero value when there is none.
func queue(s *manage.Status, name string) manage.Destination {
	for _, d := range s.Destinations {
		if d.Name == name || d.Name == "queue://"+name {
			return d
		}
	}
	return manage.Destination{}
}

// awaitLog waits for a text in what was logged after a mark and gives its line.
func (p *process) awaitLog(mark int, text string) string {
	p.t.Helper()
	line := ""
	wait.For(p.t, patience, fmt.Sprintf("%q in the log", text), func() (string, bool) {
		said := p.log.since(mark)
		before, after, found := strings.Cut(said, text)
		if !found {
			return said, false
		}
		rest, _, _ := strings.Cut(after, "\n")
		line = before[strings.LastIndexByte(before, '\n')+1:] + text + rest
		return "", true
	})
	return line
}

// rss is the process's resident memory in bytes.
func (p *process) rss() int64 {
	p.t.Helper()
	return procStatus(p.t, p.cmd.Process.Pid, "VmRSS:") << 10
}

// peakRSS is the most that rss was.
func (p *process) peakRSS() int64 {
	p.t.Helper()
	return procStatus(p.t, p.cmd.Process.Pid, "VmHWM:") << 10
}

func procStatus(t testing.TB, pid int, field string) int64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("this system does not tell the memory of processes: %v", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if part := strings.Fields(lines.Text()); len(part) > 1 && part[0] == field {
			n, err := strconv.ParseInt(part[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s of process %d", field, pid)
	return 0
}

// files is the number of files and sockets that the process has open.
func (p *process) files() int {
	p.t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	return len(list)
}

// logged is what a process writes.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Len()
}

func (l *logged) since(mark int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b.Bytes()[mark:])
}

func (l *logged) tail(n int) string {
	all := l.since(0)
	return all[max(0, len(all)-n):]
}

// count is how many lines after a mark hold a text.
func (l *logged) count(mark int, text string) int {
	n := 0
	for line := range strings.Lines(l.since(mark)) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// freePort is a port that nobody listens at.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
