package policy

import (
	"strings"
	"time"

	"hopwire/internal/message"
)

// DispatchKind is the order in which a topic's subscriptions get a message; every matching one
// gets it. Queues do not look at it.
type DispatchKind uint8

// The dispatch policies, by ActiveMQ's element names.
const (
	DispatchSimple          DispatchKind = iota // simpleDispatchPolicy, the default
	DispatchRoundRobin                          // roundRobinDispatchPolicy
	DispatchStrictOrder                         // strictOrderDispatchPolicy
	DispatchPriority                            // priorityDispatchPolicy
	DispatchPriorityNetwork                     // priorityNetworkDispatchPolicy
	DispatchClientIDFilter                      // clientIdFilterDispatchPolicy
)

// DispatchPolicy is a dispatch policy with its options.
type DispatchPolicy struct {
	Kind DispatchKind
	// ClientID is the only client that gets topics whose name ends in Suffix; defaults PTP_CLIENTID
	// and .PTP. DispatchClientIDFilter only.
	ClientID, Suffix string
}

// NewDispatchPolicy returns a policy of a kind with its defaults.
func NewDispatchPolicy(kind DispatchKind) DispatchPolicy {
	p := DispatchPolicy{Kind: kind}
	if kind == DispatchClientIDFilter {
		p.ClientID, p.Suffix = "PTP_CLIENTID", ".PTP"
	}
	return p
}

// RecoveryKind is which messages of a topic a retroactive subscription gets first.
type RecoveryKind uint8

// The subscription recovery policies.
const (
	RecoverNothing    RecoveryKind = iota // noSubscriptionRecoveryPolicy, the default
	RecoverLastImage                      // lastImageSubscriptionRecoveryPolicy
	RecoverFixedCount                     // fixedCountSubscriptionRecoveryPolicy
	RecoverFixedSize                      // fixedSizedSubscriptionRecoveryPolicy
	RecoverTimed                          // timedSubscriptionRecoveryPolicy
	RecoverRetained                       // retainedMessageSubscriptionRecoveryPolicy
)

// Recovery is a subscription recovery policy with its options.
type Recovery struct {
	Kind         RecoveryKind
	MaxMessages  int           // RecoverFixedCount: maximumSize; default 100
	MaxBytes     int           // RecoverFixedSize: maximumSize; default 65536
	SharedBuffer bool          // RecoverFixedSize: useSharedBuffer; default true. Each topic is alone
	Duration     time.Duration // RecoverTimed: recoverDuration; default 60 s
	Wrapped      *Recovery     // RecoverRetained: what else is recovered; default nil
}

// NewRecovery returns a policy of a kind with its defaults.
func NewRecovery(kind RecoveryKind) Recovery {
	r := Recovery{Kind: kind}
	switch kind {
	case RecoverFixedCount:
		r.MaxMessages = 100
	case RecoverFixedSize:
		r.MaxBytes, r.SharedBuffer = 64<<10, true
	case RecoverTimed:
		r.Duration = time.Minute
	}
	return r
}

// DeadLetterKind is where dead letters go.
type DeadLetterKind uint8

// The dead letter strategies.
const (
	DeadLetterShared     DeadLetterKind = iota // sharedDeadLetterStrategy, the default
	DeadLetterIndividual                       // individualDeadLetterStrategy
	DeadLetterDiscard                          // discarding
)

// DeadLetter is a dead letter strategy with its options.
type DeadLetter struct {
	Kind DeadLetterKind
	// Queue is where DeadLetterShared puts them; default queue ActiveMQ.DLQ.
	Queue message.Destination
	// Names of DeadLetterIndividual are prefix, source name, suffix; defaults
	// ActiveMQ.DLQ.Queue. and ActiveMQ.DLQ.Topic. without suffix.
	QueuePrefix, QueueSuffix string
	TopicPrefix, TopicSuffix string
	UseQueueForQueueMessages bool // default true; false dead-letters queue messages to a topic
	UseQueueForTopicMessages bool // default true
	// PerDurableSubscriber adds ".clientId:subscription" to the name of a topic; default false.
	PerDurableSubscriber bool

	ProcessExpired       bool          // default true
	ProcessNonPersistent bool          // default false
	EnableAudit          bool          // an id is dead-lettered once; carried alone; default true
	MaxProducersToAudit  int           // default 64
	MaxAuditDepth        int           // default 2048
	Expiration           time.Duration // of the copies; default 0, never
}

