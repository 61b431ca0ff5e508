package queue

import (
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// checkView walks through the queue and asserts that each copy is seen once, in order.
func (w *world) checkView(t *rapid.T) {
	var seen []uint64
	stored := slices.Sorted(func(yield func(uint64) bool) {
		for seq := range w.stored {
			if !yield(seq) {
				return
			}
		}
	})
	v := w.q.View()
	w.add(false) // is behind the walk's end
	for {
		c, from, to := v.Next()
		if c == nil && to == 0 {
			break
		}
		if c != nil {
			seen = append(seen, c.Seq)
			continue
		}
		for _, seq := range stored {
			if seq >= from && seq < to && w.q.gaps.has(seq) {
				seen = append(seen, seq)
			}
		}
		v.Read(to)
	}
	if int64(len(seen)) != w.q.Len()-1 || !slices.IsSorted(seen) ||
		len(slices.Compact(slices.Clone(seen))) != len(seen) {
		t.Fatalf("a walk saw %v, of %d copies", seen, w.q.Len()-1)
	}
	var resident []uint64
	for next := uint64(0); ; {
		if next = w.q.Walk(next, 3, func(c *Copy) { resident = append(resident, c.Seq) }); next == 0 {
			break
		}
	}
	if int64(len(resident)) != w.q.Resident() || !slices.IsSorted(resident) {
		t.Fatalf("in memory are %v, of %d", resident, w.q.Resident())
	}
	w.settle()
}

// A browser or an explanation begins in one event, however long the queue is.
func TestAWalkBeginsWithoutALookAtTheQueue(t *testing.T) {
	w := newWorld()
	s := w.attach(&testSub{room: 50_000}, Traits{})
	for range 100_000 {
		w.add(false)
	}
	w.settle()
	if len(s.took) != 50_000 {
		t.Fatalf("%d are out", len(s.took))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	v := w.q.View()
	for range 100 {
		if c, _, _ := v.Next(); c != nil {
			n++
		}
	}
	w.q.Walk(0, 100, func(*Copy) { n++ })
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; n != 200 || used > 100_000 {
		t.Errorf("a walk of 200 steps took %d and allocated %d bytes", n, used)
	}
}
