package wire

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"hopwire/internal/message"
	"hopwire/openwire"
)

func TestAPeerThatDoesNotReadHasNoRoomUntilHalfOfItIsFree(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(func(o *openwire.HelloOptions) { o.MaxInactivityDuration = 0 })
		told, sent := 0, uint64(0)
		m := &message.Message{Content: make([]byte, 100_000),
			Destination: message.Destination{Kind: message.Queue, Name: "q"}}
		b.on(func() {
			b.s.OnRoom(func() {
				if !b.s.Room() {
					t.Error("told of room, and there is none")
				}
				told++
			})
			for b.s.Room() {
				b.s.Deliver(message.ConsumerID{Connection: "c"}, m.Destination, m, 0)
				sent++
			}
		})
		synctest.Wait()
		if n := int(sent) * len(m.Content); n < MessageBudget-len(m.Content) ||
			n > MessageBudget+len(m.Content) ||
			b.s.Written() > 4 {
			t.Errorf("%d bytes were sent, %d of %d messages written", n, b.s.Written(), sent)
		}
		b.on(func() {
			if b.s.Room() {
				t.Error("there is room again, and nobody read")
			}
		})
		f.listen()
		synctest.Wait()
		if told != 1 || b.s.Written() != sent || len(b.down) != 0 {
			t.Errorf("told %d times, %d of %d written, ended %v", told, b.s.Written(), sent, b.down)
		}
	})
}

// What is given back at the end of a session is told as redelivered when Written counts it. So what
// it does not count must never arrive, however long the writer still has to send.
func TestACutEndsDeliveriesThatAreNotWritten(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(nil)
		m := &message.Message{Content: make([]byte, 100_000),
			Destination: message.Destination{Kind: message.Queue, Name: "q"}}
		deliver := func() { b.s.Deliver(message.ConsumerID{Connection: "c"}, m.Destination, m, 0) }
		b.on(func() {
			for range 10 {
				deliver()
			}
		})
		synctest.Wait() // some are encoded, and nobody reads
		var n uint64
		b.on(func() {
			deliver() // of the same turn
			b.s.Cut()
			n = b.s.Written()
			b.s.Send(&message.ConnectionError{Exception: &message.Throwable{Class: "x"}})
			b.s.Close("enough")
		})
		f.listen()
		synctest.Wait()
		want := strings.Repeat("MessageDispatch ", int(n)) + "ConnectionError"
		if got := f.kinds(); got != want || n == 0 || n == 10 {
			t.Errorf("%d are written; the peer heard %q", n, got)
		}
		b.on(func() {
			if b.s.Written() != n || b.s.unsent[messages].Load() != 0 {
				t.Errorf("%d are written later, %d bytes wait", b.s.Written(),
					b.s.unsent[messages].Load())
			}
		})
	})
}

// TestALargeDeliveryIsWrittenFromWhereItIs bounds what is allocated for one beside the message.
func TestALargeDeliveryIsWrittenFromWhereItIs(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		b.hello(nil)
		const size, times = 8 << 20, 4
		m := &message.Message{Content: make([]byte, size), Body: message.BytesBody,
			Destination: message.Destination{Kind: message.Queue, Name: "q"}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b.on(func() {
			for range times {
				b.s.Deliver(message.ConsumerID{Connection: "c"}, m.Destination, m, 0)
			}
		})
		if _, err := io.CopyN(io.Discard, b.far, size*times); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > size/2 {
			t.Errorf("%d deliveries of %d bytes allocated %d", times, size, n)
		}
		b.swallow()
	})
}
