package bridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hopwire/internal/message"
)

func (w *world) demands(want ...string) {
	w.t.Helper()
	slices.Sort(want)
	same(w.t, "subscriptions at home", w.home.list(), want)
}

func TestConduitFoldsConsumersOfAQueue(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "Q")
	w.consume(2, "Q")
	w.consume(2, "Q") // told again
	w.demands("queue://Q")
	w.unconsume(1)
	w.demands("queue://Q")
	w.unconsume(77) // never heard of
	w.unconsume(2)
	w.demands()
}

func TestN002WithoutConduitEachConsumerHasItsOwn(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ConduitSubscriptions = false })
	w.connect(Hello{})
	c := consumer(1, "Q")
	c.Selector = "color=red"
	w.advise("Consumer.Queue.Q", c)
	w.consume(2, "Q")
	w.demands("queue://Q", "queue://Q")
	var selectors []string
	for _, s := range w.home.subs {
		selectors = append(selectors, s.Info.Selector)
	}
	slices.Sort(selectors)
	same(t, "selectors", selectors, []string{"", "color=red"})
}

func TestB031TopicsAreAlwaysFolded(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ConduitSubscriptions = false })
	w.connect(Hello{})
	w.consume(1, "topic://T")
	w.consume(2, "topic://T")
	w.demands("topic://T")
}

func TestBridgesOfThePeerStaySeparateOnQueues(t *testing.T) {
	for _, fold := range []bool{false, true} {
		w := newWorld(t, func(o *Options) {
			o.ConsumerTTL = 3
			o.ConduitNetworkQueueSubscriptions = fold
		})
		w.connect(Hello{})
		w.consume(1, "Q")
		c := consumer(2, "Q")
		c.NetworkSubscription, c.BrokerPath = true, []message.BrokerID{"ID:netC"}
		w.advise("Consumer.Queue.Q", c)
		if fold {
			w.demands("queue://Q")
		} else {
			w.demands("queue://Q", "queue://Q")
		}
	}
}

func TestAdmissionOfRemoteConsumers(t *testing.T) {
	for _, c := range []struct {
		name string
		ttl  int32
		edit func(*message.ConsumerInfo)
		want message.Reason
	}{
		{"a client", 1, func(*message.ConsumerInfo) {}, ""},
		{"a browser", 1, func(c *message.ConsumerInfo) { c.Browser = true }, message.NotTarget},
		{"a hop away with TTL 1", 1, func(c *message.ConsumerInfo) {
			c.BrokerPath = []message.BrokerID{"x"}
		}, message.TTLConsumer},
		{"a hop away with TTL 2", 2, func(c *message.ConsumerInfo) {
			c.BrokerPath = []message.BrokerID{"x"}
		}, ""},
		{"far away without limit", -1, func(c *message.ConsumerInfo) {
			c.BrokerPath = []message.BrokerID{"x", "y", "z"}
		}, ""},
		{"our own bridge's", -1, func(c *message.ConsumerInfo) {
			c.BrokerPath = []message.BrokerID{"x", "ID:netA"}
		}, message.AlreadyVisited},
		{"a client with TTL 0", 0, func(*message.ConsumerInfo) {}, ""},
	} {
		o := DefaultOptions(5)
		o.ConsumerTTL = c.ttl
		info := consumer(1, "Q")
		c.edit(info)
		if got := newTable(&o, "ID:netA", netB, nil).admit(info); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestB030WildcardConsumersMeetIncludes(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.DynamicallyIncluded = []message.Destination{queue("wc.foo"), queue("x.*")}
	})
	w.connect(Hello{})
	w.consume(1, "wc.>")
	w.consume(2, "x.1")
	w.consume(3, "other")
	w.demands("queue://wc.foo", "queue://x.1")
	w.unconsume(1)
	w.demands("queue://x.1")
}

func TestCompositeConsumersAreSplit(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "a,b,topic://c")
	w.demands("queue://a", "queue://b", "topic://c")
	w.consume(2, "b")
	w.unconsume(1)
	w.demands("queue://b")
}