// NewDeadLetter returns a strategy of a kind with its defaults.
func NewDeadLetter(kind DeadLetterKind) DeadLetter {
	return DeadLetter{
		Kind:                     kind,
		Queue:                    message.Destination{Kind: message.Queue, Name: "ActiveMQ.DLQ"},
		QueuePrefix:              "ActiveMQ.DLQ.Queue.",
		TopicPrefix:              "ActiveMQ.DLQ.Topic.",
		UseQueueForQueueMessages: true,
		UseQueueForTopicMessages: true,
		ProcessExpired:           true,
		EnableAudit:              true,
		MaxProducersToAudit:      64,
		MaxAuditDepth:            2048,
	}
}

// Target returns where dead letters of source go, or the zero destination to drop them. durable is
// "clientId:subscription" for a durable subscription's copy, else "".
func (l *DeadLetter) Target(source message.Destination, durable string) message.Destination {
	switch l.Kind {
	case DeadLetterDiscard:
		return message.Destination{}
	case DeadLetterShared:
		return l.Queue
	}
	name, queue := l.QueuePrefix+source.Name+l.QueueSuffix, l.UseQueueForQueueMessages
	if source.IsTopic() {
		name = l.TopicPrefix + source.Name
		if l.PerDurableSubscriber && durable != "" {
			name += "." + durable
		}
		name, queue = name+l.TopicSuffix, l.UseQueueForTopicMessages
	}
	if queue {
		return message.Destination{Kind: message.Queue, Name: name}
	}
	return message.Destination{Kind: message.Topic, Name: name}
}

// Puts reports whether dead letters of source are put into the destination.
func (l *DeadLetter) Puts(source, into message.Destination) bool {
	if l.Target(source, "") == into {
		return true
	}
	if l.Kind != DeadLetterIndividual || !l.PerDurableSubscriber || !source.IsTopic() {
		return false
	}
	// Target's name for some "clientId:subscription".
	key, ok := strings.CutPrefix(into.Name, l.TopicPrefix+source.Name+".")
	key, ends := strings.CutSuffix(key, l.TopicSuffix)
	return ok && ends && l.Target(source, key) == into
}

// PendingKind is how the backlog of a topic subscription without durability is limited.
type PendingKind uint8

// The pending message limits.
const (
	PendingUnlimited    PendingKind = iota // the default
	PendingConstant                        // constantPendingMessageLimitStrategy
	PendingPrefetchRate                    // prefetchRatePendingMessageLimitStrategy
)

// PendingLimit is a pending message limit with its options.
type PendingLimit struct {
	Kind       PendingKind
	Limit      int     // PendingConstant; default -1, none
	Multiplier float64 // PendingPrefetchRate, times the prefetch; default 0.5
}

// NewPendingLimit returns a limit of a kind with its defaults.
func NewPendingLimit(kind PendingKind) PendingLimit {
	l := PendingLimit{Kind: kind}
	switch kind {
	case PendingConstant:
		l.Limit = -1
	case PendingPrefetchRate:
		l.Multiplier = 0.5
	}
	return l
}

// Max returns the most messages that may wait behind the window of a subscription, -1 for any
// number.
func (l PendingLimit) Max(prefetch int) int {
	switch l.Kind {
	case PendingConstant:
		return max(l.Limit, -1)
	case PendingPrefetchRate:
		return int(float64(prefetch) * l.Multiplier)
	}
	return -1
}

// EvictionKind is which message goes first above a pending limit.
type EvictionKind uint8

// The eviction strategies.
const (
	EvictOldest         EvictionKind = iota // oldestMessageEvictionStrategy, the default
	EvictLowestPriority                     // oldestMessageWithLowestPriorityEvictionStrategy
	EvictUniqueProperty                     // uniquePropertyMessageEvictionStrategy
)

// Eviction is an eviction strategy with its options.
type Eviction struct {
	Kind EvictionKind
	// Property is whose values keep only their newest message (EvictUniqueProperty).
	Property string
	// ExpiredHighWater is how many pending messages make the subscription drop expired ones first;
	// evictExpiredMessagesHighWatermark, default 1000.
	ExpiredHighWater int
}

// NewEviction returns a strategy of a kind with its defaults.
func NewEviction(kind EvictionKind) Eviction {
	return Eviction{Kind: kind, ExpiredHighWater: 1000}
}

// SlowConsumerKind is what happens to slow consumers.
type SlowConsumerKind uint8

// The slow consumer strategies.
const (
	SlowConsumersStay SlowConsumerKind = iota // the default
	AbortSlow                                 // abortSlowConsumerStrategy
	AbortSlowAck                              // abortSlowAckConsumerStrategy
)

