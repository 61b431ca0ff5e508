package wire

import (
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
