package bridge

import (
	"slices"
	"sort"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// State is where a connector stands.
type State uint8

// The states of a connector, and of a bridge that a peer made. Any failure leads a connector to
// Backoff, and the bridge of a peer to Gone; only Stop, or the peer's good-bye, leads to Stopped.
const (
	New        State = iota
	Connecting       // dialling, and both WireFormatInfos
	RemoteInfo       // waiting for the peer's BrokerInfo
	Resolving        // asking the peer about copies in doubt
	Running
	Degraded // running without a usable demand signal
	Backoff
	Stopping // answers are outstanding
	Stopped
	Gone // the peer's, without a word; it is the peer's to come back
)

var stateNames = [...]string{"NEW", "CONNECTING", "REMOTE_INFO", "RESOLVING", "RUNNING",
	"DEGRADED", "BACKOFF", "STOPPING", "STOPPED", "AWAY"}

func (s State) String() string { return stateNames[s] }

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of events.
const (
	StateChanged      EventKind = iota // State; Text says why, when it was a failure
	DemandOpened                       // Destination
	DemandClosed                       // Destination
	DemandRefused                      // Destination, Reason, Text: no subscription at home
	ForwardRefused                     // Destination, Reason, Text: the peer took no message; it waits
	ArrivalRefused                     // Destination, Reason, Text: a message was not taken here
	ForwardPoisoned                    // Destination, Text: a message that can never cross
	DoubtsResolved                     // Count known, Text
	DoubtsReleased                     // Count copies nobody told about in time
	Dropped                            // Reason: a command of the peer was of no use
	DemandNotDurable                   // Destination, Text: forwarded to a durable only while linked
	AdvisoriesAborted                  // Reason, Text: the peer closed the consumer of advisories
	Mirrored                           // Text: the peer bridges to this broker as well
	SameName                           // Text: another broker has this one's name
)

// Event is something that a log, a metric or an operator wants to know.
type Event struct {
	Kind        EventKind
	Connector   string
	URI         string // of the connector, its first; "" for an accepted link
	Peer        message.BrokerID
	PeerName    string
	State       State
	Destination message.Destination
	Reason      message.Reason
	Text        string
	Count       int
}

// Observer is told of events, on the loop.
type Observer func(Event)

// Count is a counter of things that happened for a reason.
type Count struct {
	Reason message.Reason
	N      int64
}

// counters add up over all links of a connector.
type counters struct {
	forwarded int64 // messages that peers took, or that were sent without asking an answer
	answered  int64
	received  int64 // messages taken that came over the reverse direction of a duplex link
	advisory  int64
	late      int64 // answers to copies that were given up
	byReason  map[message.Reason]int64
	// passed counts what the peer told and this link has no use for, by why: its usual life, no
	// refusal.
	passed map[message.Reason]int64
}

func newCounters() *counters {
	return &counters{byReason: map[message.Reason]int64{}, passed: map[message.Reason]int64{}}
}

func (c *counters) add(r message.Reason) { c.byReason[r]++ }

func (c *counters) pass(r message.Reason) { c.passed[r]++ }

func rows(by map[message.Reason]int64) []Count {
	out := make([]Count, 0, len(by))
	for r, n := range by {
		out = append(out, Count{r, n})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Reason < out[j].Reason })
	return out
}

// DemandRow is one network subscription in a Status.
type DemandRow struct {
	ID          message.ConsumerID
	Destination message.Destination
	State       string // waiting, refused, active, draining, suppressed; "(not durable)" behind it
	Members     int
	Static      bool
	Durable     bool
	InFlight    int
	Taken       int64
	Reason      message.Reason // why the home broker refused it; "" when it did not
	Failed      string         // the same in its words
}

// Status is a connector, or the accepting half of a duplex one, at one moment.
type Status struct {
	Name      string
	URI       string // linked to, else tried now or next; of an accepted one where it came from
	Addresses int    // that are tried in turn
	State     State
	Error     string // why the last link ended, or was not made, and where
	Since     time.Duration
	Attempt   int           // failures since the last success
	NextTry   time.Duration // monotonic; in Backoff only
	Peer      message.BrokerInfo
	Hopwire   bool
	Duplex    bool
	Accepted  bool // the peer made the connection
	Unseen    string
	InFlight  int
	Silent    time.Duration // since the peer answered nothing, with copies in flight; 0 for a moment
	InDoubt   int           // copies asked about and not answered yet
	Forwarded int64
	Answered  int64
	Received  int64
	Late      int64
	Counts    []Count
	Passed    []Count // what the peer told that this link has no use for, as is usual
	Demands   []DemandRow
	Parked    []Parked
}

