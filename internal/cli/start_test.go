package cli

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What waits as a slave is said on standard output, since scripts read that, and in the log.
func TestASlavesLineStandsOnceOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var file strings.Builder
	for _, c := range []struct {
		name  string
		s     streams
		level slog.Level
		want  bool
	}{
		{"a terminal", streams{out: null, err: null}, slog.LevelInfo, true},
		{"with a log of more", streams{out: null, err: null}, slog.LevelDebug, true},
		{"with a log of warnings", streams{out: null, err: null}, slog.LevelWarn, false},
		{"the log goes to a file", streams{out: null, err: &file}, slog.LevelInfo, false},
		{"the output goes to a file", streams{out: &file, err: null}, slog.LevelInfo, false},
	} {
		if got := logSeen(&c.s, c.level); got != c.want {
			t.Errorf("%s: the log is seen there: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestABrokerThatFailsIsWhyTheOthersOfItsProcessStop(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := func(name, address string) string {
		path := filepath.Join(dir, name+".xml")
		text := fmt.Sprintf(`<broker xmlns="http://activemq.apache.org/schema/core" brokerName=%q
			persistent="false"><transportConnectors><transportConnector name="x" uri="tcp://%s"/>
			</transportConnectors></broker>`, name, address)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	out, code := play(t, "start", file("one", "127.0.0.1:0"), file("two", taken.Addr().String()))
	why := regexp.MustCompile(`msg=stopping broker=one why="broker two of this process failed: .*` +
		regexp.QuoteMeta(taken.Addr().String()))
	if code != exitUnavailable || !why.MatchString(out) ||
		strings.Contains(out, "msg=ready") || strings.Contains(out, "\nready\n") {
		t.Errorf("start exits with %d and prints\n%s", code, out)
	}
}
