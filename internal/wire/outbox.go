package wire

import (
	"errors"
	"time"

	"hopwire/internal/message"
)

// item is one thing to be sent.
type item struct {
	kind        itemKind
	correlation int32
	redelivery  int32
	size        int32
	consumer    message.ConsumerID
	from        message.Destination
	msg         *message.Message
	cmd         message.Command
}

type itemKind uint8

const (
	aCommand itemKind = iota
	aResponse
	aDelivery
)

// commandBytes is what a command is counted as, and the head of a delivery.
const commandBytes = 128

// pingID marks a KeepAliveInfo whose answer somebody waits for.
const pingID = 1

// Deliver dispatches a message to a consumer.
func (s *Session) Deliver(to message.ConsumerID, from message.Destination, m *message.Message,
	redelivery int32,
) {
	size := int32(commandBytes)
	if m != nil {
		size += int32(len(m.Content) + len(m.Properties))
	}
	s.put(item{
		kind: aDelivery, consumer: to, from: from, msg: m, redelivery: redelivery,
		size: size,
	})
}

// Respond answers a command without data.
func (s *Session) Respond(correlation int32) {
	s.put(item{kind: aResponse, correlation: correlation, size: commandBytes})
}

// Send sends a command. A KeepAliveInfo that asks for an answer gets it through Receive.
func (s *Session) Send(c message.Command) {
	size := int32(commandBytes)
	switch c := c.(type) {
	case *message.Message:
		size += int32(len(c.Content) + len(c.Properties))
	case *message.KeepAliveInfo:
		if c.ResponseRequired {
			c.CommandID = pingID
		}
	}
	s.put(item{kind: aCommand, cmd: c, size: size})
}

func (s *Session) put(it item) {
	if s.closed {
		return
	}
	if s.unsent.Add(int64(it.size)) > UnsentLimit {
		s.closed = true
		s.fail(message.Errorf(message.Limit,
			"%d bytes wait for the peer, which takes too little; it is given up", s.unsent.Load()))
		return
	}
	s.out = append(s.out, it)
	s.cfg.Hub.mark(s)
}

// Close ends the session: what was given before is sent, within 5 s, and Down is told soon.
func (s *Session) Close(why string) {
	if s.closed {
		return
	}
	s.closed = true
	if why == "" {
		why = "closed"
	}
	s.cfg.Hub.mark(s)
	s.Hold(false)
	time.AfterFunc(closeTimeout, s.cut)
	s.ended(message.Errorf(message.Unavailable, "%s", why))
}

// handOver gives the turn's output to the writer.
func (s *Session) handOver() {
	s.dirty = false
	s.mu.Lock()
	if len(s.waiting) == 0 {
		s.waiting, s.out = s.out, s.waiting[:0]
	} else {
		s.waiting = append(s.waiting, s.out...)
		clear(s.out)
		s.out = s.out[:0]
	}
	s.closing = s.closed
	s.mu.Unlock()
	s.writer.Wake()
}

// itemsKept is how many items' memory is kept by an idle session.
const itemsKept = 64

// write is the writer: its hello, then what waits, then the end.
func (s *Session) write(first []byte) {
	switch err := s.writer.Run(s.done, first); {
	case err == nil:
	case errors.Is(err, errFlushed):
		if !s.conn.CloseWrite() {
			s.cut()
			return
		}
		linger := time.NewTimer(closeLinger)
		defer linger.Stop()
		select {
		case <-s.done:
		case <-linger.C:
		}
		s.cut()
	default:
		s.fail(err)
	}
}

// fill encodes what waits, on the writer's goroutine.
func (s *Session) fill(b []byte, limit int) ([]byte, bool, error) {
	s.wallMS = time.Now().UnixMilli()
	for len(b) < limit {
		if s.next == len(s.current) {
			var more bool
			var err error
			if b, more, err = s.take(b); !more {
				return b, false, err
			}
		}
		it := &s.current[s.next]
		s.next++
		var err error
		if b, err = s.encode(b, it); err != nil {
			s.leaveOut(*it, err)
		}
		s.unsent.Add(-int64(it.size))
		*it = item{}
	}
	return b, true, nil
}

// take gets the next items, and what is due besides.
func (s *Session) take(b []byte) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive && s.enc != nil {
		s.alive = false
		if len(s.waiting) == 0 && len(b) == 0 && !s.closing {
			// It has no strings: encoding cannot fail.
			b, _ = s.enc.Append(b, &message.KeepAliveInfo{})
		}
	}
	if s.enc == nil && !s.closing {
		return b, false, nil
	}
	if len(s.waiting) == 0 || s.enc == nil {
		if cap(s.current) > itemsKept {
			s.current = nil
		}
		s.current, s.next = s.current[:0], 0
		if s.closing {
			return b, false, errFlushed
		}
		return b, false, nil
	}
	s.waiting, s.current, s.next = s.current[:0], s.waiting, 0
	return b, true, nil
}

func (s *Session) encode(b []byte, it *item) ([]byte, error) {
	switch it.kind {
	case aDelivery:
		return s.enc.AppendDelivery(b, it.consumer, it.from, it.msg, it.redelivery, s.wallMS)
	case aResponse:
		return s.enc.AppendResponse(b, it.correlation)
	}
	return s.enc.Append(b, it.cmd)
}

// leaveOut tells the loop of what this peer cannot be sent.
func (s *Session) leaveOut(it item, err error) {
	c := it.cmd
	switch it.kind {
	case aDelivery:
		c = &message.MessageDispatch{
			Consumer: it.consumer, Destination: it.from,
			Message: it.msg, RedeliveryCounter: it.redelivery,
		}
	case aResponse:
		c = &message.Response{Correlation: it.correlation}
	}
	s.cfg.Hub.loop.Post(func() {
		if !s.closed {
			s.cfg.Unsent(c, err)
		}
	})
}
