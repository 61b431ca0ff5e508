package openwire

import (
	"fmt"

	"hopwire/openwire/primitive"
)

// Body returns the content uncompressed, at most limit bytes of it; content that was not
// compressed is returned as it is. Nil is a message without a body.
func (m *Message) Body(limit int64) ([]byte, error) {
	switch {
	case !m.Compressed:
		return m.Content, nil
	case m.Type == TypeBytesMessage:
		return primitive.InflateBytes(m.Content, limit)
	}
	return primitive.Inflate(m.Content, limit)
}

// Compress compresses the content if there is any and it is not compressed yet.
func (m *Message) Compress() {
	if m.Compressed || m.Content == nil {
		return
	}
	m.Compressed = true
	if m.Type == TypeBytesMessage {
		m.Content = primitive.DeflateBytes(m.Content)
	} else {
		m.Content = primitive.Deflate(m.Content)
	}
}

// body is Body of a message that must have type t.
func (m *Message) body(t byte, limit int64) ([]byte, error) {
	if m.Type != t {
		return nil, fmt.Errorf("a %s is no %s", typeNames[m.Type], typeNames[t])
	}
	return m.Body(limit)
}

// Text returns the text of a text message, inflated to at most limit bytes; null text is "".
func (m *Message) Text(limit int64) (string, error) {
	b, err := m.body(TypeTextMessage, limit)
	if err != nil {
		return "", err
	}
	return primitive.Text(b)
}

// Map returns the body of a map message, inflated to at most limit bytes.
func (m *Message) Map(limit int64) (primitive.Map, error) {
	b, err := m.body(TypeMapMessage, limit)
	if err != nil {
		return nil, err
	}
	return primitive.ParseMap(b)
}

// Stream returns the body of a stream message, inflated to at most limit bytes.
func (m *Message) Stream(limit int64) (primitive.List, error) {
	b, err := m.body(TypeStreamMessage, limit)
	if err != nil {
		return nil, err
	}
	return primitive.ParseStream(b)
}

// Bytes returns the body of a bytes message, inflated to at most limit bytes.
func (m *Message) Bytes(limit int64) ([]byte, error) { return m.body(TypeBytesMessage, limit) }

// Object returns the Java serialization stream of an object message.
func (m *Message) Object(limit int64) ([]byte, error) { return m.body(TypeObjectMessage, limit) }

// SetText makes m a text message.
func (m *Message) SetText(s string) { m.setBody(TypeTextMessage, primitive.AppendText(nil, s)) }

// SetBytes makes m a bytes message that keeps b.
func (m *Message) SetBytes(b []byte) { m.setBody(TypeBytesMessage, b) }

// SetObject makes m an object message that keeps a Java serialization stream.
func (m *Message) SetObject(b []byte) { m.setBody(TypeObjectMessage, b) }

// SetMap makes m a map message; an empty map has no content.
func (m *Message) SetMap(body primitive.Map) error {
	content, err := encodeMap(body)
	if err == nil {
		m.setBody(TypeMapMessage, content)
	}
	return err
}

// SetStream makes m a stream message.
func (m *Message) SetStream(list primitive.List) error {
	content, err := primitive.AppendStream(nil, list)
	if err == nil {
		m.setBody(TypeStreamMessage, content)
	}
	return err
}

// SetBlob makes m a blob message: the body is elsewhere, at url.
func (m *Message) SetBlob(url, mimeType string, deletedByBroker bool) {
	m.setBody(TypeBlobMessage, nil)
	m.RemoteBlobURL, m.MIMEType, m.DeletedByBroker = url, mimeType, deletedByBroker
}

func (m *Message) setBody(t byte, content []byte) {
	m.Type, m.Content, m.Compressed = t, content, false
}

// Properties decodes the JMS properties; nil when there are none.
func (m *Message) Properties() (primitive.Map, error) {
	return primitive.ParseMap(m.MarshalledProperties)
}

// Property decodes one JMS property.
func (m *Message) Property(name string) (value any, ok bool) {
	return primitive.LookupProperty(m.MarshalledProperties, name)
}

// SetProperties replaces the JMS properties.
func (m *Message) SetProperties(p primitive.Map) error {
	raw, err := encodeMap(p)
	if err == nil {
		m.MarshalledProperties = raw
	}
	return err
}

func encodeMap(m primitive.Map) ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	return primitive.AppendMap(nil, m)
}
