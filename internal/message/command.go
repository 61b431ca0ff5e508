package message

// Header is common to all commands: the sender's running number, and whether it wants an answer.
type Header struct {
	CommandID        int32
	ResponseRequired bool
}

// Head gives the header itself, so that every command has it by embedding.
func (h *Header) Head() *Header { return h }

// Command is anything that travels between a client or peer and a broker: a *Message or one of
// the *…Info structs of this package.
type Command interface{ Head() *Header }

// ConnectionInfo opens a connection (OpenWire 3).
type ConnectionInfo struct {
	Header
	ID                    ConnectionID
	ClientID              string
	UserName              string
	Password              string
	ClientIP              string
	BrokerPath            []BrokerID
	BrokerMasterConnector bool
	Manageable            bool
	ClientMaster          bool
	FaultTolerant         bool
	FailoverReconnect     bool
}

// SessionInfo opens a session (OpenWire 4).
type SessionInfo struct {
	Header
	ID SessionID
}

// ConsumerInfo opens a consumer (OpenWire 5).
type ConsumerInfo struct {
	Header
	ID                         ConsumerID
	Destination                Destination
	DestinationOptions         string // what followed "?" in the name
	Selector                   string
	ClientID                   string
	SubscriptionName           string // not empty: a durable subscription
	PrefetchSize               int32
	MaximumPendingMessageLimit int32
	Priority                   int8
	Browser                    bool
	DispatchAsync              bool
	NoLocal                    bool
	Exclusive                  bool
	Retroactive                bool
	OptimizedAcknowledge       bool
	NoRangeAcks                bool
	NetworkSubscription        bool
	BrokerPath                 []BrokerID
	NetworkConsumerPath        []ConsumerID
	Filter                     *NetworkFilter // additionalPredicate
}

// NetworkFilter is the condition a bridge attaches to its subscription (OpenWire 91).
type NetworkFilter struct {
	Broker      BrokerID
	MessageTTL  int32
	ConsumerTTL int32
}

// ProducerInfo opens a producer (OpenWire 6). A zero Destination is an anonymous producer.
type ProducerInfo struct {
	Header
	ID            ProducerID
	Destination   Destination
	BrokerPath    []BrokerID
	DispatchAsync bool
	WindowSize    int32 // bytes; 0 is no window
}

// DestinationOp is what a DestinationInfo asks for.
type DestinationOp uint8

// The operations of DestinationInfo.
const (
	AddDestination    DestinationOp = 0
	RemoveDestination DestinationOp = 1
)

// DestinationInfo creates or removes a destination (OpenWire 8).
type DestinationInfo struct {
	Header
	Connection  ConnectionID
	Destination Destination
	Op          DestinationOp
	Timeout     int64 // ms
	BrokerPath  []BrokerID
}

// RemoveInfo closes what its Object names (OpenWire 12). LastDelivered is the broker sequence of
// the last message the application saw, or one of the LastDelivered constants.
type RemoveInfo struct {
	Header
	Object        any // ConnectionID, SessionID, ConsumerID or ProducerID
	LastDelivered int64
}

// Special values of RemoveInfo.LastDelivered.
const (
	LastDeliveredUnset   int64 = -1 // nothing was delivered
	LastDeliveredUnknown int64 = -2
)

// RemoveSubscriptionInfo deletes a durable subscription (OpenWire 9).
type RemoveSubscriptionInfo struct {
	Header
	Connection       ConnectionID
	ClientID         string
	SubscriptionName string
}

// TransactionType is what a TransactionInfo asks for.
type TransactionType uint8

// The types of TransactionInfo.
const (
	Begin TransactionType = iota
	Prepare
	CommitOnePhase
	CommitTwoPhase
	Rollback
	Recover
	Forget
	End
)

// TransactionInfo drives a transaction (OpenWire 7).
type TransactionInfo struct {
	Header
	Connection ConnectionID
	ID         TransactionID
	Type       TransactionType
}

// AckType is the kind of a MessageAck.
type AckType uint8

// The types of MessageAck; facts in OpenWire's terms.
const (
	DeliveredAck   AckType = 0 // reached the client: more may be sent, nothing is removed
	PoisonAck      AckType = 1 // cannot be consumed: to the dead letter queue
	StandardAck    AckType = 2 // consumed, first to last in dispatch order
	RedeliveredAck AckType = 3 // the client will redeliver it itself
	IndividualAck  AckType = 4 // only the last is consumed
	UnmatchedAck   AckType = 5 // never on the wire
	ExpiredAck     AckType = 6 // expired in the client
)

