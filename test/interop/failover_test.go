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

// failover is the URL of a client that comes back at once.
func failover(b *broker.Broker) string {
	return "failover:(" + b.URL() + ")?initialReconnectDelay=50&useExponentialBackOff=false"
}

// TestNothingConfirmedIsLostWhenTheBrokerIsKilled has a producer and a consumer that know nothing
// of the broker's crashes.
func TestNothingConfirmedIsLostWhenTheBrokerIsKilled(t *testing.T) {
	for _, v := range []jms.Version{jms.V5, jms.V6} {
		t.Run(v.String(), func(t *testing.T) {
			const kills, least = 3, 300
			b := broker.Start(t, broker.Hopwire, broker.Options{Persistent: true})
			d := jms.Start(t, v)
			c := d.Connect(failover(b)).Session(jms.Client).Consumer(
				jms.ConsumerOptions{Dest: "queue://Q.IN", Pull: true})
			out := d.Connect(failover(b))
			s := out.Session(jms.Auto)
			var confirmed atomic.Int64
			stop, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				for {
					select {
					case <-stop:
						ended <- nil
						return
					default:
					}
					_, err := s.TrySend(jms.SendOptions{Dest: "queue://Q.IN",
						From: int(confirmed.Load()), N: 1, Body: "{}"})
					if err != nil {
						ended <- err
						return
					}
					confirmed.Add(1)
				}
			}()
			for i := range kills {
				c.Receive(50, patience) // and not acknowledged before the kill
				goal := confirmed.Load() + least
				wait.For(t, patience, "confirmed", func() (string, bool) {
					n := confirmed.Load()
					return fmt.Sprintf("%d of %d", n, goal), n >= goal
				})
				b.Kill9()
				b.Restart()
				out.WaitResumed(i+1, patience)
			}
			close(stop)
			must(t, <-ended)
			n := int(confirmed.Load())
			rest := d.Connect(b.URL()).Session(jms.Auto)
			must(t, c.Close())
			last := rest.Consumer(jms.ConsumerOptions{Dest: "queue://Q.IN"})
			wait.For(t, patience, "all at the last consumer", func() (string, bool) {
				return fmt.Sprintf("%d of %d", last.Count(), n), last.Count() >= n
			})
			last.Silent(100 * time.Millisecond)
			lost, twice := tally(t, n, last)
			t.Logf("%d confirmed in %d lives of the broker, %d lost, %d twice", n, kills+1, len(lost),
				len(twice))
			if len(lost)+len(twice) > 0 {
				t.Errorf("lost %v, twice %v", few(lost), few(twice))
			}
		})
	}
}
