package load

import (
	"encoding/binary"
	"fmt"

	"hopwire/openwire"
)

// format is what both sides use: loose without a cache is the cheapest for any broker.
var format = openwire.Format{Version: openwire.MaxVersion}

// names are the ids of one client, and the encoder of its commands.
type names struct {
	connection string
	dest       *openwire.Destination
	producer   *openwire.ProducerId
	consumer   *openwire.ConsumerId
	encoder    *openwire.Encoder
	message    openwire.Message    // that the producer sends, again and again
	ack        openwire.MessageAck // that the consumer sends
}

func newNames(connection string, dest *openwire.Destination) names {
	n := names{connection: connection, dest: dest,
		producer: &openwire.ProducerId{ConnectionID: connection, Value: 1, SessionID: 1},
		consumer: &openwire.ConsumerId{ConnectionID: connection, SessionID: 1, Value: 1},
		encoder:  openwire.NewEncoder(format),
	}
	n.ack = openwire.MessageAck{Destination: dest, ConsumerID: n.consumer,
		AckType: openwire.AckStandard, FirstMessageID: &openwire.MessageId{},
		LastMessageID: &openwire.MessageId{}}
	return n
}

func (n *names) connectionID() *openwire.ConnectionId {
	return &openwire.ConnectionId{Value: n.connection}
}

// hello is the first frame of a connection.
func hello() ([]byte, error) {
	h, err := openwire.NewHello(openwire.MaxVersion, openwire.HelloOptions{
		TCPNoDelayEnabled: true, MaxFrameSize: maxFrame})
	if err != nil {
		return nil, err
	}
	return h.AppendFrame(nil)
}

// open are the commands that begin the conversation.
func (n *names) open() ([]byte, error) {
	b, err := n.encoder.Append(nil, &openwire.ConnectionInfo{
		BaseCommand:  openwire.BaseCommand{CommandID: 1, ResponseRequired: true},
		ConnectionID: n.connectionID(), ClientID: n.connection, ClientMaster: true})
	if err != nil {
		return nil, err
	}
	return n.encoder.Append(b, &openwire.SessionInfo{
		BaseCommand: openwire.BaseCommand{CommandID: 2},
		SessionID:   &openwire.SessionId{ConnectionID: n.connection, Value: 1}})
}

func (n *names) producerInfo() ([]byte, error) {
	return n.encoder.Append(nil, &openwire.ProducerInfo{
		BaseCommand: openwire.BaseCommand{CommandID: 3, ResponseRequired: true},
		ProducerID:  n.producer, Destination: n.dest, DispatchAsync: true})
}

func (n *names) consumerInfo(prefetch int) ([]byte, error) {
	return n.encoder.Append(nil, &openwire.ConsumerInfo{
		BaseCommand: openwire.BaseCommand{CommandID: 3, ResponseRequired: true},
		ConsumerID:  n.consumer, Destination: n.dest, PrefetchSize: int32(prefetch),
		DispatchAsync: true})
}

// prepare makes the message that the producer sends: a body of size bytes that begins with a stamp.
func (n *names) prepare(size int, persistent bool) {
	n.message = openwire.Message{Type: openwire.TypeBytesMessage, ProducerID: n.producer,
		Destination: n.dest, MessageID: &openwire.MessageId{ProducerID: n.producer},
		Persistent: persistent, Priority: 4, Content: make([]byte, size)}
}

// next appends the message with a number and a stamp (ns since the epoch).
func (n *names) next(b []byte, sequence, stamp int64, confirm bool) ([]byte, error) {
	m := &n.message
	m.CommandID, m.ResponseRequired = int32(sequence+10), confirm
	m.MessageID.ProducerSequenceID = sequence
	m.Timestamp = stamp / 1e6
	binary.BigEndian.PutUint64(m.Content, uint64(stamp))
	return n.encoder.Append(b, m)
}

// acknowledge appends a standard acknowledgement of count messages, first to last.
func (n *names) acknowledge(b []byte, number int, first, last *openwire.MessageId,
	count int) ([]byte, error) {
	n.ack.CommandID = int32(number)
	*n.ack.FirstMessageID, *n.ack.LastMessageID = *first, *last
	n.ack.MessageCount = int32(count)
	return n.encoder.Append(b, &n.ack)
}

// dispatches reads the dispatches of one consumer. What stands before the message is the same in
// each of them, so it is measured once.
type dispatches struct {
	decoder *openwire.Decoder
	at      int // of the byte that says whether there is a message
	message openwire.Message
}

// redeliveryBytes stand behind the message in a dispatch.
const redeliveryBytes = 4

func (n *names) dispatches() (*dispatches, error) {
	empty, err := openwire.NewEncoder(format).Append(nil, &openwire.MessageDispatch{
		ConsumerID: n.consumer, Destination: n.dest})
	if err != nil {
		return nil, err
	}
	const sizeBytes, absentBytes = 4, 1
	return &dispatches{decoder: openwire.NewDecoder(format),
		at: len(empty) - sizeBytes - absentBytes - redeliveryBytes}, nil
}

// read gives the id of the dispatched message, valid until the next call, and the stamp in its
// body; no id when there is no message, at the end of a browse.
func (d *dispatches) read(frame []byte) (id *openwire.MessageId, stamp int64, err error) {
	if len(frame) < d.at+1+redeliveryBytes {
		return nil, 0, fmt.Errorf("a dispatch of %d bytes ends within a field", len(frame))
	}
	if frame[d.at] == 0 {
		return nil, 0, nil
	}
	err = d.decoder.DecodeMessage(frame[d.at+1:len(frame)-redeliveryBytes], &d.message)
	if err != nil {
		return nil, 0, err
	}
	if body := d.message.Content; len(body) >= 8 {
		stamp = int64(binary.BigEndian.Uint64(body))
	}
	return d.message.MessageID, stamp, nil
}
