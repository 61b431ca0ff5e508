package audit

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hopwire/internal/message"
)

func key(n int) (k message.ReceiptKey) {
	k[0], k[1] = byte(n), byte(n>>8)
	return k
}

func TestAResendIsKnownOnlyWhenItsReceiptIsDurable(t *testing.T) {
	r := NewReceipts()
	r.Raise("p", 10)
	r.Claim("p", key(1))
	if s := r.Look(key(1)); s != Claimed {
		t.Errorf("state %d before the batch is durable, want Claimed", s)
	}
	r.Confirm(key(1))
	if s := r.Look(key(1)); s != Durable {
		t.Errorf("state %d when the batch is durable, want Durable", s)
	}
	if s := r.Look(key(2)); s != Unknown {
		t.Errorf("state %d of a new arrival, want Unknown", s)
	}
}

func TestAReceiptOnItsWayToTheStoreIsNotPruned(t *testing.T) {
	r := NewReceipts()
	r.Raise("p", 1)
	for i := range 200 {
		r.Claim("p", key(i))
	}
	if _, ok := r.Prune("p"); ok {
		t.Fatal("undurable receipts were dropped")
	}
	for i := range 200 {
		r.Confirm(key(i))
	}
	below, ok := r.Prune("p")
	if !ok || below != 200 {
		t.Fatalf("below %d, %v; want 200", below, ok)
	}
	if r.Look(key(0)) != Unknown || r.Look(key(199)) != Durable || r.Len() != 1 {
		t.Error("the last receipt must stay and the others go")
	}
}

// TestReceiptsSurviveARestart restores what a store would have and goes on.
func TestReceiptsSurviveARestart(t *testing.T) {
	r := NewReceipts()
	r.Raise("p", 100)
	r.Restore("p", 5, key(5))
	r.Restore("p", 7, key(7))
	r.Continue("p", 8)
	if n := r.Claim("p", key(9)); n != 8 {
		t.Errorf("the next receipt has number %d, want 8", n)
	}
	r.Continue("all dropped", 700)
	if n := r.Claim("all dropped", key(10)); n != 700 {
		t.Errorf("the next receipt after all were dropped has number %d, want 700", n)
	}
	if below, _ := r.prune(&r.of("p").stored, 6); below != 6 {
		t.Errorf("pruned below %d, want 6", below)
	}
	if r.Look(key(5)) != Unknown || r.Look(key(7)) != Durable {
		t.Error("number 5 must be forgotten and 7 known")
	}
}

func TestWhatIsOnlyInMemoryDoesNotPushOutWhatIsStored(t *testing.T) {
	r := NewReceipts()
	r.Raise("p", 10)
	r.Claim("p", key(0))
	r.Confirm(key(0))
	for i := range 1000 {
		r.Remember("p", key(1+i))
		if below, ok := r.Prune("p"); ok {
			t.Fatalf("receipts of the store below %d were dropped", below)
		}
	}
	if r.Look(key(0)) != Durable || r.Look(key(1)) != Unknown || r.Look(key(1000)) != Durable {
		t.Error("the stored one and the last in memory must be known, the first in memory not")
	}
	if n := r.Claim("p", key(2000)); n != 2 {
		t.Errorf("the next receipt in the store has number %d, want 2", n)
	}
}

func TestALocalProducerIsRecognisedWithinItsWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewProducers(2, 128)
		sent := map[int64]bool{}
		high := int64(-1)
		for range rapid.IntRange(1, 300).Draw(t, "sends") {
			n := max(0, high+rapid.Int64Range(-140, 140).Draw(t, "step"))
			id := message.MessageID{Producer: message.ProducerID{Value: 1}, Sequence: n}
			want := sent[n] && high-n < 128
			if p.Has(id) != want {
				t.Fatalf("Has(%d) is %v, high is %d", n, !want, high)
			}
			if got := p.Seen(id); got != want {
				t.Fatalf("Seen(%d) is %v, want %v, high is %d", n, got, want, high)
			}
			if high-n < 128 || n > high {
				sent[n] = true
			}
			high = max(high, n)
		}
	})
}

func TestTheProducerUsedLongestAgoIsForgotten(t *testing.T) {
	p := NewProducers(2, 64)
	of := func(producer int64) message.MessageID {
		return message.MessageID{Producer: message.ProducerID{Value: producer}, Sequence: 1}
	}
	p.Seen(of(1))
	p.Seen(of(2))
	p.Seen(of(1))
	p.Seen(of(3))
	if !p.Has(of(1)) || p.Has(of(2)) || !p.Has(of(3)) {
		t.Error("producer 2 must be the one forgotten")
	}
}

func producerNumber(n int) message.MessageID {
	return message.MessageID{Producer: message.ProducerID{Value: int64(n)}, Sequence: 1}
}

