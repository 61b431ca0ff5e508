package broker

import "hopwire/internal/broker/queue"

// A destination's mark of what clients got is raised ahead by as many copies as the window of the
// client that gets one holds, within these.
const (
	deliveredLeast = 32
	deliveredMost  = 1000
)

// delivered are the marks of a queue's stored copies that clients got: sequences above all of them.
// They go with headers, which are written with nearly every batch anyway. After a crash all copies
// below the last one are told to be redelivered.
//
//	durable <= handed <= below, but for a clean stop, which lowers below
type delivered struct {
	below   uint64 // now
	handed  uint64 // in the last header handed over
	durable uint64 // in a header that is durable
	boot    uint64 // copies below it may have been delivered before the broker's start
}

func (m *delivered) restore(below uint64) { *m = delivered{below, below, below, below} }

// Deliverable implements queue.Host: a crash must find the copy gone or below the durable mark.
// Halfway to the mark it is raised, so that the copies that need it rarely wait.
func (h *queueHost) Deliverable(s *queue.Slot, c *queue.Copy) bool {
	j, m := &h.b.journal, &h.dest.delivered
	window := uint64(min(max(s.Sub.(*consumer).window.Prefetch(), deliveredLeast), deliveredMost))
	if c.Seq+window/2 >= m.below {
		m.below = c.Seq + window
		j.touch(h.dest)
	}
	// The header goes with the copy's record, or behind it.
	if c.Seq < m.durable || j.home(c) != nil || !c.Durable && c.Seq < m.handed {
		return true
	}
	j.afterUnit(func() {
		h.queue.Known()
		h.b.networks.pageLoaded(h.dest)
	})
	return false
}

// clearDelivered takes the marks back at a clean stop: all clients gave back what they had, and
// what they may have seen is counted. What was suspect before and is still there stays so.
func (b *Broker) clearDelivered() {
	for _, d := range b.order {
		if d.queue == nil || d.delivered.below == 0 || b.journal.hold.deltas[d] != nil {
			continue // or what was consumed comes back, as its end is held
		}
		below := d.delivered.boot
		if d.stored == 0 || d.queue.OldestStored() >= below {
			below = 0
		}
		if d.delivered.below != below {
			d.delivered.below = below
			b.journal.touch(d)
		}
	}
}
