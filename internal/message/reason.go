package message

// Reason is the stable code of a refusal, drop, suppression or wait; the same in logs, metrics,
// explain and the console.
type Reason string

// The reason codes.
const (
	NoDemand             Reason = "NO_DEMAND"
	DemandUnseen         Reason = "DEMAND_UNSEEN"
	DemandRefused        Reason = "DEMAND_REFUSED"
	Excluded             Reason = "EXCLUDED"
	NotIncluded          Reason = "NOT_INCLUDED"
	TTLMessage           Reason = "TTL_MESSAGE"
	TTLConsumer          Reason = "TTL_CONSUMER"
	AlreadyVisited       Reason = "ALREADY_VISITED"
	ReplayOff            Reason = "REPLAY_OFF"
	ReplayDelay          Reason = "REPLAY_DELAY"
	LocalConsumerPresent Reason = "LOCAL_CONSUMER_PRESENT"
	SelectorNoMatch      Reason = "SELECTOR_NO_MATCH"
	NoLocal              Reason = "NO_LOCAL"
	NotTarget            Reason = "NOT_TARGET"
	RateLimit            Reason = "RATE_LIMIT"
	WindowFull           Reason = "WINDOW_FULL"
	LinkFull             Reason = "LINK_FULL"
	RemoteWindowFull     Reason = "REMOTE_WINDOW_FULL"
	RemoteSilent         Reason = "REMOTE_SILENT"
	RemoteDenied         Reason = "REMOTE_DENIED"
	InDoubt              Reason = "IN_DOUBT"
	Committing           Reason = "COMMITTING"
	GroupOwned           Reason = "GROUP_OWNED"
	ExclusiveOwned       Reason = "EXCLUSIVE_OWNED"
	NotStarted           Reason = "NOT_STARTED"
	InTransaction        Reason = "IN_TRANSACTION"
	MemoryFull           Reason = "MEMORY_FULL"
	StoreFull            Reason = "STORE_FULL"
	DuplicateMessage     Reason = "DUPLICATE"
	Expired              Reason = "EXPIRED"
	Poisoned             Reason = "POISONED"
	BridgeDown           Reason = "BRIDGE_DOWN"
	FrameTooBig          Reason = "FRAME_TOO_BIG"
	FrameMemory          Reason = "FRAME_MEMORY"
	FrameSlow            Reason = "FRAME_SLOW"
	DuplexMirror         Reason = "DUPLEX_MIRROR"
	SelfConnect          Reason = "SELF_CONNECT"
	NoConsumer           Reason = "NO_CONSUMER"
	InFlight             Reason = "IN_FLIGHT"
	NotDurable           Reason = "NOT_DURABLE"
	NotEncodable         Reason = "NOT_ENCODABLE"
	LoginRefused         Reason = "LOGIN_REFUSED"
	AccessDenied         Reason = "DENIED"
	Unsubscribed         Reason = "UNSUBSCRIBED"
	OfflineTimeout       Reason = "OFFLINE_TIMEOUT"
	ConnectionGone       Reason = "CONNECTION_GONE"
	TempUnseen           Reason = "TEMP_UNSEEN"
	ReceiptsUnread       Reason = "RECEIPTS_UNREAD"
	Unreadable           Reason = "CORRUPT"
	TransactionLimit     Reason = "TRANSACTION_LIMIT"
	Purged               Reason = "PURGED"
	DestinationRemoved   Reason = "DESTINATION_REMOVED"
	AdvisoryTopic        Reason = "ADVISORY_TOPIC"
	NotVirtual           Reason = "NOT_VIRTUAL"
	NotScheduled         Reason = "NOT_SCHEDULED"
	PendingLimit         Reason = "PENDING_LIMIT"
)

// Class is the class of an exception that says no more and no less than r. It is Hopwire's own:
// ActiveMQ peers are told in Java's classes.
func (r Reason) Class() string { return "hopwire." + string(r) }
