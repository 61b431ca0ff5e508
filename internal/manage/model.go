// Package manage is the management model: what a running broker tells people and programs about
// itself, and what they may ask of it, as plain values with stable JSON names. The control socket,
// and whatever else shows a broker, speak in these terms.
package manage

import (
	"context"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/message"
)

// Subject is a running broker that can be managed.
type Subject interface {
	// Presence tells that the process answers, without looking at the broker.
	Presence() *Presence
	// Status tells how the broker stands.
	Status(ctx context.Context) (*Status, error)
	// Explain tells why a queue's messages, or one of them, are where they are. An error of kind
	// NotFound names a queue or message that is not there.
	Explain(ctx context.Context, queue, messageID string) (*Explanation, error)
	// Decide commits or rolls back a prepared transaction without its transaction manager. An error
	// of kind NotFound says that there is none of that id.
	Decide(ctx context.Context, xid string, commit bool) error
	// Purge drops what waits in a queue and nobody has, durably.
	Purge(ctx context.Context, queue string) (*Purged, error)
	// Remove deletes a destination that nobody uses, durably. An error of kind IllegalState says who
	// uses it.
	Remove(ctx context.Context, destination string) (*Removed, error)
	// RemoveDurable ends a durable subscription whose consumer is away, durably.
	RemoveDurable(ctx context.Context, clientID, name string) (*Removed, error)
	// Stop begins a clean stop.
	Stop()
}

// Presence is what a process tells at once of a broker.
type Presence struct {
	// Waits tells what a broker that is not running yet waits for; "" for one that runs.
	Waits string `json:"waits,omitempty"`
}

// Status is a broker at one moment.
type Status struct {
	Broker       string            `json:"broker"`
	ID           string            `json:"id"`
	Version      string            `json:"version"`
	PID          int               `json:"pid"`
	Position     int               `json:"position"` // among the brokers of the process, from 0
	Compat       int               `json:"compat"`
	DataFolder   string            `json:"dataFolder,omitempty"`
	UptimeMs     int64             `json:"uptimeMs"`        // since it had its store
	Waits        string            `json:"waits,omitempty"` // a slave: for what; all below is empty
	Connectors   List[Connector]   `json:"connectors"`
	Bridges      List[Bridge]      `json:"bridges"`
	Incoming     List[Incoming]    `json:"incoming"`
	Destinations List[Destination] `json:"destinations"`
	// Subscriptions are the durable ones.
	Subscriptions List[Subscription] `json:"subscriptions"`
	// Transactions are the prepared XA branches, which wait for their transaction manager.
	Transactions     List[Transaction] `json:"transactions"`
	Connections      int               `json:"connections"`
	MemoryBytes      int64             `json:"memoryBytes"`
	MemoryLimitBytes int64             `json:"memoryLimitBytes"` // 0 is no limit
	// FrameBytes is the memory of large frames that are being read, which MemoryBytes counts when
	// they are there; above FrameLimitBytes their connections wait, now FramesWaiting of them.
	FrameBytes      int64 `json:"frameBytes"`
	FrameLimitBytes int64 `json:"frameLimitBytes"`
	FramesWaiting   int   `json:"framesWaiting"`
	Persistent      bool  `json:"persistent"` // it has a store
	StoreBytes      int64 `json:"storeBytes"`
	StoreLimitBytes int64 `json:"storeLimitBytes"` // 0 is no limit
	StoreFreeBytes  int64 `json:"storeFreeBytes"`  // of its disk; -1 when nobody knows
	StoreFull       bool  `json:"storeFull"`
	// Spooled are the messages that have a record in the spool, of SpooledBytes; SpooledTotal is how
	// many ever had one. The spool takes TempBytes of its disk.
	Spooled        int64             `json:"spooled"`
	SpooledBytes   int64             `json:"spooledBytes"`
	SpooledTotal   int64             `json:"spooledTotal"`
	TempBytes      int64             `json:"tempBytes"`
	TempLimitBytes int64             `json:"tempLimitBytes"` // 0 is no limit
	TempFull       bool              `json:"tempFull"`
	Totals         Totals            `json:"totals"`
	Reasons        List[ReasonCount] `json:"reasons"`
}

// Connector is a transport connector: a port.
type Connector struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// Totals are counters since the broker's start.
type Totals struct {
	Enqueued    int64 `json:"enqueued"`
	Dequeued    int64 `json:"dequeued"`
	Dispatched  int64 `json:"dispatched"`
	Expired     int64 `json:"expired"`
	DeadLetters int64 `json:"deadLetters"`
	Duplicates  int64 `json:"duplicates"`
	Forwarded   int64 `json:"forwarded"`
	Received    int64 `json:"received"`
}

