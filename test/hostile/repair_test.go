package hostile

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hopwire/client"
	"hopwire/test/wait"
)

// Bytes turn on the disk. The broker delivers what it can read and goes on to take as much as ever;
// when it is stopped a repair gives a store that is whole: the rest comes, nothing cannot be read,
// and nothing is compacted in vain.
func TestADamagedStoreIsRepaired(t *testing.T) {
	const count, first = 3000, 1000
	p := newProcess(t, setup{})
	ctx, cancel := context.WithTimeout(context.Background(), 6*patience)
	defer cancel()
	p.damage(ctx, count)
	p.start()
	if out, code := p.repair(); code != 3 || !strings.Contains(out, "stop it first") ||
		strings.Count(out, "\n") != 1 {
		t.Fatalf("while the broker runs: %d %s", code, out)
	}
	if got := p.receive(ctx, "D", first); got != first {
		t.Fatalf("%d are received", got)
	}
	p.churn(ctx, 500<<20)
	wait.For(t, patience, "the rest is there", func() (string, bool) {
		q := queue(p.status(), "D")
		return strconv.FormatInt(q.Size, 10), q.Size == count-first
	})
	p.stop()
	began := time.Now()
	out, code := p.repair()
	t.Logf("%v\n%s", time.Since(began), out)
	told := regexp.MustCompile(`queue://D: (\d+) messages copied, (\d+) or more could not be read\n`).
		FindStringSubmatch(out)
	if code != 0 || told == nil {
		t.Fatalf("%d %s", code, out)
	}
	copied, _ := strconv.Atoi(told[1])
	lost, _ := strconv.Atoi(told[2])
	if copied+lost != count-first || lost == 0 || lost > 100 {
		t.Errorf("%d and %d are not %d", copied, lost, count-first)
	}
	if out, code := p.repair(); code != 0 || !strings.Contains(out, "nothing to repair") {
		t.Errorf("again: %d %s", code, out)
	}
	at := p.log.mark()
	p.start()
	p.awaitLog(at, "from before a repair, takes room")
	if q := queue(p.status(), "D"); q.Size != int64(copied) {
		t.Errorf("after the repair there are %d", q.Size)
	}
	if got := p.receive(ctx, "D", copied); got != copied {
		t.Errorf("after the repair %d of %d are received", got, copied)
	}
	p.churn(ctx, 500<<20)
	if text := p.log.since(at); strings.Contains(text, "is damaged") {
		t.Errorf("after the repair: %s", text)
	}
}

// repair runs hopwire repair on the broker's file.
func (p *process) repair() (out string, code int) {
	p.t.Helper()
	path, err := program()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(path, "repair", p.file())
	text, _ := cmd.CombinedOutput()
	return string(text), cmd.ProcessState.ExitCode()
}

// receive consumes so many messages of a queue, and gives how many came.
func (p *process) receive(ctx context.Context, name string, n int) (got int) {
	p.t.Helper()
	conn := dial(ctx, p.t, p.addr())
	defer conn.Close(context.Background())
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		p.t.Fatal(err)
	}
	from, err := s.Consumer(ctx, client.Queue(name))
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for got < n {
		if _, err := from.Receive(ctx); err != nil {
			return got
		}
		got++
	}
	return got
}

// churn sends so many bytes to a queue that nobody reads, and purges it now and then.
func (p *process) churn(ctx context.Context, bytes int) {
	p.t.Helper()
	const size = 100_000
	conn := dial(ctx, p.t, p.addr())
	defer conn.Close(context.Background())
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		p.t.Fatal(err)
	}
	to, err := s.Producer(ctx, client.Queue("CHURN"))
	if err != nil {
		p.t.Fatal(err)
	}
	body := make([]byte, size/2)
	_, _ = rand.Read(body)
	text := hex.EncodeToString(body)
	for i := range bytes / size {
		if err := to.Send(ctx, client.NewText(text)); err != nil {
			p.t.Fatal(i, err)
		}
		if i%500 == 499 {
			if _, err := p.control().Purge(ctx, "queue://CHURN"); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}
