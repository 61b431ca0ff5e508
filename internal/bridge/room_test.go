package bridge

import (
	"testing"

	"hopwire/internal/message"
)

func TestALinkWhosePeerDoesNotReadTakesNoMore(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{HopwireLevel: 1})
	w.consume(1, "Q")
	w.home.take()
	sub := w.home.sub(t, "queue://Q")
	if v := sub.Filter.Gate(0); v.Outcome != message.Deliver {
		t.Fatalf("at first: %+v", v)
	}
	w.link.full = true
	if v := sub.Filter.Gate(0); v.Reason != message.LinkFull || v.Wake != message.WakeEvent {
		t.Errorf("a full link: %+v", v)
	}
	w.deliver("queue://Q", 1, text("Q", 1))
	w.link.full = false
	w.link.onRoom()
	same(t, "when there is room", w.home.take(), []string{"ready queue://Q"})
}
