package cli

import (
	"context"
	"errors"
	"time"

	"hopwire/client"
	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/openwire"
)

// Limits of looking for the queues of a broker.
const (
	advisoriesTime = time.Second
	// queuesMost is how many queues a broker may list: beyond, and of a broker without advisories,
	// nothing is known.
	queuesMost = 30_000
)

// queues are those of a broker.
type queues struct {
	names []string
	known bool // what is not in names does not exist
}

// queuesOf asks a broker for its queues: whoever listens to the advisories about queues is told of
// those that are there. Browsing itself would make the queue. Who listens to those about
// connections is told of its own at least, which here is the end of the list: both brokers answer
// in order when they need not dispatch on threads of their own.
func queuesOf(ctx context.Context, conn *client.Conn) (queues, error) {
	var none queues
	session, err := conn.Session(ctx, client.DupsOKAck)
	if err != nil {
		return none, err
	}
	listen := func(a client.Advisory) (*client.Consumer, error) {
		topic := a.Topic()
		topic.PhysicalName += "?consumer.dispatchAsync=false"
		return session.Consumer(ctx, topic)
	}
	list, err := listen(client.AdvisoryQueue)
	var end *client.Consumer
	if err == nil {
		end, err = listen(client.AdvisoryConnection)
	}
	var refused *client.BrokerError
	switch {
	case errors.As(err, &refused): // its user may not read advisories
		return none, session.Close(ctx)
	case err != nil:
		return none, err
	}
	bound, cancel := context.WithTimeout(ctx, advisoriesTime)
	defer cancel()
	if _, err := end.Receive(bound); err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return none, session.Close(ctx) // its advisorySupport is off
		}
		return none, err
	}
	out := queues{known: true}
	for len(out.names) < queuesMost {
		m, err := list.ReceiveNoWait(ctx)
		if err != nil {
			return none, err
		}
		if m == nil {
			return out, session.Close(ctx)
		}
		if info, ok := m.Structure().(*openwire.DestinationInfo); ok && info.Destination != nil {
			out.names = append(out.names, info.Destination.PhysicalName)
		}
	}
	return none, session.Close(ctx)
}

// lacks reports whether none of the queues is what a name or pattern stands for.
func (q queues) lacks(d *client.Destination) bool {
	if !q.known || d.Type != openwire.TypeQueue {
		return false
	}
	pattern, _ := message.ParseDestination(d.PhysicalName, message.Queue)
	for _, name := range q.names {
		if name == d.PhysicalName ||
			policy.Matches(pattern, message.Destination{Kind: message.Queue, Name: name}) {
			return false
		}
	}
	return true
}
