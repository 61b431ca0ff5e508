package wire

import "hopwire/internal/loop"

// Hub ends the turns of one loop for all sessions on it: it hands over what each was given in the
// turn and wakes the writers that have something to do.
type Hub struct {
	loop  *loop.Loop
	dirty []*Session
	// withheld are the batches of sessions that are congested: their readers stop for want of them.
	withheld []*batch
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

func (h *Hub) flush() {
	for i, s := range h.dirty {
		h.dirty[i] = nil
		s.handOver()
	}
	h.dirty = h.dirty[:0]
	h.readOn()
}

// readOn lets sessions read again that are not congested any more.
func (h *Hub) readOn() {
	kept := h.withheld[:0]
	for _, b := range h.withheld {
		if !b.s.closed && b.s.cfg.Congested() {
			kept = append(kept, b)
			continue
		}
		b.s.conn.Pause(false)
		b.giveBack()
	}
	clear(h.withheld[len(kept):])
	h.withheld = kept
}

func (h *Hub) mark(s *Session) {
	if !s.dirty {
		s.dirty = true
		h.dirty = append(h.dirty, s)
	}
}
