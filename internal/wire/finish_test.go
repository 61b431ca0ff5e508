package wire

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hopwire/internal/message"
	"hopwire/openwire"
)

// finishing has a session that was given an answer and is finished, over a connection that can
// say that this side has ended.
func finishing(t *testing.T, f func(b *bench, far *far)) {
	t.Helper()
	inBubbleOver(t, &atomic.Bool{}, false, nil, func(b *bench) {
		far := b.hello(nil)
		b.on(func() {
			b.s.Hold(true)
			b.s.Respond(1)
			b.s.Finish()
			b.s.Finish()
			b.s.Respond(2)
			b.s.Hold(true) // too late: what comes is to be read
		})
		f(b, far)
	})
}

// heard is what came, and why the session is down, as the loop has it.
func (b *bench) heard() (got []message.Command, down []error) {
	b.on(func() { got, down = slices.Clone(b.got), slices.Clone(b.down) })
	return got, down
}

// acknowledge sends what needs no answer.
func (f *far) acknowledge() { f.send(&openwire.MessageAck{}) }

func TestAFinishedSessionSaysTheEndAndStillReceives(t *testing.T) {
	finishing(t, func(b *bench, f *far) {
		synctest.Wait()
		if b.half.Load() {
			t.Error("the end was said before the answer was written")
		}
		f.listen()
		synctest.Wait()
		if got := f.kinds(); got != "Response" || !b.half.Load() {
			t.Errorf("the peer heard %q, and the end: %v", got, b.half.Load())
		}
		for range 2 * postingCredit {
			f.acknowledge()
		}
		time.Sleep(closeLinger - time.Millisecond)
		f.acknowledge()
		synctest.Wait()
		if got, down := b.heard(); len(got) != 2*postingCredit+1 || len(down) != 0 {
			t.Errorf("%d commands of %d came behind the end; it is down: %v", len(got),
				2*postingCredit+1, down)
		}
		b.far.Close()
		synctest.Wait()
		if _, down := b.heard(); len(down) != 1 {
			t.Error("the peer has closed, and nobody is told")
		}
		if err := b.s.cfg.Hub.Flushed(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A peer that reads has the time of closeLinger to close, one that does not read that of
// closeTimeout to read.
func TestAFinishedSessionWaitsForItsPeerOnlySoLong(t *testing.T) {
	for reads, patience := range map[bool]time.Duration{true: closeLinger, false: closeTimeout} {
		finishing(t, func(b *bench, f *far) {
			if reads {
				f.listen()
			}
			time.Sleep(patience - time.Millisecond)
			synctest.Wait()
			if _, down := b.heard(); len(down) != 0 || b.half.Load() != reads {
				t.Fatalf("reads %v: down too early: %v; the end was said: %v", reads, down, b.half.Load())
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if _, down := b.heard(); len(down) != 1 {
				t.Errorf("a peer keeps the session that does no more (reads %v)", reads)
			}
		})
	}
}

func TestACloseBehindAFinishEndsAtOnce(t *testing.T) {
	finishing(t, func(b *bench, f *far) {
		f.listen()
		b.on(func() { b.s.Close("enough") })
		b.ended("enough")
		f.acknowledge()
		synctest.Wait()
		if got, _ := b.heard(); len(got) != 0 {
			t.Errorf("a closed session received %v", got)
		}
		b.far.Close()
		if err := b.s.cfg.Hub.Flushed(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Where the end of one side cannot be said, the whole connection ends with it.
func TestAFinishedSessionEndsWhereHalfCannot(t *testing.T) {
	inBubble(t, false, nil, func(b *bench) {
		f := b.hello(nil)
		f.listen()
		b.on(func() {
			b.s.Send(&message.KeepAliveInfo{})
			b.s.Finish()
		})
		synctest.Wait()
		if _, down := b.heard(); len(down) != 1 || f.kinds() != "KeepAliveInfo" {
			t.Errorf("ended %v, the peer heard %q", down, f.kinds())
		}
	})
}
