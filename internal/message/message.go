package message

// Body is the kind of a message's body, as its OpenWire type id.
type Body uint8

// The kinds of bodies.
const (
	PlainBody  Body = 23
	BytesBody  Body = 24
	MapBody    Body = 25
	ObjectBody Body = 26
	StreamBody Body = 27
	TextBody   Body = 28
	BlobBody   Body = 29
)

// Message is one message with all that travels with it. After it was handed to the broker it is
// immutable and shared by all its copies; what changes per copy (redelivery count, sequence)
// lives in the copy. A Message owns its bytes: Content and Properties never alias a read buffer.
//
// Field comments name the OpenWire field where ours differs.
type Message struct {
	Header
	ID                  MessageID
	Producer            ProducerID  // who sent it on this connection; a bridge's own after a hop
	Destination         Destination // where it is sent to
	OriginalDestination Destination
	Transaction         TransactionID
	OriginalTransaction TransactionID
	ReplyTo             Destination
	GroupID             string
	CorrelationID       string
	Type                string // JMSType
	UserID              string // JMSXUserID
	Expiration          int64  // ms since the epoch; 0 is never
	Timestamp           int64  // ms since the epoch, the producer's clock
	Arrival             int64
	BrokerInTime        int64 // ms since the epoch, set by each broker on arrival
	BrokerOutTime       int64
	BrokerSequence      int64 // messageId.brokerSequenceId
	RedeliveryCounter   int32
	GroupSequence       int32
	Priority            uint8 // 0 to 9
	Body                Body
	Empty               uint16 // which strings are empty rather than null; the fronts' business
	Persistent          bool
	Compressed          bool
	GroupFirst          bool // jmsxGroupFirstForConsumer
	ReceivedByDFBridge  bool
	Droppable           bool
	Content             []byte // the raw body; nil is null
	Properties          []byte // marshalledProperties, a primitive map; nil is none
	BrokerPath          []BrokerID
	Cluster             []BrokerID
	TargetConsumer      ConsumerID
	Data                Command // dataStructure; advisories only
	Blob                *Blob
}

// Blob is what only a blob message carries.
type Blob struct {
	URL             string
	MIMEType        string
	DeletedByBroker bool
}

// overheadBytes is ActiveMQ's accounting for one message beside its body and properties.
const overheadBytes = 1024

// Size is the message's size for windows and limits, in bytes: 1024 + properties + body.
func (m *Message) Size() int64 {
	return overheadBytes + int64(cap(m.Properties)) + int64(cap(m.Content))
}

// Clone gives a shallow copy: ids and headers of its own, shared body, properties and path.
func (m *Message) Clone() *Message {
	c := *m
	return &c
}

// Visited reports whether the broker is in the message's broker path.
func (m *Message) Visited(id BrokerID) bool { return Visited(m.BrokerPath, id) }

// Expired reports whether the message's time is over at now (ms since the epoch).
func (m *Message) Expired(now int64) bool { return m.Expiration > 0 && now >= m.Expiration }