func TestN018StaticListIsOneMoreConsumer(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.StaticallyIncluded = []message.Destination{queue("S"), queue("no")}
		o.Excluded = []message.Destination{queue("no")}
	})
	w.connect(Hello{})
	w.demands("queue://S")
	w.consume(1, "S")
	w.demands("queue://S")
	w.unconsume(1)
	w.demands("queue://S")
	if p := w.home.sub(t, "queue://S").Info.BrokerPath; !slices.Equal(p, []message.BrokerID{netB}) {
		t.Errorf("path %v", p)
	}
}

func TestN017StaticBridgeAsksForNoAdvisories(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.StaticBridge = true
		o.StaticallyIncluded = []message.Destination{queue("S")}
	})
	w.connect(Hello{})
	for _, c := range w.link.take() {
		if x, ok := c.(*message.ConsumerInfo); ok {
			t.Errorf("consumer at the peer: %v", x.Destination)
		}
	}
	w.demands("queue://S")
	w.env.advance(time.Minute)
	w.state(Running)
}

func TestNetworkSubscriptionCarriesPathPriorityAndFilter(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.DecreaseNetworkConsumerPriority, o.ConsumerTTL, o.MessageTTL = true, 4, 5
	})
	w.connect(Hello{})
	c := consumer(1, "topic://T")
	c.BrokerPath = []message.BrokerID{"ID:netC"}
	c.NetworkConsumerPath = []message.ConsumerID{{Connection: "origin"}}
	c.SubscriptionName, c.ClientID = "sub", "client"
	w.advise("Consumer.Topic.T", c)
	i := w.home.sub(t, "topic://T").Info
	got := fmt.Sprintf("%v %d %v %v %s %s %+v", i.BrokerPath, i.Priority, i.NetworkConsumerPath,
		i.NetworkSubscription, i.ClientID, i.SubscriptionName, *i.Filter)
	want := "[ID:netC ID:netB] -8 [origin:0:0 ID:client:1:1] true nc1_netB_inbound_netA " +
		"NC-DS_netA_T {Broker:ID:netB MessageTTL:5 ConsumerTTL:4}"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	w.unconsume(1)
	w.demands("topic://T") // a durable outlives its connection
	w.advise("Consumer.Topic.T", &message.RemoveSubscriptionInfo{ClientID: "client",
		SubscriptionName: "sub"})
	w.demands()
}

func TestTopicMessageCrossesOnceForOverlappingDemand(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "topic://a.b")
	w.env.advance(time.Second)
	w.consume(2, "topic://a.>")
	verdicts := func(dest string, arrived time.Duration) string {
		c := candidate{m: text("topic://"+dest, 1), arrived: arrived}
		return string(w.home.sub(t, "topic://a.b").Filter.Verdict(c).Reason) + "/" +
			string(w.home.sub(t, "topic://a.>").Filter.Verdict(c).Reason)
	}
	if got := verdicts("a.b", 5*time.Second); got != "/DUPLICATE" {
		t.Errorf("both have it: %s", got)
	}
	w.unconsume(1)
	w.demands("topic://a.>")
	w.unconsume(2)
	w.demands()
}

func TestDrainingWaitsForAnswers(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.link.take()
	w.consume(1, "Q")
	w.deliver("queue://Q", 1, text("Q", 1))
	w.unconsume(1)
	w.demands("queue://Q")
	gate := w.home.sub(t, "queue://Q").Filter.Gate(w.env.Mono())
	if gate.Reason != message.NoDemand || gate.Wake != message.WakeEvent {
		t.Errorf("gate %+v", gate)
	}
	w.home.take()
	w.answerAll(nil)
	same(t, "home", w.home.take(), []string{"acked queue://Q 1", "unsubscribe queue://Q"})
}

func TestDrainingGivesUpOnASilentActiveMQ(t *testing.T) {
	for _, level := range []int{0, 1} {
		w := newWorld(t, nil)
		w.connect(Hello{HopwireLevel: level})
		w.consume(1, "Q")
		w.deliver("queue://Q", 1, text("Q", 1))
		w.unconsume(1)
		w.home.take()
		w.env.advance(31 * time.Second)
		want := []string{"redelivered queue://Q 1", "unsubscribe queue://Q"}
		if level > 0 {
			want = nil // it answers, or is asked after the next connect
		}
		same(t, fmt.Sprint("level ", level), w.home.take(), want)
	}
}

