package broker

import "hopwire/internal/broker/queue"

// evictPercent of the memory limit is where durable copies begin to leave memory.
const evictPercent = 70

// eviction decides when copies that wait and are durable, or spooled, leave memory.
type eviction struct {
	target int64 // bytes of messages in memory; 0 is no bound
	next   int64 // the amount at which the next pass begins, >= target
}

// newEviction bounds what messages take in memory by the memory limit's share and by the resident
// bytes, whichever is less; 0 is none.
func newEviction(limitBytes, residentBytes int64) eviction {
	target := limitBytes / 100 * evictPercent
	if target == 0 || residentBytes > 0 && residentBytes < target {
		target = residentBytes
	}
	return eviction{target, target}
}

// evictAgain makes the next pass begin at once when sends wait for memory: copies became durable,
// or wait where they can be evicted.
func (b *Broker) evictAgain() {
	if len(b.parked) > 0 {
		b.eviction.next = b.eviction.target
	}
}

// evict gives memory back when it is short. A pass that frees too little, since most of what is in
// memory has no record in the store, is not repeated before memory has grown again.
func (b *Broker) evict() {
	e := &b.eviction
	if e.target == 0 {
		return
	}
	if b.memory.Used() < e.target {
		e.next = e.target
		return
	}
	if b.memory.Used() < e.next {
		return
	}
	share := max(queue.PageBytes, e.target/2/int64(max(1, len(b.order))))
	for _, d := range b.order {
		if d.queue == nil || d.queue.ResidentBytes() <= share {
			continue
		}
		b.freed(d, d.queue.Evict(share, queue.PageBytes))
	}
	for _, d := range b.order {
		if b.memory.Used() < e.target {
			break
		}
		if d.queue != nil && len(d.queue.Slots()) == 0 {
			b.freed(d, d.queue.Evict(0, queue.PageBytes))
		}
	}
	e.next = max(e.target, b.memory.Used()+e.target/16)
}
