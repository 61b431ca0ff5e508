package policy

import (
	"slices"
	"time"

	"hopwire/internal/message"
)

// Entry is one policyEntry: how the destinations it applies to behave. NewEntry gives the defaults
// that are named with the fields. "Live" fields may be changed while the broker runs; the others
// act on destinations and subscriptions created later.
type Entry struct {
	// Destination is the pattern the entry is for; zero in a default entry. A composite applies the
	// entry to each member.
	Destination message.Destination
	// Source is where the entry stands (file:line:col), for messages about it.
	Source string
	// Configured is false only in the built-in entry: prefetch then stays what consumers ask for
	// and browsers are not limited.
	Configured bool

	Memory   Memory
	Dispatch Dispatch
	Expiry   Expiry
	Prefetch Prefetch
	GC       GC
	Advisory Advisory

	// EnableAudit suppresses duplicates in cursors; default true.
	EnableAudit bool
	// MaxProducersToAudit is how many producers an audit remembers; default 64, 1024 without entry.
	MaxProducersToAudit int
	// MaxQueueAuditDepth is how many messages of each producer a queue's audit remembers; default
	// 10000, 2048 without entry.
	MaxQueueAuditDepth int
	// MaxAuditDepth is the same for topic subscriptions; default 10000, 2048 without entry.
	MaxAuditDepth int
	// SendDuplicateFromStoreToDLQ dead-letters duplicates found when paging from the store instead
	// of dropping them; default false, live.
	SendDuplicateFromStoreToDLQ bool
	// PersistJMSRedelivered makes what clients may have had before a kill come as redelivered;
	// default false, and done in any case.
	PersistJMSRedelivered bool
	// MaxDestinations caps the destinations that match this entry, advisory topics exempt; default
	// -1, no cap.
	MaxDestinations int
	// MaxBrowsePageSize is how many messages a browser sees, 0 all of them; default 400, 0 without
	// entry. Live.
	MaxBrowsePageSize int
	// AlwaysRetroactive gives every topic consumer the recovery policy's messages, but for durable
	// subscriptions, whose consumers have to ask for them; default false, live.
	AlwaysRetroactive bool
	// AllowTempDestinationStealing lets other connections consume a temporary destination;
	// default false, live (ActiveMQ 5.19.9, 6.2.7).
	AllowTempDestinationStealing bool
	// AdvancedNetworkStatistics counts network traffic apart; default false, live (6.x).
	AdvancedNetworkStatistics bool
	// AdvancedMessageStatistics keeps data of the last message enqueued and dequeued; default
	// false, live (6.x).
	AdvancedMessageStatistics bool

	DispatchPolicy DispatchPolicy
	Recovery       Recovery
	DeadLetter     DeadLetter
	PendingLimit   PendingLimit
	Eviction       Eviction
	SlowConsumer   SlowConsumer
	Cursors        Cursors
	Bridge         BridgeFilter
	Groups         Groups
	Headers        []HeaderRule // messageInterceptorStrategy, in order (6.x)
}

// Memory limits what a destination holds and says what happens to producers at the limit.
type Memory struct {
	// ProducerFlowControl blocks or denies producers when the memory is full; default true, live.
	// Without it the broker's memory limit alone holds them, as nothing is spooled to disk.
	ProducerFlowControl bool
	// LimitBytes is memoryLimit; default 0, the broker's limit alone. Live.
	LimitBytes int64
	// BlockedProducerWarning is the time between warnings about blocked producers; default 30 s,
	// negative never. Live.
	BlockedProducerWarning time.Duration
	// SendFailIfNoSpace overrides systemUsage when it is set; default nil.
	SendFailIfNoSpace *bool
	// SendFailIfNoSpaceAfter overrides systemUsage's timeout; default -1 ms, unset.
	SendFailIfNoSpaceAfter time.Duration
	// CursorHighWaterPercent is the memory use at which cursors stop caching; default 70, live.
	CursorHighWaterPercent int
	// StoreHighWaterPercent is the store use at which persistent sends block; default 100, live.
	StoreHighWaterPercent int
	// MinimumMessageBytes is what a message counts at least; default 1024, live.
	MinimumMessageBytes int64
}

// Dispatch is how a queue hands out messages.
type Dispatch struct {
	// MaxPageSize is how many messages are paged in at a time; default 200, live.
	MaxPageSize int
	// UseCache keeps fresh persistent messages in memory; default true.
	UseCache bool
	// Lazy pages in only what consumers can take now; default false, live.
	Lazy bool
	// Optimized dispatches on the sender's turn; default false, live.
	Optimized bool
	// StrictOrder never rotates consumers and puts redelivered messages to the very front;
	// default false, live.
	StrictOrder bool
	// UseConsumerPriority prefers consumers of higher priority; default true, live.
	UseConsumerPriority bool
	// TimeBeforeStart and ConsumersBeforeStart hold the first dispatch back; default 0, live.
	TimeBeforeStart      time.Duration
	ConsumersBeforeStart int
	// AllConsumersExclusive makes every consumer exclusive; default false, live.
	AllConsumersExclusive bool
	// Prioritized orders messages by priority; default false.
	Prioritized bool
}

