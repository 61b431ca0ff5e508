// Package wait is how a test waits for something it cannot be told of: it looks again and again
// until a deadline, and then fails with what it saw last.
package wait

import (
	"testing"
	"time"
)

// pause is the time between two looks.
const pause = 20 * time.Millisecond

// For looks until look says done, or ends the test when the time is over with what was awaited and
// what the last look saw. It must be called from the test's own goroutine.
func For(t testing.TB, within time.Duration, what string, look func() (saw string, done bool)) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		saw, done := look()
		if done {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("after %v still not %s: %s", within, what, saw)
		case <-tick.C:
		}
	}
}
