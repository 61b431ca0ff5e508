package wire

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"hopwire/internal/message"
	"hopwire/internal/transport"
	"hopwire/openwire"
)

func guarded(c *Config, _ *transport.Options) { c.Guarded = true }

func TestHelloThenSilentIsGivenUpAlsoWithoutInactivity(t *testing.T) {
	inBubble(t, false, guarded, func(b *bench) {
		f := b.hello(func(o *openwire.HelloOptions) { o.MaxInactivityDuration = 0 })
		f.listen()
		time.Sleep(29 * time.Second)
		b.on(func() {
			if len(b.down) != 0 {
				t.Errorf("given up too early: %v", b.down)
			}
		})
		time.Sleep(2 * time.Second)
		b.ended("no login within 30s after the hello")
		if !errors.Is(b.down[0], ErrNoLogin) {
			t.Errorf("%v is no ErrNoLogin", b.down[0])
		}
	})
}

func TestALoginStopsTheClock(t *testing.T) {
	inBubble(t, false, guarded, func(b *bench) {
		f := b.hello(func(o *openwire.HelloOptions) { o.MaxInactivityDuration = 0 })
		f.listen()
		b.on(func() { b.s.Trust() })
		time.Sleep(time.Hour)
		b.on(func() {
			if len(b.down) != 0 {
				t.Errorf("given up: %v", b.down)
			}
		})
	})
}

// TestHelloThenNeverReadsCostsLittle floods a session with questions whose answers nobody takes.
func TestHelloThenNeverReadsCostsLittle(t *testing.T) {
	inBubble(t, false, guarded, func(b *bench) {
		f := b.hello(nil)
		ask := f.frame(&openwire.KeepAliveInfo{
			BaseCommand: openwire.BaseCommand{CommandID: 1, ResponseRequired: true},
		})
		most := int64(0)
		for range 10_000 {
			if _, err := b.far.Write(ask); err != nil {
				break
			}
			synctest.Wait()
			b.on(func() { most = max(most, b.s.unsent[answers].Load()) })
		}
		b.ended("which does not read")
		if most > StrangerLimit+1024 {
			t.Errorf("%d bytes waited", most)
		}
	})
}

// TestRefusalsBeforeTheLoginAreCountedWithTheirTexts is the same for answers that repeat what the
// stranger wrote.
func TestRefusalsBeforeTheLoginAreCountedWithTheirTexts(t *testing.T) {
	inBubble(t, false, guarded, func(b *bench) {
		b.hello(nil)
		b.on(func() {
			for range 2 {
				b.s.Send(&message.Response{Exception: &message.Throwable{
					Class: "x", Message: string(make([]byte, StrangerLimit/2)),
				}})
			}
		})
		synctest.Wait()
		b.ended("which does not read")
	})
}

func TestAnswersAfterTheLoginHaveALimitBelowThatOfMessages(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		b.hello(nil)
		b.on(func() {
			body := make([]byte, AnswerLimit/4)
			for range 8 { // a window of large messages may wait
				b.s.Deliver(message.ConsumerID{}, message.Destination{Name: "q"},
					&message.Message{Content: body}, 0)
			}
			if b.s.closed {
				t.Error("a window of messages ended the session")
			}
			for i := range int32(AnswerLimit / itemBytes) {
				b.s.Respond(i)
			}
			if b.s.closed {
				t.Error("ended below the limit")
			}
			b.s.Respond(0)
		})
		b.ended("takes too little")
	})
}

func TestAnItemIsCountedForWhatItCosts(t *testing.T) {
	if size := 2 * unsafe.Sizeof(item{}); itemBytes < size {
		t.Errorf("an item takes %d bytes in a growing list and is counted as %d", size, itemBytes)
	}
	if size := unsafe.Sizeof(message.Message{}); messageBytes < size {
		t.Errorf("a message takes %d bytes and is counted as %d", size, messageBytes)
	}
	if size := unsafe.Sizeof(message.Response{}); commandBytes < size {
		t.Errorf("a response takes %d bytes and is counted as %d", size, commandBytes)
	}
}
