package wire

import (
	"testing"

	"hopwire/internal/message"
	"hopwire/openwire"
)

func formats() map[string]openwire.Format {
	return map[string]openwire.Format{
		"loose": {Version: openwire.MaxVersion},
		"tight": {Version: openwire.MaxVersion, Tight: true, Cache: true, CacheSize: 1024},
	}
}

func sample() *message.Message {
	p := message.ProducerID{Connection: "ID:host-1-2-3:1", Session: 1, Value: 1}
	return &message.Message{
		ID: message.MessageID{Producer: p, Sequence: 1}, Producer: p,
		Destination: message.Destination{Kind: message.Queue, Name: "orders.in"},
		Persistent:  true, Priority: 4, Timestamp: 1_700_000_000_000, Body: message.BytesBody,
		Content: make([]byte, 1024), Properties: []byte{0, 0, 0, 0},
		BrokerPath: []message.BrokerID{"ID:a", "ID:b"},
	}
}

func TestAMessageCostsTwoAllocationsInAndNoneOut(t *testing.T) {
	for name, f := range formats() {
		m := sample()
		frame, err := NewEncoder(f).Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		d, e := NewDecoder(f), NewEncoder(f)
		in := func() {
			if _, err := d.Decode(frame[4:]); err != nil {
				t.Fatal(err)
			}
		}
		in()
		if n := testing.AllocsPerRun(100, in); n > 2 {
			t.Errorf("%s: %v allocations in, want 2", name, n)
		}
		buf := make([]byte, 0, 4096)
		to := message.ConsumerID{Connection: "ID:c", Session: 1, Value: 1}
		out := func() {
			if _, err := e.AppendDelivery(buf[:0], to, m.Destination, m, 0, 1); err != nil {
				t.Fatal(err)
			}
			if _, err := e.AppendResponse(buf[:0], 1); err != nil {
				t.Fatal(err)
			}
		}
		out()
		if n := testing.AllocsPerRun(100, out); n > 0 {
			t.Errorf("%s: %v allocations out, want none", name, n)
		}
	}
}

func TestAnAckCostsOneAllocation(t *testing.T) {
	for name, f := range formats() {
		a := &message.MessageAck{
			Destination: sample().Destination, Type: message.StandardAck,
			Consumer: message.ConsumerID{Connection: "ID:c", Session: 1, Value: 1},
			Last:     sample().ID, First: sample().ID, HasFirst: true, HasLast: true, Count: 1,
		}
		frame, err := NewEncoder(f).Append(nil, a)
		if err != nil {
			t.Fatal(err)
		}
		d := NewDecoder(f)
		in := func() {
			if _, err := d.Decode(frame[4:]); err != nil {
				t.Fatal(err)
			}
		}
		in()
		if n := testing.AllocsPerRun(100, in); n > 1 {
			t.Errorf("%s: %v allocations, want 1", name, n)
		}
	}
}

func BenchmarkMessageIn(b *testing.B) {
	for name, f := range formats() {
		b.Run(name, func(b *testing.B) {
			frame, err := NewEncoder(f).Append(nil, sample())
			if err != nil {
				b.Fatal(err)
			}
			d := NewDecoder(f)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Decode(frame[4:]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDeliveryOut(b *testing.B) {
	for name, f := range formats() {
		b.Run(name, func(b *testing.B) {
			e, m := NewEncoder(f), sample()
			buf := make([]byte, 0, 4096)
			to := message.ConsumerID{Connection: "ID:c", Session: 1, Value: 1}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.AppendDelivery(buf[:0], to, m.Destination, m, 0, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
