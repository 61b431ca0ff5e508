package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hopwire/client"
)

// receiver is a consumer of the demo and what it got.
type receiver struct {
	label   string
	session *client.Session

	mu    sync.Mutex
	ids   []string
	first time.Time
	last  time.Time
	limit int // stop taking after so many; 0 none
	full  chan struct{}
	gone  chan struct{} // closed when the consumer closes
}

// errGone gives a message back: it came when the consumer wanted no more.
var errGone = errors.New("the consumer is closing")

// receive opens a consumer that counts.
func (s *side) receive(ctx context.Context, label, queue string, limit int,
	opts ...client.ConsumerOption) (*receiver, error) {
	session, err := s.conn.Session(ctx, client.AutoAck)
	if err != nil {
		return nil, err
	}
	r := &receiver{label: label, session: session, limit: limit,
		full: make(chan struct{}), gone: make(chan struct{})}
	_, err = session.Consume(ctx, client.Queue(queue), r.take, opts...)
	return r, err
}

func (r *receiver) take(ctx context.Context, m *client.Message) error {
	r.mu.Lock()
	if r.limit > 0 && len(r.ids) == r.limit {
		r.mu.Unlock()
		select { // what came ahead stays unacknowledged and goes back
		case <-r.gone:
		case <-ctx.Done():
		}
		return errGone
	}
	r.ids = append(r.ids, m.ID)
	r.last = time.Now()
	if len(r.ids) == 1 {
		r.first = r.last
	}
	if len(r.ids) == r.limit {
		close(r.full)
	}
	r.mu.Unlock()
	return nil
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ids)
}

// all waits for the receiver's limit.
func (r *receiver) all(ctx context.Context) error {
	select {
	case <-r.full:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %d of %d messages: %w", r.label, r.count(), r.limit, ctx.Err())
	}
}

func (r *receiver) close(ctx context.Context) error {
	close(r.gone)
	return r.session.Close(ctx)
}

// send sends n persistent messages, each confirmed.
func (s *side) send(ctx context.Context, queue string, n int) error {
	session, err := s.conn.Session(ctx, client.AutoAck)
	if err != nil {
		return err
	}
	p, err := session.Producer(ctx, client.Queue(queue))
	if err != nil {
		return err
	}
	for i := range n {
		if err := p.Send(ctx, client.NewText(fmt.Sprintf("message %d", i))); err != nil {
			return err
		}
	}
	return session.Close(ctx)
}

// until waits until the brokers' states satisfy a condition.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}

// consumers waits until a queue has so many client and network consumers.
func (s *side) consumers(ctx context.Context, queue string, local, networks int) error {
	what := fmt.Sprintf("%d consumers and %d network consumers of %s on %s", local, networks, queue,
		s.name)
	return until(ctx, what, func() (bool, error) {
		d, err := s.queue(ctx, queue)
		return d.Consumers == local && d.Networks == networks, err
	})
}

// split is story (a): how a queue's messages are shared between a local and two remote consumers.
func split(ctx context.Context, s *show) (bool, error) {
	s.chapter("(a) 30 messages to a; one consumer on a, two on b")
	conduit, err := shares(ctx, s, queueConduit, 1)
	if err != nil {
		return false, err
	}
	each, err := shares(ctx, s, queueEach, 2)
	if err != nil {
		return false, err
	}
	remote := conduit[1:]
	slices.Sort(remote)
	held := conduit[0] == 15 && slices.Equal(remote, []int{7, 8}) &&
		slices.Equal(each, []int{10, 10, 10})
	s.outcome(held,
		fmt.Sprintf("with conduitSubscriptions the consumer on a got %d, those on b %d and %d;"+
			" without, %d, %d and %d. A conduit is one consumer among a's, whatever stands behind it.",
			conduit[0], remote[1], remote[0], each[0], each[1], each[2]),
		"the same: 15/8/7 and 10/10/10. From 5.18 on decreaseNetworkConsumerPriority is true by"+
			" default, and the local consumer gets all 30.")
	return held, nil
}

// shares sends 30 messages and gives what each of the three consumers got, the local one first.
func shares(ctx context.Context, s *show, queue string, networks int) ([]int, error) {
	a, b := s.world.sides[0], s.world.sides[1]
	var rs []*receiver
	for i, at := range []*side{a, b, b} {
		r, err := at.receive(ctx, []string{"CA", "CB1", "CB2"}[i], queue, 0)
		if err != nil {
			return nil, err
		}
		rs = append(rs, r)
	}
	s.watch(queue, rs[:1], rs[1:])
	if err := a.consumers(ctx, queue, 1, networks); err != nil {
		return nil, err
	}
	if err := a.send(ctx, queue, 30); err != nil {
		return nil, err
	}
	counts := func() (total int, each []int) {
		for _, r := range rs {
			n := r.count()
			total += n
			each = append(each, n)
		}
		return total, each
	}
	err := until(ctx, "30 messages", func() (bool, error) {
		total, _ := counts()
		return total >= 30, nil
	})
	if err != nil {
		return nil, err
	}
	s.pause(ctx)
	_, each := counts()
	for _, r := range rs {
		if err := r.close(ctx); err != nil {
			return nil, err
		}
	}
	return each, nil
}

