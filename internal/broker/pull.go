package broker

import (
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// pull is a consumer's waiting request for one message.
type pull struct {
	s     *consumer
	timer loop.Timer
}

// pull executes a MessagePull: a consumer without prefetch wants one message.
func (c *Connection) pull(cmd *message.MessagePull) error {
	s := c.consumers[cmd.Consumer]
	if s == nil || s.browse != nil || s.window.Prefetch() > 0 {
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
		for _, cs := range s.slots {
			cs.dest.queue.Dispatch()
		}
		p.nothing()
	case cmd.Timeout > 0:
		p.timer = s.b.env.After(time.Duration(cmd.Timeout)*time.Millisecond, p.nothing)
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

// nothing answers that there was no message.
func (p *pull) nothing() {
	s := p.s
	if s.pull != p {
		return
	}
	for _, cs := range s.slots {
		if cs.dest.queue.Reading() {
			s.b.env.After(time.Millisecond, p.nothing)
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

// browse is a browser's walk through its queues. It holds no copies: what it saw may be consumed
// by others meanwhile.
type browse struct {
	s     *consumer
	todo  []*destination
	view  *queue.View
	total int
	limit int // 0 is none
	done  bool
}

func (s *consumer) startBrowse() {
	b := &browse{s: s, limit: s.b.opt.Policies.Find(s.members[0]).MaxBrowsePageSize}
	s.browse = b
	for _, m := range s.members {
		if m.IsPattern() {
			for _, d := range s.b.order {
				if d.queue != nil && s.matches(d.name) {
					b.todo = append(b.todo, d)
				}
			}
			continue
		}
		if d := s.b.destination(m); d.queue != nil {
			b.todo = append(b.todo, d)
		}
	}
	b.walk()
}

func (b *browse) stop() { b.done = true }

// walk sends what there is, page by page, and then the end mark.
func (b *browse) walk() {
	for !b.done {
		if b.limit > 0 && b.total >= b.limit {
			b.todo, b.view = nil, nil
		}
		if b.view == nil {
			if len(b.todo) == 0 {
				b.done = true
				b.s.conn.out.Send(&message.MessageDispatch{Consumer: b.s.info.ID})
				return
			}
			b.view = b.todo[0].queue.View()
		}
		d := b.todo[0]
		c, from, to := b.view.Next()
		switch {
		case c != nil:
			b.show(d, c.Message, c.Redelivery)
		case to > 0:
			b.page(d, from, to)
			return
		default:
			b.todo, b.view = b.todo[1:], nil
		}
	}
}

func (b *browse) show(d *destination, m *message.Message, redelivery int32) {
	s := b.s
	if b.limit > 0 && b.total >= b.limit || m.Expired(s.b.env.Wall()) ||
		s.verdict(m, redelivery).Outcome != message.Deliver {
		return
	}
	b.total++
	s.conn.out.Deliver(s.info.ID, d.name, m, redelivery)
}

// page reads the stored copies that come next.
func (b *browse) page(d *destination, from, to uint64) {
	d.host.readStored(from, to, func(copies []*queue.Copy, complete uint64) {
		if b.done || b.view == nil {
			return
		}
		if complete == from {
			complete = to // unreadable: the browser sees the rest
		}
		for _, c := range copies {
			b.show(d, c.Message, c.Redelivery)
		}
		b.view.Read(complete)
		b.walk()
	})
}
