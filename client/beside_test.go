package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"hopwire/openwire"
)

// A browser ends with its link, and the others of its session begin anew, whatever their order.
func TestABrowserEndsWithItsLinkAndNoOtherConsumer(t *testing.T) {
	for _, order := range []string{"bcc", "cbc", "ccb", "bbcc", "bcbc"} {
		b := newScript(t)
		c, p := b.dialed(b.failover(""))
		s := session(t, c, AutoAck)
		expect[*openwire.SessionInfo](p)
		var browsers []*Browser
		var consumers []*Consumer
		for _, kind := range order {
			if kind == 'c' {
				k, info := p.consume(s)
				p.deliver(info, 1)
				consumers = append(consumers, k)
				continue
			}
			p.making(func() (*Consumer, error) {
				x, err := s.Browser(bound(t), Queue("Q"))
				if err != nil {
					return nil, err
				}
				browsers = append(browsers, x)
				return x.consumer, nil
			})
		}
		for _, k := range consumers {
			holds(k, 1)
		}
		p.conn.Close()
		interrupted(c)
		for _, x := range browsers {
			if _, err := x.Next(bound(t)); !errors.Is(err, ErrInterrupted) {
				t.Errorf("%s: a browser gives %v", order, err)
			}
		}
		for i, k := range consumers {
			c.mu.Lock()
			stale := len(k.queue)
			c.mu.Unlock()
			if stale > 0 {
				t.Errorf("%s: consumer %d still has what the lost link brought", order, i)
			}
		}
		p = b.accept()
		p.welcome(true)
		expect[*openwire.SessionInfo](p)
		var infos []*openwire.ConsumerInfo
		for range consumers {
			infos = append(infos, expect[*openwire.ConsumerInfo](p))
		}
		for i, k := range consumers {
			p.deliver(infos[i], 2)
			if got := texts(t, k, 1); got[0] != "2" {
				t.Errorf("%s: got %q", order, got)
			}
			p.ack()
		}
	}
}

// holds waits until a consumer has so many messages.
func holds(k *Consumer, n int) {
	c := k.session.conn
	for {
		c.mu.Lock()
		has := len(k.queue)
		c.mu.Unlock()
		if has >= n {
			return
		}
		<-k.wake
	}
}

// A browser whose broker was lost before it answered is not asked for again: nobody would end it.
func TestABrowserThatIsInterruptedAtItsStartIsNotMade(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.failover(""))
	s := session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	err := during(t, func() error { _, err := s.Browser(bound(t), Queue("Q")); return err }, func() {
		expect[*openwire.ConsumerInfo](p)
		p.conn.Close()
		p = b.accept()
		p.welcome(true)
		expect[*openwire.SessionInfo](p)
	})
	if !errors.Is(err, ErrInterrupted) {
		t.Errorf("the browser gives %v", err)
	}
	p.consume(s) // it comes next
}

func TestAClosedProducerSendsNothing(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s, q := p.produce(c, AutoAck)
	ok(t, q.Close(bound(t)))
	for what, send := range map[string]func() error{
		"Send":          func() error { return q.Send(bound(t), NewText("x")) },
		"Send unstored": func() error { return q.Send(bound(t), NewText("x"), NonPersistent()) },
		"SendAsync":     func() error { return q.SendAsync(bound(t), NewText("x"), nil) },
	} {
		if err := send(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s gives %v", what, err)
		}
	}
	expect[*openwire.RemoveInfo](p)
	p.consume(s) // it comes next
}

// What is closed while its link is lost is not known to the next one.
func TestWhatAClosedProducerSentIsNotSentAgain(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.failover(""))
	s, q := p.produce(c, AutoAck)
	err := during(t, func() error { return q.Send(bound(t), NewText("x")) }, func() {
		expect[*openwire.Message](p)
		p.conn.Close()
		interrupted(c)
		ok(t, q.Close(bound(t)))
		p = b.accept()
		p.welcome(true)
		expect[*openwire.SessionInfo](p)
		p.consume(s) // it comes next
	})
	if !errors.Is(err, ErrClosed) {
		t.Errorf("send gives %v", err)
	}
}

