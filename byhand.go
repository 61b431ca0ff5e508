package hopwire

import (
	"context"

	"hopwire/internal/broker"
	"hopwire/internal/manage"
	"hopwire/internal/message"
)

// outcome is what the core answers to something that is done by hand.
type outcome[T any] struct {
	is  T
	err error
}

// byHand has the core do something on the loop and waits for its answer.
func byHand[T any](ctx context.Context, b *Broker, do func(by string, done func(T, error)),
) (is T, err error) {
	by := manage.AskedBy(ctx)
	answer := make(chan outcome[T], 1)
	if !b.loop.Post(func() { do(by, func(is T, err error) { answer <- outcome[T]{is, err} }) }) {
		return is, b.errEnded()
	}
	select {
	case o := <-answer:
		return o.is, o.err
	case <-ctx.Done():
		return is, ctx.Err()
	case <-b.done:
		return is, b.errEnded()
	}
}

// Decide commits or rolls back a prepared XA transaction without its transaction manager, durably;
// xid is its id as a Status tells it.
func (b *Broker) Decide(ctx context.Context, xid string, commit bool) error {
	_, err := byHand(ctx, b, func(by string, done func(struct{}, error)) {
		b.core.Decide(xid, commit, by, func(err error) { done(struct{}{}, err) })
	})
	return err
}

// Purge drops what waits in a queue and nobody has, durably: not what is in flight, in a
// transaction or in doubt.
func (b *Broker) Purge(ctx context.Context, queue string) (*Purged, error) {
	name, err := oneName(queue)
	if err != nil {
		return nil, err
	}
	p, err := byHand(ctx, b, func(by string, done func(broker.Purged, error)) {
		b.core.Purge(name, by, done)
	})
	if err != nil {
		return nil, err
	}
	return manage.FromPurged(p), nil
}

// Remove deletes a queue, or topic://NAME, with its messages, durably. The error says who uses it.
func (b *Broker) Remove(ctx context.Context, destination string) (*Removed, error) {
	name, err := oneName(destination)
	if err != nil {
		return nil, err
	}
	r, err := byHand(ctx, b, func(by string, done func(broker.Removed, error)) {
		b.core.Remove(name, by, done)
	})
	if err != nil {
		return nil, err
	}
	return manage.FromRemoved(r), nil
}

// RemoveDurable ends a durable subscription with what it keeps, durably. The error says that its
// consumer is there.
func (b *Broker) RemoveDurable(ctx context.Context, clientID, name string) (*Removed, error) {
	r, err := byHand(ctx, b, func(by string, done func(broker.Removed, error)) {
		b.core.RemoveSubscription(clientID, name, by, done)
	})
	if err != nil {
		return nil, err
	}
	return manage.FromRemoved(r), nil
}

// nameOf reads the name of a destination, which has no options: who gives some means more.
func nameOf(text string) (message.Destination, error) {
	name, options := message.ParseDestination(text, message.Queue)
	if options != "" {
		return name, message.Errorf(message.IllegalState, "%s: options are no part of a name: name %s",
			text, name)
	}
	return name, nil
}

// oneName reads the name of one destination: what is done by hand is done to no list, and
// to no pattern: of that name there may be a destination, which a client sent to.
func oneName(text string) (message.Destination, error) {
	name, err := nameOf(text)
	if err != nil {
		return name, err
	}
	if name.IsComposite() {
		return name, message.Errorf(message.IllegalState, "%s is several destinations: name one", name)
	}
	return name, nil
}
