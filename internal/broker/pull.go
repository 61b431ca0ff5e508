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
	// reading is the queue that is undecided: it is waited for before the answer that there is
	// nothing.
	reading *destination
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
		p.last()
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

// last looks for a message now and answers that there is none otherwise.
func (p *pull) last() {
	for _, cs := range append([]consumerSlot(nil), p.s.slots...) {
		if p.s.pull == p {
			cs.dest.queue.Dispatch()
		}
	}
	p.nothing()
}

// nothing answers that there was no message, unless a page that is being read may have one, or one
// is about to come.
func (p *pull) nothing() {
	s := p.s
	if s.pull != p {
		return
	}
	for _, cs := range s.slots {
		if cs.dest.queue.Undecided() {
			p.reading = cs.dest
			s.b.networks.whenLoaded(cs.dest, p.last)
			return
		}
	}
	p.cancel()
	s.conn.out.Send(&message.MessageDispatch{Consumer: s.info.ID})
}

func (p *pull) cancel() {
	p.s.window.Unpull()
	p.answered()
}
