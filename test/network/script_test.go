package network

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"hopwire/internal/message"
	"hopwire/internal/sim"
)

// TestNetworkScripts holds the brokers to every script.
func TestNetworkScripts(t *testing.T) {
	files, err := filepath.Glob("[nb][0-9]*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts here: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".txt"), func(t *testing.T) {
			t.Parallel()
			s := newScript()
			datadriven.RunTest(t, file, s.block)
			for _, n := range s.w.Notes() {
				t.Errorf("the world notes: %s", n)
			}
		})
	}
}

// script is one file as it runs.
type script struct {
	w        *sim.World
	out      strings.Builder
	clients  map[string]*client
	sender   map[string]*sim.Client // by broker
	numbers  map[message.MessageID]int
	captured []capture
	rights   map[string]sim.Rights // by broker
}

type client struct {
	c   *sim.Client
	s   *sim.Consumer
	got []receipt
	// refused counts replies that were.
	refused int
}

// receipt is one message at one application.
type receipt struct {
	id          message.MessageID
	at          time.Duration
	redelivered bool
	path        int // brokers it came through
}

func (c *client) ids() []message.MessageID {
	var out []message.MessageID
	for _, r := range c.got {
		out = append(out, r.id)
	}
	return out
}

type capture struct {
	from, to string
	cmd      any
}

func newScript() *script {
	s := &script{w: sim.New(1, sim.Options{}), clients: map[string]*client{},
		sender: map[string]*sim.Client{}, numbers: map[message.MessageID]int{},
		rights: map[string]sim.Rights{}}
	s.w.Tap(func(from, to string, cmd any) {
		if !strings.HasPrefix(from, "client ") && !strings.HasPrefix(to, "client ") {
			s.captured = append(s.captured, capture{from, to, cmd})
		}
	})
	return s
}

// block runs one block: the directive and the lines below it.
func (s *script) block(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	s.line(t, d, line{cmd: d.Cmd, args: d.CmdArgs})
	for text := range strings.SplitSeq(d.Input, "\n") {
		text, _, _ = strings.Cut(text, "#")
		cmd, args, err := datadriven.ParseLine(text)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		if cmd != "" {
			s.line(t, d, line{cmd: cmd, args: args})
		}
	}
	return s.out.String()
}

// line is one command: what has no value is a word, the rest options.
type line struct {
	cmd  string
	args []datadriven.CmdArg
}

func (l line) words() []string {
	var out []string
	for _, a := range l.args {
		if len(a.Vals) == 0 {
			out = append(out, a.Key)
		}
	}
	return out
}

func (l line) word(i int) string {
	w := l.words()
	if i >= len(w) {
		return ""
	}
	return w[i]
}

// has reports whether a word is among the words.
func (l line) has(word string) bool {
	return slices.Contains(l.words(), word)
}

// as gives the word behind "as".
func (l line) as() string {
	w := l.words()
	for i := range w {
		if w[i] == "as" && i+1 < len(w) {
			return w[i+1]
		}
	}
	return ""
}

func (l line) option(name, otherwise string) string {
	for _, a := range l.args {
		if a.Key == name && len(a.Vals) > 0 {
			return strings.Join(a.Vals, ",")
		}
	}
	return otherwise
}

func (s *script) line(t *testing.T, d *datadriven.TestData, l line) {
	f := commands[l.cmd]
	if f == nil {
		d.Fatalf(t, "unknown command %q", l.cmd)
	}
	if err := f(s, l); err != nil {
		d.Fatalf(t, "%s: %v", l.cmd, err)
	}
}

func (s *script) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func duration(text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	return time.ParseDuration(text)
}

// named gives the messages their names, the longest runs shortened.
func (s *script) named(ids []message.MessageID) string {
	var n []int
	for _, id := range ids {
		i, ok := s.numbers[id]
		if !ok {
			i = -1
		}
		n = append(n, i)
	}
	return runs(n)
}

// runs writes numbers as m0-m8/2 m11.
func runs(n []int) string {
	var parts []string
	for i := 0; i < len(n); {
		j := i + 1
		for j+1 < len(n) && n[j+1]-n[j] == n[i+1]-n[i] && n[i+1] > n[i] {
			j++
		}
		switch step := 0; {
		case j < len(n) && j-i >= 2:
			if step = n[i+1] - n[i]; step == 1 {
				parts = append(parts, fmt.Sprintf("m%d-m%d", n[i], n[j]))
			} else {
				parts = append(parts, fmt.Sprintf("m%d-m%d/%d", n[i], n[j], step))
			}
			i = j + 1
		default:
			parts = append(parts, fmt.Sprintf("m%d", n[i]))
			i++
		}
	}
	return strings.Join(parts, " ")
}
