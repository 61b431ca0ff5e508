package queue

import (
	"fmt"
	"testing"
	"time"
)

// restored is a queue whose copies 1 to n are in the store alone, and may go to anybody.
func restored(n int) *world {
	w := newWorld()
	for range n {
		w.add(true)
	}
	w.q = New(w.q.Destination, &w.clock, &w.testHost, 1)
	w.q.Restore(1, uint64(n)+1, int64(n))
	w.known = ^uint64(0)
	return w
}

// dispatch runs what the queue woke for; pages stay on their way.
func (w *world) dispatch() {
	for w.woken {
		w.woken = false
		w.q.Dispatch(NewSlice(&w.clock))
	}
}

func TestASearchKeepsNobodyElseFromWhatIsNew(t *testing.T) {
	w := restored(30)
	done := w.attach(&testSub{room: 9, step: 100}, Traits{Priority: -1})
	w.settle()
	w.evictAll()
	w.attach(&testSub{room: 9, step: 1000}, Traits{})
	w.dispatch() // it waits for its first page
	w.seq = 99
	w.q.skip(100)
	w.add(false)
	w.dispatch()
	if got := seqsOf(done.took); got != "[100]" || len(w.reads) != 1 {
		t.Errorf("took %s while %d pages are on their way", got, len(w.reads))
	}
}

func TestAPageThatCannotBeReadHoldsUpOnlyWhoNeedsIt(t *testing.T) {
	w := restored(30)
	late := w.attach(&testSub{room: 1, step: 20}, Traits{})
	w.settle() // it has looked at the first 20
	w.evictAll()
	w.bad[5] = true
	early := w.attach(&testSub{room: 9}, Traits{})
	w.settle()
	late.room, late.step = 9, 10
	late.slot.Ready()
	w.settle()
	if got := seqsOf(early.took) + seqsOf(late.took); got != "[1 2 3][20 30]" {
		t.Errorf("took %s", got)
	}
	if err := w.q.Check(); err != nil {
		t.Error(err)
	}
	w.bad[5] = false
	w.advance(time.Second)
	w.settle()
	if got := seqsOf(early.took); got != "[1 2 3 4 5 6 7 8 9]" {
		t.Errorf("when it can be read: took %s", got)
	}
}

func TestTwoSearchesTakeTurns(t *testing.T) {
	w := restored(60)
	far := w.attach(&testSub{room: 1, step: 30}, Traits{})
	w.settle()
	w.evictAll()
	far.room, far.step = 9, 1000
	far.slot.Ready()
	for range 2 { // at one place
		w.attach(&testSub{room: 9, step: 1000}, Traits{})
	}
	w.dispatch()
	pages := ""
	for len(w.reads) > 0 && len(pages) < 40 {
		g := w.reads[0]
		w.reads = w.reads[1:]
		pages += fmt.Sprint(" ", g.from)
		w.load(g)
		w.dispatch()
	}
	if want := " 1 31 4 34 7 37 10 40"; pages[:len(want)] != want {
		t.Errorf("pages were read from%s on, want%s", pages, want)
	}
}
