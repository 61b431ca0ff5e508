package wire

import "hopwire/internal/loop"

// Hub ends the turns of one loop for all sessions on it: it hands over what each was given in the
// turn and wakes the writers that have something to do.
type Hub struct {
	loop  *loop.Loop
	dirty []*Session
}

// NewHub makes the hub of a loop. Hooks run in the order of their making: the broker's EndTurn must
// be one before this.
func NewHub(l *loop.Loop) *Hub {
	h := &Hub{loop: l}
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
