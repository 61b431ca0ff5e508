// Package rungroup starts goroutines by name, stops them by their context and waits for all of
// them. Everything in Hopwire that runs beside the loop runs in a group, so that a person can ask
// what lives and a test can ask that nothing does.
package rungroup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Group is a set of running goroutines. Make it with New.
type Group struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	idle    sync.Cond // total fell to 0
	running map[string]int
	total   int
	errs    []error
	ended   bool
}

// keptErrors is how many errors Wait gives at most.
const keptErrors = 10

// New makes a group that stops when ctx ends or Stop is called.
func New(ctx context.Context) *Group {
	g := &Group{running: map[string]int{}}
	g.ctx, g.cancel = context.WithCancel(ctx)
	g.idle.L = &g.mu
	return g
}

// Context is what the group's goroutines get. It ends with the group.
func (g *Group) Context() context.Context { return g.ctx }

// Go runs f on its own goroutine. An error other than context.Canceled stops the whole group and
// is given by Wait, with the name before it: what may fail alone returns nil. It reports false,
// and f does not run, when the group was stopped before.
func (g *Group) Go(name string, f func(ctx context.Context) error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.ctx.Err() != nil {
		return false
	}
	g.running[name]++
	g.total++
	go func() {
		err := errUnfinished
		defer func() { g.done(name, err) }()
		err = f(g.ctx)
	}()
	return true
}

// errUnfinished is the end of a goroutine by runtime.Goexit.
var errUnfinished = errors.New("it ended without returning")

func (g *Group) done(name string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running[name]--; g.running[name] == 0 {
		delete(g.running, name)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		if len(g.errs) < keptErrors {
			g.errs = append(g.errs, fmt.Errorf("%s: %w", name, err))
		}
		g.cancel()
	}
	if g.total--; g.total == 0 {
		g.idle.Broadcast()
	}
}

// Stop ends the group's context; it does not wait.
func (g *Group) Stop() { g.cancel() }

// Wait waits until no goroutine runs and gives the first errors. A group that was stopped starts
// nothing after Wait returned.
func (g *Group) Wait() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.total > 0 {
		g.idle.Wait()
	}
	g.ended = g.ctx.Err() != nil
	return errors.Join(g.errs...)
}

// Running names what runs, each with its number when there are several of a name: "accept",
// "link x2".
func (g *Group) Running() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := slices.Sorted(maps.Keys(g.running))
	for i, n := range names {
		if c := g.running[n]; c > 1 {
			names[i] = fmt.Sprintf("%s x%d", n, c)
		}
	}
	return names
}
