package queue

import (
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
)

// A slot without room is asked whether anything waits for it: it takes even sequences.
func TestOnlyWhatASlotWouldTakeWaitsForIt(t *testing.T) {
	group := func(w *world) { // another slot takes number 1
		w.attach(&testSub{room: 1}, Traits{})
		w.addAs(&message.Message{GroupID: "G"})
		w.settle()
	}
	for name, c := range map[string]struct {
		before, after func(w *world)
		some, unread  bool
		takes         string // when it has room
	}{
		"nothing": {nil, func(*world) {}, false, false, "[]"},
		"others'": {nil, func(w *world) { w.adds(1) }, false, false, "[]"},
		"its own": {nil, func(w *world) { w.adds(2) }, true, false, "[2]"},
		"group's": {group, func(w *world) {
			w.addAs(&message.Message{GroupID: "G"})
		}, false, false, "[]"},
		"of no group":   {group, func(w *world) { w.adds(1) }, true, false, "[2]"},
		"queue's owner": {nil, func(w *world) { w.adds(2); w.owned() }, false, false, "[]"},
		"expired": {nil, func(w *world) {
			w.advance(time.Second)
			w.adds(1)
			w.addAs(&message.Message{Expiration: 1})
			w.adds(1)
		}, false, false, "[]"},
		"stored":             {nil, func(w *world) { w.gap(2) }, false, true, "[2]"},
		"behind stored ones": {nil, func(w *world) { w.gap(2); w.adds(2) }, true, false, "[2 4]"},
		"others' behind":     {nil, func(w *world) { w.gap(2); w.adds(1) }, false, true, "[2]"},
		"placed back":        {nil, func(w *world) { w.placed(t, 0) }, true, false, "[2]"},
		"placed back, expired": {nil, func(w *world) {
			w.advance(time.Second)
			w.placed(t, 1)
		}, false, false, "[]"},
		"placed back, stored": {nil, func(w *world) {
			w.gap(2)
			w.subs[0].slot.looked(main, 3)
			w.subs[0].slot.lookAgain(place{main, 2})
		}, false, true, "[2]"},
	} {
		w := newWorld()
		s := &testSub{step: 2}
		if c.before != nil {
			c.before(w)
		}
		w.subs = append([]*testSub{s}, w.subs...)
		s.slot = w.q.Attach(s, Traits{})
		w.settle()
		c.after(w)
		for range 2 { // what it passes changes nothing
			if some, unread := s.slot.Waits(9); some != c.some || unread != c.unread {
				t.Errorf("%s: %t and %t", name, some, unread)
			}
		}
		s.room = 9
		s.slot.Ready()
		w.settle()
		if got := seqsOf(s.took); got != c.takes || strings.Contains(name, "expired") && w.expired != 1 {
			t.Errorf("%s: with room it takes %s, want %s; %d expired", name, got, c.takes, w.expired)
		}
		if err := w.q.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (w *world) adds(n int) {
	for range n {
		w.add(false)
	}
}

// placed lets the second copy wait after the first slot looked at the third.
func (w *world) placed(t *testing.T, expiration int64) {
	var c [3]*Copy
	for i := range c {
		c[i] = w.q.Reserve(&message.Message{Expiration: expiration * int64(i%2)}, 0, w)
	}
	w.q.Place(c[2])
	if some, _ := w.subs[0].slot.Waits(9); some {
		t.Error("the third waits for it")
	}
	w.q.Place(c[1])
}

// owned has another slot that has the queue for itself.
func (w *world) owned() { w.attach(&testSub{}, Traits{Exclusive: Exclusive{On: true}}) }

// gap adds n copies that are in the store alone.
func (w *world) gap(n int) {
	for range n {
		w.q.Committed(w.add(true))
	}
	w.q.Evict(0, 0)
}

// Each call looks at few copies, and none twice that the slot refuses.
func TestALookAtWhatWaitsGoesOnWhereItEnded(t *testing.T) {
	w := newWorld()
	s := w.attach(&testSub{step: 50}, Traits{})
	w.adds(60)
	w.settle()
	for n := range 5 {
		if some, _ := s.slot.Waits(10); some != (n == 4) {
			t.Errorf("call %d finds one: %t", n+1, some)
		}
	}
	s.step = 51
	s.slot.looked(main, 60)
	for n := range uint64(51) {
		s.slot.lookAgain(place{main, n + 1})
	}
	if some, _ := s.slot.Waits(50); some {
		t.Error("51 are looked at again")
	}
	if some, _ := s.slot.Waits(51); !some {
		t.Error("the last of 51 is not found")
	}
}
