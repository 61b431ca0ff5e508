package interop

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/interop/jms"
	"hopwire/test/wait"
)

// TestACleanStopLeavesNothingInDoubt has a consumer that acknowledges automatically, which the
// broker's stops meet while it consumes. What it acknowledged and gets again it puts into the dead
// letter queue as a duplicate. ActiveMQ promises nothing of the kind.
func TestACleanStopLeavesNothingInDoubt(t *testing.T) {
	const stops, each = 5, 400
	for _, x := range []struct {
		kind   broker.Kind
		client jms.Version
	}{{broker.Hopwire, jms.V5}, {broker.Hopwire, jms.V6}, {broker.ActiveMQ, jms.V5}} {
		t.Run(x.kind.String()+" "+x.client.String(), func(t *testing.T) {
			b := broker.Start(t, x.kind, broker.Options{Persistent: true})
			d := jms.Start(t, x.client)
			const n = (stops + 1) * each
			d.Connect(b.URL()).Send("queue://Q.IN", n, "{}")
			c := d.Connect(failover(b)).Session(jms.Auto).Consumer(jms.ConsumerOptions{
				Dest: "queue://Q.IN?consumer.prefetchSize=100", Delay: time.Millisecond})
			for i := range stops {
				c.Wait((i+1)*each, patience)
				b.Restart()
			}
			c.Wait(n, patience)
			lost, twice := tally(t, n, c)
			again := 0
			for _, m := range c.Received() {
				if m.Redelivered {
					again++
				}
			}
			dead := len(d.Connect(b.URL()).Browse("queue://ActiveMQ.DLQ", ""))
			t.Logf("%d messages, %d stops: %d lost, %d twice, %d redelivered, %d dead letters", n,
				stops, len(lost), len(twice), again, dead)
			if x.kind == broker.Hopwire && len(lost)+len(twice)+again+dead > 0 {
				t.Errorf("lost %v, twice %v", few(lost), few(twice))
			}
		})
	}
}

// TestACleanStopExecutesACommitOrNot has a producer of transactions, which repeats those that it is
// told were rolled back. ActiveMQ commits some of which its client is told that.
func TestACleanStopExecutesACommitOrNot(t *testing.T) {
	const stops, each = 5, 100
	b := broker.Start(t, broker.Hopwire, broker.Options{Persistent: true})
	d := jms.Start(t, jms.V5)
	s := d.Connect(failover(b)).Session(jms.Transacted)
	var committed atomic.Int64
	failed := 0
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, err := s.TrySend(jms.SendOptions{Dest: "queue://Q.TX",
				From: 2 * int(committed.Load()), N: 2, Body: "{}"})
			if err == nil {
				err = s.Commit()
			}
			if err != nil {
				failed++
				t.Log(err)
				_ = s.Rollback() // there may be none any more
				continue
			}
			committed.Add(1)
		}
	}()
	for range stops {
		goal := committed.Load() + each
		wait.For(t, patience, "committed", func() (string, bool) {
			n := committed.Load()
			return fmt.Sprintf("%d of %d", n, goal), n >= goal
		})
		b.Restart()
	}
	close(stop)
	<-ended
	n := 2 * int(committed.Load())
	c := d.Connect(b.URL()).Consumer("queue://Q.TX")
	c.Wait(n, patience)
	c.Silent(100 * time.Millisecond)
	lost, twice := tally(t, n, c)
	t.Logf("%d committed in %d lives of the broker, %d commits failed, %d lost, %d twice", n,
		stops+1, failed, len(lost), len(twice))
	if len(lost)+len(twice) > 0 {
		t.Errorf("lost %v, twice %v", few(lost), few(twice))
	}
}

// TestACleanStopOfABridgedBrokerNeitherLosesNorDoubles stops the Hopwire end of a bridge while
// messages pass it, or both ends in turn.
func TestACleanStopOfABridgedBrokerNeitherLosesNorDoubles(t *testing.T) {
	eachPair(t, func(t *testing.T, p pair) {
		const queue, stops, each, patience = "Q.ON", 4, 300, time.Minute
		const n = (stops + 1) * each
		if p.a != broker.Hopwire && p.b != broker.Hopwire {
			return // nobody is stopped
		}
		b := broker.Start(t, p.b, broker.Options{Name: "b", Persistent: true})
		a := broker.Start(t, p.a, broker.Options{Name: "a", Persistent: true,
			Connectors: []broker.Connector{{Name: "ab",
				URI: broker.Static(b) + "?initialReconnectDelay=100&maxReconnectDelay=100"}}})
		d := jms.Start(t, jms.V5)
		c := d.Connect(failover(b)).Session(jms.Auto).Consumer(jms.ConsumerOptions{
			Dest: "queue://" + queue + "?consumer.prefetchSize=100"})
		s, sent := d.Connect(failover(a)).Session(jms.Auto), make(chan error, 1)
		go func() {
			for i := range n {
				_, err := s.TrySend(jms.SendOptions{Dest: "queue://" + queue, From: i, N: 1, Body: "{}"})
				if err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		for i := range stops {
			c.Wait((i+1)*each, patience)
			if one := []*broker.Broker{a, b}[i%2]; one.Kind() == broker.Hopwire {
				one.Restart()
			}
		}
		c.Wait(n, patience)
		must(t, <-sent)
		c.Silent(100 * time.Millisecond)
		lost, twice := tally(t, n, c)
		dead := len(d.Connect(b.URL()).Browse("queue://ActiveMQ.DLQ", ""))
		t.Logf("%d messages: %d lost, %d twice, %d dead letters", n, len(lost), len(twice), dead)
		if len(lost)+len(twice)+dead > 0 {
			t.Errorf("lost %v, twice %v", few(lost), few(twice))
		}
	})
}
