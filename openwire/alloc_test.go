package openwire

import (
	"runtime"
	"testing"
)

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestSteadyTrafficAllocatesNothing(t *testing.T) {
	for _, f := range benchFormats {
		for _, s := range samples {
			e := NewEncoder(f.f)
			buf, err := e.Append(nil, s.x)
			if err != nil {
				t.Fatal(err)
			}
			if n := testing.AllocsPerRun(100, func() { buf, _ = e.Append(buf[:0], s.x) }); n > 0 {
				t.Errorf("%s: appending a %s: %v allocations", f.name, s.name, n)
			}
		}
		d, frame := steady(f.f, sampleMessage())
		var m Message
		if n := testing.AllocsPerRun(100, func() {
			if err := d.DecodeMessage(frame, &m); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: decoding a message: %v allocations", f.name, n)
		}
		d, frame = steady(f.f, sampleAck())
		var a MessageAck
		if n := testing.AllocsPerRun(100, func() {
			if err := d.DecodeAck(frame, &a); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: decoding an ack: %v allocations", f.name, n)
		}
	}
}

func TestForwardedMessagesDecodeWithoutAllocation(t *testing.T) {
	m := sampleMessage()
	m.BrokerPath = []*BrokerId{{Value: "ID:a"}, {Value: "ID:b"}}
	m.OriginalTransactionID = &LocalTransactionId{Value: 7,
		ConnectionID: &ConnectionId{Value: "ID:c"}}
	for _, f := range benchFormats {
		d, frame := steady(f.f, m)
		var into Message
		if n := testing.AllocsPerRun(100, func() { _ = d.DecodeMessage(frame, &into) }); n > 0 {
			t.Errorf("%s: %v allocations", f.name, n)
		}
		if len(into.BrokerPath) != 2 || into.BrokerPath[1].Value != "ID:b" {
			t.Errorf("%s: broker path %v", f.name, into.BrokerPath)
		}
	}
}
