package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"hopwire/openwire"
)

// establish opens a link to one of the brokers: one try without failover, else as many as the
// options allow.
func (c *Conn) establish(ctx context.Context, again bool) (*link, error) {
	f := c.target.failover
	if f == nil {
		return c.connect(ctx, c.target.endpoints[0], again)
	}
	limit := f.maxAttempts
	if !again && f.startupAttempts >= 0 {
		limit = f.startupAttempts
	}
	order := slices.Clone(c.target.endpoints)
	delay := f.initialDelay
	var last error
	for attempt := 1; ; attempt++ {
		if f.randomize {
			rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, e := range order {
			l, err := c.connect(ctx, e, again)
			if err == nil {
				return l, nil
			}
			if _, refused := errors.AsType[*BrokerError](err); refused && !again {
				return nil, err
			}
			if over := ended(ctx); over != nil {
				if !errors.Is(err, over) { // it failed by itself when the time was over
					last, err = err, over
				}
				if last != nil {
					err = fmt.Errorf("%w; last: %w", err, last)
				}
				return nil, err
			}
			last = err
			c.tellRetry(err, again)
		}
		if limit >= 0 && attempt >= max(limit, 1) {
			return nil, fmt.Errorf("gave up after attempt %d: %w", attempt, last)
		}
		if err := pause(ctx, delay); err != nil {
			return nil, fmt.Errorf("%w; last: %w", err, last)
		}
		if f.exponential {
			delay = min(time.Duration(float64(delay)*f.multiplier), f.maxDelay)
		}
	}
}

// tellRetry tells the handler of a failed try. Nothing calls back before Dial returns but Dial.
func (c *Conn) tellRetry(err error, again bool) {
	h := c.settings.onRetry
	switch {
	case h == nil:
	case !again:
		h(err)
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.postLocked(func() { h(err) })
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// supervise is the goroutine that reads a link and, with failover, replaces it when it is lost.
func (c *Conn) supervise(ctx context.Context, l *link) error {
	for {
		err := c.read(l)
		l.end(err)
		err = lost(l, err)
		c.mu.Lock()
		again := c.interruptLocked(l, err)
		c.mu.Unlock()
		if !again {
			return nil
		}
		next, failed := c.establish(ctx, true)
		if failed != nil {
			c.mu.Lock()
			c.failLocked(fmt.Errorf("%w: %w", ErrUnavailable, failed))
			c.mu.Unlock()
			return nil
		}
		if !c.resume(next) {
			next.end(ErrClosed)
			return nil
		}
		l = next
	}
}

// lost is the error of a link that ended.
func lost(l *link, err error) error {
	return unavailable(l.addr, fmt.Errorf("connection lost: %w", inWords(l.why(err))))
}

// read handles what comes until the link ends.
func (c *Conn) read(l *link) error {
	for {
		cmd, err := l.next()
		if err != nil {
			return err
		}
		if err = c.dispatch(l, cmd); err != nil {
			return err
		}
	}
}

// interruptLocked takes note that a link is lost; false means that it will not be replaced.
func (c *Conn) interruptLocked(l *link, err error) bool {
	if c.err != nil {
		return false
	}
	if c.ending || c.target.failover == nil {
		if c.ending {
			err = ErrClosed
		}
		c.failLocked(err)
		return false
	}
	if c.link != l {
		return true // it was noticed before
	}
	c.link = nil
	c.up = make(chan struct{})
	c.epoch++
	for id, k := range c.pending {
		switch k.kind {
		case callDoubt:
			delete(c.pending, id)
			k.done(nil, fmt.Errorf("%w: %w", ErrInDoubt, err))
		case callNeedless:
			delete(c.pending, id)
			k.done(&openwire.Response{CorrelationID: id}, nil)
		case callAgain:
		}
	}
	for _, s := range c.sessions {
		s.interruptLocked()
	}
	if h := c.settings.onState; h != nil {
		c.postLocked(func() { h(Interrupted, err) })
	}
	return true
}

// resume gives a new link everything that the old one had; false means that the connection was
// closed meanwhile.
func (c *Conn) resume(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.ending {
		return false
	}
	for _, cmd := range c.restoreLocked() {
		if err := l.add(cmd); err != nil {
			c.reportLocked(fmt.Errorf("restore after failover: %w", err))
		}
	}
	c.link = l
	close(c.up)
	if h := c.settings.onState; h != nil {
		c.postLocked(func() { h(Resumed, nil) })
	}
	return true
}

// restoreLocked lists, in the order of ActiveMQ's clients, what a new link is told after the
// ConnectionInfo, all with the command ids they had.
func (c *Conn) restoreLocked() []openwire.Command {
	var out []openwire.Command
	for _, t := range c.temps {
		out = append(out, t)
	}
	for _, s := range c.sessions {
		out = append(out, s.info)
		for _, p := range s.producers {
			out = append(out, p.info)
		}
		for _, k := range s.consumers {
			if !k.info.Browser {
				out = append(out, k.info)
			}
		}
	}
	for _, s := range c.sessions {
		if s.tx != nil {
			out = append(out, s.tx.replay()...)
		}
	}
	for _, s := range c.sessions {
		for _, k := range s.consumers {
			if k.pull != nil {
				out = append(out, k.pull)
			}
		}
	}
	sent := map[int32]bool{}
	for _, cmd := range out {
		sent[cmd.Base().CommandID] = true
	}
	waiting := make([]openwire.Command, 0, len(c.pending))
	for id, k := range c.pending {
		if sent[id] {
			continue
		}
		if k.open != nil {
			if err := k.open(); err != nil { // the new link knows nothing of what sent it
				delete(c.pending, id)
				k.done(nil, err)
				continue
			}
		}
		waiting = append(waiting, k.cmd)
	}
	slices.SortFunc(waiting, func(a, b openwire.Command) int {
		return cmp.Compare(a.Base().CommandID, b.Base().CommandID)
	})
	return append(out, waiting...)
}
