package client

import (
	"context"
	"time"

	"hopwire/openwire"
)

// pulls tells whether messages come one by one on demand.
func (k *Consumer) pulls() bool {
	k.session.conn.mu.Lock()
	defer k.session.conn.mu.Unlock()
	return k.info.PrefetchSize == 0
}

// ask pulls a message if the consumer has to and none is on its way.
func (k *Consumer) ask(ctx context.Context) error {
	if !k.pulls() {
		return nil
	}
	timeout := int64(0)
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline).Milliseconds(), 1)
	}
	return k.session.conn.withLink(ctx, func(*link) error {
		if k.pull != nil || len(k.queue) > 0 || k.goneLocked() {
			return nil
		}
		return k.pullLocked(timeout)
	})
}

func (k *Consumer) pullLocked(timeout int64) error {
	pull := &openwire.MessagePull{
		ConsumerID: k.info.ConsumerID, Destination: k.info.Destination, Timeout: timeout,
	}
	if err := k.session.conn.sendLocked(pull); err != nil {
		return err
	}
	k.pull = pull
	return nil
}

// pullOnce asks for a message that is there now.
func (k *Consumer) pullOnce(ctx context.Context) (*Message, error) {
	c := k.session.conn
	nulls, asked := 0, false
	for {
		m, err := k.take(true)
		if m != nil || err != nil {
			return m, err
		}
		over := false
		err = c.withLink(ctx, func(*link) error {
			if asked && (k.pull == nil || k.nulls != nulls) {
				over = len(k.queue) == 0
				return nil
			}
			if asked || k.goneLocked() {
				return nil
			}
			asked, nulls = true, k.nulls
			return k.pullLocked(-1)
		})
		if over || err != nil {
			return nil, err
		}
		if err := k.await(ctx); err != nil {
			return nil, err
		}
	}
}
