package message

import (
	"crypto/sha256"
	"encoding/binary"
)

// ReceiptKey is the identity of one arrival: 128 bits over message id, wire destination, original
// destination and generation. Two arrivals of one message have the same key when one is a resend
// of the other, and different keys when the message had been here before and came back.
type ReceiptKey [16]byte

// Receipt gives the key under which the broker self takes m, addressed to wire, as one that came
// with path: the generation is how often self is in the path.
func Receipt(m *Message, wire Destination, path []BrokerID, self BrokerID) ReceiptKey {
	buf := make([]byte, 0, 256)
	text := func(s string) {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	text(string(m.ID.Producer.Connection))
	buf = binary.AppendVarint(buf, m.ID.Producer.Session)
	buf = binary.AppendVarint(buf, m.ID.Producer.Value)
	buf = binary.AppendVarint(buf, m.ID.Sequence)
	text(m.ID.Text)
	buf = append(buf, byte(wire.Kind))
	text(wire.Name)
	buf = append(buf, byte(m.OriginalDestination.Kind))
	text(m.OriginalDestination.Name)
	buf = binary.AppendUvarint(buf, uint64(Visits(path, self)))
	sum := sha256.Sum256(buf)
	return ReceiptKey(sum[:16])
}
