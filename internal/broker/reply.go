package broker

import (
	"maps"
	"slices"
	"time"

	"hopwire/internal/message"
)

// Limits of replies to temporary destinations that no bridge has announced yet.
const (
	// replyPatience is how long after a request came from a peer its reply may wait.
	replyPatience = 3 * time.Second
	// expectedMost is how many such destinations are remembered.
	expectedMost = 10_000
)

// replies are the temporary destinations that requests from peers name in ReplyTo and that are not
// known here. Where the way back is another connection than the way there, the request may be
// faster than the word about its destination. A reply is not refused then, but waits for that word.
type replies struct {
	expected map[message.Destination]time.Duration // until when, on the monotonic clock
	order    []expectation                         // of expected and what is not any more
	waiting  map[message.Destination][]*arrival    // in the order of their coming
}

// expectation is that a destination is announced before a time.
type expectation struct {
	to    message.Destination
	until time.Duration
}

// over reports whether an expectation was met or given up, or is of the past.
func (r *replies) over(e expectation, now time.Duration) bool {
	return r.expected[e.to] != e.until || e.until <= now
}

// forget ends an expectation, and no later one of the same destination.
func (r *replies) forget(e expectation) {
	if r.expected[e.to] == e.until {
		delete(r.expected, e.to)
	}
}

func (r *replies) init() {
	r.expected = map[message.Destination]time.Duration{}
	r.waiting = map[message.Destination][]*arrival{}
}

// expectReply notes what a peer's message wants to be answered to.
func (b *Broker) expectReply(a *arrival) {
	to, r := a.m.ReplyTo, &b.replies
	if a.peer == nil || !to.IsTemp() || b.dests[to] != nil || b.connections[to.TempOwner()] != nil ||
		r.expected[to] != 0 {
		return
	}
	now := b.env.Mono()
	for len(r.order) > 0 && (len(r.expected) >= expectedMost || r.over(r.order[0], now)) {
		r.forget(r.order[0])
		r.order = r.order[1:]
	}
	if len(r.order) >= 2*expectedMost { // most are over
		r.order = slices.DeleteFunc(r.order, func(e expectation) bool { return r.over(e, now) })
	}
	e := expectation{to, now + replyPatience}
	r.expected[to] = e.until
	r.order = append(r.order, e)
}

// expects gives the time that a temporary destination may still be waited for: none where no bridge
// is up that would announce it.
func (b *Broker) expects(to message.Destination) time.Duration {
	left := b.replies.expected[to] - b.env.Mono()
	if left <= 0 || !slices.ContainsFunc(b.networks.peers, announces) {
		return 0
	}
	return left
}

// awaitTemp parks a reply to a destination that is expected.
func (b *Broker) awaitTemp(a *arrival) bool {
	to, r := a.m.Destination, &b.replies
	left := b.expects(to)
	if a.peer != nil || a.conn == nil || left == 0 || b.mayNotWait(nil, a, message.TempUnseen) {
		return false
	}
	a.wait = &parking{reason: message.TempUnseen, size: a.m.Size(), since: b.env.Mono()}
	a.wait.timer = b.env.After(left, func() { b.giveUpReplies(to) })
	if len(r.waiting[to]) == 0 {
		b.tell(Event{Kind: SendParked, Reason: message.TempUnseen, Dest: to,
			Text: a.m.ID.String() + " waits for a peer's bridge to announce it"})
	}
	r.waiting[to] = append(r.waiting[to], a)
	b.parkedBytes += a.wait.size
	a.conn.parkedBytes += a.wait.size
	if a.tx != nil {
		a.tx.parked = append(a.tx.parked, a)
	}
	a.conn.pace()
	return true
}

// status tells of the destinations that replies wait for.
func (r *replies) status() (list []DestinationStatus) {
	for _, to := range r.waited() {
		list = append(list, DestinationStatus{Name: to, Parked: len(r.waiting[to]),
			Waits: []message.Reason{message.TempUnseen}})
	}
	return list
}

// waited gives the destinations that replies wait for, by name.
func (r *replies) waited() []message.Destination {
	return slices.SortedFunc(maps.Keys(r.waiting), message.Destination.Compare)
}

// explain explains the replies, or one, that wait for a destination; nil where none does.
func (r *replies) explain(to message.Destination, id *message.MessageID,
	now time.Duration) *Explanation {
	waiting := r.waiting[to]
	if len(waiting) == 0 {
		return nil
	}
	x := &Explanation{Status: DestinationStatus{Name: to, Parked: len(waiting)}}
	row := ExplainRow{Reason: message.TempUnseen, Who: "replies that wait for a bridge",
		Releases: message.TempUnseen.Releases()}
	for _, a := range waiting {
		if id == nil || a.m.ID == *id {
			row.Count++
			x.Found = id != nil
			row.Oldest.add(Oldest{ID: a.m.ID, Age: now - a.wait.since})
		}
	}
	if row.Count > 0 {
		x.Rows = append(x.Rows, row)
	}
	return x
}

// leave takes an arrival out of those that wait.
func (r *replies) leave(a *arrival) {
	to := a.m.Destination
	list := r.waiting[to]
	if list[0] == a {
		list = list[1:]
	} else {
		drop(&list, a)
	}
	if len(list) == 0 {
		delete(r.waiting, to)
	} else {
		r.waiting[to] = list
	}
	a.b.parkedBytes -= a.wait.size
	a.leavePark()
}

// announced lets the replies to a destination go on that is there now.
func (b *Broker) announced(to message.Destination) {
	r := &b.replies
	delete(r.expected, to)
	for len(r.waiting[to]) > 0 {
		a := r.waiting[to][0]
		r.leave(a)
		if a.tx != nil {
			drop(&a.tx.parked, a)
		}
		b.run(a)
	}
}

// giveUpReplies refuses the replies to a destination that is not announced, and forgets it.
func (b *Broker) giveUpReplies(to message.Destination) {
	r := &b.replies
	delete(r.expected, to)
	for len(r.waiting[to]) > 0 {
		a := r.waiting[to][0]
		r.leave(a)
		b.counts.Reasons[message.TempUnseen]++
		b.tell(Event{Kind: SendRefused, Reason: message.TempUnseen, Dest: to,
			Text: a.m.ID.String() + ": no bridge told of the destination", Count: 1})
		a.refuse(b.mayReach(to))
	}
}

// dropReplies gives up what waits of a connection that ended.
func (b *Broker) dropReplies(c *Connection) {
	r := &b.replies
	var list []*arrival
	for _, to := range r.waited() {
		for _, a := range r.waiting[to] {
			if a.conn == c && !a.goesWith(c) {
				list = append(list, a)
			}
		}
	}
	for _, a := range list {
		r.leave(a)
		a.giveUp()
	}
}
