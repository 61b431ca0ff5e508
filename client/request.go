package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Requester sends requests and receives their replies on a temporary queue of its own.
type Requester struct {
	session  *Session
	producer *Producer
	replyTo  *Destination

	mu      sync.Mutex
	last    int64
	waiting map[string]chan *Message
}

// Requester makes a requester.
func (c *Conn) Requester(ctx context.Context) (*Requester, error) {
	s, err := c.Session(ctx, AutoAck)
	if err != nil {
		return nil, err
	}
	r := &Requester{session: s, waiting: map[string]chan *Message{}}
	if r.replyTo, err = c.TempQueue(ctx); err == nil {
		if r.producer, err = s.Producer(ctx, nil); err == nil {
			_, err = s.Consume(ctx, r.replyTo, r.reply)
		}
	}
	if err != nil {
		err = errors.Join(err, s.Close(ctx))
		if r.replyTo != nil {
			c.mu.Lock()
			err = errors.Join(err, c.dropTempLocked(r.replyTo, nil))
			c.mu.Unlock()
		}
		return nil, err
	}
	return r, nil
}

// Do sends a request and waits for the reply. It sets the request's ReplyTo and CorrelationID.
// After a failover, replies that the old broker had are lost: give the context a deadline.
func (r *Requester) Do(ctx context.Context, to *Destination, request *Message, opts ...SendOption,
) (*Message, error) {
	reply := make(chan *Message, 1)
	r.mu.Lock()
	r.last++
	request.ReplyTo = r.replyTo
	request.CorrelationID = fmt.Sprintf("%s/%d", r.replyTo.PhysicalName, r.last)
	id := request.CorrelationID
	r.waiting[id] = reply
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.waiting, id)
		r.mu.Unlock()
	}()
	if err := r.producer.Send(ctx, request, append([]SendOption{To(to)}, opts...)...); err != nil {
		return nil, err
	}
	conn := r.session.conn
	select {
	case m := <-reply:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-conn.Done():
		return nil, conn.Err()
	}
}

// reply hands a reply to the one who waits for it; others came too late.
func (r *Requester) reply(_ context.Context, m *Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waiting, ok := r.waiting[m.CorrelationID]; ok {
		waiting <- m
		delete(r.waiting, m.CorrelationID)
	}
	return nil
}

// Close closes the requester's session and deletes its queue.
func (r *Requester) Close(ctx context.Context) error {
	err := r.session.Close(ctx)
	return errors.Join(err, r.session.conn.DeleteTemp(ctx, r.replyTo))
}

// Reply sends the reply to a request where the request wants it, with the request's correlation id,
// or its message id if it has none. The producer must be one without a destination.
func (p *Producer) Reply(ctx context.Context, request, reply *Message, opts ...SendOption) error {
	if request.ReplyTo == nil {
		return fmt.Errorf("reply: message %s names no destination for replies", request.ID)
	}
	reply.CorrelationID = request.CorrelationID
	if reply.CorrelationID == "" {
		reply.CorrelationID = request.ID
	}
	return p.Send(ctx, reply, append([]SendOption{To(request.ReplyTo)}, opts...)...)
}
