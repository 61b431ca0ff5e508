package message

// reasonText is how a reason is told.
type reasonText struct {
	words    string // why messages wait, for a list: in few words
	releases string // what would change it; "" for what is only counted
}

var reasonTexts = map[Reason]reasonText{
	NoConsumer:      {"no consumer", "a consumer, here or where a bridge takes them"},
	NoDemand:        {"no demand from peers", ""},
	DemandUnseen:    {"a peer's demand is not seen", ""},
	DemandRefused:   {"this broker takes no subscription of a bridge", ""},
	Excluded:        {"excluded by a connector", ""},
	NotIncluded:     {"not included by a connector", ""},
	SelectorNoMatch: {"no selector takes them", "a consumer whose selector takes the message"},
	NoLocal:         {"not for the consumer that sent them", "a consumer on another connection"},
	NotTarget:       {"meant for another consumer", "the consumer it is meant for"},
	WindowFull: {
		"the consumers' prefetch is used up",
		"an acknowledgement by the consumer, or a larger prefetch",
	},
	RemoteWindowFull: {"no room at a peer", "room at the peer"},
	RemoteDenied: {
		"a peer refuses the bridge's user",
		"rights for the bridge's user at the peer; it is tried again",
	},
	RemoteSilent: {"a peer does not answer", "an answer of the peer"},
	BridgeDown:   {"a bridge is down", "the bridge, which is trying to connect"},
	AlreadyVisited: {
		"they were at that peer before",
		"nothing: the peer is in the message's broker path",
	},
	ReplayOff: {
		"they were at that peer, or on the way there, before",
		"replayWhenNoConsumers, or a consumer here",
	},
	ReplayDelay:          {"replayDelay is not over", "time (replayDelay)"},
	LocalConsumerPresent: {"a local consumer is there", "the local consumer's end"},
	TTLMessage: {
		"messageTTL is used up",
		"a higher messageTTL or networkTTL of the connector",
	},
	TTLConsumer:     {"consumerTTL is used up", ""},
	RateLimit:       {"rate limit", "time (rateLimit, rateDuration)"},
	ConnectionLimit: {"connections were refused, as there were too many", ""},
	FrameTooBig:     {"too large for a peer", "a larger maxFrameSize at the peer"},
	FrameMemory:     {"large frames wait for memory while they are read", ""},
	FrameSlow:       {"a large frame hardly arrived, and others waited", ""},
	NotEncodable:    {"cannot be written for a peer", "a consumer here, or a newer peer"},
	InDoubt: {
		"in doubt: a peer may have them",
		"the peer, when its bridge is back, or the end of inDoubtTimeout",
	},
	InTransaction: {
		"a transaction is open, or prepared",
		"the commit or rollback of the transaction",
	},
	Expired:    {"expired", "the next search for expired messages (expireMessagesPeriod)"},
	MemoryFull: {"sends wait for memory", "consumers, or a larger limit"},
	StoreFull:  {"sends wait for the store", "consumers, or disk space"},
	TempFull: {
		"sends wait for memory, and the spool is full",
		"consumers, disk space, or a larger tempUsage",
	},
	SelfConnect: {"a bridge leads back here", ""},
	SameName:    {"two brokers of the network have one name", ""},
	LinkFull: {
		"the client or peer does not read what waits for it",
		"the client or peer, when it reads what waits for it",
	},
	Committing: {"on the way to the disk", "the store's answer"},
	InFlight: {
		"delivered and not acknowledged",
		"its acknowledgement, or the end of that consumer",
	},
	GroupOwned: {
		"another consumer has their message group",
		"the end of the consumer that has the message group, or the group's",
	},
	ExclusiveOwned: {"an exclusive consumer has the queue", "the end of the exclusive consumer"},
	NotStarted: {
		"the queue waits for more consumers, or its time",
		"more consumers, or time (timeBeforeDispatchStarts)",
	},
	DuplicateMessage: {"here before", ""},
	Poisoned:         {"given up by a consumer", ""},
	DuplexMirror:     {"two bridges carry the same direction", ""},
	NotDurable:       {"not durable at a peer", ""},
	LoginRefused:     {"a connection was refused", ""},
	AccessDenied: {
		"a user has not the right to",
		"the right, in the authorizationMap of this broker",
	},
	Unsubscribed:   {"their durable subscription is gone", ""},
	OfflineTimeout: {"their durable subscription's consumer stayed away", ""},
	ConnectionGone: {"their client's connection is gone", ""},
	Unreadable: {"they cannot be read: the disk damaged them",
		"hopwire repair FILE, with the broker stopped; hopwire purge removes them, and nothing else"},
	TransactionLimit:   {"too many transactions, or sends in one", ""},
	Purged:             {"they were purged by hand", ""},
	DestinationRemoved: {"it was removed, by a client or by hand", ""},
	SlowConsumer:       {"a slow consumer was aborted", ""},
	Inactive:           {"nobody used their destination", ""},
	AdvisoryTopic:      {"sent to an advisory topic", ""},
	NotVirtual:         {"virtual destinations are not supported", ""},
	PendingLimit:       {"more than the limit waited for a slow consumer", ""},
	NotScheduled:       {"scheduled delivery is not supported", ""},
	ReceiptsUnread: {
		"sends wait until it is read what came before",
		"the disk, when it can be read: it is tried each second",
	},
	TempUnseen: {
		"replies wait until a bridge tells of it",
		"the bridge that tells of the destination; soon it is refused",
	},
}

// Words tells in few words why messages wait, or what became of them; "" of no reason that is
// known.
func (r Reason) Words() string { return reasonTexts[r].words }

// Releases tells what would let messages go on that wait for this reason; "" when none wait.
func (r Reason) Releases() string { return reasonTexts[r].releases }
