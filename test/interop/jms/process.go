package jms

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hopwire/test/need"
)

//go:embed java/*.java
var sources embed.FS

// slack is what a command may take beyond the time it was given to wait.
const slack = 30 * time.Second

// errGone is the end of every call on a driver whose JVM has ended.
var errGone = errors.New("the JMS driver's JVM has ended")

// process is one running JVM.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *tail
	ended  chan struct{} // closed when its output ended

	mu     sync.Mutex
	seq    int64
	calls  map[int64]*call
	events map[string]func(line)
}

// call is a command under way.
type call struct {
	messages []Msg
	reply    line
	done     chan struct{}
}

// shared are the JVMs that all tests of this process use; each ends with its standard input, so
// with the process.
var shared struct {
	sync.Mutex
	by [V6 + 1]*process
}

func sharedProcess(t testing.TB, v Version) *process {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if p := shared.by[v]; p != nil && p.alive() {
		return p
	}
	p := launch(t, v)
	shared.by[v] = p
	return p
}

// launch compiles the driver if need be and starts it.
func launch(t testing.TB, v Version) *process {
	t.Helper()
	classpath := ""
	switch v {
	case V5:
		classpath = filepath.Join(need.ActiveMQ(t), "lib", "*")
	case V6:
		classpath = filepath.Join(need.JMS6(t), "*")
	default:
		t.Fatalf("jms: no version %d", v)
	}
	classes, err := compile(v, classpath)
	if err != nil {
		t.Fatalf("jms: compiling the driver: %v", err)
	}
	p := &process{
		stderr: &tail{}, ended: make(chan struct{}),
		calls: map[int64]*call{}, events: map[string]func(line){},
	}
	p.cmd = exec.Command("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", classes+string(filepath.ListSeparator)+classpath, "Driver")
	p.cmd.Stderr = p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatalf("jms: %v", err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("jms: %v", err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("jms: %v", err)
	}
	go p.read(stdout)
	return p
}

// compile returns the folder of the driver's classes, which is kept in the cache and named after
// what they were made from. The jakarta generation differs by the name of one package.
func compile(v Version, classpath string) (string, error) {
	entries, err := sources.ReadDir("java")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintln(hash, classpath)
	files := map[string][]byte{}
	for _, e := range entries {
		text, err := sources.ReadFile("java/" + e.Name())
		if err != nil {
			return "", err
		}
		if v == V6 {
			text = bytes.ReplaceAll(text, []byte("javax.jms."), []byte("jakarta.jms."))
		}
		files[e.Name()] = text
		hash.Write(text)
	}
	folder := filepath.Join(need.Cache(), fmt.Sprintf("driver-%x", hash.Sum(nil)[:8]))
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(need.Cache(), 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(need.Cache(), "compile-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	return folder, compileIn(work, folder, classpath, files)
}

func compileIn(work, folder, classpath string, files map[string][]byte) error {
	out := filepath.Join(work, "classes")
	args := []string{"-nowarn", "-d", out, "-cp", classpath}
	for name, text := range files {
		file := filepath.Join(work, name)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
		args = append(args, file)
	}
	if text, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	err := os.Rename(out, folder)
	if _, statErr := os.Stat(folder); statErr == nil {
		return nil // another test process was faster
	}
	return err
}

// read takes the driver's lines apart until its output ends.
func (p *process) read(stdout io.Reader) {
	in := bufio.NewReader(stdout)
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			break
		}
		l, err := parse(strings.TrimSuffix(text, "\n"))
		if err != nil {
			fmt.Fprintln(p.stderr, err)
			continue
		}
		p.take(l)
	}
	_ = p.cmd.Wait() // how it ended is told by its standard error
	close(p.ended)
}

func (p *process) take(l line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.seq == 0 {
		if hear := p.events[l.pairs["on"]]; hear != nil {
			hear(l)
		}
		return
	}
	c := p.calls[l.seq]
	if c == nil {
		return // its caller no longer waits
	}
	if l.word == "msg" {
		c.messages = append(c.messages, message(l))
		return
	}
	c.reply = l
	delete(p.calls, l.seq)
	close(c.done)
}

// call sends a command and waits for its end, at most the given time and some slack.
func (p *process) call(verb string, args pairs, wait time.Duration) (line, []Msg, error) {
	c := &call{done: make(chan struct{})}
	p.mu.Lock()
	p.seq++
	seq := p.seq
	p.calls[seq] = c
	_, err := io.WriteString(p.stdin, line{seq, verb, args}.String()+"\n")
	p.mu.Unlock()
	if err != nil {
		return line{}, nil, fmt.Errorf("%s: %w: %s", verb, errGone, p.stderr)
	}
	timer := time.NewTimer(wait + slack)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-p.ended:
		return line{}, nil, fmt.Errorf("%s: %w: %s", verb, errGone, p.stderr)
	case <-timer.C:
		p.mu.Lock()
		delete(p.calls, seq)
		p.mu.Unlock()
		return line{}, nil, fmt.Errorf("%s %v: no end within %v", verb, args, wait+slack)
	}
	if c.reply.word == "err" {
		return line{}, c.messages, &Error{
			Verb: verb, Class: c.reply.pairs["class"], Text: c.reply.pairs["text"],
		}
	}
	return c.reply, c.messages, nil
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// listen has the events of a name handed to hear, which runs under the process's lock.
func (p *process) listen(name string, hear func(line)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if hear == nil {
		delete(p.events, name)
		return
	}
	p.events[name] = hear
}

// tail keeps the last part of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 8 << 10
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-most):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
