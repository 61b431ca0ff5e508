package hopwire

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hopwire/client"
	"hopwire/test/wait"
)

// A broker whose store or spool loses its folder ends, and soon: nothing that waits for the disk
// then is waited for.
func TestAFailureOfTheDiskEndsTheBrokerSoon(t *testing.T) {
	for _, c := range []struct{ name, folder string }{
		{"the spool", "tmp/b.hopwire"}, {"the store", "data"},
	} {
		dir := t.TempDir()
		var log bytes.Buffer
		s, err := Load(file(t, fmt.Sprintf(`dataDirectory="%s" tmpDataDirectory="%s/tmp"`, dir, dir),
			`<persistenceAdapter><kahaDB directory="`+dir+`/data"/></persistenceAdapter>`+narrow),
			Options{NoControl: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sent := new(atomic.Int64)
		go flood(t.Context(), b, c.folder == "data", sent)
		gone := filepath.Join(dir, filepath.FromSlash(c.folder))
		wait.For(t, 30*time.Second, "messages, and their folder", func() (string, bool) {
			_, err := os.Stat(filepath.Join(gone, "db")) // the spool makes its own when it is needed
			return fmt.Sprint(sent.Load(), " sent; ", err), sent.Load() > 300 && err == nil
		})
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		select {
		case <-b.done:
			if b.err == nil || !strings.Contains(b.err.Error(), "the disk failed") {
				t.Errorf("%s: it ends with %v", c.name, b.err)
			}
		case <-time.After(15 * time.Second):
			t.Fatalf("%s is gone, and after %d messages the broker runs: %s", c.name, sent.Load(), &log)
		}
	}
}

// flood sends until the broker ends, and counts.
func flood(ctx context.Context, b *Broker, durable bool, sent *atomic.Int64) {
	conn, err := client.Dial(ctx, "tcp://b", client.WithDialer(b.Dial))
	if err != nil {
		return
	}
	defer conn.Close(context.Background())
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		return
	}
	o := []client.SendOption{client.NonPersistent()}
	if durable {
		o = nil
	}
	p, err := s.Producer(ctx, client.Queue("Q"), o...)
	for err == nil {
		if err = p.Send(ctx, client.NewText(strings.Repeat("x", 10_000))); err == nil {
			sent.Add(1)
		}
	}
}
