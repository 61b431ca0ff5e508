package interop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
)

// split is scenario N001 or N002: 30 messages to a broker with one consumer, bridged to one with
// two, all idle and of equal priority.
type split struct {
	conduit   bool
	consumers int   // of the queue on a: one client, and the bridge's
	first     []int // the numbers of the first messages that the consumer on a gets
	local     int   // how many it gets
	remote    []int // how many the two on b get, sorted
}

func TestN001AConduitSharesWithTheLocalConsumerByHalves(t *testing.T) {
	eachPair(t, split{
		conduit: true, consumers: 2, first: []int{0, 2, 4}, local: 15, remote: []int{7, 8},
	}.play)
}

func TestN002WithoutConduitEachRemoteConsumerCounts(t *testing.T) {
	eachPair(t, split{
		conduit: false, consumers: 3, first: []int{0, 3, 6}, local: 10, remote: []int{10, 10},
	}.play)
}

func (s split) play(t *testing.T, p pair) {
	const queue, n, patience = "Q.TEST", 30, 15 * time.Second
	b := broker.Start(t, p.b, broker.Options{Name: "b"})
	a := broker.Start(t, p.a, broker.Options{Name: "a", Connectors: []broker.Connector{{
		Name: "ab", URI: broker.Static(b),
		Attributes: fmt.Sprintf(`conduitSubscriptions="%t" decreaseNetworkConsumerPriority="false"`,
			s.conduit),
	}}})
	d := jms.Start(t, jms.V5)
	onA, onB := d.Connect(a.URL()), d.Connect(b.URL())
	local := onA.Consumer("queue://" + queue)
	a.WaitConsumers(queue, 1, patience)
	remote := []*jms.Consumer{onB.Consumer("queue://" + queue), onB.Consumer("queue://" + queue)}
	a.WaitConsumers(queue, s.consumers, patience)

	onA.Send("queue://"+queue, n, "m{}")
	jms.WaitTotal(t, n, patience, local, remote[0], remote[1])

	counts := []int{remote[0].Count(), remote[1].Count()}
	slices.Sort(counts)
	if local.Count() != s.local || !slices.Equal(counts, s.remote) {
		t.Errorf("local %d, remote %v; want %d and %v: %s", local.Count(), counts, s.local, s.remote,
			jms.Summary(local, remote[0], remote[1]))
	}
	for i, number := range s.first {
		if got, want := local.Received()[i].Body, fmt.Sprintf("m%d", number); got != want {
			t.Errorf("message %d of the local consumer is %s, want %s", i, got, want)
		}
	}
	a.WaitDrained(queue, n, patience)
	b.WaitDrained(queue, n-s.local, patience)
	for _, on := range []*broker.Broker{a, b} {
		if dead := on.Queue("ActiveMQ.DLQ"); dead.Size != 0 {
			t.Errorf("dead letters on %s: %+v", on.Name(), dead)
		}
	}
}