// SlowConsumer is a slow consumer strategy with its options.
type SlowConsumer struct {
	Kind                   SlowConsumerKind
	Name                   string
	MaxSlowCount           int           // times slow before it ends; default -1, any number
	MaxSlowDuration        time.Duration // time slow before it ends; default 30 s
	CheckPeriod            time.Duration // default 30 s
	AbortConnection        bool          // end the connection, not the consumer; default false
	IgnoreNetworkConsumers bool          // default true
	MaxTimeSinceLastAck    time.Duration // AbortSlowAck; default 30 s
	IgnoreIdleConsumers    bool          // AbortSlowAck; default true
}

// NewSlowConsumer returns a strategy of a kind with its defaults.
func NewSlowConsumer(kind SlowConsumerKind) SlowConsumer {
	return SlowConsumer{
		Kind:                   kind,
		MaxSlowCount:           -1,
		MaxSlowDuration:        30 * time.Second,
		CheckPeriod:            30 * time.Second,
		IgnoreNetworkConsumers: true,
		MaxTimeSinceLastAck:    30 * time.Second,
		IgnoreIdleConsumers:    true,
	}
}

// Over reports whether a consumer ends that is slow for that time, and was found so that often.
func (c *SlowConsumer) Over(slow time.Duration, often int) bool {
	return c.MaxSlowDuration > 0 && slow >= c.MaxSlowDuration ||
		c.MaxSlowCount > 0 && often >= c.MaxSlowCount
}

// CursorKind is where messages wait that are not yet dispatched.
type CursorKind uint8

// The cursors: the store, memory, or a spool file.
const (
	CursorDefault CursorKind = iota // store where there is one, a spool file for topics
	CursorStore                     // storeCursor, storeDurableSubscriberCursor
	CursorVM                        // vmQueueCursor, vmDurableCursor, vmCursor
	CursorFile                      // fileQueueCursor, fileDurableSubscriberCursor, fileCursor
)

// Cursors are the pending policies of a destination.
type Cursors struct {
	Queue      CursorKind // pendingQueuePolicy
	Durable    CursorKind // pendingDurableSubscriberPolicy
	Subscriber CursorKind // pendingSubscriberPolicy
	// ImmediatePriorityDispatch and UseCache are options of storeDurableSubscriberCursor; both
	// default to true.
	ImmediatePriorityDispatch, UseCache bool
}

// NewCursors returns the default cursors.
func NewCursors() Cursors {
	return Cursors{ImmediatePriorityDispatch: true, UseCache: true}
}

// BridgeFilter is the networkBridgeFilterFactory: when messages may leave for, or go back to,
// another broker. It acts on network subscriptions of matching destinations.
type BridgeFilter struct {
	// Conditional is set by conditionalNetworkBridgeFilterFactory; without it the options rest.
	Conditional bool
	// ReplayWhenNoConsumers lets a message go back to a broker it came from once no local consumer
	// is left; default false.
	ReplayWhenNoConsumers bool
	// ReplayDelay is how long a message stays before it may be replayed; default 0.
	ReplayDelay time.Duration
	// RateLimit is how many messages may cross in RateDuration; default 0, no limit.
	RateLimit int
	// RateDuration defaults to 1 s.
	RateDuration time.Duration
	// SelectorAware counts only local consumers whose selector takes the message; default false.
	SelectorAware bool
}

// NewBridgeFilter returns the default filter.
func NewBridgeFilter() BridgeFilter { return BridgeFilter{RateDuration: time.Second} }

// GroupsKind is how a queue remembers the owners of message groups.
type GroupsKind uint8

// The message group maps.
const (
	GroupsCached GroupsKind = iota // the latest groups, the default
	GroupsBucket                   // one owner for all groups of a hash bucket
	GroupsSimple                   // all groups
)

// Groups is a message group map with its options.
type Groups struct {
	Kind      GroupsKind
	CacheSize int // groups (GroupsCached, default 1024) or buckets remembered (GroupsBucket, 64)
	Buckets   int // GroupsBucket: bucketCount; default 1024
}

// NewGroups returns a map of a kind with its defaults.
func NewGroups(kind GroupsKind) Groups {
	switch kind {
	case GroupsCached:
		return Groups{Kind: kind, CacheSize: 1024}
	case GroupsBucket:
		return Groups{Kind: kind, CacheSize: 64, Buckets: 1024}
	}
	return Groups{Kind: kind}
}

// HeaderRule is one headerMessageInterceptorStrategy: it rewrites headers of messages sent to the
// destination (6.x).
type HeaderRule struct {
	ForceDeliveryMode      bool          // default false
	Persistent             bool          // the forced mode; default true
	ForceExpiration        bool          // default false
	ZeroExpirationOverride time.Duration // time to live for messages without; default 0, none
	ExpirationCeiling      time.Duration // most time to live; default 0, none
	FutureOnly             bool          // never shorten a timestamp into the past; default false
	ProcessNetworkMessages bool          // default false
}
