package wire

import (
	"hopwire/internal/message"
	"hopwire/openwire"
)

// Bits of Message.Empty beside those of the codec, which are the lower six: structures that are
// there although all in them is null or zero, and a text that is empty and not null.
const (
	codecBits        uint16 = 1<<6 - 1
	nullsProducer    uint16 = 1 << (5 + iota) // producerId
	nullsID                                   // messageId
	nullsIDProducer                           // messageId.producerId
	emptyIDText                               // messageId.textView
	nullsTransaction                          // transactionId
	nullsOriginal                             // originalTransactionId
	nullsTarget                               // targetConsumerId
)

// messageIn makes the house's message of a decoded one. Content and properties are shared with x.
func (d *Decoder) messageIn(x *openwire.Message) *message.Message {
	m := &message.Message{
		Header:              headIn(&x.BaseCommand),
		ID:                  messageIDIn(x.MessageID),
		Producer:            producerIn(x.ProducerID),
		Destination:         d.names.in(x.Destination),
		OriginalDestination: d.names.in(x.OriginalDestination),
		Transaction:         transactionIn(x.TransactionID),
		OriginalTransaction: transactionIn(x.OriginalTransactionID),
		ReplyTo:             d.names.in(x.ReplyTo),
		GroupID:             x.GroupID,
		CorrelationID:       x.CorrelationID,
		Type:                x.JMSType,
		UserID:              x.UserID,
		Expiration:          x.Expiration,
		Timestamp:           x.Timestamp,
		Arrival:             x.Arrival,
		BrokerInTime:        x.BrokerInTime,
		BrokerOutTime:       x.BrokerOutTime,
		RedeliveryCounter:   x.RedeliveryCounter,
		GroupSequence:       x.GroupSequence,
		Priority:            uint8(min(max(x.Priority, 0), 9)),
		Body:                message.Body(x.Type),
		Empty:               uint16(x.Empty),
		Persistent:          x.Persistent,
		Compressed:          x.Compressed,
		GroupFirst:          x.JMSXGroupFirstForConsumer,
		ReceivedByDFBridge:  x.ReceivedByDFBridge,
		Droppable:           x.Droppable,
		Content:             x.Content,
		Properties:          x.MarshalledProperties,
		BrokerPath:          d.paths.in(x.BrokerPath),
		Cluster:             d.clusters.in(x.Cluster),
		TargetConsumer:      consumerIn(x.TargetConsumerID),
	}
	if x.MessageID != nil {
		m.BrokerSequence = x.MessageID.BrokerSequenceID
	}
	if x.DataStructure != nil {
		m.Data = nestedIn(d, x.DataStructure)
	}
	if x.Type == openwire.TypeBlobMessage {
		m.Blob = &message.Blob{
			URL: x.RemoteBlobURL, MIMEType: x.MIMEType,
			DeletedByBroker: x.DeletedByBroker,
		}
	}
	m.Empty |= nulls(x)
	return m
}

// nulls notes the structures that a zero value would lose.
func nulls(x *openwire.Message) (bits uint16) {
	if p := x.ProducerID; p != nil && producerIn(p) == (message.ProducerID{}) {
		bits |= nullsProducer
	}
	if id := x.MessageID; id != nil {
		if messageIDIn(id) == (message.MessageID{}) {
			bits |= nullsID
		}
		if id.Empty&openwire.EmptyMessageIdTextView != 0 {
			bits |= emptyIDText
		}
		if id.ProducerID != nil && producerIn(id.ProducerID) == (message.ProducerID{}) {
			bits |= nullsIDProducer
		}
	}
	if x.TransactionID != nil && transactionIn(x.TransactionID).IsZero() {
		bits |= nullsTransaction
	}
	if x.OriginalTransactionID != nil && transactionIn(x.OriginalTransactionID).IsZero() {
		bits |= nullsOriginal
	}
	if c := x.TargetConsumerID; c != nil && consumerIn(c) == (message.ConsumerID{}) {
		bits |= nullsTarget
	}
	return bits
}

