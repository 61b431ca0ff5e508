// Package network holds the nouns that a broker and its bridges share: network subscriptions and
// their filters, deliveries and how they end, doubts and how they are resolved. The broker
// implements what package bridge asks for in these terms; neither imports the other.
package network

import (
	"time"

	"hopwire/internal/message"
)

// Subscription is a network subscription: a consumer of the home broker whose deliveries cross
// the bridge.
type Subscription struct {
	Info   *message.ConsumerInfo // NetworkSubscription is set
	Peer   message.BrokerID      // where the deliveries go
	Filter Filter                // asked for every copy, before the window is charged
	Sink   Sink
	// Selectors tells Hopwire peers what the consumers behind this one select.
	Selectors Selectors
	// Hopwire says that the peer is a Hopwire broker. It can be asked about copies after a crash: the
	// broker keeps a durable mark above every sequence it delivers here.
	Hopwire bool
	// As is the user of the home broker whose rights bound what it gets; nil has them all.
	As *message.Principal
	// Ahead takes persistent copies before they are durable (forwardAhead).
	Ahead bool
	// Renewed says that it takes the place of one that its consumers had: they were given already
	// what topics keep for those that come later.
	Renewed bool
	// Patience is how long copies may be in doubt toward the peer, when it told that itself: the
	// broker keeps it for its next start. 0 is not told.
	Patience time.Duration
}

// ForEver as a patience holds copies in doubt until the peer has told of them.
const ForEver time.Duration = -1

// LongerPatience gives the longer of two patiences.
func LongerPatience(a, b time.Duration) time.Duration {
	if a == ForEver || b == ForEver {
		return ForEver
	}
	return max(a, b)
}

// Asker is a peer that asks about copies in doubt and ends what it has given up.
type Asker struct {
	Peer message.BrokerID
	User string // who it logged in here as
	Ours bool   // it asks over a link that this broker made
}

// MayEnd reports whether it may end a connection of a user, or a link that logs in as that user.
// Whoever says that it is this peer may end what is of its own user; a link that this broker made
// leads to where its configuration says, and may end all.
func (a Asker) MayEnd(user string) bool { return a.Ours || a.User == user }

// Sink takes the deliveries of a network subscription.
type Sink interface {
	// Deliver takes one delivery, and reports whether it wants more before the next Settle or Ready.
	Deliver(d Delivery) (more bool)
}

// Closer is what a Sink has, too, when it wants to know that the broker closed its subscription
// by itself, as nothing drains it. The broker calls Closed first, so that the sink can settle what
// must not just go back; then the subscription is gone as after Unsubscribe.
type Closer interface {
	Closed(reason string)
}

// Remarker is what a Sink has, too, when it can tell more about a reason for which copies
// wait for it, or are out to it: a sentence for an operator, "" for nothing. p is what the
// destination's policy says.
type Remarker interface {
	Remark(r message.Reason, p Replay, now time.Duration) string
}

// Delivery is one copy on its way to a peer. It stays the subscription's until it is settled.
type Delivery struct {
	Consumer   message.ConsumerID
	Ref        message.CopyRef
	Message    *message.Message // shared: Clone before changing
	Redelivery int32
	Topic      bool
}

// Filter decides for one copy whether it may cross now. Gate and Verdict are pure: they read the
// copy, the view and the bridge's own state. All that asking may leave behind is a note that a sign
// of life of the peer is wanted.
type Filter interface {
	// Gate is asked once per turn before copies are looked at; anything but a delivery keeps the
	// whole subscription out of the ring until its wake.
	Gate(now time.Duration) message.Verdict
	// Verdict decides for one copy.
	Verdict(c Candidate) message.Verdict
	// Took tells that a copy of a destination was handed to the sink, for rate windows; p is what
	// the destination's policy says.
	Took(dest message.Destination, p Replay, now time.Duration)
}

// Candidate is one copy as a Filter sees it.
type Candidate interface {
	Message() *message.Message
	Redelivery() int32
	// Arrived is when the copy came to this broker, on the monotonic clock; negative for copies
	// older than the process, clamped so that delays restart at most at their full length.
	Arrived() time.Duration
	Now() time.Duration
	// Wall is the time of day, ms since the epoch.
	Wall() int64
	// LocalConsumer reports whether a consumer that is neither a network subscription nor a
	// browser is on this destination; with matching only one whose selector takes the message.
	LocalConsumer(matching bool) bool
	// Replay is what the destination's policy says about replay and rates.
	Replay() Replay
}

// Settlement is how a delivery ends.
type Settlement uint8

// The settlements.
const (
	Acked       Settlement = iota // the peer has it: remove
	Returned                      // never left: back in its place, count untouched
	Redelivered                   // may have arrived: back in its place, count raised
	Doubted                       // may have arrived and the peer can be asked: held for it
	Poisoned                      // cannot be forwarded: to the dead letter queue
)

// Resolution is how a doubt ends.
type Resolution uint8

// The resolutions.
const (
	WasTaken     Resolution = iota // the peer has it: remove
	WasNotTaken                    // the peer has it not: back, count untouched
	NeverLearned                   // nobody told in time: back, count raised
	MaybeSeen                      // as WasNotTaken, but a client there may have got it: count 1
)

// Doubt is a copy in doubt with what the peer knows it by.
type Doubt struct {
	Ref message.CopyRef
	Key DoubtKey
}

// DoubtKey is what names an arrival at the peer's side: its destination there and the receipt key
// (facts in package message).
type DoubtKey struct {
	Destination message.Destination
	Key         message.ReceiptKey
}

// Peer names who forwarded a message.
type Peer struct {
	ID      message.BrokerID
	Name    string
	Hopwire bool // it names local copies in its acks and can be asked
	// Prefetch is how many messages the peer may have on their way for one destination; 0 unknown.
	Prefetch int
	// PerConsumer says that it may have so many on their way for each consumer of ours.
	PerConsumer bool
	// As is the user of the receiving broker whose rights bound what it may send; nil has them all.
	As *message.Principal
}

// Event is what a bridge tells its home broker.
type Event struct {
	Peer message.BrokerInfo
	// Link names the link: the connection that the bridge has here. Two connectors may lead to one
	// peer, and a new link may come before its forerunner is known to be gone.
	Link            message.ConnectionID
	Started         bool // false: stopped
	CreatedByDuplex bool
	Duplex          bool // the peer forwards over the link, too
	RemoteIP        string
	Temps           bool             // it hears of the peer's temporary destinations
	Failed          *message.Message // a ForwardFailure; Peer is set, Started not used
	Cause           string
}

// Replay holds the options of conditionalNetworkBridgeFilterFactory for one destination; the zero
// value is the default filter.
type Replay struct {
	WhenNoConsumers bool          // replayWhenNoConsumers
	SelectorAware   bool          // selectorAware
	Delay           time.Duration // replayDelay; 0 is none
	RateLimit       int           // rateLimit: deliveries per RateDuration; 0 is no limit
	RateDuration    time.Duration // rateDuration
}
