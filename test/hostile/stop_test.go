package hostile

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"hopwire/client"
	"hopwire/test/wait"
)

// promptly is how long a clean stop may take that has nothing left to answer: less than one wait
// for a peer or for a client that does not read.
const promptly = 4 * time.Second

// usage is a systemUsage with one limit.
func usage(kind, limit string) string {
	return fmt.Sprintf(`<systemUsage><systemUsage><%[1]s><%[1]s limit="%s"/></%[1]s></systemUsage>
		</systemUsage>`, kind, limit)
}

// blocked sends until the broker holds the producer.
func blocked(ctx context.Context, t *testing.T, p *process, how ...client.SendOption) {
	t.Helper()
	conn := dial(ctx, t, p.addr())
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Producer(ctx, client.Queue("FULL"), how...)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 64<<10)
	go func() {
		for ctx.Err() == nil && conn.Err() == nil {
			if err := out.SendAsync(ctx, client.NewText(text), nil); err != nil {
				return
			}
		}
	}()
	wait.For(t, patience, "held sends", func() (string, bool) {
		q := queue(p.status(), "FULL")
		return fmt.Sprintf("%+v", q), q.Parked > 0
	})
}

func (p *process) stopsPromptly() {
	p.t.Helper()
	began := time.Now()
	code := p.stop()
	if took := time.Since(began); took > promptly || code != 0 {
		p.t.Errorf("the stop took %v and ended with %d", took, code)
	} else {
		p.t.Logf("stopped in %v", took)
	}
}

// unspooled keeps what waits in queues in memory.
const unspooled = `<destinationPolicy><policyMap><policyEntries><policyEntry queue="&gt;">
<pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy></policyEntry></policyEntries></policyMap>
</destinationPolicy>`

func TestAStopDoesNotWaitForSendsThatHaveNoRoom(t *testing.T) {
	for _, c := range []struct {
		name, body string
		how        []client.SendOption
	}{
		{"memory", usage("memoryUsage", "4mb") + unspooled, []client.SendOption{client.NonPersistent()}},
		{"store", usage("storeUsage", "4mb"), []client.SendOption{client.Window(1000)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProcess(t, setup{body: c.body})
			blocked(t.Context(), t, p, c.how...)
			p.stopsPromptly()
		})
	}
}

func TestAStopOnAFullDiskKeepsWhatItConfirmedAndEnds(t *testing.T) {
	dir := smallDisk(t, 64)
	p := newProcess(t, setup{data: dir})
	mark := p.log.mark()
	f := fill(t.Context(), t, p.addr(), 0)
	f.stuck(t)
	p.awaitLog(mark, "STORE_FULL")
	p.stopsPromptly()
	<-f.done
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=128m"); err != nil {
		t.Fatal(err)
	}
	p.start()
	seen := map[string]bool{}
	take(t, p.addr(), int(queue(p.status(), "FULL").Size), seen)
	for _, key := range f.keys {
		if !seen[key] {
			t.Errorf("message %s was confirmed and is lost", key)
		}
	}
}
