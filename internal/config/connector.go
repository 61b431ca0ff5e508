package config

import (
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// Transport is one transportConnector: a listener.
type Transport struct {
	Pos                        Pos
	Name                       string
	URI                        *URI // its options were checked; package transport acts on them
	LinkStealing               bool // a second connection with a client id ends the first
	MaxProducers, MaxConsumers int

	AutoStart    bool   // false: the port stays closed
	DiscoveryURI string // nobody is told of the port there
}

// Network is one networkConnector. Fields are named after its attributes, see package schema.
type Network struct {
	Pos  Pos
	Name string
	URI  *URI
	// Links are the bridges the connector makes: one for each member of static:(...), one for the
	// whole of masterslave:(...).
	Links   []Link
	BackOff BackOff

	UserName, Password string // for the local broker, and the remote one without others
	// RemoteUserName and RemotePassword are what the remote broker gets, if the file has one of them.
	RemoteUserName, RemotePassword string

	Duplex                           bool
	StaticBridge                     bool
	DynamicOnly                      bool
	ConduitSubscriptions             bool
	ConduitNetworkQueueSubscriptions bool
	Dynamic                          []NetworkDestination // dynamicallyIncludedDestinations
	Static                           []NetworkDestination // staticallyIncludedDestinations
	Excluded                         []NetworkDestination
	DestinationFilter                string
	BridgeTempDestinations           bool

	DecreaseConsumerPriority bool
	ConsumerPriorityBase     int
	ConsumerTTL, MessageTTL  int // hops; -1: any number

	Prefetch         int
	AdvisoryPrefetch int // never 0: Prefetch when the file says so
	AdvisoryAckPct   int
	AlwaysSyncSend   bool

	SuppressDuplicateQueues bool
	SuppressDuplicateTopics bool
	AdvisoryForFailed       bool // advisoryForFailedForward
	ClientIDToken           string
	AutoStart               bool // false: the connector stays stopped

	InDoubtTimeout time.Duration // -1 ms: for ever
	ForwardAhead   bool
}

// Unserved is a network connector of a kind that is not honoured.
type Unserved struct {
	Pos  Pos
	Name string // as written, "" without one
	URI  string // without options; the element's name where it has none
	Why  string
}

// Link is one bridge: the addresses of one peer, tried in turn.
type Link struct {
	Peers     []Peer
	Randomize bool // in an order made by chance; false: in the order written
}

// Peer is an address to dial.
type Peer struct{ URI *URI }

// BackOff is how a connector waits between attempts.
type BackOff struct {
	Initial, Max   time.Duration
	Exponential    bool
	MinConnectTime time.Duration // a shorter life counts as a failure
}

// NetworkDestination is a member of a connector's list.
type NetworkDestination struct {
	message.Destination
	Options []Option // behind "?" in the name
}

// Patterns returns a list without options, for matching.
func Patterns(list []NetworkDestination) policy.List {
	out := make(policy.List, len(list))
	for i, d := range list {
		out[i] = d.Destination
	}
	return out
}
