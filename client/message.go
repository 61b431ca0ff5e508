package client

import (
	"fmt"
	"math"
	"time"

	"hopwire/openwire"
	"hopwire/openwire/primitive"
)

// inflateLimit bounds in bytes what a compressed body may grow to, as in ActiveMQ 6.3.
const inflateLimit = 100 << 20

// Message is a message to send or one that was received. Send fills in ID, Destination, Persistent,
// Priority, Timestamp and Expiration, as in JMS: what they held is not read. Say them by the
// producer, To, Persistent, NonPersistent, Priority, TTL and NoTimestamp. The same Message may be
// sent again, and so may one that was received.
type Message struct {
	ID            string // JMSMessageID
	Destination   *Destination
	ReplyTo       *Destination
	CorrelationID string
	Type          string // JMSType
	GroupID       string // JMSXGroupID; messages of a group go to one consumer
	GroupSequence int32  // JMSXGroupSeq
	UserID        string // JMSXUserID, filled in by brokers that do so
	Persistent    bool
	Priority      int       // 0 to 9
	Timestamp     time.Time // when it was sent; zero if the sender did not say
	Expiration    time.Time // zero is never
	DeliveryCount int       // JMSXDeliveryCount: 1 at the first delivery

	wire       openwire.Message // type, body and properties
	properties primitive.Map
	changed    bool // properties are not in wire
	delivery   *delivery
}

// NewText makes a text message.
func NewText(text string) *Message {
	m := new(Message)
	m.wire.SetText(text)
	return m
}

// NewBytes makes a bytes message; it keeps b.
func NewBytes(b []byte) *Message {
	m := new(Message)
	m.wire.SetBytes(b)
	return m
}

// NewMap makes a map message. An int becomes an int32, or an int64 where that is too small. An
// error names a value that is of no primitive type.
func NewMap(body primitive.Map) (*Message, error) {
	m := new(Message)
	if err := m.wire.SetMap(sized(body).(primitive.Map)); err != nil {
		return nil, err
	}
	return m, nil
}

// NewStream makes a stream message, of values as NewMap takes them.
func NewStream(body primitive.List) (*Message, error) {
	m := new(Message)
	if err := m.wire.SetStream(sized(body).(primitive.List)); err != nil {
		return nil, err
	}
	return m, nil
}

// NewObject makes an object message of a Java serialization stream; it keeps b.
func NewObject(b []byte) *Message {
	m := new(Message)
	m.wire.SetObject(b)
	return m
}

// NewEmpty makes a message without a body.
func NewEmpty() *Message {
	return &Message{wire: openwire.Message{Type: openwire.TypeMessage}}
}

// Body decodes the body by the message's type: string for text, []byte for bytes and object,
// primitive.Map, primitive.List for stream, nil for none.
func (m *Message) Body() (any, error) {
	switch m.wire.Type {
	case openwire.TypeTextMessage:
		return m.wire.Text(inflateLimit)
	case openwire.TypeBytesMessage:
		return m.wire.Bytes(inflateLimit)
	case openwire.TypeMapMessage:
		return m.wire.Map(inflateLimit)
	case openwire.TypeStreamMessage:
		return m.wire.Stream(inflateLimit)
	case openwire.TypeObjectMessage:
		return m.wire.Object(inflateLimit)
	}
	return nil, nil
}

// Text is the body of a text message; another type is an error.
func (m *Message) Text() (string, error) {
	body, err := m.Body()
	text, ok := body.(string)
	if err == nil && !ok {
		return "", fmt.Errorf("message %s is a %s, not text", m.ID, m.Kind())
	}
	return text, err
}

// Kind is the protocol's name of the message's type, e.g. "ActiveMQTextMessage".
func (m *Message) Kind() string { return openwire.TypeName(m.wire.Type) }

// String is the message in a few words, without what is in it.
func (m *Message) String() string {
	text := m.Kind()
	if m.ID != "" {
		text += " " + m.ID
	}
	if m.Destination != nil {
		text += " of " + FormatDestination(m.Destination)
	}
	return text
}

// OriginalDestination is where the message was sent before a broker put it elsewhere, as into a
// dead letter queue; nil if it was not.
func (m *Message) OriginalDestination() *Destination { return m.wire.OriginalDestination }

