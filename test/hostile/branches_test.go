package hostile

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"hopwire/client"
	"hopwire/openwire"
)

// branches moves messages from a queue to another in XA branches of one resource, with a manager
// that keeps its decisions: what it has decided to commit is committed after the restart, all else
// rolled back.
type branches struct {
	ledger
	p       *process
	round   int
	decided set // branches, by their global ids
	moved   set // messages of these
}

func (l *branches) begin(_ *testing.T, p *process) { l.p = p }

func (l *branches) from() *openwire.Destination { return queueName("XA.IN") }

func (l *branches) clients(round int) []worker {
	l.round = round
	return []worker{
		{run: func(ctx context.Context, c *client.Conn) error {
			return l.produce(ctx, c, l.from(), fmt.Sprint("x", round, "-"))
		}},
		{run: func(context.Context, *client.Conn) error {
			v := &victim{TB: l.p.t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				l.move(v)
			}()
			<-done
			return v.err
		}},
	}
}

// victim is the test to a client that is to end with its broker: what ends it is not a failure,
// unless the broker said it.
type victim struct {
	testing.TB
	err error
}

func (v *victim) Fatal(...any) { runtime.Goexit() }

func (v *victim) Fatalf(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); strings.Contains(text, "Exception") {
		v.err = errors.New(text)
	}
	runtime.Goexit()
}

// move moves messages until the broker is gone.
func (l *branches) move(t testing.TB) {
	k := login(t, l.p.addr(), fmt.Sprint("xa", l.round))
	k.subscribe(1, l.from(), 5*txSize)
	for n := int32(1); ; n++ {
		x := k.branch(fmt.Sprint(l.round, "-", n))
		x.step(openwire.TransactionBegin)
		var keys []string
		for len(keys) < txSize {
			d := await[*openwire.MessageDispatch](k)
			text, err := d.Message.Text(1 << 20)
			if err != nil {
				t.Fatalf("Exception: %v", err)
			}
			m := k.message(queueName("XA.OUT"), int64(n)*txSize+int64(len(keys)), 0)
			m.TransactionID, m.Persistent = x.id, true
			m.SetText(text)
			k.send(m, &openwire.MessageAck{Destination: l.from(), TransactionID: x.id,
				ConsumerID: k.consumer(1), AckType: openwire.AckIndividual,
				LastMessageID: d.Message.MessageID, MessageCount: 1})
			keys = append(keys, text)
		}
		x.step(openwire.TransactionEnd)
		x.step(openwire.TransactionPrepare)
		l.decided.add(x.global())
		l.moved.add(keys...)
		x.step(openwire.TransactionCommitTwoPhase)
		l.consumed.add(keys...)
	}
}

// branch is an XA branch as one client drives it.
type branch struct {
	k    *raw
	id   *openwire.XATransactionId
	last int32 // command
}

func (k *raw) branch(global string) *branch {
	return &branch{k: k, last: 1000, id: &openwire.XATransactionId{FormatID: 9,
		GlobalTransactionID: []byte(global), BranchQualifier: []byte("b")}}
}

func (x *branch) global() string { return string(x.id.GlobalTransactionID) }

// step takes a step and waits for the answer.
func (x *branch) step(how byte) {
	x.k.t.Helper()
	x.last++
	x.k.send(&openwire.TransactionInfo{BaseCommand: command(x.last, true),
		ConnectionID: &openwire.ConnectionId{Value: x.k.id}, TransactionID: x.id, Type: how})
	if how == openwire.TransactionPrepare {
		await[*openwire.IntegerResponse](x.k)
		return
	}
	x.k.answer(x.last)
}

// decide ends the branches that wait for their manager.
func (l *branches) decide(t *testing.T, p *process) {
	t.Helper()
	k := login(t, p.addr(), "manager")
	k.send(&openwire.TransactionInfo{BaseCommand: command(999, true),
		ConnectionID: &openwire.ConnectionId{Value: k.id}, Type: openwire.TransactionRecover})
	for _, found := range await[*openwire.DataArrayResponse](k).Data {
		id, ok := found.(*openwire.XATransactionId)
		if !ok {
			t.Fatalf("recover gives a %T", found)
		}
		x := k.branch(string(id.GlobalTransactionID))
		how := openwire.TransactionRollback
		if l.decided.keys[x.global()] {
			how = openwire.TransactionCommitTwoPhase
		}
		x.step(how)
	}
	k.c.Close()
}

func (l *branches) check(t *testing.T, p *process) {
	t.Helper()
	l.decide(t, p)
	waits, moved := drain(t, p, l.from()), drain(t, p, queueName("XA.OUT"))
	for key := range l.confirmed.keys {
		if waits[key]+moved[key] != 1 {
			t.Errorf("%.20s was confirmed, waits %d times and was moved %d times", key, waits[key],
				moved[key])
		}
	}
	for key, n := range moved {
		if n != 1 || !l.moved.keys[key] || waits[key] > 0 {
			t.Errorf("%.20s was moved %d times and waits %d times, decided: %v", key, n, waits[key],
				l.moved.keys[key])
		}
	}
	for key := range l.moved.keys {
		if moved[key] != 1 {
			t.Errorf("%.20s is of a branch that was decided to commit, and was moved %d times", key,
				moved[key])
		}
	}
	l.clear()
	l.decided.clear()
	l.moved.clear()
}

func (l *branches) told() (string, int) {
	return fmt.Sprintf("XA: %d branches decided, %d messages moved by committed ones, %d confirmed",
		l.decided.ever, l.consumed.ever, l.confirmed.ever), l.consumed.ever
}
