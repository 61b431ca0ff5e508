package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hopwire/openwire"
)

// run is the goroutine of a consumer with a handler.
func (k *Consumer) run(ctx context.Context, h Handler) error {
	c, me := k.session.conn, goroutine()
	c.mu.Lock()
	c.handlers[me] = k.session
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.handlers, me)
		c.mu.Unlock()
	}()
	for {
		m, err := k.receive(ctx, false)
		over := m == nil && (ctx.Err() != nil || k.isOver())
		if over {
			if errors.Is(err, ErrSlowConsumer) {
				k.report(err)
			}
			return nil
		}
		if err != nil {
			k.report(err)
		}
		if m == nil {
			continue
		}
		k.session.turn.Lock()
		err = k.handled(m, h(ctx, m))
		k.session.turn.Unlock()
		if err != nil && !k.isOver() {
			k.report(err)
		}
	}
}

// handled acknowledges or redelivers after the handler.
func (k *Consumer) handled(m *Message, failed error) error {
	s := k.session
	var err error
	if failed != nil && s.mode == Transacted {
		err = s.Rollback(context.Background()) // ends with the connection at the latest
	}
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	err = errors.Join(err, k.judgeLocked(m, failed))
	k.handling = false
	s.handling--
	wakeAll(&s.quiet)
	return errors.Join(err, k.settleLocked())
}

// judgeLocked does with a message what the handler decided, except in a transaction.
func (k *Consumer) judgeLocked(m *Message, failed error) error {
	s := k.session
	if s.mode == Transacted {
		return nil
	}
	if k.goneLocked() || !slices.Contains(k.delivered, m.delivery) {
		return nil // closed, or the handler did it itself
	}
	one := []*delivery{m.delivery}
	switch {
	case failed != nil && s.mode == ClientAck:
		return s.redeliverLocked(s.deliveredLocked())
	case failed != nil:
		return k.redeliverLocked(one, time.Now())
	case s.mode == AutoAck || s.mode == DupsOKAck:
		return k.autoLocked(m.delivery)
	}
	return nil
}

func (k *Consumer) isOver() bool {
	k.session.conn.mu.Lock()
	defer k.session.conn.mu.Unlock()
	return k.err != nil || k.closing
}

func (k *Consumer) report(err error) {
	k.session.conn.mu.Lock()
	defer k.session.conn.mu.Unlock()
	k.session.conn.reportLocked(err)
}

// place is where a message was received, for the audit.
func (d *delivery) place() auditKey {
	key := auditKey{message: d.key, place: FormatDestination(d.destination)}
	if name := d.consumer.info.SubscriptionName; name != "" {
		key.place += "?" + name
	}
	return key
}

// rememberLocked keeps for the time after a failover that a message was consumed. A topic sends
// again only to durable subscriptions.
func (k *Consumer) rememberLocked(d *delivery) {
	c := k.session.conn
	if c.target.failover == nil || k.info.Browser ||
		isTopic(d.destination) && k.info.SubscriptionName == "" {
		return
	}
	c.audit.add(d.place(), d.epoch)
	if d.epoch == c.epoch {
		return
	}
	// It was dispatched on an older link: it may be in the queue for the second time.
	for i, again := range k.queue {
		if again.key == d.key {
			k.queue = slices.Delete(k.queue, i, i+1)
			if err := k.writeAcksLocked([]*delivery{again}, openwire.AckStandard, nil, nil); err != nil {
				c.reportLocked(err)
			}
			return
		}
	}
}

// consumedLocked acknowledges deliveries for good.
func (k *Consumer) consumedLocked(ds []*delivery, kind byte) error {
	ds = slices.Clone(ds)
	k.takenLocked(ds)
	err := k.ackLocked(ds, kind, nil, nil)
	for _, d := range ds {
		k.rememberLocked(d)
	}
	return err
}

// takenLocked removes deliveries from those that wait for their acknowledgement.
func (k *Consumer) takenLocked(ds []*delivery) {
	k.extended = max(k.extended-len(ds), 0)
	if len(ds) == len(k.delivered) {
		k.delivered = nil
		return
	}
	k.delivered = slices.DeleteFunc(k.delivered, func(d *delivery) bool {
		return slices.Contains(ds, d)
	})
}

// ackLocked acknowledges those of the deliveries that the broker knows of, that is, which came over
// the present link.
func (k *Consumer) ackLocked(ds []*delivery, kind byte, tx openwire.TransactionId,
	cause *openwire.Throwable,
) error {
	c := k.session.conn
	fresh := make([]*delivery, 0, len(ds))
	for _, d := range ds {
		if d.epoch == c.epoch {
			fresh = append(fresh, d)
		}
	}
	if c.link == nil || len(fresh) == 0 {
		return nil
	}
	return k.writeAcksLocked(fresh, kind, tx, cause)
}

