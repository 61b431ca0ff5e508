package broker

import (
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// expirySlice is how many stored messages are looked up at a time.
const expirySlice = 400

// expiryPeriod is the shortest time between two searches of any queue (expireMessagesPeriod).
func (b *Broker) expiryPeriod() time.Duration {
	shortest := policy.Unconfigured().Expiry.Period
	for _, e := range append([]*policy.Entry{b.opt.Policies.Default}, b.opt.Policies.Entries...) {
		if e != nil && e.Expiry.Period > 0 {
			shortest = min(shortest, e.Expiry.Period)
		}
	}
	return shortest
}

// scheduleExpiry looks for expired messages now and then, also on queues nobody reads. Every queue
// that is searched at all is searched as often as the one whose policy asks for it most often.
func (b *Broker) scheduleExpiry() {
	b.env.After(b.expiryPeriod(), func() {
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
