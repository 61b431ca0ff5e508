package wire

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestTheHubWaitsForWhatClosedSessionsWrite(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(nil)
		ctx, cancel := context.WithCancel(context.Background()) // that of the test is of no bubble
		defer cancel()
		if err := b.s.cfg.Hub.Flushed(ctx); err != nil {
			t.Errorf("with no session closed: %v", err)
		}
		b.on(func() {
			b.s.Respond(1)
			b.s.Close("enough")
		})
		flushed := make(chan error, 1)
		go func() { flushed <- b.s.cfg.Hub.Flushed(ctx) }()
		synctest.Wait()
		if len(flushed) > 0 {
			t.Error("it did not wait for a peer that does not read")
		}
		f.listen()
		if err := <-flushed; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := f.kinds(); got != "Response" {
			t.Errorf("the peer heard %q by then", got)
		}
	})
}
