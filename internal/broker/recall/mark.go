package recall

import (
	"bytes"
	"fmt"
	"strings"

	"hopwire/internal/message"
)

// The properties of retained messages. A producer sets Retain to true; what a later consumer gets
// has Retained instead.
const (
	Retain   = "ActiveMQ.Retain"
	Retained = "ActiveMQ.Retained"
)

var retain = []byte(Retain)

// Marked reports whether a message is marked as retained: by true, or by its text in any case. One
// without the property costs a search of its encoded properties, and no decoding.
func Marked(m *message.Message) bool {
	if !bytes.Contains(m.Properties, retain) {
		return false
	}
	value, ok := m.Property(Retain)
	return ok && strings.EqualFold(fmt.Sprint(value), "true")
}

// Unmark gives a marked message as consumers get it that are there, and as those get it that come
// later: nil when it has no body, which forgets what was retained before.
func Unmark(m *message.Message) (plain, image *message.Message, err error) {
	plain = m.Clone()
	if err := plain.RemoveProperty(Retain); err != nil {
		return nil, nil, err
	}
	if len(m.Content) == 0 {
		return plain, nil, nil
	}
	image = plain.Clone()
	if err := image.SetProperties(message.Property{Name: Retained, Value: true}); err != nil {
		return nil, nil, err
	}
	return plain, image, nil
}
