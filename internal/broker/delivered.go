package broker

import "hopwire/internal/broker/queue"

// A destination's mark of what clients got is raised ahead by as many copies as the window of the
// client that gets one holds, within the first two, or by more, up to the third, where clients take
// more while the disk writes.
const (
	deliveredLeast = 32
	deliveredMost  = 1000
	deliveredLead  = 50_000
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

	last   uint64 // the highest that a client got
	raised uint64 // the copy for which below was raised
	waited bool   // a client waited since then
	lead   uint64 // wanted for the next raise
}

func (m *delivered) restore(below uint64) {
	*m = delivered{below: below, handed: below, durable: below, boot: below}
}

// committed tells that the header handed over last is durable. The next raise is to reach four
// times as far as clients came meanwhile, and twice as far as one that they waited for.
func (m *delivered) committed() {
	if m.handed == m.below && m.durable < m.handed {
		m.lead = 4 * (m.last - min(m.last, m.raised))
		if m.waited {
			m.lead = 2 * (m.below - m.raised)
		}
		m.lead = min(m.lead, deliveredLead)
	}
	m.durable = m.handed
}

// Deliverable implements queue.Host: a crash must find the copy gone or below the durable mark.
// Halfway to the mark it is raised, so that the copies that need it rarely wait.
func (h *queueHost) Deliverable(s *queue.Slot, c *queue.Copy) bool {
	j, m := &h.b.journal, &h.dest.delivered
	window := min(max(s.Sub.(*consumer).window.Prefetch(), deliveredLeast), deliveredMost)
	if lead := max(uint64(window), m.lead); c.Seq+lead/2 >= m.below {
		m.below, m.raised, m.waited = c.Seq+lead, c.Seq, false
		j.touch(h.dest)
	}
	// The header goes with the copy's record, or behind it.
	if c.Seq < m.durable || unwritten(c) != nil || !c.Durable && c.Seq < m.handed {
		m.last = max(m.last, c.Seq)
		return true
	}
	m.waited = true
	j.whenDurable(h.queue.Known)
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
