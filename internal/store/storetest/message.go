package storetest

import (
	"math/rand/v2"

	"hopwire/internal/message"
)

// Message makes a random message in which every field that a store keeps may be set. Large allows
// bodies of some kilobytes. Properties and Content have no spare capacity.
func Message(r *rand.Rand, large bool) *message.Message {
	g := gen{r}
	m := &message.Message{
		ID: message.MessageID{Producer: g.producer(), Sequence: g.number(),
			Text: g.rarely("ID:foreign")},
		Producer:            g.producer(),
		Destination:         g.dest(),
		OriginalDestination: g.dest(),
		Transaction:         g.transaction(),
		OriginalTransaction: g.transaction(),
		ReplyTo:             g.dest(),
		GroupID:             g.rarely("group"),
		CorrelationID:       g.rarely("corr"),
		Type:                g.rarely("type"),
		UserID:              g.rarely("user"),
		Timestamp:           expireFrom + r.Int64N(1000),
		Arrival:             g.number(),
		BrokerInTime:        g.number(),
		BrokerOutTime:       g.number(),
		BrokerSequence:      g.number(),
		RedeliveryCounter:   r.Int32N(3),
		GroupSequence:       int32(g.number()),
		Priority:            uint8(r.IntN(10)),
		Body:                message.Body(23 + r.IntN(7)),
		Persistent:          g.yes(),
		Compressed:          g.yes(),
		GroupFirst:          g.yes(),
		ReceivedByDFBridge:  g.yes(),
		Droppable:           g.yes(),
		Content:             g.bytes(200),
		Properties:          g.bytes(50),
		BrokerPath:          g.path(),
		Cluster:             g.path(),
	}
	m.Empty = uint16(len(m.Properties) % 4)
	if g.yes() {
		m.Expiration = expireFrom + r.Int64N(expireSpan)
	}
	if r.IntN(10) == 0 {
		m.TargetConsumer = message.ConsumerID{Connection: "ID:c", Session: 1, Value: g.number()}
	}
	if r.IntN(20) == 0 {
		m.Blob = &message.Blob{URL: "http://x/", MIMEType: g.rarely("text/plain"),
			DeletedByBroker: g.yes()}
	}
	if large && r.IntN(4) == 0 {
		m.Content = g.bytes(12000)
	}
	return m
}

type gen struct{ r *rand.Rand }

func (g gen) yes() bool { return g.r.IntN(2) == 0 }

func (g gen) number() int64 {
	switch g.r.IntN(4) {
	case 0:
		return 0
	case 1:
		return g.r.Int64N(1000)
	case 2:
		return -g.r.Int64N(1 << 40)
	}
	return g.r.Int64()
}

func (g gen) rarely(s string) string {
	if g.r.IntN(4) > 0 {
		return ""
	}
	return s
}

func (g gen) bytes(most int) []byte {
	if g.r.IntN(5) == 0 {
		return nil
	}
	b := make([]byte, g.r.IntN(most))
	for i := range b {
		b[i] = byte(g.r.Uint32())
	}
	return b
}

func (g gen) producer() message.ProducerID {
	return message.ProducerID{Connection: "ID:host-41234-1-1:1", Session: g.number(), Value: 1}
}

func (g gen) dest() message.Destination {
	if g.yes() {
		return message.Destination{}
	}
	return message.Destination{Kind: message.Kind(1 + g.r.IntN(4)), Name: "some.name"}
}

func (g gen) transaction() message.TransactionID {
	switch g.r.IntN(6) {
	case 0:
		return message.TransactionID{Connection: "ID:t", Value: g.number()}
	case 1:
		return message.TransactionID{XA: true, FormatID: int32(g.number()), Global: "g\x00\xff",
			Branch: "b"}
	}
	return message.TransactionID{}
}

func (g gen) path() []message.BrokerID {
	var p []message.BrokerID
	for range g.r.IntN(3) {
		p = append(p, message.BrokerID("ID:broker"))
	}
	return p
}
