package message

import (
	"slices"
	"strings"

	"hopwire/openwire/primitive"
)

// View is a message as one receiver sees it: the message and the copy's redelivery count. It
// answers what a selector asks.
type View struct {
	*Message
	Redelivery int32
}

// Field gives the value of a header or property by its name in a selector, nil for none.
func (v View) Field(name string) any {
	if len(name) > 3 && name[:3] == "JMS" {
		if value, ok := v.header(name); ok {
			return value
		}
	}
	value, _ := v.Property(name)
	if c, ok := value.(primitive.Char); ok {
		return string(rune(c))
	}
	return value
}

// Property gives a property's value, as the primitive maps of the wire have it.
func (m *Message) Property(name string) (value any, ok bool) {
	if m.Properties == nil {
		return nil, false
	}
	return primitive.LookupProperty(m.Properties, name)
}

// Property is a name with a value of a primitive type: nil, bool, int8 to int64, float32, float64,
// string or []byte.
type Property struct {
	Name  string
	Value any
}

// SetProperties replaces or adds properties in a message that nobody else has seen yet. Properties
// that do not parse are replaced.
func (m *Message) SetProperties(set ...Property) error {
	props, err := primitive.ParseMap(m.Properties)
	if m.Properties == nil || err != nil {
		props = primitive.Map{}
	}
	for _, e := range set {
		props.Set(e.Name, e.Value)
	}
	raw, err := primitive.AppendMap(nil, props)
	if err != nil {
		return Errorf(Limit, "properties of %s cannot be written: %w", m.ID, err)
	}
	m.Properties = raw
	return nil
}

// RemoveProperty takes a property out of a message that nobody else has seen yet.
func (m *Message) RemoveProperty(name string) error {
	props, err := primitive.ParseMap(m.Properties)
	if err != nil {
		return Errorf(Corrupt, "properties of %s cannot be read: %w", m.ID, err)
	}
	props = slices.DeleteFunc(props, func(e primitive.Entry) bool { return e.Key == name })
	if len(props) == 0 {
		m.Properties = nil
		return nil
	}
	raw, err := primitive.AppendMap(nil, props)
	if err != nil {
		return Errorf(Limit, "properties of %s cannot be written: %w", m.ID, err)
	}
	m.Properties = raw
	return nil
}

// SetMap makes the message a map message with these entries; none is the empty map.
func (m *Message) SetMap(entries []Property) error {
	m.Body, m.Content = MapBody, nil
	if len(entries) == 0 {
		return nil
	}
	body := make(primitive.Map, 0, len(entries))
	for _, e := range entries {
		body = append(body, primitive.Entry{Key: e.Name, Value: e.Value})
	}
	raw, err := primitive.AppendMap(nil, body)
	if err != nil {
		return Errorf(Limit, "the map of %s cannot be written: %w", m.ID, err)
	}
	m.Content = raw
	return nil
}

func (v View) header(name string) (any, bool) {
	m := v.Message
	switch name {
	case "JMSDestination":
		if !m.OriginalDestination.IsZero() {
			return m.OriginalDestination.String(), true
		}
		return m.Destination.String(), true
	case "JMSReplyTo":
		return text(m.ReplyTo.String()), true
	case "JMSType":
		return text(m.Type), true
	case "JMSDeliveryMode":
		if m.Persistent {
			return "PERSISTENT", true
		}
		return "NON_PERSISTENT", true
	case "JMSPriority":
		return int32(m.Priority), true
	case "JMSMessageID":
		return m.ID.String(), true
	case "JMSTimestamp":
		return m.Timestamp, true
	case "JMSCorrelationID":
		return text(m.CorrelationID), true
	case "JMSExpiration":
		return m.Expiration, true
	case "JMSRedelivered":
		return v.Redelivery > 0, true
	}
	return v.extension(name)
}

func (v View) extension(name string) (any, bool) {
	m := v.Message
	switch name {
	case "JMSXDeliveryCount":
		return v.Redelivery + 1, true
	case "JMSXGroupID":
		return text(m.GroupID), true
	case "JMSXGroupSeq":
		return m.GroupSequence, true
	case "JMSXGroupFirstForConsumer":
		return m.GroupFirst, true
	case "JMSXUserID":
		return text(m.UserID), true
	case "JMSXProducerTXID":
		if !m.OriginalTransaction.IsZero() {
			return m.OriginalTransaction.String(), true
		}
		if !m.Transaction.IsZero() {
			return m.Transaction.String(), true
		}
		return nil, true
	case "JMSActiveMQBrokerInTime":
		return m.BrokerInTime, true
	case "JMSActiveMQBrokerOutTime":
		return m.BrokerOutTime, true
	case "JMSActiveMQBrokerPath":
		path := make([]string, len(m.BrokerPath))
		for i, b := range m.BrokerPath {
			path[i] = string(b)
		}
		return text(strings.Join(path, ",")), true
	}
	return nil, false
}

// text is nil for an absent string: a selector tells it from an empty one by IS NULL.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}