// own copies content and properties of a message out of the read buffer, into one piece. A large
// frame has memory of its own that the message may keep.
func own(m *message.Message, large bool) {
	if large {
		return
	}
	n, p := len(m.Content), len(m.Properties)
	if n+p == 0 {
		if m.Content != nil {
			m.Content = []byte{}
		}
		if m.Properties != nil {
			m.Properties = []byte{}
		}
		return
	}
	both := make([]byte, n+p)
	copy(both, m.Content)
	copy(both[n:], m.Properties)
	if m.Content != nil {
		m.Content = both[:n:n]
	}
	if m.Properties != nil {
		m.Properties = both[n : n+p : n+p]
	}
}

// names remembers the last destinations by the decoder's pointers, which it gives again for equal
// ones.
type names struct {
	last [4]struct {
		x *openwire.Destination
		d message.Destination
	}
	next uint8
}

func (n *names) in(x *openwire.Destination) message.Destination {
	if x == nil {
		return message.Destination{}
	}
	for i := range n.last {
		if n.last[i].x == x {
			return n.last[i].d
		}
	}
	e := &n.last[n.next&3]
	n.next++
	e.x, e.d = x, plainIn(x)
	return e.d
}

// paths does the same for broker paths; they are immutable on both sides.
type paths struct {
	x []*openwire.BrokerId
	d []message.BrokerID
}

func (p *paths) in(x []*openwire.BrokerId) []message.BrokerID {
	if len(x) == 0 {
		return pathIn(x)
	}
	if len(p.x) != len(x) || &p.x[0] != &x[0] {
		p.x, p.d = x, pathIn(x)
	}
	return p.d
}

// scratch is what a message is turned into for the encoder, which keeps nothing of it.
type scratch struct {
	msg               openwire.Message
	id                openwire.MessageId
	producer, origin  openwire.ProducerId
	dest, orig, reply openwire.Destination
	target            openwire.ConsumerId
	tx, otx           scratchTx
	path, cluster     scratchPath
	dispatch          openwire.MessageDispatch
	consumer          openwire.ConsumerId
	dispatchedTo      openwire.Destination
	response          openwire.Response
}

type scratchTx struct {
	local openwire.LocalTransactionId
	conn  openwire.ConnectionId
}

type scratchPath struct {
	ids  []openwire.BrokerId
	ptrs []*openwire.BrokerId
}

func (p *scratchPath) out(path []message.BrokerID) []*openwire.BrokerId {
	if len(path) == 0 {
		return emptyPath(path)
	}
	if cap(p.ids) < len(path) {
		p.ids = make([]openwire.BrokerId, len(path), 2*len(path))
		p.ptrs = make([]*openwire.BrokerId, len(path), 2*len(path))
	}
	p.ids, p.ptrs = p.ids[:len(path)], p.ptrs[:len(path)]
	for i, id := range path {
		p.ids[i], p.ptrs[i] = openwire.BrokerId{}, &p.ids[i]
		switch id {
		case missingBroker:
			p.ptrs[i] = nil
		case "":
			p.ids[i].Empty = openwire.EmptyBrokerIdValue
		default:
			p.ids[i].Value = string(id)
		}
	}
	return p.ptrs
}

func (t *scratchTx) out(id message.TransactionID, nulls bool) openwire.TransactionId {
	switch {
	case id.XA:
		return transactionOut(id)
	case id.IsZero() && !nulls:
		return nil
	}
	t.local = openwire.LocalTransactionId{Value: id.Value}
	if id.Connection != "" {
		t.conn = openwire.ConnectionId{}
		t.conn.Value, t.conn.Empty = textOut(id.Connection)
		t.local.ConnectionID = &t.conn
	}
	return &t.local
}

func destinationTo(x *openwire.Destination, d message.Destination) *openwire.Destination {
	if d.IsZero() {
		return nil
	}
	*x = openwire.Destination{Type: kindOut(d.Kind), PhysicalName: d.Name}
	return x
}

