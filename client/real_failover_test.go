package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"hopwire/test/interop/broker"
	"hopwire/test/proxy"
)

// TestFailoverAgainstRealBrokers loses connections to a real broker, and the broker itself.
func TestFailoverAgainstRealBrokers(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) { playFailover(t, kind) })
	}
}

func playFailover(t *testing.T, kind broker.Kind) {
	b := broker.Start(t, kind, broker.Options{Name: "real", Persistent: true})
	link := proxy.Start(t, b.Addr())
	const options = ")?initialReconnectDelay=5&maxReconnectDelay=100"
	broken := "failover:(" + link.URL() + options
	t.Run("nothing is lost or seen twice", func(t *testing.T) {
		exactlyOnce(t, link, broken)
	})
	t.Run("transactions hold or fail as a whole", func(t *testing.T) {
		transactions(t, link, broken)
	})
	t.Run("temporary queues and requests come back", func(t *testing.T) {
		requestsAfterBreak(t, link, broken)
	})
	t.Run("a broker that crashed is found again", func(t *testing.T) {
		s := session(t, open(t, "failover:("+b.URL()+options), AutoAck)
		p := producer(t, s, Queue("CRASH"))
		send(t, p, "before")
		b.Kill9()
		err := during(t, func() error { return p.Send(bound(t), NewText("after")) }, b.Restart)
		ok(t, err)
		k := consumer(t, s, Queue("CRASH"))
		if got := texts(t, k, 2); got[0] != "before" || got[1] != "after" {
			t.Fatal(got)
		}
	})
}

func exactlyOnce(t *testing.T, link *proxy.Proxy, uri string) {
	const count = 400
	k := consumer(t, session(t, open(t, uri), AutoAck), Queue("ONCE"), WithPrefetchSize(50))
	p := producer(t, session(t, open(t, uri), AutoAck), Queue("ONCE"), Window(20))
	refused := make(chan error, count)
	err := during(t, func() error {
		for i := range count {
			err := p.SendAsync(bound(t), NewText(fmt.Sprint(i)), func(err error) {
				if err != nil {
					refused <- err
				}
			})
			if err != nil {
				return err
			}
		}
		return p.Flush(bound(t))
	}, func() {
		seen := map[string]int{}
		for i := range count {
			text := texts(t, k, 1)[0]
			if seen[text]++; seen[text] > 1 {
				t.Errorf("message %s came %d times", text, seen[text])
			}
			if i%60 == 30 {
				link.Break()
			}
		}
	})
	ok(t, err)
	select {
	case err := <-refused:
		t.Error(err)
	default:
	}
}

// transactions moves messages from one queue to another while connections break.
func transactions(t *testing.T, link *proxy.Proxy, uri string) {
	const count = 60
	direct := session(t, open(t, uri), AutoAck)
	p := producer(t, direct, Queue("FROM"))
	for i := range count {
		send(t, p, fmt.Sprint(i))
	}
	s := session(t, open(t, uri, WithRedelivery(Redelivery{Maximum: -1})), Transacted)
	k := consumer(t, s, Queue("FROM"), WithPrefetchSize(10))
	to := producer(t, s, Queue("TO"))
	out := consumer(t, direct, Queue("TO"))
	for batch := 0; ; batch++ {
		n := 0
		for ; n < 3; n++ {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			m, err := k.Receive(ctx)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			ok(t, err)
			send(t, to, must[string](t)(m.Text()))
		}
		if batch%4 == 1 {
			link.Break()
		}
		err := s.Commit(bound(t))
		if err != nil && !errors.Is(err, ErrInDoubt) && !errors.Is(err, ErrRolledBack) {
			t.Fatal(err)
		}
		if err == nil && n == 0 {
			break
		}
	}
	seen := map[string]int{}
	for _, text := range texts(t, out, count) {
		if seen[text]++; seen[text] > 1 {
			t.Errorf("message %s was moved %d times", text, seen[text])
		}
	}
	none(t, out, 100*time.Millisecond)
}

func requestsAfterBreak(t *testing.T, link *proxy.Proxy, uri string) {
	server := session(t, open(t, uri), AutoAck)
	answers := producer(t, server, nil)
	_, err := server.Consume(bound(t), Queue("ASK"), func(ctx context.Context, m *Message) error {
		text, err := m.Text()
		if err != nil {
			return err
		}
		return answers.Reply(ctx, m, NewText(text+"!"))
	})
	ok(t, err)
	r := must[*Requester](t)(open(t, uri).Requester(bound(t)))
	for range 3 {
		m := must[*Message](t)(r.Do(bound(t), Queue("ASK"), NewText("x")))
		if text, _ := m.Text(); text != "x!" {
			t.Fatalf("the reply is %s", text)
		}
		link.Break()
	}
}
