package bridge

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
)

func TestReconnectingDurableSubscriberTakesItsOwnPlace(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	back := func(n int64, dest, client string) {
		c := consumer(n, dest)
		c.SubscriptionName, c.ClientID = "sub", client
		w.advise("Consumer.Topic.x", c)
	}
	back(1, "topic://T", "other")
	for n := range int64(500) {
		back(n+2, "topic://T", "client")
		w.unconsume(n + 2)
	}
	row := w.c.Status().Demands[0]
	if row.Members != 2 || len(w.c.bridge.table.where) != 2 {
		t.Errorf("two durables: %d members, %d remembered", row.Members,
			len(w.c.bridge.table.where))
	}
	back(900, "topic://U,topic://V", "client")
	w.demands("topic://T", "topic://U", "topic://V")
	back(901, "topic://V", "client")
	w.demands("topic://T", "topic://V")
	back(902, "topic://V", "other")
	w.demands("topic://V")
	w.advise("Consumer.Topic.x", &message.RemoveSubscriptionInfo{ClientID: "client",
		SubscriptionName: "sub"})
	w.advise("Consumer.Topic.x", &message.RemoveSubscriptionInfo{ClientID: "other",
		SubscriptionName: "sub"})
	w.demands()
}

func TestDurableDemandWarnsOnceThatItIsNot(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	for n := range int64(3) {
		c := consumer(n, "topic://T")
		c.SubscriptionName, c.ClientID = "sub", "client"
		w.advise("Consumer.Topic.T", c)
	}
	w.consume(9, "topic://T")
	warned := 0
	for _, e := range w.events {
		if e.Kind == DemandNotDurable && e.Reason == message.NotDurable && e.Text != "" {
			warned++
		}
	}
	s := w.c.Status()
	if warned != 1 || !slices.Contains(s.Counts, Count{message.NotDurable, 1}) ||
		s.Demands[0].State != "active (not durable)" || s.Demands[1].State != "active" {
		t.Errorf("%d warnings, counts %v, demands %+v", warned, s.Counts, s.Demands)
	}
}

func TestPeerCannotTakeStaticDemandOut(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.StaticallyIncluded = []message.Destination{queue("S"), queue("T")}
	})
	w.connect(Hello{})
	for i := range int64(2) {
		id := message.ConsumerID{Session: -1, Value: i}
		w.advise("Consumer.Queue.x", &message.RemoveInfo{Object: id})
		w.advise("Consumer.Queue.S", &message.ConsumerInfo{ID: id, Destination: queue("S")})
		w.advise("Consumer.Queue.x", &message.RemoveInfo{Object: id})
	}
	w.demands("queue://S", "queue://T")
	for _, d := range w.c.Status().Demands {
		if d.Members != 1 || !d.Static {
			t.Errorf("%+v", d)
		}
	}
}

func TestDemandForManyTopicsComesAndGoesInNoTime(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	const many = 4000
	began := time.Now()
	w.consume(many, "topic://W.>")
	for n := range int64(many) {
		w.consume(n, fmt.Sprint("topic://T.", n))
	}
	for n := range int64(many) {
		w.unconsume(n)
	}
	// Some 0.1 s; minutes when each looks at all pairs.
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%d topics took %v", many, took)
	}
}
