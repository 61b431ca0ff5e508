package wire

import (
	"errors"
	"time"

	"hopwire/internal/message"
	"hopwire/openwire"
)

// item is one thing to be sent.
type item struct {
	kind        itemKind
	correlation int32
	redelivery  int32
	size        int32
	load        load
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

// load is the limit that an item counts against.
type load uint8

const (
	answers  load = iota // AnswerLimit
	messages             // MessageLimit
)

// What an item that waits costs, rounded up: its place in a list that grows by doubling, a command
// or a message behind it, and the head of each string.
const (
	itemBytes    = 224
	commandBytes = 128
	messageBytes = 640
	stringBytes  = 16
)

// cost is what a command that waits keeps in memory, beside its item.
func cost(c message.Command) (bytes int, of load) {
	switch c := c.(type) {
	case *message.Message:
		return messageBytes + len(c.Content) + len(c.Properties), messages
	case *message.MessageDispatch:
		if c.Message == nil {
			return commandBytes, messages
		}
		bytes, of = cost(c.Message)
		return commandBytes + bytes, of
	case *message.Response:
		n := commandBytes + causeBytes(c.Exception)
		if c.Data != nil {
			more, _ := cost(c.Data)
			n += more
		}
		return n, answers
	case *message.ConnectionError:
		return commandBytes + causeBytes(c.Exception), answers
	case *message.ConsumerInfo:
		return 2*commandBytes + len(c.Selector) + len(c.Destination.Name), answers
	}
	return 2 * commandBytes, answers
}

func causeBytes(t *message.Throwable) int {
	n := 0
	for ; t != nil; t = t.Cause {
		n += 3*stringBytes + len(t.Class) + len(t.Message)
	}
	return n
}

// pingID marks a KeepAliveInfo whose answer somebody waits for.
const pingID = 1

// Room reports whether more messages should be sent now. When not, that is so until half of the
// budget is free; then the functions given to OnRoom are called.
func (s *Session) Room() bool {
	if !s.full.Load() {
		if s.unsent[messages].Load() < MessageBudget {
			return true
		}
		s.full.Store(true)
	}
	return s.drained() // the writer may have made room between the looks
}

// drained ends a time without room. It may be called on any goroutine.
func (s *Session) drained() bool {
	if s.unsent[messages].Load() >= MessageBudget/2 || !s.full.CompareAndSwap(true, false) {
		return false
	}
	s.cfg.Hub.loop.Post(s.roomy)
	return true
}

// OnRoom adds a function that is called on the loop when there is room again.
func (s *Session) OnRoom(f func()) { s.onRoom = append(s.onRoom, f) }

func (s *Session) roomy() {
	if s.closed {
		return
	}
	for _, f := range s.onRoom {
		f()
	}
}

// isCut in Session.written says that no more deliveries are encoded.
const isCut = 1 << 63

// Written counts the deliveries that are encoded, and so on their way.
func (s *Session) Written() uint64 {
	if s.cutDeliveries {
		return s.final
	}
	return s.written.Load()
}

// Cut ends deliveries: those that are not encoded are dropped, so that Written is final, also while
// the writer still sends what a closed session was given before.
func (s *Session) Cut() {
	if !s.cutDeliveries {
		s.cutDeliveries, s.final = true, s.written.Or(isCut)
	}
}

// Deliver dispatches a message to a consumer.
func (s *Session) Deliver(to message.ConsumerID, from message.Destination, m *message.Message,
	redelivery int32,
) {
	size := itemBytes
	if m != nil {
		n, _ := cost(m)
		size += n
	}
	s.put(item{
		kind: aDelivery, consumer: to, from: from, msg: m, redelivery: redelivery,
		size: int32(size), load: messages,
	})
}

// Respond answers a command without data.
func (s *Session) Respond(correlation int32) {
	s.put(item{kind: aResponse, correlation: correlation, size: itemBytes})
}

// Send sends a command. A KeepAliveInfo that asks for an answer gets it through Receive.
func (s *Session) Send(c message.Command) {
	if k, ok := c.(*message.KeepAliveInfo); ok && k.ResponseRequired {
		k.CommandID = pingID
	}
	n, of := cost(c)
	s.put(item{kind: aCommand, cmd: c, size: int32(itemBytes + n), load: of})
}

func (s *Session) put(it item) {
	if s.closed || s.finished {
		return
	}
	if err := s.admits(it); err != nil {
		s.closed = true
		s.fail(err)
		return
	}
	s.out = append(s.out, it)
	s.cfg.Hub.mark(s)
}

// admits counts an item that is to wait; an error is the limit that the peer is over.
func (s *Session) admits(it item) error {
	n := s.unsent[it.load].Add(int64(it.size))
	switch {
	case !s.trusted.Load():
		if n := s.unsent[answers].Load() + s.unsent[messages].Load(); n > StrangerLimit {
			return message.Errorf(message.Limit, "%w, and %d bytes wait for the peer, which does not"+
				" read", ErrNoLogin, n)
		}
	case it.load == messages && n > MessageLimit, it.load == answers && n > AnswerLimit:
		return message.Errorf(message.Limit,
			"%d bytes wait for the peer, which takes too little; it is given up", n)
	}
	return nil
}

// Finish ends what is sent: what was given before is, within 5 s, and then the peer reads the end.
// Commands still come until it closes in turn, at most 2 s after that; then Down is told.
func (s *Session) Finish() {
	if s.closed || s.finished {
		return
	}
	s.Hold(false)
	s.finished = true
	s.cfg.Hub.mark(s)
	s.mu.Lock()
	if !s.through {
		s.ending = true
		s.cfg.Hub.writes(1)
	}
	s.mu.Unlock()
	time.AfterFunc(closeTimeout, s.cut)
}

// Close ends the session: what was given before is sent, within 5 s, and Down is told soon.
func (s *Session) Close(why string) {
	if s.closed {
		return
	}
	s.Finish()
	s.closed = true
	if why == "" {
		why = "closed"
	}
	s.ended(message.Errorf(message.Unavailable, "%s", why))
}

// handOver gives the turn's output to the writer; of a calm loop it is written at once where it is
// little and the socket takes it.
func (s *Session) handOver(calm bool) {
	s.dirty = false
	s.mu.Lock()
	if len(s.waiting) == 0 {
		s.waiting, s.out = s.out, s.waiting[:0]
	} else {
		s.waiting = append(s.waiting, s.out...)
		clear(s.out)
		s.out = s.out[:0]
	}
	s.closing = s.closed || s.finished
	s.mu.Unlock()
	if calm && !s.closing && s.unsent[answers].Load()+s.unsent[messages].Load() <= calmBytes {
		s.writer.Flush()
	} else {
		s.writer.Wake()
	}
}

// calmBytes is how much may wait for the loop to encode and write it itself.
const calmBytes = 16 << 10

// itemsKept is how many items' memory is kept by an idle session.
const itemsKept = 64

// write is the writer: its hello, then what waits, then the end.
func (s *Session) write(first []byte) {
	defer s.writerEnded()
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

// writerEnded tells the hub, if that waits. It comes after the linger: who cuts a connection before
// its peer has closed may take away what the peer has not read yet.
func (s *Session) writerEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.through = true; s.ending {
		s.ending = false
		s.cfg.Hub.writes(-1)
	}
}

// fill encodes what waits, for the writer.
func (s *Session) fill(b []byte, limit int) ([]byte, bool, error) {
	s.wallMS, s.apart = time.Now().UnixMilli(), 0
	for len(b)+s.apart < limit {
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
		// A delivery counts before it is encoded: one that does not count cannot get out.
		if it.kind != aDelivery || s.written.Add(1) < isCut {
			if b, err = s.encode(b, it); err != nil {
				s.leaveOut(*it, err)
			}
		}
		s.unsent[it.load].Add(-int64(it.size))
		if s.full.Load() {
			s.drained()
		}
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

// setEncoder has what is large written from where it is; s.mu is held.
func (s *Session) setEncoder(f openwire.Format) {
	s.enc = NewEncoder(f)
	s.enc.SetApart(func(at int, b []byte) {
		s.apart += len(b)
		s.writer.Apart(at, b)
	})
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
