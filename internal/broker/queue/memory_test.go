package queue

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestOneOldCopyDoesNotKeepThoseThatPassIt(t *testing.T) {
	w := newWorld()
	s := w.attach(&testSub{room: 1 << 20}, Traits{})
	w.add(true)
	for range 5000 {
		c := w.add(true)
		w.settle()
		w.q.Remove(c)
	}
	if n := len(w.q.outside.entries); n > 200 || w.q.OldestStored() != 1 {
		t.Errorf("%d places are kept for 1 copy that is out, the oldest stored is %d", n,
			w.q.OldestStored())
	}
	w.q.Remove(s.took[0])
	if len(w.q.outside.entries) != 0 || w.q.OldestStored() != w.q.NextSeq() {
		t.Errorf("with none out %d places are kept, the oldest stored is %d",
			len(w.q.outside.entries), w.q.OldestStored())
	}
}

// TestTheOldestStoredIsBelowNone holds OldestStored to a search of all copies.
func TestTheOldestStoredIsBelowNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		var all []*Copy
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			var c *Copy
			if len(all) > 0 {
				c = all[rapid.IntRange(0, len(all)-1).Draw(t, "copy")]
			}
			switch op := rapid.IntRange(0, 5).Draw(t, "op"); {
			case c == nil || op == 0:
				all = append(all, w.add(true))
			case op == 1 && !c.out:
				w.q.Hold(c, w)
			case op == 2:
				w.q.Place(c)
			case op == 3:
				w.q.Return([]*Copy{c})
			case op == 4:
				w.q.Remove(c)
				for i := range all {
					if all[i] == c {
						all = append(all[:i], all[i+1:]...)
						break
					}
				}
			}
			want := w.q.NextSeq()
			for _, c := range all {
				want = min(want, c.Seq)
			}
			if got := w.q.OldestStored(); got != want {
				t.Fatalf("the oldest stored is %d, want %d", got, want)
			}
		}
	})
}

func TestAPairHasOneTimeHoweverOftenItIsLookedAt(t *testing.T) {
	w := newWorld()
	late := w.attach(&testSub{room: 1 << 20, delay: time.Hour}, Traits{})
	var copies []*Copy
	for range 100 {
		copies = append(copies, w.add(false))
	}
	for range 20 {
		w.settle()
		late.slot.Rescan()
	}
	w.settle()
	if n := len(w.q.times); n != 100 {
		t.Errorf("%d times for 100 copies", n)
	}
	w.q.Remove(copies[7])
	w.q.Hold(copies[8], w)
	if n := len(w.q.times); n != 98 {
		t.Errorf("%d times for 98 copies that wait", n)
	}
	w.q.Place(copies[8])
	w.settle()
	w.advance(2 * time.Hour)
	w.settle()
	if n := len(late.took); n != 99 {
		t.Errorf("%d of 99 were taken when their time came", n)
	}
	again := w.attach(&testSub{room: 1 << 20, delay: time.Hour}, Traits{})
	w.add(false)
	late.room = 0
	w.q.Detach(late.slot)
	w.settle()
	if len(w.q.times) != 1 || w.q.timer == nil {
		t.Fatalf("%d times for 1 copy, timer %v", len(w.q.times), w.q.timer)
	}
	w.q.Detach(again.slot)
	if len(w.q.times) != 0 || w.q.timer != nil {
		t.Errorf("%d times without a subscription, timer %v", len(w.q.times), w.q.timer)
	}
}

// A page is on its way when somebody else takes a copy that is in it.
func TestACopyTakenFromTheStoreDoesNotComeWithAPage(t *testing.T) {
	w := newWorld()
	for range 3 {
		w.add(true)
	}
	w.q = New(w.q.Destination, &w.clock, &w.testHost, 1)
	w.q.Restore(1, 4, 3)
	s := w.attach(&testSub{room: 99}, Traits{})
	w.q.Dispatch(NewSlice(w.q.env))
	if len(w.reads) != 1 {
		t.Fatalf("reads %v", w.reads)
	}
	two := &Copy{Seq: 2, Message: w.stored[2].Message}
	if !w.q.TakeStored(two, w) || w.q.TakeStored(two, w) {
		t.Error("a copy must be taken once")
	}
	w.q.Remove(two)
	w.settle()
	if got := seqsOf(s.took); got != "[1 3]" || w.q.Len() != 2 || w.q.ResidentBytes() != 2*1024 {
		t.Errorf("delivered %s, %d copies, %d bytes; want [1 3], 2, 2048", got, w.q.Len(),
			w.q.ResidentBytes())
	}
	one := &Copy{Seq: 1, Message: w.stored[1].Message}
	if w.q.TakeStored(one, w) {
		t.Error("a copy in memory was taken from the store")
	}
}

