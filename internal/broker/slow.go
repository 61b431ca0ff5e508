package broker

import (
	"slices"
	"time"

	"hopwire/internal/policy"
)

// slows notes that a consumer of a destination is slow: it has no room, and more waits for it.
func (s *consumer) slows(d *destination) {
	if !s.slow {
		s.slow, s.slowSince = true, s.b.env.Mono()
		if d.policy.SlowConsumer.Kind == policy.AbortSlow {
			s.often++
		}
		s.b.tellSlow(d, s)
	}
}

// full reports whether a consumer of queues is sent nothing more until it acknowledges something.
func (s *consumer) full() bool {
	return s.window != nil && s.browse == nil && s.window.Prefetch() > 0 && s.window.Room() == 0
}

// waitsLooks is how many copies of a queue are looked at, to see whether one waits for a consumer.
const waitsLooks = 100

// waits reports whether a copy waits in a queue for the consumer, which has no room. Of what is in
// the store alone it is known when the consumer takes everything.
func (s *consumer) waits(at consumerSlot) bool {
	some, unread := at.slot.Waits(waitsLooks)
	return some || unread && (s.durable != nil || s.selector == nil && !s.info.NoLocal)
}

// waits reports whether a copy waits in a queue for the bridge; one that is in the store alone may.
func (n *netSub) waits(at consumerSlot) bool {
	some, unread := at.slot.Waits(waitsLooks)
	return some || unread
}

// slowLooks is the least time between two looks of a queue for slow consumers that found none.
const slowLooks = 100 * time.Millisecond

// slowLook is when a queue is looked at for slow consumers.
type slowLook struct {
	next  time.Duration // not before that; monotonic
	later bool          // it will be, then
}

// findSlow looks, after a queue delivered what it could, for consumers that have no room while more
// waits for them, if the policy wants to know.
//
// A look asks up to waitsLooks selectors for each consumer without room, and asks the same again
// behind a gap, as no position may pass that. So it does not come with each dispatch, of which
// there are thousands a second: one that found somebody without room for whom nothing waits is not
// repeated for a while, and it is seen to that there is another one then, whatever comes.
func (d *destination) findSlow() {
	if !d.policy.Advisory.SlowConsumers && d.policy.SlowConsumer.Kind != policy.AbortSlow ||
		d.queue.Pending() == 0 {
		return
	}
	consumers := d.consumers
	if d.sub != nil && d.sub.active != nil {
		consumers = []*consumer{d.sub.active}
	}
	now := d.host.b.env.Mono()
	early := now < d.slowLook.next
	for _, s := range consumers {
		if s.slow || !s.full() {
			continue
		}
		if early {
			d.findSlowLater(d.slowLook.next - now)
			return
		}
		i := slices.IndexFunc(s.slots, func(at consumerSlot) bool { return at.dest == d })
		if s.waits(s.slots[i]) {
			s.slows(d)
		} else {
			d.slowLook.next = now + slowLooks
		}
	}
}

// findSlowLater looks for slow consumers in a while, once.
func (d *destination) findSlowLater(wait time.Duration) {
	if d.slowLook.later {
		return
	}
	d.slowLook.later = true
	b := d.host.b
	b.env.After(wait, func() {
		d.slowLook.later = false
		if !d.gone && !b.stopping() {
			d.findSlow()
		}
	})
}