// ReasonCount is how often something was refused, dropped or suppressed for a reason.
type ReasonCount struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// Destination is a queue or topic.
type Destination struct {
	Name       string            `json:"name"`
	Size       int64             `json:"size"`
	InFlight   int               `json:"inFlight"`
	Consumers  int               `json:"consumers"`
	Networks   int               `json:"networkConsumers"`
	Producers  int               `json:"producers"`
	Parked     int               `json:"parkedSends"`
	Enqueued   int64             `json:"enqueued"`
	Dequeued   int64             `json:"dequeued"`
	Forwarded  int64             `json:"forwarded"`
	Duplicates int64             `json:"duplicates"`
	Reasons    List[ReasonCount] `json:"reasons"`
	// Waits are the reasons that keep the oldest messages waiting here, the most frequent first; with
	// NO_CONSUMER also those for which bridges take none. An Explanation looks at every message.
	Waits List[string] `json:"waits"`
}

// Subscription is a durable subscription.
type Subscription struct {
	ClientID    string            `json:"clientId"`
	Name        string            `json:"name"`
	Destination string            `json:"destination"` // a topic, a pattern, or several
	Selector    string            `json:"selector,omitempty"`
	NoLocal     bool              `json:"noLocal,omitempty"`
	Consumer    string            `json:"consumer,omitempty"` // its address; "" when it is away
	SinceMs     int64             `json:"sinceMs"`            // there, or away
	Size        int64             `json:"size"`
	InFlight    int               `json:"inFlight"`
	Enqueued    int64             `json:"enqueued"`
	Dequeued    int64             `json:"dequeued"`
	Reasons     List[ReasonCount] `json:"reasons"`
}

// Transaction is a prepared XA branch.
type Transaction struct {
	ID      string `json:"id"`
	SinceMs int64  `json:"sinceMs"` // since it was prepared
	Sends   int64  `json:"sends"`   // messages that are there when it commits
	Lost    int64  `json:"lost"`    // others that a repair lost: it can only be rolled back
	Acks    int    `json:"acks"`    // messages that it keeps from others until it rolls back
}

// Bridge is one network bridge, made by us or by a peer.
type Bridge struct {
	Name      string            `json:"name"`
	URI       string            `json:"uri"`       // linked to, else tried now or next, or linked from
	Addresses int               `json:"addresses"` // that are tried in turn
	State     string            `json:"state"`
	Error     string            `json:"error,omitempty"`  // with the address that it happened at
	Unseen    string            `json:"unseen,omitempty"` // demand the bridge cannot see
	SinceMs   int64             `json:"sinceMs"`
	Attempt   int               `json:"attempt"`
	NextTryMs int64             `json:"nextTryMs,omitempty"` // until then; in BACKOFF
	Peer      string            `json:"peer,omitempty"`
	PeerID    string            `json:"peerId,omitempty"`
	Hopwire   bool              `json:"hopwire"`
	Duplex    bool              `json:"duplex"`
	Accepted  bool              `json:"accepted"`
	InFlight  int               `json:"inFlight"`
	SilentMs  int64             `json:"silentMs,omitempty"` // since the peer answered nothing of these
	InDoubt   int               `json:"inDoubt"`
	Forwarded int64             `json:"forwarded"`
	Received  int64             `json:"received"`
	Demands   List[Demand]      `json:"demands"`
	Parked    List[Parked]      `json:"parked"`
	Reasons   List[ReasonCount] `json:"reasons"`
	// Passed is what the peer told that the bridge has no use for, by why: its usual life.
	Passed List[ReasonCount] `json:"passed"`
}

// Incoming is a bridge of a peer that leads here and not back.
type Incoming struct {
	Peer     string `json:"peer"`
	PeerID   string `json:"peerId"`
	Hopwire  bool   `json:"hopwire"`
	Address  string `json:"address"`
	ClientID string `json:"clientId"`
	Received int64  `json:"received"` // messages
	// Away is set when its connection ended without a word of the peer; SinceMs is how long ago.
	Away    bool  `json:"away"`
	SinceMs int64 `json:"sinceMs"`
}

// NotHonoured is the state of a network connector of a kind that Hopwire does not have.
const NotHonoured = "NOT_HONOURED"

// Demand is one network subscription of a bridge.
type Demand struct {
	Destination string `json:"destination"`
	State       string `json:"state"`
	Members     int    `json:"members"`
	InFlight    int    `json:"inFlight"`
	Taken       int64  `json:"taken"`
	Reason      string `json:"reason,omitempty"` // why this broker refused it
	Error       string `json:"error,omitempty"`  // the same in its words
}

// Parked is a destination that waits because the peer refuses its messages.
type Parked struct {
	Destination string `json:"destination"`
	Reason      string `json:"reason"`
	Text        string `json:"text"` // what the peer said
	NextTryMs   int64  `json:"nextTryMs"`
}