func TestNewConsumerKeepsADrainingDemand(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "Q")
	w.deliver("queue://Q", 1, text("Q", 1))
	w.unconsume(1)
	w.home.take()
	w.consume(2, "Q")
	same(t, "home", w.home.take(), []string{"wake queue://Q"})
	w.answerAll(nil)
	w.demands("queue://Q")
}

func TestSuppressionOfDemandServedByAnotherBridge(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	o := w.c.opts
	o.Name = "nc2"
	second, _ := w.h.Connector(o)
	first := w.c
	dial, link := w.dial, w.link
	w.consume(1, "topic://T")
	w.c = second
	w.connect(Hello{})
	w.consume(1, "topic://T")
	w.demands("topic://T")
	if got := second.Status().Demands[0].State; got != "suppressed" {
		t.Errorf("second demand is %s", got)
	}
	w.consume(2, "Q")
	w.c, w.dial, w.link = first, dial, link
	w.consume(2, "Q")
	w.demands("queue://Q", "queue://Q", "topic://T") // queues are not suppressed by default
	w.dial.down(nil)
	w.env.settle()
	w.demands("queue://Q", "topic://T")
	if got := second.Status().Demands[0].State; got != "active" {
		t.Errorf("after the first bridge ended the second demand is %s", got)
	}
}

// A folded demand is suppressed only while all of its consumers are served elsewhere.
func TestSuppressionCountsEachConsumer(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.ConsumerTTL = -1 })
	w.connect(Hello{})
	w.consume(1, "topic://T")
	o := w.c.opts
	o.Name = "nc2"
	w.c, _ = w.h.Connector(o)
	w.connect(Hello{})
	via := consumer(50, "topic://T")
	via.NetworkSubscription, via.BrokerPath = true, []message.BrokerID{"ID:netC"}
	via.NetworkConsumerPath = []message.ConsumerID{consumer(1, "").ID}
	w.advise("Consumer.Topic.T", via)
	w.demands("topic://T")
	w.consume(2, "topic://T")
	w.demands("topic://T", "topic://T")
	w.unconsume(2)
	w.demands("topic://T")
	w.unconsume(50)
	w.demands("topic://T")
}

// In a ring without limits, subscriptions that keep the path of a consumer that left would hold
// each other for ever.
func TestPathOfADemandIsThatOfAConsumerThereIs(t *testing.T) {
	for _, kind := range []string{"queue://", "topic://"} {
		w := newWorld(t, func(o *Options) {
			o.ConsumerTTL, o.ConduitNetworkQueueSubscriptions = -1, true
		})
		w.connect(Hello{})
		paths := func() string {
			var out []string
			for _, d := range w.home.subs {
				out = append(out, fmt.Sprint(d.Info.BrokerPath))
			}
			slices.Sort(out)
			return strings.Join(out, " ")
		}
		via := func(n int64, path ...message.BrokerID) {
			c := consumer(n, kind+"T")
			c.NetworkSubscription, c.BrokerPath = len(path) > 0, path
			w.advise("Consumer.x.T", c)
		}
		via(1, "ID:netC", "ID:netD")
		if got := paths(); got != "[ID:netC ID:netD ID:netB]" {
			t.Errorf("one far consumer: %s", got)
		}
		via(2)
		via(3)
		if got := paths(); got != "[ID:netB]" {
			t.Errorf("a near one came: %s", got)
		}
		w.unconsume(2)
		if got := paths(); got != "[ID:netB]" {
			t.Errorf("one of two near ones left: %s", got)
		}
		w.deliver(kind+"T", 1, text(kind+"T", 1))
		w.unconsume(3)
		if got := paths(); got != "[ID:netB] [ID:netC ID:netD ID:netB]" {
			t.Errorf("all near ones left, one answer is outstanding: %s", got)
		}
		w.answerAll(nil)
		if got := paths(); got != "[ID:netC ID:netD ID:netB]" {
			t.Errorf("answered: %s", got)
		}
		if n := len(w.c.Status().Demands); n != 1 {
			t.Errorf("%d demands left", n)
		}
	}
}