// MessageAck acknowledges deliveries (OpenWire 22). A zero First means "from the start".
type MessageAck struct {
	Header
	Destination Destination
	Transaction TransactionID
	Consumer    ConsumerID
	Type        AckType
	First       MessageID
	Last        MessageID
	HasFirst    bool
	HasLast     bool
	Count       int32
	PoisonCause *Throwable
}

// MessagePull asks for one message (OpenWire 20). Timeout in ms: -1 answers at once, 0 waits.
type MessagePull struct {
	Header
	Consumer      ConsumerID
	Destination   Destination
	Timeout       int64
	CorrelationID string
	MessageID     MessageID
}

// MessageDispatch delivers a message to a consumer (OpenWire 21). A nil Message ends a browse or
// answers a pull that found nothing.
type MessageDispatch struct {
	Header
	Consumer          ConsumerID
	Destination       Destination
	Message           *Message
	RedeliveryCounter int32
}

// ProducerAck gives a producer window back (OpenWire 19).
type ProducerAck struct {
	Header
	Producer ProducerID
	Size     int32 // bytes
}

// ConsumerControl changes or closes a consumer (OpenWire 17).
type ConsumerControl struct {
	Header
	Consumer    ConsumerID
	Destination Destination
	Close       bool
	Prefetch    int32
	Flush       bool
	Start       bool
	Stop        bool
}

// ConnectionControl steers a connection (OpenWire 18).
type ConnectionControl struct {
	Header
	Close               bool
	Exit                bool
	FaultTolerant       bool
	Resume              bool
	Suspend             bool
	ConnectedBrokers    string
	ReconnectTo         string
	RebalanceConnection bool
	Token               []byte
}

// ConnectionError reports an error nobody asked an answer for (OpenWire 16).
type ConnectionError struct {
	Header
	Exception  *Throwable
	Connection ConnectionID
}

// ControlCommand carries a text for the broker (OpenWire 14); Hopwire peers talk through it.
type ControlCommand struct {
	Header
	Command string
}

// FlushCommand asks for nothing but an answer (OpenWire 15).
type FlushCommand struct{ Header }

// KeepAliveInfo shows that the sender lives (OpenWire 10).
type KeepAliveInfo struct{ Header }

// ShutdownInfo announces the end of a connection (OpenWire 11).
type ShutdownInfo struct{ Header }

// BrokerInfo introduces a broker (OpenWire 2).
type BrokerInfo struct {
	Header
	ID                BrokerID
	Name              string
	URL               string
	NetworkConnection bool
	Duplex            bool
	Slave             bool
	Master            bool
	FaultTolerant     bool // faultTolerantConfiguration
	NetworkProperties string
	UploadURL         string
	ConnectionID      int64
	Peers             []*BrokerInfo
}

// BrokerSubscriptionInfo tells a peer the durable subscriptions (OpenWire 92, version 12).
type BrokerSubscriptionInfo struct {
	Header
	Broker        BrokerID
	Name          string
	Subscriptions []*ConsumerInfo
}

// Response answers a command (OpenWire 30 to 34). With Exception it refuses; Data, Array and
// Result are for the few commands that have an answer of their own.
type Response struct {
	Header
	Correlation int32
	Exception   *Throwable
	Data        Command
	Array       []TransactionID // RECOVER
	Result      int32           // PREPARE
	Shape       ResponseShape
}

// ResponseShape says which of a Response's answers is meant.
type ResponseShape uint8

// The shapes of a Response.
const (
	PlainResponse ResponseShape = iota
	DataResponse
	DataArrayResponse
	IntegerResponse
)

// Unknown is a command the broker has no use for; it is only answered when asked (Type is its
// OpenWire type id).
type Unknown struct {
	Header
	Type uint8
}

// Throwable is an exception as it travels: a Java class name and a text.
type Throwable struct {
	Class   string
	Message string
	Cause   *Throwable
}

func (t *Throwable) Error() string {
	if t.Message == "" {
		return t.Class
	}
	return t.Message
}
