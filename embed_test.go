package hopwire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hopwire/client"
)

func embed(ctx context.Context, t *testing.T, name string) *Broker {
	t.Helper()
	b, err := Embed(ctx, name, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// end stops a broker and waits for it.
func end(t *testing.T, b *Broker) {
	t.Helper()
	b.Stop()
	if err := b.Wait(); err != nil {
		t.Error(err)
	}
}

// roundTrip sends one message to an embedded broker and receives it.
func roundTrip(ctx context.Context, t *testing.T, b *Broker) {
	t.Helper()
	conn, err := client.Dial(ctx, "tcp://inside", client.WithDialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Producer(ctx, client.Queue("Q"))
	if err == nil {
		err = p.Send(ctx, client.NewText("x"))
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Consumer(ctx, client.Queue("Q"))
	if err == nil {
		_, err = c.Receive(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An embedded broker is there, used and gone again in a few milliseconds: a test may have its own.
// The limit is ten times looser than what is promised.
func TestAnEmbeddedBrokerStartsAndEndsAtOnceAndLeavesNothing(t *testing.T) {
	ctx := t.Context()
	end(t, embed(ctx, t, "warm"))
	before := runtime.NumGoroutine()
	const rounds = 5
	begin := time.Now()
	for range rounds {
		b := embed(ctx, t, "one")
		roundTrip(ctx, t, b)
		end(t, b)
	}
	took := time.Since(begin) / rounds
	t.Logf("start, one message, stop: %v", took)
	if took > 500*time.Millisecond {
		t.Errorf("start, one message and stop took %v", took)
	}
	for runtime.NumGoroutine() > before && time.Since(begin) < time.Minute {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines are left of %d", n, before)
	}
}

func TestEmbeddedBrokersShareNothing(t *testing.T) {
	ctx := t.Context()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			b := embed(ctx, t, "same") // of one name, at the same time
			roundTrip(ctx, t, b)
			if s, err := b.Status(ctx); err != nil || s.Totals.Enqueued != 1 {
				t.Errorf("broker %d: %+v, %v", i, s, err)
			}
			end(t, b)
		})
	}
	all.Wait()
}

func TestAnEmbeddedBrokerThatEndedCannotBeDialled(t *testing.T) {
	b := embed(t.Context(), t, "gone")
	end(t, b)
	if c, err := b.Dial(t.Context(), ""); !errors.Is(err, net.ErrClosed) ||
		err.Error() != "broker gone has ended" {
		t.Errorf("%v, %v", c, err)
	}
}

func TestAnEmbeddedBrokerNeedsAName(t *testing.T) {
	if _, err := Embed(t.Context(), "", Options{}); err == nil ||
		err.Error() != "the broker's name is empty" {
		t.Errorf("got %v", err)
	}
}

func TestAnEmbeddedBrokersNameIsTakenAsThatOfAFile(t *testing.T) {
	b := embed(t.Context(), t, `a<b>&"c" 'd'`)
	defer end(t, b)
	if b.Name() != "a_b___c___d_" || b.URL() != "" || len(b.Connectors()) > 0 {
		t.Errorf("it is %q at %q, %q", b.Name(), b.URL(), b.Connectors())
	}
}

// A program that says nothing of a log hears of what is wrong alone.
func TestAnEmbeddedBrokerIsQuietWithoutALog(t *testing.T) {
	var out strings.Builder
	was := slog.Default()
	defer slog.SetDefault(was)
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	b, err := Embed(t.Context(), "quiet", Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.log.Warn("something is wrong")
	end(t, b)
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "is wrong") {
		t.Errorf("the log has %q", got)
	}
}
