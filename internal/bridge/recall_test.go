package bridge

import (
	"fmt"
	"testing"

	"hopwire/internal/message"
)

func TestARetroactiveConsumerIsRecalledForOnce(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ConsumerTTL = 5 })
	w.connect(Hello{})
	subs := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, s := range w.home.subs {
			got = append(got, fmt.Sprintf("retroactive %t, renewed %t", s.Info.Retroactive, s.Renewed))
		}
		same(t, when, got, want)
	}
	c := consumer(1, "topic://T")
	c.Retroactive, c.BrokerPath = true, []message.BrokerID{"ID:far", "ID:further"}
	w.advise("Consumer.Topic.T", c)
	subs("a retroactive consumer", "retroactive true, renewed false")
	d := consumer(2, "topic://T")
	d.Retroactive = true
	w.advise("Consumer.Topic.T", d) // nearer: the subscription is made anew
	subs("a nearer one", "retroactive false, renewed true")
	w.unconsume(1)
	w.unconsume(2)
	subs("none")
	w.consume(3, "topic://T")
	subs("an ordinary one", "retroactive false, renewed false")
}
