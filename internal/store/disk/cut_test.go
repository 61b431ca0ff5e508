package disk

import (
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// Ranges that are deleted by one Apply cost one look at the expirations of all that there is: a
// fifty of them take no more than some times what one does.
func TestRangesAreDeletedByOneLookAtExpirations(t *testing.T) {
	const others, ranges, times = 40_000, 50, 10
	s, err := Open(t.Context(), Options{Dir: t.TempDir(), NoWait: true, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	seq := store.Seq(0)
	for range others / 10_000 {
		var ops []store.Op
		for range 10_000 {
			seq++
			ops = append(ops, store.Op{Kind: store.PutMessage, Dest: 1, Seq: seq,
				Message: &message.Message{Expiration: 1 << 41}})
		}
		applyOps(t, s, append(ops, queueHeader(1<<40))...)
	}
	deletes := func(n int) (ops []store.Op) {
		for range n {
			ops = append(ops, store.Op{Kind: store.DeleteRange, Dest: 1, Seq: seq - 3, To: seq})
			seq -= 10
		}
		return ops
	}
	least := func(n int) time.Duration {
		var took []time.Duration
		for range 5 {
			ops := deletes(n)
			began := time.Now()
			applyOps(t, s, ops...)
			took = append(took, time.Since(began))
		}
		return slices.Min(took)
	}
	one := least(1)
	many := least(ranges)
	t.Logf("1 range %v, %d ranges %v", one, ranges, many)
	if many > times*one {
		t.Errorf("%d ranges take %v, one %v", ranges, many, one)
	}
	left := map[store.Seq]bool{}
	for key := range s.keys(t) {
		if r, ok := parseExpiry([]byte(key)); ok {
			left[r.Seq] = true
		}
	}
	if want := others - 3*5*(ranges+1); len(left) != want {
		t.Errorf("%d expirations are left, want %d", len(left), want)
	}
}

// An Apply that puts and deletes knows which came first; ranges may lie over each other.
func TestARangeDeletesWhatWasPutBeforeIt(t *testing.T) {
	s, err := Open(t.Context(), Options{Dir: t.TempDir(), NoWait: true, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	put := func(seq store.Seq) store.Op {
		return store.Op{Kind: store.PutMessage, Dest: 1, Seq: seq,
			Message: &message.Message{Expiration: int64(seq)}}
	}
	cut := func(from, to store.Seq) store.Op {
		return store.Op{Kind: store.DeleteRange, Dest: 1, Seq: from, To: to}
	}
	other := queueHeader(100)
	other.Header.ID = 2
	applyOps(t, s, queueHeader(100), other, put(1), put(2), put(3), put(40),
		store.Op{Kind: store.PutMessage, Dest: 2, Seq: 2, Message: &message.Message{Expiration: 2}})
	applyOps(t, s, put(10), put(11), cut(2, 4), cut(10, 20), put(12), cut(3, 11), cut(11, 12), put(5))
	refs, err := s.Expired(nil, 1000, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []store.ExpiredRef
	for _, r := range refs {
		got = append(got, store.ExpiredRef{Dest: r.Dest, Seq: r.Seq})
	}
	want := []store.ExpiredRef{{Dest: 1, Seq: 1}, {Dest: 2, Seq: 2}, {Dest: 1, Seq: 5},
		{Dest: 1, Seq: 12}, {Dest: 1, Seq: 40}}
	if !slices.Equal(got, want) {
		t.Errorf("%v expire, want %v", got, want)
	}
}
