// Package loop is where the core meets time and order: everything that touches a broker's state is
// run by one goroutine at a time, event by event, and a turn ends when it has done a slice of work.
//
// The core sees only Env. Loop implements it over the real clock; the simulation has its own.
package loop

import "time"

// Env is all that the core may know of the world outside: two clocks, timers, later slices of its
// own work, and a source of chance. All its methods are called on the loop, and all functions
// given to it run on the loop.
type Env interface {
	// Wall is the time of day in ms since the epoch. It may jump in both directions.
	Wall() int64
	// Mono is the time since the loop began. It never goes back and never jumps.
	Mono() time.Duration
	// After runs f once, d from now on the monotonic clock, unless the timer is stopped before.
	After(d time.Duration, f func()) Timer
	// Soon runs f later, behind everything that waits now: the next slice of long work.
	Soon(f func())
	// Rand gives 64 random bits.
	Rand() uint64
}

// Timer is a pending After. Stop is idempotent; f does not run after it.
type Timer interface{ Stop() }
