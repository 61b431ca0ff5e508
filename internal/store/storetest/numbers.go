package storetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

var producers = []message.ProducerID{{}, {Connection: "a", Session: -1, Value: 1},
	{Connection: "a", Session: 1, Value: 1}, {Connection: "a", Session: 1, Value: 2},
	{Connection: "ab", Session: 1, Value: 1}}

// with is the numbers and one more: of those below the window nothing is known from then on.
func (n modelNumbers) with(number, depth int64) modelNumbers {
	used := append(slices.Clone(n.used), number)
	high := slices.Max(used)
	if high-number > message.FallMost {
		return modelNumbers{depth: depth, used: []int64{number}}
	}
	return modelNumbers{depth: depth, used: slices.DeleteFunc(used, func(x int64) bool {
		return high-x >= depth
	})}
}

// number lets a producer use numbers: mostly the next ones, sometimes an earlier one or a later,
// and rarely one of another count.
func (k *maker) number(b *store.Batch, id store.DestID, n int) {
	p := producers[k.r.IntN(len(producers))]
	depth := int64(64)
	if k.r.IntN(5) == 0 {
		depth = 128
	}
	for range n {
		high := int64(-1)
		if used := k.m.dests[id].numbers[p].used; len(used) > 0 {
			high = slices.Max(used)
		}
		next := high + 1
		if k.r.IntN(3) == 0 {
			next = max(0, high+k.r.Int64N(150)-75)
		}
		if k.r.IntN(50) == 0 {
			next = k.r.Int64N(2) << 62
		}
		k.add(b, store.Op{Kind: store.PutNumber, Dest: id, Count: int32(depth),
			ID: &message.MessageID{Producer: p, Sequence: next}})
	}
}

func (k *maker) dropNumbers(b *store.Batch, id store.DestID) {
	k.add(b, store.Op{Kind: store.DropNumbers, Dest: id,
		ID: &message.MessageID{Producer: producers[k.r.IntN(len(producers))]}})
}

func (m *model) verifyNumbers(got []store.ProducerNumbers, id store.DestID) error {
	all := m.dests[id].numbers
	want := slices.SortedFunc(maps.Keys(all), message.ProducerID.Compare)
	if !slices.EqualFunc(got, want, func(g store.ProducerNumbers, p message.ProducerID) bool {
		return g.Producer == p
	}) {
		return fmt.Errorf("Receipts(%d) are of producers %v, want %v", id, got, want)
	}
	for _, g := range got {
		want := all[g.Producer]
		high := slices.Max(want.used)
		if int64(g.Numbers.Depth()) != want.depth {
			return fmt.Errorf("of %v %d numbers are kept, want %d", g.Producer, g.Numbers.Depth(),
				want.depth)
		}
		for n := max(0, high-200); n <= high+1; n++ {
			if has := slices.Contains(want.used, n); g.Numbers.Has(n) != has {
				return fmt.Errorf("destination %d, producer %v, number %d of %d: %v, want %v", id,
					g.Producer, n, high, !has, has)
			}
		}
	}
	return nil
}

// numbersGoOn uses numbers in several lives of a store.
func numbersGoOn(t *testing.T, w World) {
	p := message.ProducerID{Connection: "c", Session: 1, Value: 1}
	op := func(kind store.OpKind, n int64) store.Op {
		return store.Op{Kind: kind, Dest: 1, Count: 64, ID: &message.MessageID{Producer: p, Sequence: n}}
	}
	for i, c := range []struct {
		ops  []store.Op
		want []int64
	}{
		{[]store.Op{op(store.PutNumber, 1), op(store.PutNumber, 2)}, []int64{1, 2}},
		{[]store.Op{op(store.PutNumber, 9)}, []int64{1, 2, 9}},
		{[]store.Op{op(store.PutNumber, 5)}, []int64{1, 2, 5, 9}},
		{[]store.Op{op(store.PutNumber, 66)}, []int64{5, 9, 66}},
		{[]store.Op{op(store.PutNumber, 1<<62)}, nil},
		{[]store.Op{op(store.PutNumber, 3)}, []int64{3}},
		{[]store.Op{op(store.DropNumbers, 0), op(store.PutNumber, 7)}, []int64{7}},
		{[]store.Op{op(store.PutNumber, 8), op(store.DropNumbers, 0)}, nil},
		{[]store.Op{op(store.PutNumber, 70)}, []int64{70}},
		{[]store.Op{{Kind: store.DropDestination, Dest: 1}}, nil},
	} {
		s := open(t, w)
		apply(t, s, queue(), &store.Batch{Ops: c.ops})
		closeStore(t, s)
		s = open(t, w)
		receipts, err := s.Receipts(1)
		got := receipts.Producers
		closeStore(t, s)
		if last := c.ops[len(c.ops)-1].Kind; err != nil || (len(got) == 1) != (last == store.PutNumber) {
			t.Fatalf("%d: %v, %v", i, got, err)
		}
		for n := range int64(200) {
			if has := slices.Contains(c.want, n); len(got) > 0 && got[0].Numbers.Has(n) != has {
				t.Errorf("%d: number %d: %v, want %v", i, n, !has, has)
			}
		}
	}
}
