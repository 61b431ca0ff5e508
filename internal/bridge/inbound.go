package bridge

import (
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// arrived takes a message that the peer sent: on a duplex link one that it forwards, or an
// advisory, which travels as a message there.
func (b *Bridge) arrived(m *message.Message) {
	if m.Destination.IsAdvisory() && m.Data != nil {
		if m.Destination.Name == connectionTopic {
			b.probe.saw(b, m)
			return
		}
		if interpreted(m.Destination) {
			b.advised(m)
			return
		}
	}
	if !b.duplex {
		b.count.add(message.NotTarget)
		b.event(Event{Kind: Dropped, Reason: message.NotTarget})
		return
	}
	ask, id := m.ResponseRequired, m.CommandID
	if r := b.table.rules.refuses(m.Destination); r != "" {
		b.unwelcome(m, r, ask)
		return
	}
	m.Producer = message.ProducerID{Connection: b.inbound, Session: 1, Value: 1}
	m.ResponseRequired = false
	b.home.local.Receive(m, b.from(), func(err error) {
		if err == nil {
			b.count.received++
		}
		if ask && b.phase != over {
			b.send(answer(id, err))
		}
	})
}

// from is the peer as the home broker knows it.
func (b *Bridge) from() network.Peer {
	return network.Peer{ID: b.peer.ID, Name: b.peer.Name, Hopwire: b.hello.HopwireLevel > 0,
		Prefetch: int(b.opts.PrefetchSize), PerConsumer: !b.opts.ConduitSubscriptions, As: b.as}
}

// unwelcome refuses a message that the lists exclude. An ActiveMQ peer would restart its bridge
// on an exception, again and again; it gets no answer and keeps the copy, as from its like.
func (b *Bridge) unwelcome(m *message.Message, r message.Reason, ask bool) {
	b.count.add(r)
	if ask && b.hello.HopwireLevel > 0 {
		b.send(answer(m.CommandID, message.Errorf(message.Denied,
			"%v is not carried by bridge %s (%s)", m.Destination, b.opts.Name, r)))
	}
}

// oversized refuses a message above our frame limit. A Hopwire peer is told that it is the size, in
// either case: it keeps back the one that it asked an answer for, and counts the other as lost. An
// ActiveMQ peer ends its bridge for any complaint; it gets one where it waits for the answer.
func (b *Bridge) oversized(m *message.Oversized) {
	x := message.Exception(m.Err())
	if b.hello.HopwireLevel > 0 {
		x.Class = message.FrameTooBig.Class()
	}
	text := x.Message
	switch {
	case m.ResponseRequired:
		b.send(&message.Response{Correlation: m.CommandID, Exception: x})
	case b.hello.HopwireLevel > 0:
		text += "; it is lost, as the peer asked for no answer"
		b.send(&message.ConnectionError{Exception: x})
	default:
		text += "; it is lost, as the peer asked for no answer"
	}
	b.count.add(message.FrameTooBig)
	b.event(Event{Kind: ArrivalRefused, Destination: m.Destination, Reason: message.FrameTooBig,
		Text: text})
}

func answer(id int32, err error) *message.Response {
	r := &message.Response{Correlation: id}
	if err != nil {
		r.Exception = message.Exception(err)
	}
	return r
}