// writeAcksLocked writes as few acknowledgements as possible: the broker takes a range only if it
// is whole in the order of its dispatches.
func (k *Consumer) writeAcksLocked(ds []*delivery, kind byte, tx openwire.TransactionId,
	cause *openwire.Throwable,
) error {
	if len(ds) > 1 {
		ds = slices.Clone(ds)
		slices.SortFunc(ds, func(a, b *delivery) int { return cmp.Compare(a.sequence, b.sequence) })
	}
	for len(ds) > 0 {
		n := 1
		if kind != openwire.AckIndividual {
			for n < len(ds) && ds[n].sequence == ds[n-1].sequence+1 {
				n++
			}
		}
		first, last := ds[0], ds[n-1]
		ack := &openwire.MessageAck{
			Destination: last.destination, ConsumerID: k.info.ConsumerID, TransactionID: tx,
			AckType: kind, FirstMessageID: first.message.MessageID,
			LastMessageID: last.message.MessageID, MessageCount: int32(n), PoisonCause: cause,
		}
		if kind == openwire.AckIndividual {
			ack.FirstMessageID = nil
		}
		if err := k.session.conn.sendLocked(ack); err != nil {
			return err
		}
		ds = ds[n:]
	}
	return nil
}

// extendLocked tells the broker, when half of the prefetch was delivered, that it may send more.
func (k *Consumer) extendLocked() error {
	c := k.session.conn
	fresh := make([]*delivery, 0, len(k.delivered))
	if 2*(len(k.delivered)-k.extended) < int(k.info.PrefetchSize) || k.info.PrefetchSize == 0 {
		return nil
	}
	for _, d := range k.delivered[min(k.extended, len(k.delivered)):] {
		if d.epoch == c.epoch {
			fresh = append(fresh, d)
		}
	}
	k.extended = len(k.delivered)
	return k.ackLocked(fresh, openwire.AckDelivered, k.txLocked(), nil)
}

func (k *Consumer) txLocked() openwire.TransactionId {
	if k.session.tx == nil {
		return nil
	}
	return k.session.tx.id
}

// unfitLocked disposes of a message that must not be delivered any more: expired, or redelivered
// too often.
func (k *Consumer) unfitLocked(d *delivery, now time.Time) (bool, error) {
	if k.info.Browser {
		return false, nil
	}
	if at := d.message.Expiration; at > 0 && now.UnixMilli() > at {
		return true, k.ackLocked([]*delivery{d}, openwire.AckExpired, nil, nil)
	}
	r := k.session.conn.settings.redelivery
	if k.session.mode == Transacted && r.exceeds(d.counter) {
		if _, delayed := d.message.Property("redeliveryDelay"); !delayed {
			return true, k.poisonLocked(d)
		}
	}
	return false, nil
}

// poisonLocked gives a message up to the dead letter queue.
func (k *Consumer) poisonLocked(d *delivery) error {
	r := k.session.conn.settings.redelivery
	return k.ackLocked([]*delivery{d}, openwire.AckPoison, nil, &openwire.Throwable{
		Class: "java.lang.Throwable",
		Message: fmt.Sprintf("Delivery[%d] exceeds redelivery policy limit: maximumRedeliveries=%d",
			d.counter, r.Maximum),
	})
}

// redeliverLocked puts deliveries back to the front of the queue, or gives them up. Those of an
// older link are the broker's business.
func (k *Consumer) redeliverLocked(ds []*delivery, now time.Time) error {
	c := k.session.conn
	r := c.settings.redelivery
	ds = slices.Clone(ds)
	held := len(k.delivered)
	k.delivered = slices.DeleteFunc(k.delivered, func(d *delivery) bool {
		return slices.Contains(ds, d)
	})
	// The broker's extension stays until the final acknowledgement; what comes again must not
	// extend it twice.
	k.extended = min(k.extended, held)
	var back []*delivery
	var err error
	for _, d := range ds {
		if d.epoch != c.epoch {
			continue
		}
		if d.counter++; r.exceeds(d.counter) {
			err = errors.Join(err, k.poisonLocked(d))
			continue
		}
		back = append(back, d)
	}
	if len(back) == 0 || k.closing {
		return err
	}
	slices.SortFunc(back, func(a, b *delivery) int { return cmp.Compare(a.sequence, b.sequence) })
	err = errors.Join(err, k.ackLocked(back, openwire.AckRedelivered, nil, nil))
	k.queue = append(back, k.queue...)
	k.until = now.Add(r.delay(back[0].counter))
	signal(k.wake)
	return err
}
