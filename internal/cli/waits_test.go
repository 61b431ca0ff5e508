package cli

import (
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"hopwire"
	"hopwire/test/wait"
)

// shared is what a command writes while somebody reads it.
type shared struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// until waits for what a pattern fits.
func (s *shared) until(t *testing.T, pattern string) {
	t.Helper()
	wait.For(t, 20*time.Second, pattern, func() (string, bool) {
		return s.String(), regexp.MustCompile(`(?ms)` + pattern).MatchString(s.String())
	})
}

// A command that waits for a broker says so, and why, and when there is one.
func TestWhoWaitsForABrokerIsTold(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close()
	start := func() *hopwire.Broker {
		text := `<broker xmlns="http://activemq.apache.org/schema/core" persistent="false">
			<transportConnectors><transportConnector name="a" uri="tcp://` + at + `"/>
			</transportConnectors></broker>`
		s, err := hopwire.Parse(filepath.Join(t.TempDir(), "a.xml"), text,
			hopwire.Options{NoControl: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	stop := func(b *hopwire.Broker) {
		b.Stop()
		if err := b.Wait(); err != nil {
			t.Error(err)
		}
	}
	url := "failover:(tcp://" + at + ")?maxReconnectDelay=50"
	const waiting = `^hopwire: waits for a broker; the last try: `
	refused := waiting + regexp.QuoteMeta(at) + `: broker unavailable: connection refused$`
	connected := `^hopwire: connected to ` + regexp.QuoteMeta(at) + `$`
	errs := []*shared{{}, {}, {}}
	var out shared
	var all sync.WaitGroup
	for i, args := range [][]string{
		{"producer", "--brokerUrl", url, "--messageCount", "1", "OTHER"},
		{"browse", "--brokerUrl", url, "Q"},
		{"consumer", "--brokerUrl", url, "--messageCount", "1", "--wait", "0s", "Q"},
	} {
		all.Go(func() {
			if code := Main(args, strings.NewReader(""), &out, errs[i]); code != exitDone {
				t.Errorf("%s exits with %d: %s", args[0], code, errs[i])
			}
		})
	}
	for _, e := range errs {
		e.until(t, refused)
	}
	b := start()
	for _, e := range errs {
		e.until(t, refused+`\n`+connected)
	}
	stop(b)
	errs[2].until(t, connected+`\n`+waiting)
	b = start()
	errs[2].until(t, connected+`\n`+waiting+`[^\n]*\n`+connected)
	expect(t, exitDone, `^producer-1: sent 1 message to queue://Q in[^\n]*\n$`, "producer",
		"--brokerUrl", url, "--messageCount", "1", "Q")
	all.Wait()
	stop(b)
}
