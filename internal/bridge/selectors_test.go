package bridge

import (
	"fmt"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// behind advises that a bridge's subscription at the peer, number n, stands for consumers on
// brokers further away that select.
func (w *world) behind(n int64, path []message.BrokerID, selectors ...string) {
	c := consumer(n, "Q")
	c.NetworkSubscription, c.BrokerPath = true, path
	m := advisoryMessage("Consumer.Queue.Q", c)
	s := network.JoinSelectors(selectors)
	if err := m.SetProperties(s.Properties()...); err != nil {
		panic(err)
	}
	w.dial.receive(&message.MessageDispatch{Consumer: w.c.bridge.advisories.id,
		Destination: m.Destination, Message: m})
	w.env.settle()
}

func colored(color string, path ...message.BrokerID) candidate {
	m := text("Q", 1)
	m.CorrelationID, m.BrokerPath = color, path
	return candidate{m: m}
}

func TestABridgesSubscriptionStandsForTheSelectorsBehindIt(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ConsumerTTL, o.MessageTTL = -1, -1 })
	w.connect(Hello{HopwireLevel: 1})
	w.behind(1, []message.BrokerID{"ID:netC"}, "color=red")
	w.home.take()
	f := w.home.sub(t, "queue://Q").Filter
	check := func(step string, red, blue message.Reason, told ...string) {
		t.Helper()
		same(t, step, w.home.take(), told)
		for color, want := range map[string]message.Reason{"red": red, "blue": blue} {
			if got := f.Verdict(colored(color)); got.Reason != want {
				t.Errorf("%s: %s: %+v, want %q", step, color, got, want)
			}
		}
	}
	const no = message.SelectorNoMatch
	check("as it began", "", no)
	path := []message.BrokerID{"ID:netC"}
	w.behind(1, path, "color=red", "color=blue")
	check("wider", "", "", "wake queue://Q", `selectors queue://Q "color=blue" "color=red"`)
	w.behind(1, path, "color=blue")
	check("narrower", no, "", `selectors queue://Q "color=blue"`)
	w.behind(1, path, "color=blue")
	check("the same again", no, "")
	w.behind(1, path, "color=blue", "JMSRedelivered=true")
	check("one that the peer may change", "", "", "wake queue://Q", "selectors queue://Q ")
	w.behind(1, path, "color=red")
	check("narrow again", "", no, `selectors queue://Q "color=red"`)
	w.behind(1, path)
	check("anything", "", "", "wake queue://Q", "selectors queue://Q ")
}

func TestActiveMQTellsTheSelectorOfOneConsumerOnly(t *testing.T) {
	for _, c := range []struct{ advisory, info string }{{"color=red", ""}, {"", "color=red"}} {
		w := newWorld(t, func(o *Options) { o.ConsumerTTL = -1 })
		w.connect(Hello{})
		x := consumer(1, "Q")
		x.NetworkSubscription, x.BrokerPath = true, []message.BrokerID{"ID:netC"}
		x.Selector = c.info // when it does not fold
		w.advise("Consumer.Queue.Q", x)
		w.behind(1, x.BrokerPath, c.advisory) // what it never says
		v := w.home.sub(t, "queue://Q").Filter.Verdict(colored("blue"))
		if believed := v.Reason == message.SelectorNoMatch; believed != (c.info != "") {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

func TestHopwirePeersAreToldWhatTheConsumersSelect(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	selects := func(n int64, selector string) {
		c := consumer(n, "Q")
		c.Selector = selector
		w.advise("Consumer.Queue.Q", c)
	}
	selects(1, "color=red")
	if s := w.home.sub(t, "queue://Q").Selectors; s != `"color=red"` {
		t.Errorf("at first: %q", s)
	}
	w.home.take()
	selects(2, "color=blue")
	selects(3, "color=blue")
	w.consume(4, "Q")
	w.unconsume(4)
	w.unconsume(2)
	w.unconsume(3)
	same(t, "told", w.home.take(), []string{
		"wake queue://Q", `selectors queue://Q "color=blue" "color=red"`,
		"wake queue://Q", "selectors queue://Q ",
		`selectors queue://Q "color=blue" "color=red"`,
		`selectors queue://Q "color=red"`})
	w.advise("Consumer.Topic.T", consumer(5, "topic://T"))
	if s := w.home.sub(t, "topic://T").Selectors; s != "" {
		t.Errorf("a topic: %q", s)
	}
}

func TestManySelectorsAreToldTogether(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	const many = 500
	for n := range int64(many) {
		c := consumer(n, "Q")
		c.Selector = fmt.Sprintf("color=a shade of grey that has the number %d", n)
		w.advise("Consumer.Queue.Q", c)
	}
	w.env.advance(tellStep * 40_000)
	told := 0
	for _, line := range w.home.take() {
		if line[0] == 's' && line != "subscribe queue://Q" {
			told++
		}
	}
	d := w.c.bridge.table.demands[0]
	if texts, err := d.told.Split(); len(texts) != many || err != nil || told > many/10 {
		t.Errorf("told %d times, in the end of %d selectors, %v", told, len(texts), err)
	}
}

func TestNothingGoesTheWayOfABrokerWhereItWas(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.ConsumerTTL, o.MessageTTL, o.ConduitNetworkQueueSubscriptions = -1, -1, true
	})
	w.connect(Hello{HopwireLevel: 1})
	w.behind(1, []message.BrokerID{"ID:netD", "ID:netC"})
	w.home.take()
	f := w.home.sub(t, "queue://Q").Filter
	for _, c := range []struct {
		path   []message.BrokerID
		replay bool
		want   message.Reason
	}{
		{nil, false, ""},
		{[]message.BrokerID{"ID:netX"}, false, ""},
		{[]message.BrokerID{"ID:netX", "ID:netC"}, false, message.ReplayOff},
		{[]message.BrokerID{"ID:netD"}, false, message.ReplayOff},
		{[]message.BrokerID{"ID:netC"}, true, ""},
	} {
		m := colored("red", c.path...)
		m.replay.WhenNoConsumers = c.replay
		if got := f.Verdict(m); got.Reason != c.want {
			t.Errorf("path %v, replay %v: %+v", c.path, c.replay, got)
		}
	}
	w.consume(2, "Q")
	same(t, "a consumer on the peer", w.home.take()[:1], []string{"wake queue://Q"})
	f = w.home.sub(t, "queue://Q").Filter
	if got := f.Verdict(colored("red", "ID:netC")); got.Reason != "" {
		t.Errorf("%+v", got)
	}
}
