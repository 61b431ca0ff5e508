package interop

import (
	"fmt"
	"strconv"
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

// sending is a producer that sends messages one by one, each with its number.
type sending struct {
	confirmed atomic.Int64
	stop      chan struct{}
	ended     chan error
}

func sendOn(s *jms.Session, dest string) *sending {
	x := &sending{stop: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		for {
			select {
			case <-x.stop:
				x.ended <- nil
				return
			default:
			}
			_, err := s.TrySend(jms.SendOptions{Dest: dest, From: int(x.confirmed.Load()), N: 1,
				Body: "{}"})
			if err != nil {
				x.ended <- err
				return
			}
			x.confirmed.Add(1)
		}
	}()
	return x
}

// more waits until so many more are confirmed.
func (x *sending) more(t *testing.T, least int64) {
	t.Helper()
	goal := x.confirmed.Load() + least
	wait.For(t, patience, "confirmed", func() (string, bool) {
		n := x.confirmed.Load()
		return fmt.Sprintf("%d of %d", n, goal), n >= goal
	})
}

// end stops the producer and tells how many were confirmed.
func (x *sending) end(t *testing.T) int {
	t.Helper()
	close(x.stop)
	must(t, <-x.ended)
	return int(x.confirmed.Load())
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
			sent := sendOn(s, "queue://Q.IN")
			for i := range kills {
				c.Receive(50, patience) // and not acknowledged before the kill
				sent.more(t, least)
				b.Kill9()
				b.Restart()
				out.WaitResumed(i+1, patience)
			}
			n := sent.end(t)
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

// taking is a consumer that commits what it gets. What it got before a commit that was answered is
// consumed for good; what is in one that was not may come again.
type taking struct {
	committed map[string]int // by number, how often
	doubted   map[string]bool
	stop      chan struct{}
	ended     chan struct{}
}

// takeOn goes on with what x is, over another connection.
func (x *taking) takeOn(s *jms.Session, o jms.ConsumerOptions) {
	c := s.Consumer(o)
	x.stop, x.ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(x.ended)
		for {
			got, err := c.TryReceive(5, 20*time.Millisecond)
			if err == nil && len(got) > 0 {
				err = s.Commit()
			}
			for _, m := range got {
				if err == nil {
					x.committed[m.Body]++
				} else {
					x.doubted[m.Body] = true
				}
			}
			select {
			case <-x.stop:
				return
			default:
			}
			if err != nil {
				return
			}
		}
	}()
}

func (x *taking) end() {
	close(x.stop)
	<-x.ended
}

// TestWhatAProducerSendsAgainAfterAKillIsConsumedOnce has a producer to a queue and one to a topic
// that fail over, while consumers take what they send at once.
func TestWhatAProducerSendsAgainAfterAKillIsConsumedOnce(t *testing.T) {
	for _, v := range []jms.Version{jms.V5, jms.V6} {
		t.Run(v.String(), func(t *testing.T) {
			const kills, least = 6, 200
			b := broker.Start(t, broker.Hopwire, broker.Options{Persistent: true})
			d := jms.Start(t, v)
			wants := []jms.ConsumerOptions{{Dest: "queue://Q", Pull: true},
				{Dest: "topic://T", Durable: "s", Pull: true}}
			var takes []*taking
			for range wants {
				takes = append(takes, &taking{committed: map[string]int{}, doubted: map[string]bool{}})
			}
			consume := func() {
				// Not over failover: such a client would put aside what it had before.
				conn, err := d.Dial(jms.ConnectOptions{URL: b.URL(), ClientID: "reader"})
				must(t, err)
				for i, o := range wants {
					takes[i].takeOn(conn.Session(jms.Transacted), o)
				}
			}
			consume()
			var conns []*jms.Conn
			var sent []*sending
			for _, o := range wants {
				conn := d.Connect(failover(b))
				conns = append(conns, conn)
				sent = append(sent, sendOn(conn.Session(jms.Auto), o.Dest))
			}
			for i := range kills {
				for _, x := range sent {
					x.more(t, least)
				}
				b.Kill9()
				for _, x := range takes {
					x.end()
				}
				b.Restart()
				consume()
				for _, conn := range conns {
					conn.WaitResumed(i+1, patience)
				}
			}
			for i, x := range sent {
				n, o := x.end(t), wants[i]
				time.AfterFunc(time.Second, takes[i].end)
				<-takes[i].ended
				takes[i].check(t, o.Dest, n)
			}
		})
	}
}

// check asks that all n were consumed, and none twice.
func (x *taking) check(t *testing.T, dest string, n int) {
	t.Helper()
	var lost, twice []int
	for i := range n {
		switch body := strconv.Itoa(i); {
		case x.committed[body] > 1:
			twice = append(twice, i)
		case x.committed[body] == 0 && !x.doubted[body]:
			lost = append(lost, i)
		}
	}
	t.Logf("%s: %d confirmed, %d in doubt, %d lost, %d twice", dest, n, len(x.doubted), len(lost),
		len(twice))
	if len(lost)+len(twice) > 0 {
		t.Errorf("%s: lost %v, twice %v", dest, few(lost), few(twice))
	}
}
