package broker

import (
	"math"
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// pull is a consumer's waiting request for one message.
type pull struct {
	s     *consumer
	timer loop.Timer
	// waits is the queue that is undecided: the end of its dispatch is waited for before the answer
	// that there is nothing.
	waits *destination
	reads bool // a page of the backlog is waited for
}

// pull executes a MessagePull: a consumer without prefetch wants one message.
func (c *Connection) pull(cmd *message.MessagePull) error {
	s := c.consumers[cmd.Consumer]
	if s == nil || s.window.Prefetch() > 0 {
		return nil
	}
	if s.browse != nil {
		s.browse.more()
		return nil
	}
	if s.pull != nil {
		s.pull.cancel()
	}
	s.window.Pull()
	p := &pull{s: s}
	s.pull = p
	s.ready()
	s.drainBacklog()
	if s.pull != p {
		return nil // answered from the backlog
	}
	switch {
	case cmd.Timeout < 0:
		p.nothing()
	case cmd.Timeout > 0:
		wait := min(cmd.Timeout, math.MaxInt64/int64(time.Millisecond))
		p.timer = s.b.env.After(time.Duration(wait)*time.Millisecond, p.nothing)
	}
	return nil
}

// answered ends the pull: a message was dispatched.
func (p *pull) answered() {
	p.s.pull = nil
	if p.timer != nil {
		p.timer.Stop()
	}
}

// nothing answers that there was no message, unless a queue is undecided, or a topic's message is
// being read.
func (p *pull) nothing() {
	s := p.s
	if s.pull != p {
		return
	}
	for _, cs := range s.slots {
		if cs.dest.queue.Undecided(cs.slot) {
			p.waits = cs.dest
			cs.dest.pulls = append(cs.dest.pulls, p)
			return
		}
	}
	if s.backlog.unread() {
		p.reads = true
		return
	}
	p.cancel()
	s.conn.out.Send(&message.MessageDispatch{Consumer: s.info.ID})
}

// paged goes on when a page of the backlog was read.
func (s *consumer) paged() {
	s.drainBacklog()
	if s.pull != nil && s.pull.reads {
		s.pull.reads = false
		s.pull.nothing()
	}
}

// dispatched lets the pulls look whether there was no message for them.
func (d *destination) dispatched() {
	pulls := d.pulls
	d.pulls = nil
	for _, p := range pulls {
		p.nothing()
	}
}

func (p *pull) cancel() {
	p.s.window.Unpull()
	p.answered()
}
