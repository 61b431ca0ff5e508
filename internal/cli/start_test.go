package cli

import (
	"log/slog"
	"os"
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
