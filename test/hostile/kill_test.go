package hostile

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hopwire/client"
)

// killRounds is how often the broker is killed.
const killRounds = 20

// work is what clients did with one broker until it was killed. Keys are the messages' texts.
type work struct {
	mu        sync.Mutex
	confirmed map[string]bool // sends that were confirmed
	tried     map[string]bool // all sends
	committed map[string]bool // transactions of sends whose commit was answered
	begun     map[string]bool // all transactions of sends
	consumed  map[string]bool // received in a transaction whose commit was answered
	doubtful  []string        // received in the transaction whose commit was not answered
}

const txSize = 5

func newWork() *work {
	return &work{confirmed: map[string]bool{}, tried: map[string]bool{}, committed: map[string]bool{},
		begun: map[string]bool{}, consumed: map[string]bool{}}
}

func (w *work) note(set map[string]bool, keys ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range keys {
		set[k] = true
	}
}

// dial connects a client that gives up when its connection ends.
func dial(ctx context.Context, t testing.TB, addr string) *client.Conn {
	t.Helper()
	conn, err := client.Dial(ctx, "tcp://"+addr)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// produce sends until the broker is gone.
func (w *work) produce(ctx context.Context, conn *client.Conn, queue, prefix string) error {
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		return err
	}
	p, err := s.Producer(ctx, client.Queue(queue), client.Window(100))
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		key := fmt.Sprint(prefix, i, strings.Repeat(".", i%7*300))
		w.note(w.tried, key)
		if err := p.SendAsync(ctx, client.NewText(key), func(err error) {
			if err == nil {
				w.note(w.confirmed, key)
			}
		}); err != nil {
			return nil
		}
	}
}

// transact sends transactions until the broker is gone.
func (w *work) transact(ctx context.Context, conn *client.Conn, queue, prefix string) error {
	s, err := conn.Session(ctx, client.Transacted)
	if err != nil {
		return err
	}
	p, err := s.Producer(ctx, client.Queue(queue))
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		tx := fmt.Sprint(prefix, i)
		w.note(w.begun, tx)
		for j := range txSize {
			if err := p.Send(ctx, client.NewText(fmt.Sprint(tx, "/", j))); err != nil {
				return nil
			}
		}
		if err := s.Commit(ctx); err != nil {
			return nil
		}
		w.note(w.committed, tx)
	}
}

// consume receives in transactions until the broker is gone.
func (w *work) consume(ctx context.Context, conn *client.Conn, queue string) error {
	s, err := conn.Session(ctx, client.Transacted)
	if err != nil {
		return err
	}
	k, err := s.Consumer(ctx, client.Queue(queue), client.WithPrefetchSize(50))
	if err != nil {
		return err
	}
	for {
		var keys []string
		for len(keys) < txSize {
			m, err := k.Receive(ctx)
			if err != nil {
				return nil
			}
			text, err := m.Text()
			if err != nil {
				return err
			}
			keys = append(keys, text)
		}
		if err := s.Commit(ctx); err != nil {
			w.mu.Lock()
			w.doubtful = keys
			w.mu.Unlock()
			return nil
		}
		w.note(w.consumed, keys...)
	}
}

// drain takes everything from a queue and counts the texts.
func drain(t testing.TB, addr, queue string) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	conn := dial(ctx, t, addr)
	defer conn.Close(ctx)
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Producer(ctx, client.Queue(queue))
	if err != nil {
		t.Fatal(err)
	}
	const end = "the end"
	if err := p.Send(ctx, client.NewText(end)); err != nil {
		t.Fatal(err)
	}
	k, err := s.Consumer(ctx, client.Queue(queue))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for {
		m, err := k.Receive(ctx)
		if err != nil {
			t.Fatalf("after %d messages of %s: %v", len(got), queue, err)
		}
		text, err := m.Text()
		if err != nil {
			t.Fatal(err)
		}
		if text == end {
			return got
		}
		got[text]++
	}
}

