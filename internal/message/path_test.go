package message

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A folded path answers as the long one would.
func TestPathOfAnyLengthStaysShortAndKeepsItsCounts(t *testing.T) {
	names := []BrokerID{"ID:a", "ID:a:1", "ID:b", "b x", "c x0", "d x07", "x", " x3"}
	rapid.Check(t, func(t *rapid.T) {
		var path []BrokerID
		want := map[BrokerID]int{}
		hops := rapid.IntRange(0, 3*PathFold).Draw(t, "hops")
		for range hops {
			id := rapid.SampledFrom(names).Draw(t, "broker")
			want[id]++
			path = AppendPath(path, id)
		}
		if len(path) > PathFold {
			t.Fatalf("%d elements after %d hops", len(path), hops)
		}
		for _, id := range append(names, "ID:", "ID:a:", "never") {
			if got := Visits(path, id); got != want[id] || Visited(path, id) != (got > 0) {
				t.Fatalf("%q: %d visits, want %d, in %q", id, got, want[id], path)
			}
		}
		if got := Brokers(path); got != len(want) {
			t.Fatalf("%d brokers, want %d, in %q", got, len(want), path)
		}
	})
}

func TestPathIsPlainUntilItIsLong(t *testing.T) {
	var path, plain []BrokerID
	for n := range PathFold {
		id := BrokerID(fmt.Sprint("ID:", n%3))
		path, plain = AppendPath(path, id), append(plain, id)
	}
	if !slices.Equal(path, plain) {
		t.Errorf("%q", path)
	}
	before := slices.Clone(path)
	if got := AppendPath(path, "ID:0"); len(got) != 6 || !slices.Equal(path, before) {
		t.Errorf("folded to %q", got)
	}
}

// A message that comes back is another arrival, however often it did: replay goes on for ever.
func TestEachReturnHasItsOwnReceipt(t *testing.T) {
	m := &Message{ID: MessageID{Producer: ProducerID{Connection: "p"}, Sequence: 1}}
	seen := map[ReceiptKey]bool{}
	var path []BrokerID
	for n := range 5000 {
		path = AppendPath(AppendPath(path, "ID:a"), "ID:b")
		key := Receipt(m, Destination{Kind: Queue, Name: "Q"}, path, "ID:a")
		if seen[key] {
			t.Fatalf("return %d has the key of an earlier one; path %q", n, path)
		}
		seen[key] = true
	}
}

func FuzzPathElement(f *testing.F) {
	f.Add("ID:a x37")
	f.Fuzz(func(t *testing.T, text string) {
		id, n := pathElement(BrokerID(text))
		if n < 1 || n > 1 && id+pathTimes+BrokerID(fmt.Sprint(n)) != BrokerID(text) {
			t.Errorf("%q: %q, %d", text, id, n)
		}
	})
}