// move is story (b): a consumer goes from b to a in the middle of a backlog.
func move(ctx context.Context, s *show) (bool, error) {
	const total, early = 500, 100
	s.chapter(fmt.Sprintf("(b) %d messages cross from a to b; the consumer takes %d there and"+
		" moves to a", total, early))
	_, before, after, err := hop(ctx, s, queueMove, total, early)
	if err != nil {
		return false, err
	}
	dead, err := s.deadLetters(ctx)
	if err != nil {
		return false, err
	}
	unique := distinct(before.ids, after.ids)
	got := len(before.ids) + len(after.ids)
	held := unique == total && got == total && dead == 0
	s.outcome(held,
		fmt.Sprintf("%d on b, %d on a: %d different messages, %d twice, %d dead letters. Everything"+
			" followed the consumer back.", len(before.ids), len(after.ids), unique, got-unique, dead),
		"without replayWhenNoConsumers the rest stays on b although a consumer is connected. With"+
			" it, a copy that comes back can meet the late acknowledgement of its own forward, which"+
			" deletes it: 3 of 800 persistent messages were lost in our runs, without a line in a log.")
	return held, nil
}

// delayed is story (c): the same with a replay delay, and nobody touches anything.
func delayed(ctx context.Context, s *show) (bool, error) {
	const total, early = 100, 30
	s.chapter(fmt.Sprintf("(c) the same with replayDelay=%d: the consumer moves at once, and then"+
		" nothing else happens", replayDelay.Milliseconds()))
	arrived, before, after, err := hop(ctx, s, queueWait, total, early)
	if err != nil {
		return false, err
	}
	unique := distinct(before.ids, after.ids)
	got := len(before.ids) + len(after.ids)
	firstAt, lastAt := after.first.Sub(arrived), after.last.Sub(arrived)
	held := unique == total && got == total && lastAt < replayDelay+time.Second
	s.outcome(held,
		fmt.Sprintf("%d on b, then %d on a, %.1f to %.1f s after they had reached b: a timer brings"+
			" each of them back when its delay is over.", len(before.ids), len(after.ids),
			firstAt.Seconds(), lastAt.Seconds()),
		"a refused message is looked at again only when something else happens to its queue. The"+
			" rest stays on b with a consumer connected, up to 30 s, until the scan for expired"+
			" messages wakes the queue; with expireMessagesPeriod=0, for ever.")
	return held, nil
}

// hop sends total messages to a, lets a consumer take some on b and the rest on a, and tells when
// the last of them had reached b.
func hop(ctx context.Context, s *show, queue string, total, early int) (arrived time.Time,
	before, after *receiver, err error) {
	a, b := s.world.sides[0], s.world.sides[1]
	fail := func(err error) (time.Time, *receiver, *receiver, error) {
		return time.Time{}, nil, nil, err
	}
	one := client.WithPrefetchSize(1)
	if before, err = b.receive(ctx, "C", queue, early, one); err != nil {
		return fail(err)
	}
	s.watch(queue, nil, []*receiver{before})
	if err := a.consumers(ctx, queue, 0, 1); err != nil {
		return fail(err)
	}
	if err := a.send(ctx, queue, total); err != nil {
		return fail(err)
	}
	if err := before.all(ctx); err != nil {
		return fail(err)
	}
	err = until(ctx, "all messages on b", func() (bool, error) {
		d, err := a.queue(ctx, queue)
		return d.Size == 0, err
	})
	if err != nil {
		return fail(err)
	}
	arrived = time.Now()
	s.pause(ctx)
	if err := before.close(ctx); err != nil {
		return fail(err)
	}
	if after, err = a.receive(ctx, "C", queue, total-early, one); err != nil {
		return fail(err)
	}
	s.watch(queue, []*receiver{after}, []*receiver{before})
	if err := after.all(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fail(err)
	}
	s.pause(ctx)
	return arrived, before, after, after.close(ctx)
}

// distinct counts the different ids of both lists.
func distinct(lists ...[]string) int {
	seen := map[string]bool{}
	for _, l := range lists {
		for _, id := range l {
			seen[id] = true
		}
	}
	return len(seen)
}