// Its record may be found by every read that begins before it is gone.
func TestACopyIsTakenFromTheStoreOnce(t *testing.T) {
	w := newWorld()
	for range 3 {
		w.add(true)
	}
	w.q = New(w.q.Destination, &w.clock, &w.testHost, 1)
	w.q.Restore(1, 4, 3)
	take := func(seq uint64) bool {
		c := &Copy{Seq: seq, Message: w.stored[seq].Message}
		ok := w.q.TakeStored(c, w)
		if ok {
			w.q.Remove(c)
		}
		if err := w.q.Check(); err != nil || w.q.Len() < 0 {
			t.Fatalf("%d copies; %v", w.q.Len(), err)
		}
		return ok
	}
	if !take(2) || take(2) {
		t.Error("a copy must be taken once")
	}
	through := w.q.Aside()
	w.q.Erased(2)
	if take(2) {
		t.Error("a copy was taken again by a read that began before it was gone")
	}
	through()
	if len(w.q.taken) > 0 {
		t.Errorf("%v are remembered for ever", w.q.taken)
	}
	if !take(3) {
		t.Error("a copy cannot be taken")
	}
	s := w.attach(&testSub{room: 99}, Traits{})
	delete(w.stored, 2)
	w.settle() // a page, which has the record of 3
	w.q.Erased(3)
	if got := seqsOf(s.took); got != "[1]" || w.q.Len() != 1 || len(w.q.taken) > 0 {
		t.Errorf("delivered %s, %d copies, remembered %v", got, w.q.Len(), w.q.taken)
	}
}

func TestWhatAllHaveRefusedLeavesMemory(t *testing.T) {
	const many = 3000
	w := newWorld()
	for range many {
		w.add(true)
	}
	w.q = New(w.q.Destination, &w.clock, &w.testHost, 1)
	w.q.Restore(1, many+1, many)
	last := w.attach(&testSub{room: 99, step: many}, Traits{})
	timed := w.attach(&testSub{room: many, delay: time.Hour}, Traits{})
	most := int64(0)
	w.known = many + 1
	for w.woken || len(w.reads) > 0 {
		if w.woken {
			w.woken = false
			w.q.Dispatch(NewSlice(w.q.env))
			continue
		}
		g := w.reads[0]
		w.reads = w.reads[1:]
		w.load(g)
		most = max(most, w.q.Resident())
	}
	if got := seqsOf(last.took); got != "[3000]" || w.q.Pending() != many-1 {
		t.Errorf("delivered %s, %d wait; want the last, and %d", got, w.q.Pending(), many-1)
	}
	if most > 4*PageCopies || w.q.ResidentBytes() != 1024*w.q.Resident() {
		t.Errorf("%d copies were in memory at once, %d bytes for %d now", most, w.q.ResidentBytes(),
			w.q.Resident())
	}
	if err := w.q.Check(); err != nil {
		t.Error(err)
	}
	w.advance(2 * time.Hour)
	w.settle()
	if len(timed.took) != many-1 || w.q.Pending() != 0 {
		t.Errorf("%d of %d were delivered when their time came, %d wait", len(timed.took), many-1,
			w.q.Pending())
	}
}

// A turn takes up a part of what is due at one moment; all of it comes, in order.
func TestWhatIsDueAtOnceIsLookedAtInTurns(t *testing.T) {
	w := newWorld()
	s := w.attach(&testSub{room: 1 << 20, delay: time.Second}, Traits{})
	for range 3*dueMost + 7 {
		w.add(false)
	}
	w.settle()
	w.advance(time.Second)
	for left := 2*dueMost + 7; left > 0; left -= dueMost {
		w.dispatch()
		if len(w.q.times) != left {
			t.Fatalf("%d are left when one turn more has looked, want %d", len(w.q.times), left)
		}
		w.advance(0) // the timer for the rest
	}
	w.settle()
	if len(s.took) != 3*dueMost+7 || !slices.IsSortedFunc(s.took, func(a, b *Copy) int {
		return cmp.Compare(a.Seq, b.Seq)
	}) {
		t.Errorf("%d were taken, or out of order", len(s.took))
	}
}
