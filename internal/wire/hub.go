package wire

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"

	"hopwire/internal/loop"
)

// Hub ends the turns of one loop for all sessions on it: it hands over what each was given in the
// turn and wakes the writers that have something to do.
type Hub struct {
	loop   *loop.Loop
	run    int64 // told in hellos: a peer sees that it meets another run of the broker
	dirty  []*Session
	frames frameRoom

	mu      sync.Mutex
	closing int             // closed sessions that still write
	flushed []chan struct{} // closed when there are none
}

// NewHub makes the hub of a loop. Hooks run in the order of their making: the broker's EndTurn must
// be one before this.
func NewHub(l *loop.Loop) *Hub {
	h := &Hub{loop: l, run: rand.Int64N(math.MaxInt64) + 1}
	l.OnTurn(h.flush)
	return h
}

// Loop is the hub's loop.
func (h *Hub) Loop() *loop.Loop { return h.loop }

// calmSessions is how many sessions the loop writes for itself at the end of a turn.
const calmSessions = 2

func (h *Hub) flush() {
	calm := len(h.dirty) <= calmSessions && h.loop.Calm()
	for i, s := range h.dirty {
		h.dirty[i] = nil
		s.handOver(calm)
	}
	h.dirty = h.dirty[:0]
}

func (h *Hub) mark(s *Session) {
	if !s.dirty {
		s.dirty = true
		h.dirty = append(h.dirty, s)
	}
}

// Flushed waits until the peer of every session that was closed has read what it was given before
// and closed in turn, or did not in time.
func (h *Hub) Flushed(ctx context.Context) error {
	h.mu.Lock()
	if h.closing == 0 {
		h.mu.Unlock()
		return nil
	}
	none := make(chan struct{})
	h.flushed = append(h.flushed, none)
	h.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writes counts a closed session that writes, or with -1 one that is through.
func (h *Hub) writes(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing += n; h.closing > 0 {
		return
	}
	for _, none := range h.flushed {
		close(none)
	}
	h.flushed = nil
}