// Explanation says why a queue's messages are where they are.
type Explanation struct {
	Broker      string               `json:"broker"`
	Destination Destination          `json:"destination"`
	Rows        List[ExplanationRow] `json:"rows"`
	StoredOnly  int64                `json:"storedOnly"` // waiting, not in memory and not looked at
	Spooled     int64                `json:"spooled"`    // waiting in the spool alone
	// StoredOldest is the oldest of StoredOnly; nil when there are none.
	StoredOldest *Oldest                `json:"storedOldest,omitempty"`
	Ways         List[ExplanationOfWay] `json:"ways"`
	Remark       string                 `json:"remark,omitempty"` // about the destination as a whole
	// Refused is what users were refused here since the start, the latest first.
	Refused List[Refusal] `json:"refused"`
}

// Refusal is what a user was refused.
type Refusal struct {
	User     string `json:"user"`
	What     string `json:"what"` // that it may not do
	Who      string `json:"who"`  // who was refused last: a client, a bridge
	Count    int64  `json:"count"`
	AgoMs    int64  `json:"agoMs"` // since the last
	Releases string `json:"releases"`
	// Groups are those that the user is in, Given those whose users may do it; "*" is every group.
	Groups List[string] `json:"groups"`
	Given  List[string] `json:"given"`
}

// ExplanationRow is one reason that holds for a number of messages.
type ExplanationRow struct {
	Reason   string `json:"reason"`
	Who      string `json:"who,omitempty"`
	Address  string `json:"address,omitempty"`  // of a client's consumer
	Selector string `json:"selector,omitempty"` // likewise
	Count    int64  `json:"count"`
	SinceMs  int64  `json:"sinceMs"`
	Releases string `json:"releases"`
	Remark   string `json:"remark,omitempty"`  // what else is known of it
	Example  string `json:"example"`           // the oldest; "" for none that is known
	Unknown  bool   `json:"unknown,omitempty"` // an older one may be in the store, unread
}

// Oldest is the oldest of a number of messages.
type Oldest struct {
	SinceMs int64  `json:"sinceMs"`
	Example string `json:"example"`
	Unknown bool   `json:"unknown,omitempty"`
}

