package queue

import "testing"

// TestAWithheldCopyIsNobodysUntilItIsReleased holds back two of four stored copies: one ends, the
// other comes back behind what was delivered since.
func TestAWithheldCopyIsNobodysUntilItIsReleased(t *testing.T) {
	w := newWorld()
	for range 4 {
		w.add(true)
	}
	w.q = New(w.q.Destination, &w.clock, &w.testHost, 1)
	w.q.Restore(1, 5, 4)
	for _, seq := range []uint64{1, 2} {
		if !w.q.Withhold(seq) || w.q.Withhold(seq) {
			t.Fatal("a copy is not withheld once")
		}
	}
	if w.q.Withhold(5) || w.q.Release(3) || w.q.EndWithheld(9) {
		t.Error("there are withheld copies that there cannot be")
	}
	s := w.attach(&testSub{room: 99}, Traits{})
	w.settle()
	if got := seqsOf(s.took); got != "[3 4]" || w.q.Len() != 2 || w.q.Withheld() != 2 ||
		w.q.OldestStored() != 1 {
		t.Errorf("took %s of %d, %d are withheld, the oldest stored is %d", got, w.q.Len(),
			w.q.Withheld(), w.q.OldestStored())
	}
	if !w.q.EndWithheld(1) || w.q.OldestStored() != 2 || w.q.Withheld() != 1 {
		t.Errorf("one ended: %d are left, the oldest stored is %d", w.q.Withheld(),
			w.q.OldestStored())
	}
	if !w.q.Release(2) || w.q.Pending() != 1 || w.q.StoredOnly() != 1 {
		t.Errorf("one is released: %d wait", w.q.Pending())
	}
	w.settle()
	if got := seqsOf(s.took); got != "[3 4 2]" || w.q.OutCount() != 3 {
		t.Errorf("took %s, %d are out", got, w.q.OutCount())
	}
	if err := w.q.Check(); err != nil {
		t.Error(err)
	}
}
