package hostile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hopwire/client"
)

// set is a set of messages, by their texts, or of transactions.
type set struct {
	mu   sync.Mutex
	keys map[string]bool
	ever int // added, also in earlier rounds
}

func (s *set) add(keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[string]bool{}
	}
	for _, k := range keys {
		s.keys[k] = true
	}
	s.ever += len(keys)
}

func (s *set) clear() { clear(s.keys) }

// ledger is what producers of single messages know, and consumers in transactions.
type ledger struct {
	tried     set // all sends
	confirmed set // sends that were confirmed
	consumed  set // received in a transaction whose commit was answered
	doubtful  set // received in the transaction whose commit was not answered
}

func (l *ledger) clear() {
	for _, s := range []*set{&l.tried, &l.confirmed, &l.consumed, &l.doubtful} {
		s.clear()
	}
}

// produce sends single messages until the broker is gone.
func (l *ledger) produce(ctx context.Context, conn *client.Conn, to *client.Destination,
	prefix string) error {
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		return err
	}
	p, err := s.Producer(ctx, to, client.Window(100))
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		key := fmt.Sprint(prefix, i, strings.Repeat(".", i%7*300))
		l.tried.add(key)
		if err := p.SendAsync(ctx, client.NewText(key), func(err error) {
			if err == nil {
				l.confirmed.add(key)
			}
		}); err != nil {
			return nil
		}
	}
}

const txSize = 5

// consume receives in transactions, and does something more in each, until the broker is gone.
func (l *ledger) consume(ctx context.Context, s *client.Session, from *client.Destination,
	more func(*client.Message) error, o ...client.ConsumerOption) error {
	k, err := s.Consumer(ctx, from, append(o, client.WithPrefetchSize(50))...)
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
			if err := more(m); err != nil {
				return nil
			}
			keys = append(keys, text)
		}
		if err := s.Commit(ctx); err != nil {
			l.doubtful.add(keys...)
			return nil
		}
		l.consumed.add(keys...)
	}
}

// check compares the messages that are at one place with what was promised.
func (l *ledger) check(t *testing.T, got map[string]int) {
	t.Helper()
	for key := range l.confirmed.keys {
		if got[key] == 0 && !l.consumed.keys[key] && !l.doubtful.keys[key] {
			t.Errorf("%.20s was confirmed and is lost", key)
		}
	}
	for key, n := range got {
		if n != 1 || !l.tried.keys[key] {
			t.Errorf("%.20s is there %d times", key, n)
		}
		if l.consumed.keys[key] {
			t.Errorf("%.20s came back after its transaction was committed", key)
		}
	}
	back := 0
	for key := range l.doubtful.keys {
		back += got[key]
	}
	if back != 0 && back != len(l.doubtful.keys) {
		t.Errorf("of a transaction of %d received messages %d came back", len(l.doubtful.keys), back)
	}
}

// flow is a queue of single messages, which a consumer takes in transactions or nobody does.
type flow struct {
	ledger
	queue string
	taken bool
}

func (l *flow) begin(*testing.T, *process) {}

func (l *flow) clients(round int) []worker {
	list := []worker{
		{run: func(ctx context.Context, c *client.Conn) error {
			return l.produce(ctx, c, client.Queue(l.queue), fmt.Sprint(l.queue, round, "-"))
		}}}
	if l.taken {
		list = append(list, worker{run: func(ctx context.Context, c *client.Conn) error {
			s, err := c.Session(ctx, client.Transacted)
			if err != nil {
				return err
			}
			return l.consume(ctx, s, client.Queue(l.queue),
				func(*client.Message) error { return nil })
		}})
	}
	return list
}

func (l *flow) check(t *testing.T, p *process) {
	t.Helper()
	l.ledger.check(t, drain(t, p, client.Queue(l.queue)))
	l.clear()
}

func (l *flow) told() (string, int) {
	done := l.confirmed.ever
	if l.taken {
		done = l.consumed.ever
	}
	return fmt.Sprintf("%s: %d confirmed sends, %d messages received in transactions", l.queue,
		l.confirmed.ever, l.consumed.ever), done
}

// sends is a queue that is sent to in transactions.
type sends struct {
	begun, committed set
}

func (l *sends) begin(*testing.T, *process) {}

func (l *sends) clients(round int) []worker {
	return []worker{{run: func(ctx context.Context, c *client.Conn) error {
		s, err := c.Session(ctx, client.Transacted)
		if err != nil {
			return err
		}
		p, err := s.Producer(ctx, client.Queue("SENDS"))
		if err != nil {
			return err
		}
		for i := 0; ; i++ {
			tx := fmt.Sprint("tx", round, "-", i)
			l.begun.add(tx)
			for j := range txSize {
				if err := p.Send(ctx, client.NewText(fmt.Sprint(tx, "/", j))); err != nil {
					return nil
				}
			}
			if err := s.Commit(ctx); err != nil {
				return nil
			}
			l.committed.add(tx)
		}
	}}}
}

