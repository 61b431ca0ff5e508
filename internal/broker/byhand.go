package broker

import (
	"strconv"
	"strings"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/plural"
)

// Removed is what went with a destination or durable subscription that was removed by hand.
type Removed struct {
	Dropped int64  // messages
	InDoubt int64  // of these, that a peer may have
	Remark  string // what else is to be known; "" for nothing
}

// Remove deletes a destination by hand, as a client may: not while somebody consumes or bridges it,
// has a durable subscription of it, or a prepared branch keeps messages of it; an error of kind
// IllegalState says which. by tells who asked, "" for nobody that is known; done is called when it
// is durable.
func (b *Broker) Remove(name message.Destination, by string, done func(Removed, error)) {
	d := b.find(name)
	if d == nil {
		done(Removed{}, b.hasNo(name))
		return
	}
	if len(d.consumers)+len(d.nets) > 0 {
		done(Removed{}, message.Errorf(message.IllegalState, "%s is not removed: it has %s and %s of"+
			" bridges", name, plural.Of(len(d.consumers), "consumer"),
			plural.Of(len(d.nets), "subscription")))
		return
	}
	if len(d.shares) > 0 {
		done(Removed{}, message.Errorf(message.IllegalState, "%s is not removed: it has %s, first"+
			" %s", name, plural.Of(len(d.shares), "durable subscription"), d.shares[0].sub))
		return
	}
	var out Removed
	if d.queue != nil {
		out.Dropped = d.queue.Len()
		d.queue.EachOut(func(c *queue.Copy) {
			if len(c.Doubts) > 0 {
				out.InDoubt++
			}
		})
		if n := d.queue.StoredOnly(); n > 0 && len(d.bootMarks) > 0 {
			out.Remark = strconv.FormatInt(n, 10) + " were in the store alone, and a peer may have some"
		}
	}
	err := b.removeFor(d, false, message.DestinationRemoved, "")
	if err != nil {
		done(Removed{}, err)
		return
	}
	b.journal.whenDurable(func() {
		b.tell(Event{Kind: ByHand, Reason: message.DestinationRemoved, Dest: name, By: by,
			Count: out.Dropped, Text: "deleted" + out.text()})
		done(out, nil)
	})
}

// hasNo is the error for who names a destination that is not there.
func (b *Broker) hasNo(name message.Destination) error {
	more := ""
	if name.IsPattern() {
		more = " of that very name: what is done by hand is done to one destination"
	}
	return message.Errorf(message.NotFound, "broker %s has no %s%s", b.opt.Name, name, more)
}

// RemoveSubscription ends a durable subscription by hand. An error of kind NotFound says that there
// is none, one of kind IllegalState that its consumer is there. by tells who asked, "" for nobody
// that is known; done is called when it is durable.
func (b *Broker) RemoveSubscription(clientID, name, by string, done func(Removed, error)) {
	s := b.subscriptions[subscriptionKey{clientID, name}]
	switch {
	case s == nil:
		done(Removed{}, message.Errorf(message.NotFound, "broker %s has no durable subscription %s of"+
			" client %s", b.opt.Name, name, clientID))
		return
	case s.active != nil:
		done(Removed{}, message.Errorf(message.IllegalState, "durable subscription %s is in use: its"+
			" consumer is connected from %s", s, s.active.conn.remote.Address))
		return
	}
	out := Removed{Dropped: s.dest.queue.Len() + s.dest.queue.Withheld(),
		Remark: strings.TrimPrefix(s.keptToo(), "; ")}
	b.counts.Reasons[message.Unsubscribed] += out.Dropped
	s.end()
	b.adviseUnsubscribed(s)
	b.journal.whenDurable(func() {
		b.tell(Event{Kind: ByHand, Reason: message.Unsubscribed, Dest: s.dest.name, By: by,
			Count: out.Dropped, Text: "durable subscription " + s.String() + " removed" + out.text()})
		done(out, nil)
	})
}

// text tells what went with something that was removed.
func (r *Removed) text() string {
	text := ": " + plural.Of(r.Dropped, "message") + " dropped"
	if r.InDoubt > 0 {
		text += ", " + strconv.FormatInt(r.InDoubt, 10) + " of them in doubt: a peer may have them"
	}
	if r.Remark != "" {
		text += "; " + r.Remark
	}
	return text
}