// ExplanationOfWay says why a bridge takes nothing from the queue.
type ExplanationOfWay struct {
	Bridge string `json:"bridge"`
	Reason string `json:"reason"`
	Text   string `json:"text,omitempty"` // what the peer or this broker says about it
	// State, SinceMs, Error, Attempt and NextTryMs are the bridge's while it is down or in BACKOFF.
	State     string `json:"state,omitempty"`
	SinceMs   int64  `json:"sinceMs,omitempty"` // in that state
	Error     string `json:"error,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	NextTryMs int64  `json:"nextTryMs,omitempty"`
}

// FromBroker fills in what the core tells. Others are what else was refused, for other reasons.
func (s *Status) FromBroker(b broker.Status, others map[message.Reason]int64) {
	s.Broker, s.ID, s.Connections = b.Name, string(b.ID), b.Connections
	s.MemoryBytes, s.MemoryLimitBytes = b.MemoryBytes, b.MemoryLimitBytes
	s.Persistent = b.Persistent
	s.StoreBytes, s.StoreLimitBytes, s.StoreFull = b.StoreBytes, b.StoreLimitBytes, b.StoreFull
	s.StoreFreeBytes = b.StoreFreeBytes
	s.Spooled, s.SpooledBytes, s.SpooledTotal = b.Spool.Count, b.Spool.Bytes, b.Spool.Total
	s.TempBytes, s.TempLimitBytes, s.TempFull = b.Spool.DiskBytes, b.Spool.LimitBytes, b.Spool.Full
	s.Totals = Totals{Enqueued: b.Counts.Enqueued, Dequeued: b.Counts.Dequeued,
		Dispatched: b.Counts.Dispatched, Expired: b.Counts.Expired,
		DeadLetters: b.Counts.DeadLetters, Duplicates: b.Counts.Duplicates,
		Forwarded: b.Counts.Forwarded, Received: b.Counts.Received}
	s.Reasons = reasons(b.Counts.Reasons, others)
	for i := range b.Destinations {
		s.Destinations = append(s.Destinations, destination(&b.Destinations[i]))
	}
	for _, x := range b.Incoming {
		s.Incoming = append(s.Incoming, Incoming{Peer: x.Peer.Name, PeerID: string(x.Peer.ID),
			Hopwire: x.Peer.Hopwire, Address: x.Address, ClientID: x.ClientID, Received: x.Received,
			Away: x.Away, SinceMs: x.Since.Milliseconds()})
	}
	for _, x := range b.Transactions {
		s.Transactions = append(s.Transactions, Transaction{ID: x.ID,
			SinceMs: x.Since.Milliseconds(), Sends: x.Sends, Lost: x.Lost,
			Acks: x.Acks})
	}
	for _, x := range b.Subscriptions {
		s.Subscriptions = append(s.Subscriptions, Subscription{ClientID: x.ClientID, Name: x.Name,
			Destination: x.Destination.String(), Selector: x.Selector, NoLocal: x.NoLocal,
			Consumer: x.Consumer, SinceMs: x.Since.Milliseconds(), Size: x.Size,
			InFlight: x.InFlight, Enqueued: x.Counts.Enqueued, Dequeued: x.Counts.Dequeued,
			Reasons: reasons(x.Reasons)})
	}
}

func destination(d *broker.DestinationStatus) Destination {
	var waits []string
	for _, r := range d.Waits {
		waits = append(waits, string(r))
	}
	return Destination{Waits: waits, Name: d.Name.String(), Size: d.Size, InFlight: d.InFlight,
		Consumers: d.Consumers, Networks: d.Networks, Producers: d.Producers, Parked: d.Parked,
		Enqueued: d.Counts.Enqueued, Dequeued: d.Counts.Dequeued, Forwarded: d.Counts.Forwarded,
		Duplicates: d.Counts.Duplicates, Reasons: reasons(d.Reasons)}
}

// FromBridge gives one bridge; now is the loop's monotonic clock.
func FromBridge(b bridge.Status, now time.Duration) Bridge {
	out := Bridge{Name: b.Name, URI: b.URI, Addresses: b.Addresses, State: b.State.String(),
		Error: b.Error, Unseen: b.Unseen, SinceMs: (now - b.Since).Milliseconds(), Attempt: b.Attempt,
		Peer: b.Peer.Name, PeerID: string(b.Peer.ID), Hopwire: b.Hopwire, Duplex: b.Duplex,
		Accepted: b.Accepted, InFlight: b.InFlight, InDoubt: b.InDoubt, Forwarded: b.Forwarded,
		Received: b.Received, SilentMs: b.Silent.Milliseconds()}
	if b.State == bridge.Backoff {
		out.NextTryMs = max(b.NextTry-now, 0).Milliseconds()
	}
	for _, d := range b.Demands {
		out.Demands = append(out.Demands, Demand{Destination: d.Destination.String(),
			State: d.State, Members: d.Members, InFlight: d.InFlight, Taken: d.Taken,
			Reason: string(d.Reason), Error: d.Failed})
	}
	for _, p := range b.Parked {
		out.Parked = append(out.Parked, Parked{Destination: p.Destination.String(),
			Reason: string(p.Reason), Text: p.Text, NextTryMs: max(p.Until-now, 0).Milliseconds()})
	}
	for _, c := range b.Counts {
		out.Reasons = append(out.Reasons, ReasonCount{string(c.Reason), c.N})
	}
	for _, c := range b.Passed {
		out.Passed = append(out.Passed, ReasonCount{string(c.Reason), c.N})
	}
	return out
}

// FromExplanation gives a core's explanation its outer form.
func FromExplanation(name string, e *broker.Explanation) *Explanation {
	x := &Explanation{Broker: name, Destination: destination(&e.Status), StoredOnly: e.Stored,
		Spooled: e.Spooled, Remark: e.Remark}
	for _, r := range e.Rows {
		x.Rows = append(x.Rows, ExplanationRow{Reason: string(r.Reason), Who: r.Who,
			Address: r.Address, Selector: r.Selector, Count: r.Count,
			SinceMs: r.Oldest.Age.Milliseconds(), Releases: r.Releases,
			Remark: r.Remark, Example: example(r.Oldest.ID), Unknown: r.Oldest.Unknown})
	}
	if o := e.StoredOldest; e.Stored > 0 {
		x.StoredOldest = &Oldest{SinceMs: o.Age.Milliseconds(), Example: example(o.ID),
			Unknown: o.Unknown}
	}
	for _, r := range e.Refused {
		x.Refused = append(x.Refused, Refusal{User: r.User, What: r.What, Who: r.Who,
			Count: r.Count, AgoMs: r.Ago.Milliseconds(), Releases: rightFor(&r),
			Groups: r.Groups, Given: r.Given})
	}
	return x
}

// reasons gives counts in a fixed order: by count, then by name. No reason is in two of the maps.
func reasons(maps ...map[message.Reason]int64) []ReasonCount {
	out := make([]ReasonCount, 0, len(maps[0]))
	for _, m := range maps {
		for r, n := range m {
			if n > 0 {
				out = append(out, ReasonCount{string(r), n})
			}
		}
	}
	sortReasons(out)
	return out
}

// example is "" where no message is named.
func example(id message.MessageID) string {
	if id == (message.MessageID{}) {
		return ""
	}
	return id.String()
}