func producerTo(x *openwire.ProducerId, id message.ProducerID, nulls bool) *openwire.ProducerId {
	if id == (message.ProducerID{}) && !nulls {
		return nil
	}
	*x = openwire.ProducerId{SessionID: id.Session, Value: id.Value}
	x.ConnectionID, x.Empty = textOut(id.Connection)
	return x
}

func consumerTo(x *openwire.ConsumerId, id message.ConsumerID, nulls bool) *openwire.ConsumerId {
	if id == (message.ConsumerID{}) && !nulls {
		return nil
	}
	*x = openwire.ConsumerId{SessionID: id.Session, Value: id.Value}
	x.ConnectionID, x.Empty = textOut(id.Connection)
	return x
}

// message fills the scratch message; it holds until the next call.
func (s *scratch) message(m *message.Message) *openwire.Message {
	is := func(bit uint16) bool { return m.Empty&bit != 0 }
	s.msg = openwire.Message{
		BaseCommand:               headOut(&m.Header),
		Type:                      byte(m.Body),
		ProducerID:                producerTo(&s.producer, m.Producer, is(nullsProducer)),
		Destination:               destinationTo(&s.dest, m.Destination),
		TransactionID:             s.tx.out(m.Transaction, is(nullsTransaction)),
		OriginalDestination:       destinationTo(&s.orig, m.OriginalDestination),
		MessageID:                 s.messageID(m),
		OriginalTransactionID:     s.otx.out(m.OriginalTransaction, is(nullsOriginal)),
		GroupID:                   m.GroupID,
		GroupSequence:             m.GroupSequence,
		CorrelationID:             m.CorrelationID,
		Persistent:                m.Persistent,
		Expiration:                m.Expiration,
		Priority:                  int8(m.Priority),
		ReplyTo:                   destinationTo(&s.reply, m.ReplyTo),
		Timestamp:                 m.Timestamp,
		JMSType:                   m.Type,
		Content:                   m.Content,
		MarshalledProperties:      m.Properties,
		TargetConsumerID:          consumerTo(&s.target, m.TargetConsumer, is(nullsTarget)),
		Compressed:                m.Compressed,
		RedeliveryCounter:         m.RedeliveryCounter,
		BrokerPath:                s.path.out(m.BrokerPath),
		Arrival:                   m.Arrival,
		UserID:                    m.UserID,
		ReceivedByDFBridge:        m.ReceivedByDFBridge,
		Droppable:                 m.Droppable,
		Cluster:                   s.cluster.out(m.Cluster),
		BrokerInTime:              m.BrokerInTime,
		BrokerOutTime:             m.BrokerOutTime,
		JMSXGroupFirstForConsumer: m.GroupFirst,
		Empty:                     openwire.EmptyStrings(m.Empty & codecBits),
	}
	if m.Body == 0 {
		s.msg.Type = openwire.TypeMessage
	}
	if m.Data != nil {
		s.msg.DataStructure = nestedOut(m.Data)
	}
	if m.Blob != nil {
		s.msg.RemoteBlobURL, s.msg.MIMEType = m.Blob.URL, m.Blob.MIMEType
		s.msg.DeletedByBroker = m.Blob.DeletedByBroker
	}
	return &s.msg
}

func (s *scratch) messageID(m *message.Message) *openwire.MessageId {
	if m.ID == (message.MessageID{}) && m.BrokerSequence == 0 && m.Empty&nullsID == 0 {
		return nil
	}
	s.id = openwire.MessageId{
		TextView: m.ID.Text, ProducerSequenceID: m.ID.Sequence,
		BrokerSequenceID: m.BrokerSequence,
		ProducerID:       producerTo(&s.origin, m.ID.Producer, m.Empty&nullsIDProducer != 0),
	}
	if m.Empty&emptyIDText != 0 {
		s.id.Empty = openwire.EmptyMessageIdTextView
	}
	return &s.id
}
