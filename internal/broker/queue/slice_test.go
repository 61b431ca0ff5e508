package queue

import (
	"testing"
	"time"

	"hopwire/internal/message"
)

// pondering is a subscription that takes its time to refuse.
type pondering struct {
	clock  *clock
	looked int
}

func (*pondering) Gate(time.Duration) message.Verdict { return message.Verdict{} }
func (*pondering) Take(*Copy) bool                    { return true }

func (s *pondering) Verdict(*Copy, time.Duration) message.Verdict {
	s.looked++
	s.clock.now += 100 * time.Microsecond
	return message.Refused(message.SelectorNoMatch)
}

func TestADispatchYieldsTheLoopWhenLooksAreDear(t *testing.T) {
	env, h := &clock{}, &testHost{stored: map[uint64]*Copy{}}
	h.q = New(message.Destination{Kind: message.Queue, Name: "q"}, env, h, 1)
	const many = 1000
	for range many {
		h.q.Add(&message.Message{}, 0)
	}
	s := &pondering{clock: env}
	h.q.Attach(s, Traits{})
	slices := 0
	for h.woken {
		h.woken = false
		before := s.looked
		h.q.Dispatch(NewSlice(h.q.env))
		if n := s.looked - before; n > int(sliceTime/(100*time.Microsecond))+sliceStep {
			t.Fatalf("one dispatch looked at %d copies", n)
		}
		slices++
	}
	if s.looked != many || slices < many/40 {
		t.Errorf("%d looks at %d copies in %d slices", s.looked, many, slices)
	}
}

func TestWhatComesBackIsInItsOrderWhoeverGaveItBack(t *testing.T) {
	h := &testHost{stored: map[uint64]*Copy{}}
	h.q = New(message.Destination{Kind: message.Queue, Name: "q"}, &clock{}, h, 1)
	for range 6 {
		h.q.Add(&message.Message{}, 0)
	}
	first := &testSub{step: 1, room: 4}
	first.slot = h.q.Attach(first, Traits{})
	h.settle()
	h.q.Detach(first.slot)
	h.q.Return(first.took[2:])
	h.q.Return(first.took[:2])
	next := &testSub{step: 1, room: 10}
	next.slot = h.q.Attach(next, Traits{})
	h.settle()
	for i, c := range next.took {
		if c.Seq != uint64(i+1) {
			t.Errorf("copy %d comes as number %d", c.Seq, i+1)
		}
	}
	if len(next.took) != 6 {
		t.Errorf("%d of 6 came", len(next.took))
	}
}
