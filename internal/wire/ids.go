package wire

import (
	"strings"

	"hopwire/internal/message"
	"hopwire/openwire"
)

// What the wire can say and a plain text cannot. Neither value can come from the wire: it is no
// UTF-8.
const (
	// missingBroker is a null in a broker path.
	missingBroker message.BrokerID = "\xff"
	// emptyConnection is a connection id that is empty; "" is null.
	emptyConnection message.ConnectionID = "\xff"
)

// textIn gives the connection id that ids of all kinds begin with.
func textIn(value string, empty openwire.EmptyStrings) message.ConnectionID {
	if empty != 0 {
		return emptyConnection
	}
	return message.ConnectionID(value)
}

// textOut is the reverse. Connection ids are the first string of every id.
func textOut(c message.ConnectionID) (value string, empty openwire.EmptyStrings) {
	if c == emptyConnection {
		return "", openwire.EmptyConnectionIdValue
	}
	return string(c), 0
}

func brokerIn(x *openwire.BrokerId) message.BrokerID {
	if x == nil {
		return ""
	}
	return message.BrokerID(x.Value)
}

func brokerOut(id message.BrokerID) *openwire.BrokerId {
	if id == "" {
		return nil
	}
	return &openwire.BrokerId{Value: string(id)}
}

func pathIn(xs []*openwire.BrokerId) []message.BrokerID {
	if xs == nil {
		return nil
	}
	out := make([]message.BrokerID, len(xs))
	for i, x := range xs {
		out[i] = missingBroker
		if x != nil {
			out[i] = message.BrokerID(x.Value)
		}
	}
	return out
}

func pathOut(ids []message.BrokerID) []*openwire.BrokerId { return new(scratchPath).out(ids) }

// emptyPath tells no path from one of length 0.
func emptyPath(path []message.BrokerID) []*openwire.BrokerId {
	if path == nil {
		return nil
	}
	return []*openwire.BrokerId{}
}

func connectionIn(x *openwire.ConnectionId) message.ConnectionID {
	if x == nil {
		return ""
	}
	return textIn(x.Value, x.Empty)
}

func connectionOut(id message.ConnectionID) *openwire.ConnectionId {
	if id == "" {
		return nil
	}
	x := &openwire.ConnectionId{}
	x.Value, x.Empty = textOut(id)
	return x
}

func sessionIn(x *openwire.SessionId) message.SessionID {
	if x == nil {
		return message.SessionID{}
	}
	return message.SessionID{Connection: textIn(x.ConnectionID, x.Empty), Value: x.Value}
}

func sessionOut(id message.SessionID) *openwire.SessionId {
	if id == (message.SessionID{}) {
		return nil
	}
	x := &openwire.SessionId{Value: id.Value}
	x.ConnectionID, x.Empty = textOut(id.Connection)
	return x
}

func consumerIn(x *openwire.ConsumerId) message.ConsumerID {
	if x == nil {
		return message.ConsumerID{}
	}
	return message.ConsumerID{
		Connection: textIn(x.ConnectionID, x.Empty),
		Session:    x.SessionID, Value: x.Value,
	}
}

func consumerOut(id message.ConsumerID) *openwire.ConsumerId {
	return consumerTo(new(openwire.ConsumerId), id, false)
}

func consumersIn(xs []*openwire.ConsumerId) []message.ConsumerID {
	if xs == nil {
		return nil
	}
	out := make([]message.ConsumerID, len(xs))
	for i, x := range xs {
		out[i] = consumerIn(x)
	}
	return out
}

func consumersOut(ids []message.ConsumerID) []*openwire.ConsumerId {
	if ids == nil {
		return nil
	}
	out := make([]*openwire.ConsumerId, len(ids))
	for i, id := range ids {
		out[i] = consumerOut(id)
	}
	return out
}