// evictedBy gives of whose numbers the store may be rid.
func evictedBy(p *Producers) (out []int) {
	for _, id := range p.Evicted() {
		out = append(out, int(id.Value))
	}
	return out
}

// Who closed, or cannot fail over, makes room for those that may send again, whoever came last.
func TestProducersThatSendNothingAgainAreForgottenFirst(t *testing.T) {
	p := NewProducers(3, 64)
	keep := func(n int) {
		p.Seen(producerNumber(n))
		p.Expect(producerNumber(n).Producer)
		p.Keep(producerNumber(n).Producer)
	}
	keep(1)
	p.Seen(producerNumber(2))
	p.Expect(producerNumber(2).Producer)
	for n := 10; n < 20; n++ { // plain ones
		p.Seen(producerNumber(n))
	}
	for n := 20; n < 30; n++ { // closed ones
		keep(n)
		if !p.Release(producerNumber(n).Producer) {
			t.Errorf("the store has nothing of %d", n)
		}
	}
	if !p.Has(producerNumber(1)) || !p.Has(producerNumber(2)) || len(p.Evicted()) != 0 {
		t.Error("1 and 2, which may send again, were forgotten")
	}
	keep(3)
	keep(4) // in the place of the one that only memory has
	if p.Has(producerNumber(2)) || len(p.Evicted()) != 0 {
		t.Error("2 must be forgotten, and nothing that the store has")
	}
	keep(1)
	keep(5) // all are kept: the one used longest ago
	if got := evictedBy(p); !slices.Equal(got, []int{3}) {
		t.Errorf("%v were evicted, want 3", got)
	}
}

// What comes back from the store is worth more than who is there and can send nothing again.
func TestWhatTheStoreHasTakesTheRoomOfThoseThatSendNothingAgain(t *testing.T) {
	p := NewProducers(3, 64)
	for n := range 10 {
		p.Seen(producerNumber(n))
	}
	used := message.NewNumbers(64)
	used.Add(1)
	for n := range 4 {
		p.Restore(producerNumber(100+n).Producer, used)
	}
	if got := evictedBy(p); !slices.Equal(got, []int{103}) || len(p.known) != 3 {
		t.Errorf("%v were evicted, want 103; %d are known", got, len(p.known))
	}
	p.Seen(producerNumber(5)) // what was restored last counts as used longest ago
	if got := evictedBy(p); !slices.Equal(got, []int{102}) {
		t.Errorf("%v were evicted, want 102", got)
	}
}

// TestProducersAreForgottenByWhatIsLostWithThem holds the rings to a list.
func TestProducersAreForgottenByWhatIsLostWithThem(t *testing.T) {
	type entry struct{ n, rank int }
	rapid.Check(t, func(t *rapid.T) {
		p := NewProducers(4, 64)
		var list []entry // the one used longest ago first
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			n := rapid.IntRange(0, 8).Draw(t, "producer")
			id := producerNumber(n)
			i := slices.IndexFunc(list, func(e entry) bool { return e.n == n })
			move := func(rank int) {
				list = append(slices.Delete(list, i, i+1), entry{n, rank})
			}
			switch rapid.SampledFrom([]string{"see", "see", "expect", "keep",
				"release"}).Draw(t, "what") {
			case "see":
				if i >= 0 {
					move(list[i].rank)
				} else {
					least := 0
					for j, e := range list {
						if e.rank < list[least].rank {
							least = j
						}
					}
					if len(list) == 4 {
						gone := list[least]
						list = slices.Delete(list, least, least+1)
						if got := len(evictedBy(p)); got != 0 {
							t.Fatalf("%d were evicted before", got)
						}
						p.Seen(id)
						if got := len(evictedBy(p)); (got == 1) != (gone.rank == 2) {
							t.Fatalf("%d evicted of the store, %+v had to go", got, gone)
						}
					}
					list = append(list, entry{n, 0})
				}
				p.Seen(id)
			case "expect":
				if p.Expect(id.Producer); i >= 0 && list[i].rank == 0 {
					move(1)
				}
			case "keep":
				if p.Keep(id.Producer); i >= 0 {
					move(2)
				}
			default:
				if had := p.Release(id.Producer); had != (i >= 0 && list[i].rank == 2) {
					t.Fatalf("Release(%d) says %v of %v", n, had, list)
				}
				if i >= 0 {
					list = slices.Insert(slices.Delete(list, i, i+1), 0, entry{n, 0})
				}
			}
			for m := range 9 {
				want := slices.ContainsFunc(list, func(e entry) bool { return e.n == m })
				if p.Has(producerNumber(m)) != want {
					t.Fatalf("%d is known: %v; want %v", m, !want, list)
				}
			}
		}
	})
}