func TestTheEndOfAConnectionIsWrittenOnceAndLast(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s := session(t, c, AutoAck)
	expect[*openwire.SessionInfo](p)
	_, _, goOn := p.busy(s)
	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- c.Close(bound(t)) }()
	}
	for begun := false; !begun; { // the handler holds it up
		c.mu.Lock()
		begun = c.closing
		c.mu.Unlock()
		runtime.Gosched()
	}
	late := session(t, c, IndividualAck)
	expect[*openwire.SessionInfo](p)
	k, info := p.consume(late)
	p.deliver(info, 2)
	m := must[*Message](t)(k.Receive(bound(t)))
	close(goOn)
	var end *openwire.RemoveInfo
	for end == nil {
		if x, is := p.read().(*openwire.RemoveInfo); is {
			if _, last := x.ObjectID.(*openwire.ConnectionId); last {
				end = x
			}
		}
	}
	for what, err := range map[string]error{"Ack": m.Ack(), "Recover": late.Recover()} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s of a session that the end overtook gives %v", what, err)
		}
	}
	ok(t, k.Close())
	ok(t, late.Close(bound(t)))
	c.mu.Lock()
	ok(t, c.undoLocked(context.Canceled, &openwire.RemoveInfo{ObjectID: info.ConsumerID}))
	c.mu.Unlock()
	p.answer(end)
	expect[*openwire.ShutdownInfo](p)
	p.conn.Close()
	ok(t, errors.Join(<-closed, <-closed))
}

// strict is a broker that knows what its client has registered, and notes what is for other things.
type strict struct {
	*peer
	there map[string]bool
	odd   []string
}

// key names what a command is about.
func key(id openwire.DataStructure) string {
	switch x := id.(type) {
	case *openwire.ConsumerId:
		return fmt.Sprintf("child %d:%d", x.SessionID, x.Value)
	case *openwire.ProducerId:
		return fmt.Sprintf("child %d:%d", x.SessionID, x.Value)
	case *openwire.SessionId:
		return fmt.Sprintf("session %d", x.Value)
	}
	return "connection"
}

// serve plays the broker until the client has taken leave.
func (b *strict) serve() {
	need := func(cmd openwire.Command, id openwire.DataStructure) {
		if !b.there[key(id)] {
			b.odd = append(b.odd, fmt.Sprintf("%T for %s", cmd, key(id)))
		}
	}
	for {
		cmd := b.read()
		switch x := cmd.(type) {
		case *openwire.SessionInfo:
			need(x, nil)
			b.there[key(x.SessionID)] = true
		case *openwire.ProducerInfo:
			need(x, &openwire.SessionId{Value: x.ProducerID.SessionID})
			b.there[key(x.ProducerID)] = true
		case *openwire.ConsumerInfo:
			need(x, &openwire.SessionId{Value: x.ConsumerID.SessionID})
			b.there[key(x.ConsumerID)] = true
			b.deliver(x, 1, 2, 3)
		case *openwire.Message:
			need(x, x.ProducerID)
		case *openwire.MessageAck:
			need(x, x.ConsumerID)
		case *openwire.MessagePull:
			need(x, x.ConsumerID)
			b.write(&openwire.MessageDispatch{ConsumerID: x.ConsumerID})
		case *openwire.RemoveInfo:
			need(x, x.ObjectID)
			delete(b.there, key(x.ObjectID))
		case *openwire.ShutdownInfo:
			b.conn.Close()
			return
		default:
			need(x, nil)
		}
		if cmd.Base().ResponseRequired {
			b.answer(cmd)
		}
	}
}

