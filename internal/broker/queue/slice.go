package queue

import (
	"time"

	"hopwire/internal/loop"
)

// What the queues may do in one turn. Selectors can be many and dear, so there is a time beside the
// number; the clock is looked at once in sliceStep looks.
const (
	sliceCopies = 2000
	sliceTime   = time.Millisecond
	sliceStep   = 16
)

// Slice is what is left of one turn for the dispatches of all queues.
type Slice struct {
	env    loop.Env
	until  time.Duration
	copies int // to look at
	looks  int // since the clock was looked at
}

// NewSlice begins a slice now.
func NewSlice(env loop.Env) *Slice {
	return &Slice{env: env, until: env.Mono() + sliceTime, copies: sliceCopies}
}

// Over reports whether the turn has to end.
func (s *Slice) Over() bool { return s.copies <= 0 }

// next counts a copy, that one slot or many look at.
func (s *Slice) next() { s.copies-- }

// look counts n slots' looks at a copy, or a queue's beginning.
func (s *Slice) look(n int) {
	if s.looks += n; s.looks < sliceStep {
		return
	}
	s.looks = 0
	if s.env.Mono() >= s.until {
		s.copies = 0
	}
}
