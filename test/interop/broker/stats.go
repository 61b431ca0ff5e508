package broker

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"hopwire/test/interop/jms"
	"hopwire/test/wait"
)

// Stats are the counters of one destination, as the statistics plugin tells them.
type Stats struct {
	Exists                                 bool
	Size, Consumers, Producers             int
	Enqueued, Dequeued, Dispatched, Flying int // Flying is inflightCount
	Expired                                int
}

// Queue asks the broker for the counters of a queue over a JMS connection; of a queue that does not
// exist all are zero.
func (b *Broker) Queue(name string) Stats { return b.destination("queue://", name) }

// Topic asks the broker for the counters of a topic, as Queue does for a queue.
func (b *Broker) Topic(name string) Stats { return b.destination("topic://", name) }

func (b *Broker) destination(scheme, name string) Stats {
	b.t.Helper()
	conn := jms.Start(b.t, jms.V5).Connect(b.URL() + "?jms.watchTopicAdvisories=false")
	defer conn.Close()
	return b.ask(conn, scheme, name)
}

func (b *Broker) ask(conn *jms.Conn, scheme, name string) Stats {
	b.t.Helper()
	question := jms.SendOptions{
		Dest: scheme + "ActiveMQ.Statistics.Destination." + name, Kind: "none",
	}
	for _, m := range conn.Ask(question, 20*time.Second) {
		if m.Entry("destinationName") != scheme+name {
			continue
		}
		number := func(key string) int {
			n, err := strconv.Atoi(m.Entry(key))
			if err != nil {
				b.t.Fatalf("%s %s: statistics of %s: %s=%q", b.kind, b.name, name, key, m.Entry(key))
			}
			return n
		}
		return Stats{
			Exists: true, Size: number("size"), Consumers: number("consumerCount"),
			Producers: number("producerCount"), Enqueued: number("enqueueCount"),
			Dequeued: number("dequeueCount"), Dispatched: number("dispatchCount"),
			Flying: number("inflightCount"), Expired: number("expiredCount"),
		}
	}
	return Stats{}
}

// WaitQueue asks again and again until the counters of a queue are as awaited.
func (b *Broker) WaitQueue(name string, within time.Duration, what string, ok func(Stats) bool) {
	b.t.Helper()
	conn := jms.Start(b.t, jms.V5).Connect(b.URL() + "?jms.watchTopicAdvisories=false")
	defer conn.Close()
	wait.For(b.t, within, fmt.Sprintf("%s on %s %s", what, b.kind, b.name), func() (string, bool) {
		s := b.ask(conn, "queue://", name)
		return fmt.Sprintf("%+v", s), ok(s)
	})
}

// WaitConsumers waits until a queue has just n consumers, network subscriptions included.
func (b *Broker) WaitConsumers(queue string, n int, within time.Duration) {
	b.t.Helper()
	b.WaitQueue(queue, within, fmt.Sprintf("%d consumers of %s", n, queue),
		func(s Stats) bool { return s.Consumers == n })
}

// WaitDrained waits until a queue holds nothing and has passed on what it took.
func (b *Broker) WaitDrained(queue string, dequeued int, within time.Duration) {
	b.t.Helper()
	b.WaitQueue(queue, within, fmt.Sprintf("%s empty after %d messages", queue, dequeued),
		func(s Stats) bool { return s.Size == 0 && s.Dequeued == dequeued })
}

// LogHas reports whether the broker's log has a line with all of some words.
func (b *Broker) LogHas(words ...string) bool {
	for line := range strings.Lines(b.Log(1 << 20)) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return true
		}
	}
	return false
}
