package client

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain fails the package when a goroutine outlives its connection.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// within is how long a test waits for anything.
const within = 30 * time.Second

func bound(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open dials and closes at the end of the test.
func open(t testing.TB, uri string, opts ...Option) *Conn {
	t.Helper()
	c := must[*Conn](t)(Dial(bound(t), uri, opts...))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func session(t testing.TB, c *Conn, mode AckMode) *Session {
	t.Helper()
	return must[*Session](t)(c.Session(bound(t), mode))
}

func producer(t testing.TB, s *Session, d *Destination, opts ...SendOption) *Producer {
	t.Helper()
	return must[*Producer](t)(s.Producer(bound(t), d, opts...))
}

func consumer(t testing.TB, s *Session, d *Destination, opts ...ConsumerOption) *Consumer {
	t.Helper()
	return must[*Consumer](t)(s.Consumer(bound(t), d, opts...))
}

// texts receives n messages and returns their texts.
func texts(t testing.TB, k *Consumer, n int) []string {
	t.Helper()
	var all []string
	for range n {
		m, err := k.Receive(bound(t))
		if err != nil {
			t.Fatalf("after %q: %v", all, err)
		}
		all = append(all, must[string](t)(m.Text()))
	}
	return all
}

func send(t testing.TB, p *Producer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		ok(t, p.Send(bound(t), NewText(text)))
	}
}

// none fails if there is still a message.
func none(t testing.TB, k *Consumer, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if m, err := k.Receive(ctx); err == nil {
		text, _ := m.Text()
		t.Fatalf("got %q, delivery %d; want nothing", text, m.DeliveryCount)
	}
}
