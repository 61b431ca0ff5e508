package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hopwire/test/wait"
)

// A pipe that nobody writes to is a file without an end.
func TestAFileThatDoesNotEndHoldsNobody(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"start", "--check"}, exitFailed,
			"hopwire: FILE was being read: SIGTERM\n"},
		{[]string{"start"}, exitDone, "stopped\n"},
		{[]string{"repair"}, exitFailed, "hopwire: interrupted\n"},
	} {
		var out wait.Output
		file := pipe(t)
		done := make(chan int)
		go func() { done <- Main(append(c.args, file), strings.NewReader(""), &out, &out) }()
		wait.For(t, patience, "a reader", func() (string, bool) {
			return out.String(), opened(t, file) == 2
		})
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		want := strings.Replace(c.want, "FILE", file, 1)
		if code := <-done; code != c.code || out.String() != want {
			t.Errorf("%q exits with %d and says\n%swant %d, %s", c.args, code, out.String(), c.code,
				want)
		}
	}
	readTime = 50 * time.Millisecond
	defer func() { readTime = 30 * time.Second }()
	expect(t, exitUsage, `hopwire: .*pipe, or a file that it names, was not read within 50ms: is it`,
		"start", "--check", pipe(t))
	regular := filepath.Join(t.TempDir(), "regular.xml")
	text := `<beans><bean class="PropertyPlaceholderConfigurer">` +
		`<property name="location" value="file:` + pipe(t) + `"/></bean><broker/></beans>`
	if err := os.WriteFile(regular, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, exitUsage,
		`hopwire: .*regular.xml, or a file that it names, was not read within 50ms`+"\n$",
		"start", "--check", regular)
}

// opened counts how often a file is open in this process.
func opened(t *testing.T, file string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, err := os.Readlink(fd); err == nil && to == file {
			n++
		}
	}
	return n
}

// pipe is a file that somebody holds open, and writes nothing to.
func pipe(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	return file
}
