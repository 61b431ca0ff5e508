package loop

import (
	"context"
	"slices"
	"sync"
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

func TestATurnEndsAfterTheEventThatReachedItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New()
		var turns []int
		events := 0
		l.OnTurn(func() { turns, events = append(turns, events), 0 })
		for _, d := range []time.Duration{turnTime, 0, 0, 7 * turnTime, turnTime / 2, turnTime / 2} {
			l.Post(func() {
				time.Sleep(d) // a dear event
				events++
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.Run(ctx)
		if want := []int{1, 3, 2}; !slices.Equal(turns, want) {
			t.Errorf("turns of %v events, want %v", turns, want)
		}
	})
}

func TestTimersRunAtTheirTimeAndNotOnceStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := run(t)
		begun := time.Now()
		ran := make(chan string)
		timer := func(d time.Duration, name string) Timer {
			return l.After(d, func() { ran <- name })
		}
		l.Post(func() {
			timer(2*time.Second, "two")
			timer(time.Second, "one")
			stopped := timer(time.Second, "stopped")
			stopped.Stop()
			stopped.Stop()
		})
		for i, want := range []string{"one", "two"} {
			got, at := <-ran, time.Since(begun)
			if got != want || at != time.Duration(i+1)*time.Second {
				t.Errorf("%s ran at %v, want %s", got, at, want)
			}
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

func TestDoRunsItsEventAtOnceWhereNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := run(t)
		synctest.Wait()
		var log []string
		l.OnTurn(func() { log = append(log, "end") })
		l.Do(func() {
			log = append(log, "event")
			l.Post(func() { log = append(log, "posted") })
		})
		if want := []string{"event", "posted", "end"}; !slices.Equal(log, want) {
			t.Errorf("%v, want %v", log, want)
		}
	})
}

func TestDoWaitsInLineWhereSomethingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := run(t)
		running, proceed := make(chan struct{}), make(chan struct{})
		var log []string
		l.Post(func() { close(running); <-proceed; log = append(log, "first") })
		<-running
		l.Post(func() { log = append(log, "second") })
		l.Do(func() { log = append(log, "third") })
		if len(log) > 0 {
			t.Errorf("%v ran beside an event", log)
		}
		close(proceed)
		l.Call(t.Context(), func() {
			if want := []string{"first", "second", "third"}; !slices.Equal(log, want) {
				t.Errorf("%v, want %v", log, want)
			}
		})
	})
}

func TestDoRunsOneTurnAndLeavesTheRestToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := run(t)
		synctest.Wait()
		events, turns := 0, 0
		returned := make(chan struct{})
		l.OnTurn(func() {
			if turns++; turns > 1 {
				<-returned
			}
		})
		l.Do(func() {
			for range 2 * turnEvents {
				l.Post(func() { events++ })
			}
		})
		close(returned)
		synctest.Wait()
		if turns != 3 || events != 2*turnEvents {
			t.Errorf("%d turns, %d events; want 3, %d", turns, events, 2*turnEvents)
		}
	})
}

func TestATimerThatDoSetsRunsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := run(t)
		synctest.Wait() // Run waits without an alarm
		ran := make(chan time.Duration)
		mark := func() { ran <- l.Mono() }
		l.Do(func() { l.After(2*time.Second, mark) })
		l.Do(func() { l.After(time.Second, mark) })
		for _, want := range []time.Duration{time.Second, 2 * time.Second} {
			if at := <-ran; at != want {
				t.Errorf("one ran at %v, want %v", at, want)
			}
		}
	})
}

func TestALoopIsCalmWhenNothingWaitsBehindATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := run(t)
		synctest.Wait()
		var calm []bool
		l.OnTurn(func() { calm = append(calm, l.Calm()) })
		l.Do(func() {
			for range turnEvents { // one more than the turn takes
				l.Post(func() {})
			}
		})
		synctest.Wait()
		if want := []bool{false, true}; !slices.Equal(calm, want) {
			t.Errorf("%v, want %v", calm, want)
		}
	})
}

func TestALoopDoesNotEndWithinATurnOfDo(t *testing.T) {
	for _, more := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { l.Run(ctx); close(ended) }()
			synctest.Wait()
			running, proceed := make(chan struct{}), make(chan struct{})
			ran := 0
			go l.Do(func() {
				close(running)
				<-proceed
				ran++
				for range more {
					l.Post(func() { ran++ })
				}
			})
			<-running
			cancel()
			synctest.Wait()
			select {
			case <-ended:
				t.Error("it ended while an event ran")
			default:
			}
			close(proceed)
			<-ended
			if ran != 1+more || l.Do(func() { t.Error("it ran") }) {
				t.Errorf("%d events of %d ran, or an ended loop took one", ran, 1+more)
			}
			if l.Mono() > 0 {
				t.Errorf("it ended after %v", l.Mono())
			}
		})
	}
}

func TestOneEventRunsAtATimeWhoeverRunsIt(t *testing.T) {
	l := New()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { l.Run(ctx); close(ended) }()
	const each = 20000
	running, ran := 0, 0 // without a lock: the race detector looks at them too
	event := func() {
		if running++; running != 1 {
			t.Error("two events ran at a time")
		}
		ran++
		running--
	}
	var posters sync.WaitGroup
	for i := range 4 {
		posters.Go(func() {
			last := -1
			for k := range each {
				hand := l.Do
				if (k+i)%3 == 0 {
					hand = l.Post
				}
				hand(func() {
					event()
					if last++; last != k {
						t.Errorf("poster %d: event %d ran as the %d.", i, k, last)
					}
				})
			}
		})
	}
	posters.Wait()
	cancel()
	<-ended
	if ran != 4*each {
		t.Errorf("%d events ran of %d", ran, 4*each)
	}
}
