package broker

import "hopwire/internal/policy"

// slows notes that a consumer of a destination is slow: it has no room, and more waits.
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

// findSlow looks, after a queue delivered what it could, for consumers that have no room while more
// waits, if the policy wants to know.
func (d *destination) findSlow() {
	if !d.policy.Advisory.SlowConsumers && d.policy.SlowConsumer.Kind != policy.AbortSlow ||
		d.queue.Pending() == 0 {
		return
	}
	consumers := d.consumers
	if d.sub != nil && d.sub.active != nil {
		consumers = []*consumer{d.sub.active}
	}
	for _, s := range consumers {
		if s.full() {
			s.slows(d)
		}
	}
}