func TestKilledAtAnyMomentNothingConfirmedIsLostOrDoubled(t *testing.T) {
	p := newProcess(t, setup{unborn: true})
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 5))
	var sends, transactions, receipts int
	var slowest time.Duration
	for round := range killRounds {
		slowest = max(slowest, p.start())
		w := newWork()
		w.work(t, p, round, 20*time.Millisecond+time.Duration(random.IntN(350))*time.Millisecond)
		slowest = max(slowest, p.start())
		w.check(t, p)
		p.kill() // what was drained may come back, as its acknowledgements were not waited for
		slowest = max(slowest, p.start())
		for _, q := range []string{"PLAIN", "TX", "FLOW"} {
			drain(t, p.addr(), q)
		}
		p.stop()
		sends += len(w.confirmed)
		transactions += len(w.committed)
		receipts += len(w.consumed)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d kills: %d confirmed sends, %d transactions, %d messages received in transactions; "+
		"slowest start %v", killRounds, sends, transactions, receipts, slowest)
}

// work runs all clients and kills the broker after a time.
func (w *work) work(t *testing.T, p *process, round int, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all sync.WaitGroup
	run := func(f func(*client.Conn) error) {
		conn := dial(ctx, t, p.addr())
		all.Go(func() {
			if err := f(conn); err != nil && conn.Err() == nil {
				t.Error(err)
			}
			_ = conn.Close(ctx) // the broker is gone
		})
	}
	run(func(c *client.Conn) error { return w.produce(ctx, c, "PLAIN", fmt.Sprint("p", round, "-")) })
	run(func(c *client.Conn) error { return w.produce(ctx, c, "FLOW", fmt.Sprint("f", round, "-")) })
	run(func(c *client.Conn) error { return w.transact(ctx, c, "TX", fmt.Sprint("t", round, "-")) })
	run(func(c *client.Conn) error { return w.consume(ctx, c, "FLOW") })
	timer := time.NewTimer(after)
	<-timer.C
	p.kill()
	all.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error("the clients did not notice that the broker is gone")
	}
}

// check compares what is there after the restart with what was promised before.
func (w *work) check(t *testing.T, p *process) {
	t.Helper()
	plain, flow := drain(t, p.addr(), "PLAIN"), drain(t, p.addr(), "FLOW")
	w.checkTransactions(t, drain(t, p.addr(), "TX"))
	for key := range w.confirmed {
		where := plain
		if key[0] == 'f' {
			where = flow
		}
		if where[key] == 0 && !w.consumed[key] && !slices.Contains(w.doubtful, key) {
			t.Errorf("%.20s was confirmed and is lost", key)
		}
	}
	for _, got := range []map[string]int{plain, flow} {
		for key, n := range got {
			if n != 1 || !w.tried[key] {
				t.Errorf("%.20s is there %d times", key, n)
			}
			if w.consumed[key] {
				t.Errorf("%.20s came back after its transaction was committed", key)
			}
		}
	}
	back := 0
	for _, key := range w.doubtful {
		back += flow[key]
	}
	if back != 0 && back != len(w.doubtful) {
		t.Errorf("of a transaction of %d received messages %d came back", len(w.doubtful), back)
	}
}

// checkTransactions compares the messages that were sent in transactions.
func (w *work) checkTransactions(t *testing.T, tx map[string]int) {
	t.Helper()
	for id := range w.begun {
		n := 0
		for j := range txSize {
			n += tx[fmt.Sprint(id, "/", j)]
		}
		if n != txSize && (n != 0 || w.committed[id]) {
			t.Errorf("of transaction %s with %d messages %d are there, committed: %v", id, txSize, n,
				w.committed[id])
		}
	}
	if len(tx) > txSize*len(w.begun) {
		t.Errorf("%d messages of %d transactions", len(tx), len(w.begun))
	}
}
