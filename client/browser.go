package client

import (
	"context"
	"fmt"
	"io"

	"hopwire/openwire"
)

// Browser looks at the messages of a queue without taking them.
type Browser struct{ consumer *Consumer }

// Browser starts to browse a queue; a topic is an error. It sees the messages that are there about
// now, as far as the broker's limits for browsers allow. Of the consumer options WithSelector and
// WithPrefetchSize make sense.
func (s *Session) Browser(ctx context.Context, queue *Destination, opts ...ConsumerOption,
) (*Browser, error) {
	k, err := s.newConsumer(queue, true, opts)
	if err != nil {
		return nil, err
	}
	if isTopic(k.info.Destination) {
		return nil, fmt.Errorf("browser of %s: only queues can be browsed",
			FormatDestination(k.info.Destination))
	}
	if k.info.PrefetchSize == 0 {
		k.info.PrefetchSize = 1 // a browser is never asked for by pulls
	}
	if err := k.register(ctx); err != nil {
		return nil, err
	}
	return &Browser{k}, nil
}

// Next waits for the next message; io.EOF after the last. When the connection was replaced
// meanwhile it fails with ErrInterrupted: browse again.
func (b *Browser) Next(ctx context.Context) (*Message, error) {
	k := b.consumer
	for {
		m, over, err := b.take()
		if m != nil || err != nil {
			return m, err
		}
		if over {
			return nil, io.EOF
		}
		if err := k.await(ctx); err != nil {
			return nil, err
		}
	}
}

func (b *Browser) take() (m *Message, over bool, err error) {
	k := b.consumer
	c := k.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.err != nil {
		return nil, false, k.err
	}
	if len(k.queue) == 0 {
		return nil, k.nulls > 0, nil
	}
	d := k.queue[0]
	k.queue = k.queue[1:]
	k.delivered = append(k.delivered, d)
	if 2*len(k.delivered) >= int(k.info.PrefetchSize) {
		err = k.consumedLocked(k.delivered, openwire.AckStandard)
	}
	return d.received(), false, err
}

// Cut reports, after io.EOF, whether there are messages that the browser would have seen if it were
// not for the maxBrowsePageSize of the queue's policy. It is not known of brokers but Hopwire, nor
// when none of the next 1,000 messages is one and the queue has more.
func (b *Browser) Cut() (cut, known bool) {
	k := b.consumer
	c := k.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.cut == cutPage, k.nulls > 0 && c.link != nil && c.link.own && k.cut <= cutPage
}

// MayBeCut reports, after io.EOF, that a Hopwire broker stopped looking for a message beyond the
// maxBrowsePageSize before it found one or came to the queue's end.
func (b *Browser) MayBeCut() bool {
	k := b.consumer
	c := k.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	return k.cut > cutPage
}

// cutPage is what the end of a browser's page says when there is more; above it, there may be.
const cutPage = 1

// Close ends browsing.
func (b *Browser) Close() error { return b.consumer.Close() }