func (l *sends) check(t *testing.T, p *process) {
	t.Helper()
	got := drain(t, p, client.Queue("SENDS"))
	for id := range l.begun.keys {
		n := 0
		for j := range txSize {
			n += got[fmt.Sprint(id, "/", j)]
		}
		if n != txSize && (n != 0 || l.committed.keys[id]) {
			t.Errorf("of transaction %s with %d messages %d are there, committed: %v", id, txSize, n,
				l.committed.keys[id])
		}
	}
	if len(got) > txSize*len(l.begun.keys) {
		t.Errorf("%d messages of %d transactions", len(got), len(l.begun.keys))
	}
	l.begun.clear()
	l.committed.clear()
}

func (l *sends) told() (string, int) {
	return fmt.Sprintf("transactions of sends: %d", l.committed.ever), l.committed.ever
}

// moves is a topic with a durable subscriber that passes on what it gets, in transactions of a
// receipt and a send each, and one that is away.
type moves struct {
	ledger
	made bool
}

const here, away, passedOn = "here", "away", "PASSED.ON"

func (l *moves) topic() *client.Destination { return client.Topic("MOVES") }

func (l *moves) begin(t *testing.T, p *process) {
	t.Helper()
	if l.made {
		return
	}
	l.made = true
	for _, name := range []string{here, away} {
		subscribed(t, p, l.topic(), name, func(context.Context, *client.Consumer) {})
	}
}

// subscribed has a durable subscriber's consumer for a while.
func subscribed(t *testing.T, p *process, topic *client.Destination, name string,
	f func(context.Context, *client.Consumer)) {
	t.Helper()
	asClient(t, p, func(ctx context.Context, s *client.Session) {
		k, err := s.Consumer(ctx, topic, client.WithDurable(name))
		if err != nil {
			t.Fatal(err)
		}
		f(ctx, k)
	}, client.WithClientID(name))
}

func (l *moves) clients(round int) []worker {
	return []worker{
		{run: func(ctx context.Context, c *client.Conn) error {
			return l.produce(ctx, c, l.topic(), fmt.Sprint("m", round, "-"))
		}},
		{here, l.passOn},
	}
}

func (l *moves) passOn(ctx context.Context, c *client.Conn) error {
	s, err := c.Session(ctx, client.Transacted)
	if err != nil {
		return err
	}
	p, err := s.Producer(ctx, client.Queue(passedOn))
	if err != nil {
		return err
	}
	return l.consume(ctx, s, l.topic(), func(m *client.Message) error { return p.Send(ctx, m) },
		client.WithDurable(here))
}

func (l *moves) check(t *testing.T, p *process) {
	t.Helper()
	end := markEnd(t, p, l.topic())
	var waits, all map[string]int
	subscribed(t, p, l.topic(), here, func(ctx context.Context, k *client.Consumer) {
		waits = upTo(ctx, t, k, end)
	})
	subscribed(t, p, l.topic(), away, func(ctx context.Context, k *client.Consumer) {
		all = upTo(ctx, t, k, end)
	})
	l.ledger.check(t, waits)
	passed := drain(t, p, client.Queue(passedOn))
	for key := range l.consumed.keys {
		if passed[key] != 1 {
			t.Errorf("%.20s was received in a committed transaction that passed it on, and is there "+
				"%d times", key, passed[key])
		}
	}
	for key, n := range passed {
		if n != 1 || waits[key] > 0 {
			t.Errorf("%.20s was passed on %d times and waits %d times", key, n, waits[key])
		}
	}
	for key := range l.doubtful.keys {
		if waits[key]+passed[key] != 1 {
			t.Errorf("%.20s, of a transaction in doubt, was passed on %d times and waits %d times", key,
				passed[key], waits[key])
		}
	}
	l.consumed.clear()
	l.doubtful.clear()
	l.ledger.check(t, all)
	l.clear()
}

func (l *moves) told() (string, int) {
	return fmt.Sprintf("topic with two durables: %d confirmed, %d passed on in transactions",
		l.confirmed.ever, l.consumed.ever), l.consumed.ever
}

// asClient has a session of the broker for a while.
func asClient(t testing.TB, p *process, f func(context.Context, *client.Session),
	o ...client.Option) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	conn := dial(ctx, t, p.addr(), o...)
	defer conn.Close(ctx)
	s, err := conn.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	f(ctx, s)
}

// drain takes everything from a queue and counts the texts.
func drain(t testing.TB, p *process, queue *client.Destination) (got map[string]int) {
	t.Helper()
	end := markEnd(t, p, queue)
	asClient(t, p, func(ctx context.Context, s *client.Session) {
		k, err := s.Consumer(ctx, queue)
		if err != nil {
			t.Fatal(err)
		}
		got = upTo(ctx, t, k, end)
	})
	return got
}

// markEnd sends a last message to a destination, and gives its text.
func markEnd(t testing.TB, p *process, d *client.Destination) string {
	t.Helper()
	end := fmt.Sprint("the end at ", time.Now().UnixNano())
	asClient(t, p, func(ctx context.Context, s *client.Session) {
		k, err := s.Producer(ctx, d)
		if err == nil {
			err = k.Send(ctx, client.NewText(end))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return end
}

// upTo takes everything up to a text and counts the texts.
func upTo(ctx context.Context, t testing.TB, k *client.Consumer, end string) map[string]int {
	t.Helper()
	got := map[string]int{}
	for {
		m, err := k.Receive(ctx)
		if err != nil {
			t.Fatalf("after %d messages: %v", len(got), err)
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
