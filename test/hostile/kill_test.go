package hostile

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"hopwire/client"
	"hopwire/test/need"
)

// killRounds is how often the broker is killed at least; a long run goes on for its time.
const killRounds = 200

// lane is one kind of clients that work until the broker is killed, and what they were promised.
type lane interface {
	// begin makes what the clients need; the first time the broker is new.
	begin(t *testing.T, p *process)
	// clients are what runs, a connection for each.
	clients(round int) []worker
	// check takes everything that is there after the restart and compares.
	check(t *testing.T, p *process)
	// told is what was done so far, for the log, and how much of what matters.
	told() (text string, done int)
}

// worker is a client that ends without an error when the broker goes.
type worker struct {
	id  string // client id; "" for one without
	run func(context.Context, *client.Conn) error
}

func TestKilledAtAnyMomentNothingConfirmedIsLostOrDoubled(t *testing.T) {
	p := newProcess(t, setup{unborn: true})
	lanes := []lane{&flow{queue: "PLAIN"}, &flow{queue: "FLOW", taken: true}, &sends{}, &moves{},
		&branches{}}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 5))
	until := time.Now().Add(need.SoakTime(t))
	slowest, round := time.Duration(0), 0
	for ; round < killRounds || time.Now().Before(until); round++ {
		slowest = max(slowest, p.start())
		for _, l := range lanes {
			l.begin(t, p)
		}
		work(t, p, lanes, round, 20*time.Millisecond+time.Duration(random.IntN(350))*time.Millisecond)
		slowest = max(slowest, p.start())
		for _, l := range lanes {
			l.check(t, p)
		}
		p.stop() // the acknowledgements of what was taken are kept
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d kills, slowest start %v", round, slowest)
	for _, l := range lanes {
		text, done := l.told()
		t.Log(text)
		if done == 0 {
			t.Error("nothing was done there")
		}
	}
}

// dial connects a client that gives up when its connection ends.
func dial(ctx context.Context, t testing.TB, addr string, o ...client.Option) *client.Conn {
	t.Helper()
	conn, err := client.Dial(ctx, "tcp://"+addr, o...)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// work runs all clients and kills the broker after a time.
func work(t *testing.T, p *process, lanes []lane, round int, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all sync.WaitGroup
	for _, l := range lanes {
		for _, w := range l.clients(round) {
			conn := dial(ctx, t, p.addr(), client.WithClientID(w.id))
			all.Go(func() {
				if err := w.run(ctx, conn); err != nil && conn.Err() == nil {
					t.Error(err)
				}
				_ = conn.Close(ctx) // the broker is gone
			})
		}
	}
	timer := time.NewTimer(after)
	<-timer.C
	p.kill()
	all.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error("the clients did not notice that the broker is gone")
	}
}