// Redelivered tells whether the message may have been delivered before.
func (m *Message) Redelivered() bool { return m.DeliveryCount > 1 }

// Structure is what an advisory message is about, e.g. a *openwire.ConsumerInfo; nil for others.
func (m *Message) Structure() openwire.DataStructure { return m.wire.DataStructure }

// Properties are all properties, in the order of the wire. Their values are nil, bool, int8, int16,
// int32, int64, float32, float64 and string.
func (m *Message) Properties() (primitive.Map, error) {
	if m.changed || m.properties != nil {
		return m.properties, nil
	}
	p, err := m.wire.Properties()
	m.properties = p
	return p, err
}

// Property is one property; ok is false if there is none of the name.
func (m *Message) Property(name string) (value any, ok bool) {
	if m.changed || m.properties != nil {
		return m.properties.Get(name)
	}
	return m.wire.Property(name)
}

// SetProperty sets a property to a value of a type that Properties names, or to an int. Names that
// begin with JMS are fields of Message instead.
func (m *Message) SetProperty(name string, value any) error {
	if _, err := m.Properties(); err != nil {
		return err
	}
	value = sized(value)
	if _, err := primitive.AppendValue(nil, value); err != nil {
		return fmt.Errorf("property %s: %w", name, err)
	}
	m.properties.Set(name, value)
	m.changed = true
	return nil
}

// sized gives a value with each int in it, which the wire does not have, as an int32 or int64. What
// it is given stays as it is.
func sized(value any) any {
	switch v := value.(type) {
	case int:
		if v >= math.MinInt32 && v <= math.MaxInt32 {
			return int32(v)
		}
		return int64(v)
	case primitive.Map:
		out := make(primitive.Map, len(v))
		for i, e := range v {
			out[i] = primitive.Entry{Key: e.Key, Value: sized(e.Value)}
		}
		return out
	case primitive.List:
		out := make(primitive.List, len(v))
		for i, x := range v {
			out[i] = sized(x)
		}
		return out
	}
	return value
}

// Ack acknowledges a received message: in a session of mode IndividualAck this one, of mode
// ClientAck all that the session delivered so far. In other modes it does nothing. The
// acknowledgement is not answered. If the connection was replaced since and the broker has not
// dispatched the message again yet, it will not be delivered again when that happens.
func (m *Message) Ack() error {
	if m.delivery == nil {
		return fmt.Errorf("ack: the message was not received by a consumer")
	}
	k := m.delivery.consumer
	s := k.session
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if k.err != nil {
		return k.err
	}
	switch s.mode {
	case IndividualAck:
		for _, d := range k.delivered {
			if d == m.delivery {
				return k.consumedLocked([]*delivery{d}, openwire.AckIndividual)
			}
		}
		return nil // it was acknowledged, or recovered
	case ClientAck:
		for _, other := range s.consumers {
			if err := other.consumedLocked(other.delivered, openwire.AckStandard); err != nil {
				return err
			}
		}
	case AutoAck, DupsOKAck, Transacted:
	}
	return nil
}

// received makes the program's view of a delivery.
func (d *delivery) received() *Message {
	w := d.message
	m := &Message{
		Destination: d.destination, ReplyTo: w.ReplyTo, CorrelationID: w.CorrelationID,
		Type: w.JMSType, GroupID: w.GroupID, GroupSequence: w.GroupSequence, UserID: w.UserID,
		Persistent: w.Persistent, Priority: int(w.Priority),
		DeliveryCount: int(d.counter) + 1, wire: *w, delivery: d,
	}
	m.ID = formatID(w.MessageID)
	if w.Timestamp != 0 {
		m.Timestamp = time.UnixMilli(w.Timestamp)
	}
	if w.Expiration > 0 {
		m.Expiration = time.UnixMilli(w.Expiration)
	}
	return m
}

// formatID is the text form of a message id.
func formatID(id *openwire.MessageId) string {
	if id == nil {
		return ""
	}
	if id.TextView != "" || id.ProducerID == nil {
		return id.TextView
	}
	p := id.ProducerID
	return fmt.Sprintf("%s:%d:%d:%d", p.ConnectionID, p.SessionID, p.Value, id.ProducerSequenceID)
}