// Copies of a topic that waited for room when their last consumer left go out before the end: a
// wider demand may want them, and left them to this one.
func TestDrainingTopicSendsWhatWaited(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "topic://T")
	s := w.home.sub(t, "topic://T")
	w.deliver("topic://T", 1, text("topic://T", 1))
	w.unconsume(1)
	if got := s.Filter.Verdict(candidate{m: text("topic://T", 3)}); got.Reason != message.NoDemand {
		t.Errorf("a new message: %+v", got)
	}
	w.deliver("topic://T", 2, text("topic://T", 2))
	w.home.take()
	w.answerAll(nil)
	same(t, "home", w.home.take(), []string{"acked topic://T 1 2", "unsubscribe topic://T"})
}

func TestShorterWayReplacesALongerOneOfLowerPriority(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.ConsumerTTL, o.DecreaseNetworkConsumerPriority = -1, true
	})
	w.connect(Hello{})
	via := consumer(50, "topic://T")
	via.NetworkSubscription, via.BrokerPath = true, []message.BrokerID{"ID:netC"}
	via.NetworkConsumerPath = []message.ConsumerID{consumer(1, "").ID}
	w.advise("Consumer.Topic.T", via)
	long := w.c
	o := w.c.opts
	o.Name = "nc2"
	w.c, _ = w.h.Connector(o)
	w.connect(Hello{})
	w.consume(1, "topic://T")
	w.demands("topic://T")
	if got := long.Status().Demands[0].State; got != "suppressed" {
		t.Errorf("the longer way is %s", got)
	}
	w.unconsume(1)
	w.demands("topic://T")
	if got := long.Status().Demands[0].State; got != "active" {
		t.Errorf("without the shorter way the longer one is %s", got)
	}
}

// demandModel is the obvious way to keep demand: a set of consumers, asked each time.
type demandModel map[int64]*message.ConsumerInfo

func (m demandModel) want(o *Options) []string {
	r := newRules(o)
	folded := map[string]bool{}
	var out []string
	for _, c := range m {
		for _, part := range c.Destination.Split() {
			dests, _ := r.permit(part)
			for _, d := range dests {
				alone := d.IsQueue() && (!o.ConduitSubscriptions || c.NetworkSubscription &&
					!o.ConduitNetworkQueueSubscriptions)
				if alone {
					out = append(out, d.String())
				} else {
					folded[d.String()] = true
				}
			}
		}
	}
	for d := range folded {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}

func TestDemandIsThatOfTheConsumersThereAre(t *testing.T) {
	names := []string{"a", "a.b", "a.*", "a.>", "a,b", "c", "topic://t", "topic://t,q", "x.y"}
	rapid.Check(t, func(t *rapid.T) {
		o := DefaultOptions(5)
		o.ConduitSubscriptions = rapid.Bool().Draw(t, "conduit")
		o.ConduitNetworkQueueSubscriptions = rapid.Bool().Draw(t, "conduit networks")
		o.ConsumerTTL = -1
		o.Excluded = []message.Destination{queue("x.>")}
		if rapid.Bool().Draw(t, "includes") {
			o.DynamicallyIncluded = []message.Destination{queue("a.>"), topic("t"), queue("c")}
		}
		tab := newTable(&o, "ID:netA", netB, nil)
		model := demandModel{}
		var next int64
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				next++
				c := consumer(next, rapid.SampledFrom(names).Draw(t, "destination"))
				c.NetworkSubscription = rapid.Bool().Draw(t, "network")
				tab.add(c, "")
				if rapid.Bool().Draw(t, "told twice") {
					tab.add(c, "")
				}
				model[next] = c
			},
			"remove": func(t *rapid.T) {
				n := rapid.Int64Range(1, max(1, next+1)).Draw(t, "consumer")
				for _, d := range tab.remove(consumer(n, "x").ID) {
					tab.drop(d)
				}
				delete(model, n)
			},
			"": func(t *rapid.T) {
				var got []string
				for _, d := range tab.demands {
					got = append(got, d.dest.String())
					if len(d.members) == 0 {
						t.Fatalf("%v has no members", d.dest)
					}
				}
				slices.Sort(got)
				if want := model.want(&o); !slices.Equal(got, want) {
					t.Fatalf("demand\n got  %s\n want %s", strings.Join(got, " "),
						strings.Join(want, " "))
				}
				if len(tab.where) > len(model) {
					t.Fatalf("%d consumers remembered, %d there", len(tab.where), len(model))
				}
			},
		})
	})
}
