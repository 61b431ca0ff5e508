package queue

import (
	"container/heap"
	"time"
)

// timed is a refusal that is worth another look at a moment. A pair of slot and place has one.
type timed struct {
	at    time.Duration
	slot  *Slot
	place place
	index int // in the heap
}

type timeHeap []*timed

func (h timeHeap) Len() int { return len(h) }
func (h timeHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].place.before(h[j].place)
}
func (h timeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timeHeap) Push(x any) {
	t := x.(*timed)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timeHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}

// lookAt sets the time at which the slot looks at the place again, instead of one set before.
func (q *Queue) lookAt(at time.Duration, s *Slot, p place) {
	if t := s.times[p]; t != nil {
		t.at = at
		heap.Fix(&q.times, t.index)
	} else {
		t := &timed{at: at, slot: s, place: p}
		heap.Push(&q.times, t)
		if s.times == nil {
			s.times = map[place]*timed{}
		}
		s.times[p] = t
	}
	q.armTimer()
}

// dueMost is how many refusals that are due one turn takes up; the timer brings the next.
const dueMost = 1000

// dueTimes moves what is due from the heap to the slots' lists.
func (q *Queue) dueTimes(now time.Duration) {
	for n := 0; n < dueMost && len(q.times) > 0 && q.times[0].at <= now; n++ {
		t := heap.Pop(&q.times).(*timed)
		delete(t.slot.times, t.place)
		t.slot.lookAgain(t.place)
	}
	q.armTimer()
}

// forgetPlace drops the times of a copy that waits no more.
func (q *Queue) forgetPlace(p place) {
	for _, s := range q.slots {
		if t := s.times[p]; t != nil {
			heap.Remove(&q.times, t.index)
			delete(s.times, p)
		}
	}
}

// forgetTimes drops the times of a slot.
func (q *Queue) forgetTimes(s *Slot) {
	if len(s.times) == 0 {
		return
	}
	kept := q.times[:0]
	for _, t := range q.times {
		if t.slot != s {
			t.index = len(kept)
			kept = append(kept, t)
		}
	}
	clear(q.times[len(kept):])
	q.times, s.times = kept, nil
	heap.Init(&q.times)
	q.armTimer()
}

// armTimer keeps one timer at the head of the heap.
func (q *Queue) armTimer() {
	if q.timer != nil {
		if len(q.times) > 0 && q.timerAt <= q.times[0].at {
			return
		}
		q.timer.Stop()
		q.timer = nil
	}
	if len(q.times) == 0 {
		return
	}
	q.timerAt = q.times[0].at
	q.timer = q.env.After(max(0, q.timerAt-q.env.Mono()), func() {
		q.timer = nil
		q.wake()
	})
}