// Expiry is the periodic search for expired messages.
type Expiry struct {
	Period      time.Duration // expireMessagesPeriod; default 30 s, 0 off
	MaxPageSize int           // maxExpirePageSize; default 400, live
}

// Default prefetch windows of ActiveMQ's policy entries and clients, in messages.
const (
	DefaultQueuePrefetch        = 1000
	DefaultQueueBrowserPrefetch = 500
	DefaultTopicPrefetch        = 32767
	DefaultDurableTopicPrefetch = 100
	// OptimizedDurablePrefetch is the other window that counts as a client's default for durables.
	OptimizedDurablePrefetch = 1000
)

// Prefetch replaces the window of consumers that arrive with exactly the client's default.
type Prefetch struct {
	Queue        int // queuePrefetch; default 1000
	QueueBrowser int // queueBrowserPrefetch; default 500
	Topic        int // topicPrefetch; default 32767
	DurableTopic int // durableTopicPrefetch; default 100
	// Extension does not count messages that were delivered but not acked; default true.
	Extension bool
}

// GC removes destinations without producers, consumers and messages.
type GC struct {
	Inactive             bool          // gcInactiveDestinations; default false, live
	After                time.Duration // inactiveTimeoutBeforeGC; default 60 s, live
	WithNetworkConsumers bool          // ignore network consumers; default false, live
}

// Advisory says which advisories the destinations cause; all default to false and are live.
type Advisory struct {
	Consumed      bool // advisoryForConsumed
	Delivery      bool // advisoryForDelivery
	Dispatched    bool // advisoryForDispatched (6.x)
	Discarding    bool // advisoryForDiscardingMessages
	SlowConsumers bool // advisoryForSlowConsumers
	FastProducers bool // advisoryForFastProducers
	WhenFull      bool // advisoryWhenFull
	NoConsumers   bool // sendAdvisoryIfNoConsumers
	IncludeBody   bool // includeBodyForAdvisory
}

// NewEntry returns an entry with every default of a policyEntry without attributes.
func NewEntry() *Entry {
	return &Entry{
		Configured: true,
		Memory: Memory{
			ProducerFlowControl:    true,
			BlockedProducerWarning: 30 * time.Second,
			SendFailIfNoSpaceAfter: -time.Millisecond,
			CursorHighWaterPercent: 70,
			StoreHighWaterPercent:  100,
			MinimumMessageBytes:    1024,
		},
		Dispatch: Dispatch{MaxPageSize: 200, UseCache: true, UseConsumerPriority: true},
		Expiry:   Expiry{Period: 30 * time.Second, MaxPageSize: 400},
		Prefetch: Prefetch{
			Queue:        DefaultQueuePrefetch,
			QueueBrowser: DefaultQueueBrowserPrefetch,
			Topic:        DefaultTopicPrefetch,
			DurableTopic: DefaultDurableTopicPrefetch,
			Extension:    true,
		},
		GC:                  GC{After: time.Minute},
		EnableAudit:         true,
		MaxProducersToAudit: 64,
		MaxQueueAuditDepth:  10000,
		MaxAuditDepth:       10000,
		MaxDestinations:     -1,
		MaxBrowsePageSize:   400,
		DispatchPolicy:      NewDispatchPolicy(DispatchSimple),
		Recovery:            Recovery{Kind: RecoverNothing},
		DeadLetter:          NewDeadLetter(DeadLetterShared),
		PendingLimit:        PendingLimit{Kind: PendingUnlimited},
		Eviction:            NewEviction(EvictOldest),
		Cursors:             NewCursors(),
		Bridge:              NewBridgeFilter(),
		Groups:              NewGroups(GroupsCached),
	}
}

// Window returns the prefetch of a consumer that asked for asked messages: the policy's when the
// consumer has exactly the client's default, else its own.
func (e *Entry) Window(d message.Destination, asked int, durable, browser bool) int {
	if !e.Configured {
		return asked
	}
	switch {
	case d.IsQueue() && browser:
		return replace(asked, e.Prefetch.QueueBrowser, DefaultQueueBrowserPrefetch)
	case d.IsQueue():
		return replace(asked, e.Prefetch.Queue, DefaultQueuePrefetch)
	case durable:
		return replace(asked, e.Prefetch.DurableTopic, DefaultDurableTopicPrefetch,
			OptimizedDurablePrefetch)
	}
	return replace(asked, e.Prefetch.Topic, DefaultTopicPrefetch)
}

func replace(asked, policy int, defaults ...int) int {
	if slices.Contains(defaults, asked) {
		return policy
	}
	return asked
}
