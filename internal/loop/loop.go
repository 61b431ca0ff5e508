package loop

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Limits of the events of one turn. A turn that reaches one of them ends after the event that
// reached it, so that out-boxes are flushed and batches committed.
const (
	turnEvents = 1000
	turnTime   = time.Millisecond
)

// Loop runs events one after another, one goroutine at a time: that of Run, or one that called Do
// while nothing ran. Post may be called from any goroutine; everything else but Do and Call only
// on the loop.
type Loop struct {
	start time.Time
	wake  chan struct{} // capacity 1: Run has something to look at

	mu     sync.Mutex
	posted []func()
	closed bool
	busy   bool          // somebody runs a turn: what follows up to rnd is theirs
	wanted bool          // Run waits for busy to end
	alarm  time.Duration // when Run wakes by itself; valid while it waits

	ready  []func() // taken over from posted, not yet run: ready[next:]; empty unless busy
	next   int
	timers timerHeap
	order  uint64 // number of timers made: equal times run in the order of their making
	onTurn []func()
	rnd    *rand.Rand
}

// New makes a loop whose monotonic clock begins now.
func New() *Loop {
	return &Loop{
		start: time.Now(),
		wake:  make(chan struct{}, 1),
		busy:  true, // nothing runs before Run
		rnd:   rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
}

// Post hands an event to the loop. It reports false when the loop has ended; the event is then
// dropped.
func (l *Loop) Post(f func()) bool {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false
	}
	l.posted = append(l.posted, f)
	rouse := len(l.posted) == 1 && !l.busy
	l.mu.Unlock()
	if rouse {
		l.rouse()
	}
	return true
}

// Do is Post by a goroutine that has time: when nothing runs or waits, f and what is posted
// meanwhile run before Do returns, for one turn, on the caller's goroutine. That saves waking
// another. It must not be called on the loop, nor with a lock held that an event takes.
func (l *Loop) Do(f func()) bool {
	l.mu.Lock()
	if l.busy || l.next < len(l.ready) || len(l.posted) > 0 {
		l.mu.Unlock()
		return l.Post(f)
	}
	l.busy = true
	l.mu.Unlock()
	l.ready, l.next = append(l.ready[:0], f), 0
	l.turn()
	l.mu.Lock()
	l.busy = false
	// What is left is for Run: the caller has work of its own.
	rouse := l.wanted || l.next < len(l.ready) || len(l.posted) > 0 || l.nextTimer() < l.alarm
	l.mu.Unlock()
	if rouse {
		l.rouse()
	}
	return true
}

// rouse makes Run look.
func (l *Loop) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Call posts f and waits until it ran. It reports false when the loop ended before, or ctx did;
// f may still run in the second case. It must not be called on the loop.
func (l *Loop) Call(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	if !l.Post(func() { f(); close(done) }) {
		return false
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// OnTurn adds f to what runs at the end of each turn, in the order of adding.
func (l *Loop) OnTurn(f func()) { l.onTurn = append(l.onTurn, f) }

// Run runs events until ctx ends; what was posted before that is run first.
func (l *Loop) Run(ctx context.Context) {
	wait := time.NewTimer(never)
	defer wait.Stop()
	l.mu.Lock()
	l.busy = false
	l.mu.Unlock()
	for done := ctx.Done(); ; {
		until := never
		if l.claim() {
			for since := l.Mono(); l.turn(); {
				if now := l.Mono(); now-since > turnTime {
					since = now
					announce()
				}
			}
			if l.settle(ctx.Err() != nil) {
				return
			}
			until = l.alarm - l.Mono()
		}
		wait.Reset(until)
		select {
		case <-l.wake:
		case <-wait.C:
		case <-done:
			done = nil
		}
	}
}

// claim makes the next turns Run's; false means that Do runs one and will rouse Run after it.
func (l *Loop) claim() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = l.busy
	l.busy = true
	return !l.wanted
}

// settle ends Run's turns. When the loop is to end it closes it for posts, unless something came
// in between, and reports that.
func (l *Loop) settle(ending bool) (ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.posted) > 0 {
		l.rouse()
	} else if ending {
		l.closed = true
		return true
	}
	l.busy = false
	l.alarm = l.nextTimer()
	return false
}

// turn runs one turn; false means there was nothing to do.
func (l *Loop) turn() bool {
	began := l.Mono()
	n := 0
	for n < turnEvents {
		f := l.take()
		if f == nil {
			break
		}
		f()
		if n++; l.Mono()-began >= turnTime {
			break
		}
	}
	if n == 0 {
		return false
	}
	for _, f := range l.onTurn {
		f()
	}
	return true
}

// Calm reports, at the end of a turn, whether nothing waits behind it: who has a little more to do
// may as well do it at once.
func (l *Loop) Calm() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next == len(l.ready) && len(l.posted) == 0
}

// take gives the next event: a due timer first, then what was posted.
func (l *Loop) take() func() {
	if len(l.timers) > 0 && l.timers[0].at <= l.Mono() {
		t := heap.Pop(&l.timers).(*timer)
		return t.f
	}
	if l.next == len(l.ready) {
		clear(l.ready)
		l.mu.Lock()
		l.ready, l.posted = l.posted, l.ready[:0]
		l.mu.Unlock()
		l.next = 0
		if len(l.ready) == 0 {
			return nil
		}
	}
	f := l.ready[l.next]
	l.ready[l.next] = nil
	l.next++
	return f
}

// never is longer than a loop lives.
const never = time.Duration(1<<63 - 1)

// nextTimer is when the first timer is due.
func (l *Loop) nextTimer() time.Duration {
	if len(l.timers) == 0 {
		return never
	}
	return l.timers[0].at
}

// Wall implements Env.
func (l *Loop) Wall() int64 { return time.Now().UnixMilli() }

// Mono implements Env.
func (l *Loop) Mono() time.Duration { return time.Since(l.start) }

// Rand implements Env.
func (l *Loop) Rand() uint64 { return l.rnd.Uint64() }

// Soon implements Env.
func (l *Loop) Soon(f func()) { l.Post(f) }

// After implements Env.
func (l *Loop) After(d time.Duration, f func()) Timer {
	l.order++
	t := &timer{loop: l, at: l.Mono() + max(0, d), order: l.order, f: f}
	heap.Push(&l.timers, t)
	return t
}

type timer struct {
	loop  *Loop
	at    time.Duration
	order uint64
	index int // in the heap; -1 once run or stopped
	f     func()
}

// Stop implements Timer.
func (t *timer) Stop() {
	if t.index >= 0 {
		heap.Remove(&t.loop.timers, t.index)
	}
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].order < h[j].order
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}