// Whatever a program does beside closing something, the broker is told nothing about what it does
// not know, and the program hears of nothing but the closing.
func TestNothingIsWrittenForWhatIsClosed(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	for seed := range rounds {
		s := newScript(t)
		c, p := s.dialed(s.uri(), WithErrorHandler(func(err error) { t.Errorf("told: %v", err) }))
		b := &strict{peer: p, there: map[string]bool{"connection": true}}
		served := make(chan struct{})
		go func() { defer close(served); b.serve() }()
		var them sync.WaitGroup
		steps := make(chan struct{})
		for worker := range 4 {
			r := rand.New(rand.NewPCG(uint64(seed), uint64(worker)))
			them.Go(func() { works(t, c, r, steps) })
		}
		for range rand.New(rand.NewPCG(uint64(seed), 9)).IntN(25) {
			<-steps
		}
		go func() { // whoever comes late finds nobody who waits for it
			for range steps {
			}
		}()
		if err := c.Close(bound(t)); err != nil && !errors.Is(err, ErrClosed) {
			t.Errorf("seed %d: close gives %v", seed, err)
		}
		them.Wait()
		close(steps)
		<-served
		if len(b.odd) > 0 {
			t.Fatalf("seed %d: the client sent %s", seed, b.odd)
		}
	}
}

// works does this and that with a session that somebody else closes.
func works(t *testing.T, c *Conn, r *rand.Rand, steps chan<- struct{}) {
	for range 7 {
		defer func() { steps <- struct{}{} }() // those that it did not come to
	}
	modes := []AckMode{AutoAck, ClientAck, IndividualAck, DupsOKAck, Transacted}
	s, err := c.Session(t.Context(), modes[r.IntN(len(modes))])
	if err != nil {
		closedOnly(t, err)
		return
	}
	q, err := s.Producer(t.Context(), Queue("Q"))
	closedOnly(t, err)
	k, err := s.Consumer(t.Context(), Queue("Q"), WithPrefetchSize(int32(r.IntN(3))))
	closedOnly(t, err)
	if q == nil || k == nil {
		return
	}
	var beside sync.WaitGroup
	closing := []func() error{
		func() error { return q.Close(t.Context()) }, k.Close,
		func() error { return s.Close(t.Context()) },
	}[r.IntN(3)]
	beside.Go(func() { closedOnly(t, closing()) })
	for range 6 {
		steps <- struct{}{}
		switch r.IntN(5) {
		case 0:
			closedOnly(t, q.Send(t.Context(), NewText("x")))
		case 1:
			closedOnly(t, q.SendAsync(t.Context(), NewText("x"), func(error) {}))
		case 2:
			m, err := k.ReceiveNoWait(t.Context())
			closedOnly(t, err)
			if m != nil {
				closedOnly(t, m.Ack())
			}
		case 3:
			if s.Mode() == Transacted {
				closedOnly(t, s.Commit(t.Context()))
			}
		case 4:
			_, err := c.TempQueue(t.Context())
			closedOnly(t, err)
		}
	}
	beside.Wait()
}

func closedOnly(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrClosed) {
		t.Errorf("beside the closing: %v", err)
	}
}

// A transaction that a send begins while its session closes ends with the session.
func TestNoTransactionOutlivesItsSession(t *testing.T) {
	b := newScript(t)
	c, p := b.dialed(b.uri())
	s, q := p.produce(c, Transacted)
	ok(t, q.SendAsync(bound(t), NewText("x"), nil))
	expect[*openwire.TransactionInfo](p)
	first := expect[*openwire.Message](p)
	err := during(t, func() error { return s.Close(bound(t)) }, func() {
		back := expect[*openwire.TransactionInfo](p)
		p.write(&openwire.ExceptionResponse{CorrelationID: back.CommandID, // it is gone, which is meant
			Exception: &openwire.Throwable{Class: "javax.jms.JMSException", Message: "not started"}})
		for begun := false; !begun; { // the producer waits for its confirmation
			c.mu.Lock()
			begun = q.progress != nil
			c.mu.Unlock()
			runtime.Gosched()
		}
		ok(t, q.Send(bound(t), NewText("y")))
		begin := expect[*openwire.TransactionInfo](p)
		expect[*openwire.Message](p)
		p.answer(first)
		expect[*openwire.RemoveInfo](p)
		end := expect[*openwire.TransactionInfo](p)
		if end.Type != openwire.TransactionRollback ||
			*end.TransactionID.(*openwire.LocalTransactionId) !=
				*begin.TransactionID.(*openwire.LocalTransactionId) {
			t.Errorf("after %+v came %+v", begin, end)
		}
		expect[*openwire.RemoveInfo](p)
	})
	ok(t, err)
}
