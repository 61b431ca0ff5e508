package hostile

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"hopwire/test/bench/load"
)

// Bounds of a broker with a backlog.
const (
	reopenMost  = time.Second
	fillingRSS  = 768 << 20 // a producer faster than the disk
	backlogRSS  = 400 << 20
	backlogWait = 15 * time.Minute
)

func TestABacklogIsReopenedAtOnceAndDrainedInLittleMemory(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("BACKLOG"))
	if err != nil || count <= 0 {
		t.Skip("a long test; BACKLOG=1000000 runs it, as make bench-backlog does")
	}
	ctx, cancel := context.WithTimeout(context.Background(), backlogWait)
	defer cancel()
	p := newProcess(t, setup{})
	o := load.Options{ProducerAddr: p.addr(), ConsumerAddr: p.addr(), Dest: "queue://backlog",
		Persistent: true, Size: 1024, PIDs: []int{p.cmd.Process.Pid}}
	filled, err := load.Fill(ctx, o, count)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("filled with %d of 1 KiB in %v: %.0f msg/s, %d MiB resident at most", count,
		filled.Round(time.Millisecond), float64(count)/filled.Seconds(), p.peakRSS()>>20)
	if peak := p.peakRSS(); peak > fillingRSS {
		t.Errorf("filling took %d MiB", peak>>20)
	}
	t.Logf("%d MiB counted as messages in memory", p.status().MemoryBytes>>20)
	began := time.Now()
	p.stop()
	t.Logf("stopped in %v", time.Since(began).Round(time.Millisecond))
	clean := p.start()
	p.kill()
	killed := p.start()
	if q := queue(p.status(), "backlog"); q.Size != int64(count) {
		t.Fatalf("%d of %d are there", q.Size, count)
	}
	t.Logf("reopened in %v, after kill -9 in %v", clean.Round(time.Millisecond),
		killed.Round(time.Millisecond))
	if max(clean, killed) > reopenMost {
		t.Errorf("reopening took longer than %v", reopenMost)
	}
	first, last, err := load.Drain(ctx, o, count)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("first message after %v, all after %v: %.0f msg/s, %d MiB resident at most",
		first.Round(time.Millisecond), last.Round(time.Millisecond), float64(count)/last.Seconds(),
		p.peakRSS()>>20)
	if peak := p.peakRSS(); peak > backlogRSS {
		t.Errorf("draining took %d MiB", peak>>20)
	}
}
