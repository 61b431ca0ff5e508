package bridge

import (
	"slices"
	"testing"

	"hopwire/internal/message"
)

func TestTheUsualLifeOfALinkIsNoRefusal(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{HopwireLevel: 1})
	for n, change := range []func(*message.ConsumerInfo){
		func(c *message.ConsumerInfo) { c.Browser = true },
		func(c *message.ConsumerInfo) { c.BrokerPath = []message.BrokerID{w.home.info.ID} },
		func(c *message.ConsumerInfo) { c.BrokerPath = []message.BrokerID{"ID:x", "ID:y"} },
	} {
		c := consumer(int64(n)+1, "Q")
		change(c)
		w.advise("Consumer.Queue.Q", c)
	}
	w.dial.receive(&message.MessageDispatch{Message: text("Q", 1),
		Consumer: message.ConsumerID{Connection: "gone"}})
	s := w.c.Status()
	want := []Count{{message.NotTarget, 2}, {message.TTLConsumer, 2}}
	if len(s.Counts) != 0 || !slices.Equal(s.Passed, want) {
		t.Errorf("refused %v, passed over %v", s.Counts, s.Passed)
	}
	w.dial.receive(text("Q", 1))
	if s := w.c.Status(); !slices.Equal(s.Counts, []Count{{message.NotTarget, 1}}) {
		t.Errorf("a message over a link that is not duplex: %v", s.Counts)
	}
}
