package openwire

// MaxVersion is the newest version of the protocol that the codec speaks; 1 is the oldest.
const MaxVersion = 12

// DataStructure is anything with a type id: a command, an id, a destination. Only pointers to the
// structs of this package implement what an Encoder accepts.
type DataStructure interface {
	TypeID() byte
}

// Command is a structure that is sent by itself and may be answered.
type Command interface {
	DataStructure
	Base() *BaseCommand
}

// TransactionId is a *LocalTransactionId or a *XATransactionId.
type TransactionId interface {
	DataStructure
	transactionID()
}

func (*LocalTransactionId) transactionID() {}
func (*XATransactionId) transactionID()    {}

// BaseCommand is what all commands start with.
type BaseCommand struct {
	CommandID        int32 // chosen by the sender; a Response repeats it as CorrelationID
	ResponseRequired bool
}

// Base returns the command's id and flag for reading and writing.
func (b *BaseCommand) Base() *BaseCommand { return b }

// EmptyStrings has a bit for each string of a structure that is "" but not null.
type EmptyStrings uint8

// structure is what the generated code gives every struct.
type structure interface {
	DataStructure
	encode(*Encoder)
	decode(*Decoder)
	isNil() bool
}

// TypeNull is the type id of NullCommand.
const TypeNull byte = 0

// NullCommand is the frame of type 0 without a body; nothing sends it in practice.
type NullCommand struct{}

// TypeID is TypeNull.
func (*NullCommand) TypeID() byte { return TypeNull }

func (*NullCommand) encode(*Encoder) {}
func (*NullCommand) decode(*Decoder) {}
func (x *NullCommand) isNil() bool   { return x == nil }

// Message ack types, MessageAck.AckType.
const (
	AckDelivered   byte = 0 // received, not yet consumed
	AckPoison      byte = 1 // given up after too many redeliveries
	AckStandard    byte = 2 // consumed, all up to LastMessageID
	AckRedelivered byte = 3 // rolled back in the client, comes again
	AckIndividual  byte = 4 // consumed, this one alone
	AckUnmatched   byte = 5 // inside a broker only: failed a durable subscription's selector
	AckExpired     byte = 6 // expired in the client
)

// Transaction operations, TransactionInfo.Type.
const (
	TransactionBegin          byte = 0
	TransactionPrepare        byte = 1
	TransactionCommitOnePhase byte = 2
	TransactionCommitTwoPhase byte = 3
	TransactionRollback       byte = 4
	TransactionRecover        byte = 5
	TransactionForget         byte = 6
	TransactionEnd            byte = 7
)

// Destination operations, DestinationInfo.OperationType.
const (
	DestinationAdd    byte = 0
	DestinationRemove byte = 1
)

func isMessage(t byte) bool     { return t >= TypeMessage && t <= TypeBlobMessage }
func isDestination(t byte) bool { return t >= TypeQueue && t <= TypeTempTopic }

// TypeName is the protocol's name of a type id, or "" when there is none.
func TypeName(t byte) string { return typeNames[t] }
