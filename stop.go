package hopwire

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// drainTime bounds each phase of a clean stop. What a phase does has its own bounds, within this.
const drainTime = 10 * time.Second

// failedTime is how long what was handed to the store is waited for when the store or the spool
// failed: one that did not fail has it by then.
const failedTime = 2 * time.Second

// end stops everything in order, each phase within its time: no new connections; peers' answers
// awaited and bridges ended; clients let go (broker.Stop) and what they had given back; the last
// bytes sent; sockets gone; the store closed; the control socket closed, since who stops the broker
// takes that for its end. After a failure of the store or the spool nothing else is waited for.
func (b *Broker) end(cause error) {
	b.ending.Store(true)
	for _, l := range b.listeners {
		l.Close()
	}
	if b.inside != nil {
		_ = b.inside.Close() // it has no error
	}
	failed := cause
	if cause == nil {
		cause = errors.Join(bounded(b.endBridges), b.letGo(), bounded(b.hub.Flushed))
	}
	b.group.Stop()
	patience := drainTime
	if failed != nil {
		patience = failedTime
	}
	errs := []error{cause, b.group.Wait(), within(patience, b.committer.Close)}
	b.loops.Stop()
	errs = append(errs, b.loops.Wait(), b.store.Close())
	if err := b.spool.end(); err != nil {
		b.log.Warn("the spool's folder stays until the next start", "error", err)
	}
	b.events.flush()
	if b.control != nil {
		_ = bounded(func(ctx context.Context) error { b.control.Close(ctx); return nil })
	}
	b.err = errors.Join(append(errs, b.controls.Wait())...)
	if failed != nil {
		b.err = failed // the others come of it
	}
	b.log.Info("stopped")
	close(b.done)
}

// bounded gives one phase of a stop its time.
func bounded(phase func(context.Context) error) error { return within(drainTime, phase) }

func within(most time.Duration, phase func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	return phase(ctx)
}

// endBridges ends the bridges when their peers have answered.
func (b *Broker) endBridges(ctx context.Context) error {
	return b.onLoop(ctx, "not all peers have answered", func(done func()) {
		waiting := 1
		one := func() {
			if waiting--; waiting == 0 {
				done()
			}
		}
		for _, c := range b.connectors {
			waiting++
			c.Stop(one)
		}
		for _, a := range b.home.Accepted() {
			waiting++
			a.Stop(one)
		}
		one()
	})
}

// letGo has the clients leave and makes the last batch durable. Each phase of it has its time.
func (b *Broker) letGo() error {
	next, done := make(chan struct{}, 1), make(chan struct{})
	b.loop.Post(func() {
		b.core.Stop(func() {
			select {
			case next <- struct{}{}:
			default: // the last is not looked at yet
			}
		}, func() { close(done) })
	})
	if !inTime(next, done) {
		return b.late("not everything was answered and written")
	}
	return nil
}

// inTime waits until all is done, and reports false when a phase takes longer than it may; next
// begins another one.
func inTime(next, done <-chan struct{}) bool {
	for {
		select {
		case <-next:
		case <-done:
			return true
		case <-time.After(drainTime):
			return false
		}
	}
}

// late is the error of a phase that takes longer than it may.
func (b *Broker) late(what string) error {
	return fmt.Errorf("%s within %s", what, drainTime)
}

// onLoop runs a phase of a stop on the loop until it calls done; otherwise is what is wrong when
// it does not in time.
func (b *Broker) onLoop(ctx context.Context, otherwise string, phase func(done func())) error {
	done := make(chan struct{})
	b.loop.Post(func() { phase(func() { close(done) }) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return b.late(otherwise)
	}
}
