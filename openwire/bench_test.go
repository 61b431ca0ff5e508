package openwire

import (
	"strings"
	"testing"
)

// The structures of a usual client's traffic: 1 KiB of text, an ack and a response.

func sampleMessage() *Message {
	p := &ProducerId{ConnectionID: "ID:host-36923-1795998230088-1:1", SessionID: 1, Value: 1}
	m := &Message{
		ProducerID:  p,
		Destination: &Destination{Type: TypeQueue, PhysicalName: "ORDERS.IN"},
		MessageID:   &MessageId{ProducerID: p, ProducerSequenceID: 4711},
		Persistent:  true, Priority: 4, Timestamp: 1795998230088,
	}
	m.CommandID, m.ResponseRequired = 4713, true
	m.SetText(strings.Repeat("0123456789abcdef", 64))
	return m
}

func sampleDispatch() *MessageDispatch {
	m := sampleMessage()
	m.BrokerInTime, m.BrokerOutTime = m.Timestamp+1, m.Timestamp+2
	m.MessageID.BrokerSequenceID = 4711
	return &MessageDispatch{Destination: m.Destination, Message: m, ConsumerID: sampleConsumer()}
}

func sampleConsumer() *ConsumerId {
	return &ConsumerId{ConnectionID: "ID:host-36924-1795998230099-1:1", SessionID: 1, Value: 1}
}

func sampleAck() *MessageAck {
	m := sampleMessage()
	return &MessageAck{Destination: m.Destination, ConsumerID: sampleConsumer(),
		AckType: AckStandard, LastMessageID: m.MessageID, MessageCount: 1}
}

var benchFormats = []struct {
	name string
	f    Format
}{
	{"loose", Format{Version: 12}},
	{"tight+cache", Format{Version: 12, Tight: true, Cache: true, CacheSize: 1024}},
	{"loose+cache", Format{Version: 12, Cache: true, CacheSize: 1024}},
	{"tight", Format{Version: 12, Tight: true}},
}

var samples = []struct {
	name string
	x    DataStructure
}{
	{"message", sampleMessage()},
	{"dispatch", sampleDispatch()},
	{"ack", sampleAck()},
	{"response", &Response{CorrelationID: 4713}},
}

func BenchmarkAppend(b *testing.B) {
	for _, f := range benchFormats {
		for _, s := range samples {
			b.Run(f.name+"/"+s.name, func(b *testing.B) {
				e := NewEncoder(f.f)
				buf, _ := e.Append(nil, s.x)
				b.ReportAllocs()
				for b.Loop() {
					buf, _ = e.Append(buf[:0], s.x)
				}
			})
		}
	}
}

// steady returns a decoder that has seen the first frame of x, and the frame that follows.
func steady(f Format, x DataStructure) (*Decoder, []byte) {
	e, d := NewEncoder(f), NewDecoder(f)
	first, err := e.Append(nil, x)
	if err == nil {
		_, err = d.Decode(first[4:])
	}
	if err != nil {
		panic(err)
	}
	next, _ := e.Append(nil, x)
	return d, next[4:]
}

func BenchmarkDecode(b *testing.B) {
	for _, f := range benchFormats {
		for _, s := range samples {
			b.Run(f.name+"/"+s.name, func(b *testing.B) {
				d, frame := steady(f.f, s.x)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := d.Decode(frame); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkDecodeIntoScratch(b *testing.B) {
	for _, f := range benchFormats {
		b.Run(f.name+"/message", func(b *testing.B) {
			d, frame := steady(f.f, sampleMessage())
			var m Message
			b.ReportAllocs()
			for b.Loop() {
				if err := d.DecodeMessage(frame, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(f.name+"/ack", func(b *testing.B) {
			d, frame := steady(f.f, sampleAck())
			var a MessageAck
			b.ReportAllocs()
			for b.Loop() {
				if err := d.DecodeAck(frame, &a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
