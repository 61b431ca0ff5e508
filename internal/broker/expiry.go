package broker

import (
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/store"
)

// expiryPeriod is how often queues are searched for expired messages (expireMessagesPeriod), and
// expirySlice how many stored ones are looked up at a time.
const (
	expiryPeriod = 30 * time.Second
	expirySlice  = 400
)

// scheduleExpiry looks for expired messages now and then, also on queues nobody reads.
func (b *Broker) scheduleExpiry() {
	b.env.After(expiryPeriod, func() {
		if b.stopping {
			return
		}
		b.expireResident()
		b.expireStored()
		b.scheduleExpiry()
	})
}

// expireResident ends expired copies that wait in memory.
func (b *Broker) expireResident() {
	now := b.env.Wall()
	for _, d := range append([]*destination(nil), b.order...) {
		if d.queue == nil || d.gone || d.policy.Expiry.Period == 0 {
			continue
		}
		var over []*queue.Copy
		d.queue.EachPending(func(c *queue.Copy) bool {
			if c.Message.Expired(now) {
				over = append(over, c)
			}
			return true
		})
		for _, c := range over {
			b.expire(d, c)
		}
	}
}

// expireStored makes queues load the expired copies that are not in memory; they end there.
func (b *Broker) expireStored() {
	if !b.opt.Persistent {
		return
	}
	b.journal.beforeRead(func() {
		b.journal.storage.Expired(b.env.Wall(), expirySlice,
			func(refs []store.ExpiredRef, err error) {
				if err != nil {
					b.tell(Event{Kind: StoreTrouble,
						Text: "expired messages could not be looked up: " + err.Error()})
					return
				}
				for _, r := range refs {
					b.expireRef(r)
				}
			})
	})
}

func (b *Broker) expireRef(r store.ExpiredRef) {
	for _, d := range b.order {
		if d.id == r.Dest && d.queue != nil && d.policy.Expiry.Period != 0 {
			d.queue.Want(uint64(r.Seq))
			return
		}
	}
}