func producerIn(x *openwire.ProducerId) message.ProducerID {
	if x == nil {
		return message.ProducerID{}
	}
	return message.ProducerID{
		Connection: textIn(x.ConnectionID, x.Empty),
		Session:    x.SessionID, Value: x.Value,
	}
}

func producerOut(id message.ProducerID) *openwire.ProducerId {
	return producerTo(new(openwire.ProducerId), id, false)
}

func messageIDIn(x *openwire.MessageId) message.MessageID {
	if x == nil {
		return message.MessageID{}
	}
	return message.MessageID{
		Producer: producerIn(x.ProducerID), Sequence: x.ProducerSequenceID,
		Text: x.TextView,
	}
}

// messageIDOut writes a foreign id, which has only a text, with a producer of nulls, as Java does.
func messageIDOut(id message.MessageID) *openwire.MessageId {
	if id == (message.MessageID{}) {
		return nil
	}
	x := &openwire.MessageId{
		TextView: id.Text, ProducerID: producerOut(id.Producer),
		ProducerSequenceID: id.Sequence,
	}
	if x.ProducerID == nil {
		x.ProducerID = &openwire.ProducerId{}
	}
	return x
}

func transactionIn(x openwire.TransactionId) message.TransactionID {
	switch x := x.(type) {
	case *openwire.LocalTransactionId:
		return message.TransactionID{Connection: connectionIn(x.ConnectionID), Value: x.Value}
	case *openwire.XATransactionId:
		return message.TransactionID{
			XA: true, FormatID: x.FormatID,
			Global: string(x.GlobalTransactionID), Branch: string(x.BranchQualifier),
		}
	}
	return message.TransactionID{}
}

func transactionOut(id message.TransactionID) openwire.TransactionId {
	switch {
	case id.XA:
		return &openwire.XATransactionId{
			FormatID:            id.FormatID,
			GlobalTransactionID: []byte(id.Global), BranchQualifier: []byte(id.Branch),
		}
	case id.IsZero():
		return nil
	}
	return &openwire.LocalTransactionId{Value: id.Value, ConnectionID: connectionOut(id.Connection)}
}

// destinationIn cuts client options off the name, as ActiveMQ does. A composite's members may each
// carry some.
func destinationIn(x *openwire.Destination) (d message.Destination, options string) {
	if x == nil {
		return message.Destination{}, ""
	}
	d = message.Destination{Kind: kindIn(x.Type), Name: x.PhysicalName}
	if strings.IndexByte(d.Name, '?') < 0 {
		return d, ""
	}
	d.Name, options = cutOptions(d.Name)
	return d, options
}

func cutOptions(text string) (name, options string) {
	if !strings.Contains(text, ",") {
		name, options, _ = strings.Cut(text, "?")
		return name, options
	}
	var names []string
	for part := range strings.SplitSeq(text, ",") {
		n, o, found := strings.Cut(part, "?")
		names = append(names, n)
		if found && options == "" {
			options = o
		}
	}
	return strings.Join(names, ","), options
}

func plainIn(x *openwire.Destination) message.Destination {
	d, _ := destinationIn(x)
	return d
}

func destinationOut(d message.Destination) *openwire.Destination {
	if d.IsZero() {
		return nil
	}
	return &openwire.Destination{Type: kindOut(d.Kind), PhysicalName: d.Name}
}

func kindIn(t byte) message.Kind { return message.Kind(t-openwire.TypeQueue) + message.Queue }

func kindOut(k message.Kind) byte { return byte(k-message.Queue) + openwire.TypeQueue }

func throwableIn(x *openwire.Throwable) *message.Throwable {
	if x == nil {
		return nil
	}
	return &message.Throwable{Class: x.Class, Message: x.Message, Cause: throwableIn(x.Cause)}
}

func throwableOut(x *message.Throwable) *openwire.Throwable {
	if x == nil {
		return nil
	}
	return &openwire.Throwable{Class: x.Class, Message: x.Message, Cause: throwableOut(x.Cause)}
}
