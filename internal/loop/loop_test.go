package loop

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// run runs a loop in the bubble until the test ends.
func run(t *testing.T) *Loop {
	l := New()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { l.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return l
}

func TestEventsRunInTheOrderOfTheirPosting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := run(t)
		var got []int
		for i := range 5000 { // more than one turn
			l.Post(func() { got = append(got, i) })
		}
		l.Call(t.Context(), func() {
			if len(got) != 5000 || !slices.IsSorted(got) {
				t.Errorf("%d events, in order %v", len(got), slices.IsSorted(got))
			}
		})
	})
}

func TestATurnEndsOnceForAllItsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		var log []string
		l.OnTurn(func() { log = append(log, "end") })
		for range 3 {
			l.Post(func() { log = append(log, "event") })
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.Run(ctx)
		want := []string{"event", "event", "event", "end"}
		if !slices.Equal(log, want) {
			t.Errorf("%v, want %v", log, want)
		}
	})
}

func TestALongTurnEndsBeforeAllEventsRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		turns, events := 0, 0
		l.OnTurn(func() { turns++ })
		for range 2*turnEvents + 1 {
			l.Post(func() { events++ })
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.Run(ctx)
		if turns != 3 || events != 2*turnEvents+1 {
			t.Errorf("%d turns, %d events; want 3, %d", turns, events, 2*turnEvents+1)
		}
	})
}

func TestTimersRunAtTheirTimeAndNotOnceStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := run(t)
		var got []string
		l.Post(func() {
			l.After(2*time.Second, func() { got = append(got, "two") })
			l.After(time.Second, func() { got = append(got, "one") })
			stopped := l.After(time.Second, func() { got = append(got, "stopped") })
			stopped.Stop()
			stopped.Stop()
		})
		for _, c := range []struct {
			sleep time.Duration
			want  []string
		}{{1500 * time.Millisecond, []string{"one"}}, {time.Second, []string{"one", "two"}}} {
			time.Sleep(c.sleep)
			synctest.Wait()
			l.Call(t.Context(), func() {
				if !slices.Equal(got, c.want) {
					t.Errorf("%v, want %v", got, c.want)
				}
			})
		}
	})
}

func TestAnEndedLoopTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.Run(ctx)
		if l.Post(func() { t.Error("it ran") }) || l.Call(t.Context(), func() {}) {
			t.Error("an ended loop took an event")
		}
	})
}
