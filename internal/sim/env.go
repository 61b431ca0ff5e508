package sim

import (
	"math/rand/v2"
	"time"

	"hopwire/internal/loop"
)

// turnCost is how much time a turn takes, so that a world in which two turns call each other for
// ever gets on.
const turnCost = 10 * time.Microsecond

// env is one life's loop: events in order, timers, turns.
type env struct {
	w       *World
	node    *Node
	start   time.Duration
	rnd     *rand.Rand
	ready   []func()
	next    int // ready[next:] wait
	pending bool
	dead    bool
	end     func() // of each turn
}

func newEnv(n *Node) *env {
	return &env{w: n.w, node: n, start: n.w.now - n.w.within(time.Hour),
		rnd: rand.New(rand.NewPCG(n.w.rnd.Uint64(), 1))}
}

// Wall implements loop.Env.
func (e *env) Wall() int64 { return epoch + (e.w.now + e.node.skew).Milliseconds() }

// Mono implements loop.Env.
func (e *env) Mono() time.Duration { return e.w.now - e.start }

// Rand implements loop.Env.
func (e *env) Rand() uint64 { return e.rnd.Uint64() }

// Soon implements loop.Env.
func (e *env) Soon(f func()) { e.post(f) }

// After implements loop.Env.
func (e *env) After(d time.Duration, f func()) loop.Timer {
	t := &timer{}
	e.w.After(d, func() {
		if t.stopped || e.dead {
			return
		}
		e.post(func() {
			if !t.stopped {
				t.stopped = true
				f()
			}
		})
	})
	return t
}

type timer struct{ stopped bool }

// Stop implements loop.Timer.
func (t *timer) Stop() { t.stopped = true }

// post hands an event to the loop.
func (e *env) post(f func()) {
	if e.dead {
		return
	}
	e.ready = append(e.ready, f)
	e.schedule()
}

func (e *env) schedule() {
	if !e.pending {
		e.pending = true
		e.w.After(turnCost, e.turn)
	}
}

// turn runs what waits, and the end of the turn.
func (e *env) turn() {
	e.pending = false
	for n := 0; n < e.w.opt.TurnEvents && e.next < len(e.ready) && !e.dead; n++ {
		f := e.ready[e.next]
		e.ready[e.next] = nil
		e.next++
		f()
	}
	if e.dead {
		return
	}
	e.end()
	if e.next == len(e.ready) {
		e.ready, e.next = e.ready[:0], 0
		return
	}
	e.schedule()
}
