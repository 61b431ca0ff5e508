package wire

import (
	"testing"
	"testing/synctest"
	"time"

	"hopwire/internal/transport"
	"hopwire/openwire"
)

func TestACongestedSessionIsNotReadUntilItIsNoMore(t *testing.T) {
	congested := true
	set := func(c *Config, _ *transport.Options) { c.Congested = func() bool { return congested } }
	inBubble(t, false, set, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		sent := 0
		go func() {
			for sent < 100 {
				if _, err := b.far.Write(f.frame(&openwire.ControlCommand{Command: "x"})); err != nil {
					return
				}
				sent++
			}
		}()
		time.Sleep(time.Hour) // far beyond the silence that ends a session
		if sent > 2*postingCredit || len(b.down) > 0 {
			t.Errorf("%d batches were read from a congested peer; ends: %v", sent, b.down)
		}
		b.loop.Post(func() { congested = false })
		synctest.Wait()
		if sent != 100 {
			t.Errorf("%d batches were read when the congestion was over", sent)
		}
		congested = true
		b.far.Close()
	})
}
