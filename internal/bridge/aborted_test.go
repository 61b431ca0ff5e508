package bridge

import (
	"slices"
	"testing"

	"hopwire/internal/message"
)

// A peer may take the bridge's consumer of advisories for a slow one.
func TestAnAbortedConsumerOfAdvisoriesIsOpenedAnew(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "Q")
	w.link.take()
	for n := range 3 {
		old := w.c.bridge.advisories.id
		w.dial.receive(&message.ConsumerControl{Consumer: old, Close: true})
		opened, removed := message.ConsumerID{}, message.ConsumerID{}
		for _, c := range w.link.take() {
			switch c := c.(type) {
			case *message.ConsumerInfo:
				if opened = c.ID; removed != (message.ConsumerID{}) {
					t.Error("advisories may be missed")
				}
			case *message.RemoveInfo:
				removed, _ = c.Object.(message.ConsumerID)
			}
		}
		if opened != w.c.bridge.advisories.id || opened == old || opened == w.c.bridge.probe.id ||
			removed != old {
			t.Fatalf("opened %v, removed %v", opened, removed)
		}
		// Whoever was there is told of again; what was meant for the old one is of no use.
		w.consume(1, "Q")
		w.consume(int64(2+n), "Q")
	}
	w.home.sub(t, "queue://Q")
	w.state(Running)
	if counts := w.c.Status().Counts; !slices.Contains(counts, Count{message.SlowConsumer, 3}) {
		t.Errorf("counts %v", counts)
	}
	for _, other := range []*message.ConsumerControl{{Consumer: w.c.bridge.advisories.id, Prefetch: 5},
		{Consumer: message.ConsumerID{Connection: "x"}, Close: true}} {
		w.dial.receive(other)
	}
	if sent := w.link.take(); slices.ContainsFunc(sent, func(c message.Command) bool {
		_, opens := c.(*message.ConsumerInfo)
		return opens
	}) {
		t.Errorf("it is opened anew: %v", sent)
	}
}
