package cli

import (
	"log/slog"
	"testing"
	"time"

	"hopwire"
	"hopwire/client"
)

// What a thread of a consumer has ahead when it has all it wants is for the others.
func TestAThreadThatIsThroughKeepsNothing(t *testing.T) {
	b, err := hopwire.Embed(t.Context(), "b", hopwire.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		b.Stop()
		if err := b.Wait(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := client.Dial(t.Context(), "tcp://b", client.WithDialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	s, err := conn.Session(t.Context(), client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Producer(t.Context(), client.Queue("Q"))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := p.Send(t.Context(), client.NewText("x")); err != nil {
			t.Fatal(err)
		}
	}
	c := &consumerCommand{BatchSize: 10, Wait: span{10 * time.Second}}
	for _, name := range []string{"consumer-1", "consumer-2"} {
		n, _, err := c.receive(t.Context(), conn, client.Queue("Q"), client.AutoAck, name, 5,
			func(*client.Message) error { return nil })
		if n != 5 || err != nil {
			t.Errorf("%s: %d of 5, %v", name, n, err)
		}
	}
}
