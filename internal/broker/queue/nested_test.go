package queue

import (
	"testing"
	"time"

	"hopwire/internal/message"
)

// nested is a subscription that does something to its slot while it takes a copy, as one does whose
// client acknowledges at once.
type nested struct {
	slot *Slot
	took int
	more bool
	does func(*nested)
}

func (*nested) Gate(time.Duration) message.Verdict           { return message.Verdict{} }
func (*nested) Verdict(*Copy, time.Duration) message.Verdict { return message.Verdict{} }

func (n *nested) Take(c *Copy) bool {
	n.took++
	n.does(n)
	return n.more
}

func TestASlotMayBeToldOfRoomOrEndWhileItTakes(t *testing.T) {
	for _, c := range []struct {
		name string
		more bool
		does func(q *Queue, n *nested)
		took int
	}{
		{"room, and it has some", true, func(_ *Queue, n *nested) { n.slot.Ready() }, 3},
		{"room, and it had none", false, func(_ *Queue, n *nested) { n.slot.Ready() }, 3},
		{"it ends, with room", true, func(q *Queue, n *nested) { q.Detach(n.slot) }, 1},
		{"it ends, without", false, func(q *Queue, n *nested) { q.Detach(n.slot) }, 1},
		{"it has no room", false, func(*Queue, *nested) {}, 1},
	} {
		q, env, _ := fresh(3, false)
		n := &nested{more: c.more, does: func(n *nested) { c.does(q, n) }}
		n.slot = q.Attach(n, Traits{})
		other := &nested{does: func(*nested) {}} // full: it does not change who is offered what
		other.slot = q.Attach(other, Traits{Priority: -1})
		for range 10 {
			q.Dispatch(NewSlice(env))
		}
		if n.took != c.took {
			t.Errorf("%s: it took %d, want %d", c.name, n.took, c.took)
		}
		if in := len(q.ready); n.slot.queue != nil && n.slot.ready && in > 2 || n.slot.queue == nil &&
			in > 1 {
			t.Errorf("%s: %d are ready", c.name, in)
		}
		if n.slot.queue != nil {
			q.Detach(n.slot)
		}
		q.Add(&message.Message{}, 0)
		q.Dispatch(NewSlice(env))
	}
}
