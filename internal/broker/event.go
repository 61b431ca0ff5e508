package broker

import "hopwire/internal/message"

// EventKind says what an Event tells.
type EventKind uint8

// The kinds of events.
const (
	ConnectionOpened EventKind = iota
	ConnectionClosed
	ConnectionRefused
	DestinationAdded
	DestinationRemoved
	DestinationInactive // nobody used it for so long that it was removed
	MessageDropped      // Reason says why, Text names the message
	MessageDead         // to a dead letter queue
	SendParked          // the first send that waits for space on a destination
	SendRefused         // Reason says why
	StoreTrouble        // the store refuses or fails
	DuplicateKnown      // a resend was recognised
	DoubtReleased       // copies in doubt were given free without an answer
	ConsumerAborted     // a slow one, by its policy; Text says who, for how long, and what it has
	ConsumerWarning     // a consumer asked for something that cannot work
	NotAsMeant          // a message is not treated as its sender meant it
	SubscriptionRemoved // a durable one, with what it kept; Reason says why
	PeerWarning         // a peer said what makes no sense, or two brokers have one name
	AccessDenied        // a user has not the right to what it asks for; Text says whom and what
	BridgeCame          // a peer's bridge that leads here was let in; Peer
	BridgeLeft          // and is gone
	BranchFound         // an XA branch was prepared before the broker's start
	BranchImposed       // one was ended without its transaction manager
	ByHand              // something was purged, deleted or removed by hand, and is durable; By
)

// Event is something worth a line, in a log or elsewhere.
type Event struct {
	Kind   EventKind
	Reason message.Reason
	Dest   message.Destination
	Peer   string // its name
	Text   string // one line: who and what, and what to do
	By     string // who did it by hand, as far as known
	Of     string // whom or what it is about beside all above: no other of its kind hides it
	Count  int64
}

// Counts are the broker's totals.
type Counts struct {
	Enqueued    int64
	Dequeued    int64
	Dispatched  int64
	Expired     int64
	DeadLetters int64
	Duplicates  int64
	Forwarded   int64 // to peers, settled
	Received    int64 // from peers
	Connections int64 // ever opened
	// Reasons counts refusals, drops and suppressions that ended a message or a command.
	Reasons map[message.Reason]int64
}

func (b *Broker) tell(e Event) { b.opt.Observe(e) }

// drop counts a message that ends without being consumed, under its reason.
func (b *Broker) drop(d *destination, r message.Reason, m *message.Message) {
	b.counts.Reasons[r]++
	d.reasons[r]++
	b.tell(Event{Kind: MessageDropped, Reason: r, Dest: d.name, Text: m.ID.String(), Count: 1})
}

// dropMany is drop for n messages of a destination; what tells of them.
func (b *Broker) dropMany(d *destination, r message.Reason, what string, n int64) {
	if n > 0 {
		b.countDropped(d, r, n)
		b.tell(Event{Kind: MessageDropped, Reason: r, Dest: d.name, Text: what, Count: n})
	}
}

// trouble counts and tells what the store cannot give of a destination.
func (b *Broker) trouble(d *destination, r message.Reason, n int64, what string) {
	b.countDropped(d, r, n)
	b.tell(Event{Kind: StoreTrouble, Reason: r, Dest: d.name, Text: what, Count: n})
}

func (b *Broker) countDropped(d *destination, r message.Reason, n int64) {
	if n > 0 {
		b.counts.Reasons[r] += n
		d.reasons[r] += n
	}
}
