package wait

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// recorder is a testing.TB that remembers how it failed.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestWaitingEndsWithTheEvent(t *testing.T) {
	looks := 0
	For(t, time.Minute, "seen", func() (string, bool) {
		looks++
		return "", looks == 3
	})
	if looks != 3 {
		t.Errorf("looked %d times, want 3", looks)
	}
}

func TestWaitingInVainTellsWhatWasSeenLast(t *testing.T) {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		For(r, 50*time.Millisecond, "green", func() (string, bool) { return "it is red", false })
	}()
	<-done
	if !strings.Contains(r.failed, "not green") || !strings.Contains(r.failed, "it is red") {
		t.Errorf("it failed with %q", r.failed)
	}
}
