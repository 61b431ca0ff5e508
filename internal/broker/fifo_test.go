package broker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

func TestAFifoGivesWhatItGotInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f, front fifo[int]
		var want []int
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 100, 3000}).Draw(t, "n") {
					n++
					f.push(n)
					want = append(want, n)
				}
			},
			"drop": func(t *rapid.T) {
				k := rapid.IntRange(0, len(want)).Draw(t, "n")
				f.drop(k)
				want = want[k:]
			},
			"pop": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip()
				}
				if x := f.pop(); x != want[0] {
					t.Fatalf("%d comes, and not %d", x, want[0])
				}
				want = want[1:]
			},
			"split": func(t *rapid.T) {
				k := rapid.IntRange(0, len(want)).Draw(t, "at")
				rest := f.split(k)
				front, f = f, rest
				front.push(-1)
				if !slices.Equal(front.all()[:k], want[:k]) {
					t.Fatalf("in front of %d are %v", k, front.all())
				}
				want = want[k:]
			},
			"": func(t *rapid.T) {
				if !slices.Equal(f.all(), want) || f.len() != len(want) {
					t.Fatalf("%d wait, and not %d", f.len(), len(want))
				}
				if slices.ContainsFunc(f.list[:f.start], func(x int) bool { return x != 0 }) {
					t.Fatal("what was taken out is still there")
				}
			},
		})
	})
}

// A list of constant length moves what waits once in so many pops as wait.
func TestAFifoMovesLittle(t *testing.T) {
	const length, pops = 10_000, 100_000
	var f fifo[int]
	for i := range length {
		f.push(i)
	}
	moved := 0
	for i := range pops {
		last := f.at(f.len() - 1)
		f.push(i)
		f.pop()
		if f.at(f.len()-2) != last {
			moved++
		}
	}
	if moved > 2*pops/length {
		t.Errorf("%d of %d pops moved all of %d", moved, pops, length)
	}
}

// The part in front is a page that stays for long: it must not keep the array of what was behind.
func TestTheFrontOfAFifoHasAnArrayOfItsOwn(t *testing.T) {
	var f fifo[int]
	for i := range 10_000 {
		f.push(i)
	}
	rest := f.split(100)
	if cap(f.list) > 200 || &rest.list[0] == &f.list[0] {
		t.Errorf("its array has %d places", cap(f.list))
	}
	if f.len() != 100 || rest.len() != 9_900 || *f.at(99) != 99 || *rest.at(0) != 100 {
		t.Errorf("%d and %d", f.len(), rest.len())
	}
}

type unpaged struct{}

func (unpaged) paged() {}

// What leaves memory for the spool leaves the rest where it is, however much waits.
func TestWhatIsSpooledMovesNothingThatWaits(t *testing.T) {
	h, tp := open(t, nil, spooling), topicNamed("t")
	g := h.connect("p", "p", "", nil)
	d := h.b.destination(tp)
	q := &backlog{b: h.b, of: unpaged{}}
	for i := range int64(1000) {
		q.push(backlogItem{d, tp, g.big("p", tp, i+1, 10, false)})
	}
	var last *backlogItem
	for range 10 {
		q.spill(&choice{}, 1000, 1)
		if now := q.tail.at(q.tail.len() - 1); last != nil && now != last {
			t.Fatalf("with %d messages in the spool the others were moved", q.records)
		} else {
			last = now
		}
		q.leave()
	}
	if q.records < 10 || q.len() != 1000 {
		t.Errorf("%d of %d are in the spool", q.records, q.len())
	}
	if next := q.items.at(0).m.ID; next != (message.MessageID{Producer: next.Producer, Sequence: 1}) {
		t.Errorf("%s is next", next)
	}
	q.release()
}

// What stays in memory is passed over, not copied, and only so much of it at once.
func TestWhatStaysInMemoryIsPassedOverInBounds(t *testing.T) {
	h := open(t, nil, cursors(policy.CursorStore, topicNamed("A.kept")))
	kept, other := h.b.destination(topicNamed("A.kept")), h.b.destination(topicNamed("A.other"))
	q := &backlog{b: h.b, of: unpaged{}, spools: true}
	push := func(d *destination, n int) {
		for range n {
			q.push(backlogItem{d, d.name, &message.Message{Destination: d.name,
				Content: make([]byte, 100)}})
		}
	}
	push(other, 10)
	push(kept, 5*spillLooks)
	push(other, 10)
	c := &choice{}
	q.spill(c, 1<<40, 1)
	if len(c.puts) != 9 || len(q.onTheirWay) != 9+spillLooks {
		t.Fatalf("%d go, of %d", len(c.puts), len(q.onTheirWay))
	}
	q.leave()
	for n := 0; len(c.puts) < 19; n++ { // the others are reached
		if n == 10 {
			t.Fatalf("%d go", len(c.puts))
		}
		q.spill(c, 1<<40, 1)
		q.leave()
	}
	if got := q.len(); got != 20+5*spillLooks {
		t.Errorf("%d wait", got)
	}
}
