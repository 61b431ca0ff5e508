package sim

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// seedsOf gives how many seeds a run has: HOPWIRE_SOAK=n takes n, short tests few.
func seedsOf(t *testing.T) uint64 {
	if s := os.Getenv("HOPWIRE_SOAK"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil || n < 2 {
			return 100_000
		}
		return n
	}
	if testing.Short() || raced {
		return 100
	}
	return 2000
}

// TestPromisesHoldForEverySeed plays seeds and holds each to the promises. HOPWIRE_SEED=n plays one
// and prints everything that happens.
func TestPromisesHoldForEverySeed(t *testing.T) {
	if s := os.Getenv("HOPWIRE_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		report(t, Run(Draw(seed), func(line string) { fmt.Println(line) }, nil))
		return
	}
	seeds := seedsOf(t)
	began := time.Now()
	var failed, messages, resends, spooled atomic.Int64
	sweep(1, seeds, func(seed uint64) {
		out := Run(Draw(seed), nil, nil)
		messages.Add(int64(out.Messages))
		resends.Add(int64(out.Resends))
		spooled.Add(out.Spooled)
		if len(out.Violations) > 0 && failed.Add(1) <= 20 {
			report(t, out)
		}
	})
	spent := time.Since(began)
	if spooled.Load() == 0 {
		t.Error("nothing was ever spooled")
	}
	t.Logf("%d seeds, %d failed, %d messages, %d redeliveries, %d spooled, %.1f ms per seed and core",
		seeds, failed.Load(), messages.Load(), resends.Load(), spooled.Load(),
		float64(spent.Milliseconds())*float64(runtime.GOMAXPROCS(0))/float64(seeds))
}

// sweep calls f for the seeds from first on, on all processors.
func sweep(first, count uint64, f func(seed uint64)) {
	var next atomic.Uint64
	next.Store(first)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for seed := next.Add(1) - 1; seed < first+count; seed = next.Add(1) - 1 {
				f(seed)
			}
		})
	}
	all.Wait()
}

func report(t *testing.T, out *Outcome) {
	t.Helper()
	for i, v := range out.Violations {
		if i == 0 {
			t.Errorf("%s", out.Plan.String())
		}
		if i < 2 {
			t.Errorf("  HOPWIRE_SEED=%d %s", out.Plan.Seed, v)
		}
	}
}
