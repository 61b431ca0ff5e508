package bridge

import (
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// unfit are messages that cannot be sent over this link, whatever the peer's state: too big, or not
// to be encoded in what was agreed. Each waits alone; parking its destination would hold up all
// behind it. The next link tries them once more.
type unfit map[message.MessageID]message.Reason

// unfitKept bounds the messages remembered; beyond it they park their destinations.
const unfitKept = 10_000

// unsendable is the reason when an exception says that a message itself cannot cross; "" when it
// is about anything else.
func unsendable(x *message.Throwable) message.Reason {
	for _, r := range []message.Reason{message.FrameTooBig, message.NotEncodable} {
		if x != nil && x.Class == r.Class() {
			return r
		}
	}
	return ""
}

// setAside keeps a message at home that cannot cross. It reports whether it has room to.
func (b *Bridge) setAside(p pending, r message.Reason, x *message.Throwable) bool {
	if len(b.unfit) >= unfitKept {
		return false
	}
	b.unfit[p.msg.ID] = r
	b.settle(p.demand, p.ref, network.Returned)
	dest := p.destination()
	b.parked.unprobe(dest)
	b.count.add(r)
	b.event(Event{Kind: ForwardRefused, Destination: dest, Reason: r,
		Text: p.msg.ID.String() + ": " + x.Error()})
	return true
}

// unasked takes an answer that nothing waits for: late, or about a message that asked for none.
func (b *Bridge) unasked(r *message.Response) {
	reason := unsendable(r.Exception)
	if reason == "" {
		b.count.late++
		return
	}
	b.count.add(reason)
	b.event(Event{Kind: ForwardRefused, Reason: reason,
		Text: "a message that asked for no answer was not sent: " + r.Exception.Error()})
}