func (d *demand) row() DemandRow {
	state := demandStates[d.state]
	if d.durable {
		state += " (not durable)"
	}
	r := DemandRow{ID: d.id, Destination: d.dest, State: state, Members: len(d.members),
		Durable: d.durable, InFlight: d.inFlight, Taken: d.taken, Reason: d.refusal.reason,
		Failed: d.refusal.text}
	for _, m := range d.members {
		r.Static = r.Static || m.static
	}
	return r
}

// fill adds what a link knows to a status.
func (b *Bridge) fill(s *Status) {
	s.Peer, s.Hopwire, s.Duplex = b.peer, b.hello.HopwireLevel > 0, b.duplex
	s.Accepted, s.InFlight, s.InDoubt = b.accepted, len(b.pending), b.doubts.open()
	s.Unseen, s.Silent = b.unseen, b.silence(b.home.env.Mono())
	s.Parked = b.parked.rows()
	for _, d := range b.table.demands {
		s.Demands = append(s.Demands, d.row())
	}
}

func (c *counters) fill(s *Status) {
	s.Forwarded, s.Answered, s.Received, s.Late = c.forwarded, c.answered, c.received, c.late
	s.Counts, s.Passed = rows(c.byReason), rows(c.passed)
}

// waitsFor is why an open demand may not move; "" when it does.
func (b *Bridge) waitsFor(d *demand) message.Reason {
	switch {
	case d.inFlight > 0 && b.home.env.Mono()-b.heard > silentAfter:
		return message.RemoteSilent
	case d.inFlight >= int(b.opts.PrefetchSize):
		return message.RemoteWindowFull
	}
	return ""
}

// silence is for how long the peer has answered nothing of what is in flight; 0 when that is usual.
func (b *Bridge) silence(now time.Duration) time.Duration {
	if d := now - b.heard; len(b.pending) > 0 && d >= silenceTold {
		return d
	}
	return 0
}

// Remark implements network.Remarker.
func (d *demand) Remark(r message.Reason, p network.Replay, now time.Duration) string {
	switch r {
	case message.ReplayOff:
		switch {
		case !d.consumed():
			return "the peer has no consumer for it, which replayWhenNoConsumers needs"
		case !p.WhenNoConsumers:
			return "the peer has a consumer for it: " +
				`<conditionalNetworkBridgeFilterFactory replayWhenNoConsumers="true"/> in the ` +
				"<networkBridgeFilterFactory> of its policyEntry, on this broker and each on the way, " +
				"would let it back"
		}
	case message.RemoteWindowFull, message.RemoteSilent, message.LinkFull, message.InFlight:
		if s := d.bridge.silence(now); s > 0 {
			return "the peer has answered nothing for " + s.Round(time.Second).String()
		}
	}
	return ""
}

// explain gives the reason why messages of d have no way over this link; "" when they have one.
func (b *Bridge) explain(d message.Destination) message.Reason {
	for _, x := range b.table.demands {
		if x.state == active && policy.Covers(x.dest, d) {
			if k := b.parked[d]; k != nil {
				return k.reason
			}
			return b.waitsFor(x)
		}
	}
	for _, x := range b.table.demands {
		if x.state == refused && x.refusal.reason == message.AccessDenied && policy.Covers(x.dest, d) {
			return message.AccessDenied
		}
	}
	if r := b.table.rules.refuses(d); r != "" {
		return r
	}
	if b.refusedAtHome(d) {
		return message.DemandRefused
	}
	if b.phase != running {
		return message.BridgeDown
	}
	if b.table.refusals.nearest(d) > 0 {
		return message.TTLConsumer
	}
	if b.unseen != "" {
		return message.DemandUnseen
	}
	return message.NoDemand
}

// refusedAtHome reports whether there is demand for d that the home broker did not take.
func (b *Bridge) refusedAtHome(d message.Destination) bool {
	return slices.ContainsFunc(b.table.demands, func(x *demand) bool {
		return x.state == refused && policy.Covers(x.dest, d)
	})
}
