package audit

import (
	"fmt"
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
			if got, _ := p.Seen(id, false); got != want {
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
	p.Seen(of(1), false)
	p.Seen(of(2), false)
	p.Seen(of(1), false)
	p.Seen(of(3), false)
	if !p.Has(of(1)) || p.Has(of(2)) || !p.Has(of(3)) {
		t.Error("producer 2 must be the one forgotten")
	}
}

func producerNumber(n int) message.MessageID {
	return message.MessageID{Producer: message.ProducerID{Value: int64(n)}, Sequence: 1}
}

// forgottenBy gives who made room; "stored" are those of which the store has numbers.
func forgottenBy(p *Producers) (out []string) {
	for _, f := range p.Forgotten() {
		of := fmt.Sprint(f.Producer.Value)
		if f.Stored {
			of += " stored"
		}
		out = append(out, of)
	}
	return out
}

// Who closed, or cannot fail over, takes no place of those that may send again, whoever came last.
func TestProducersThatSendNothingAgainTakeNoPlaceOfOthers(t *testing.T) {
	p := NewProducers(3, 64)
	await := func(n int, keep bool) {
		p.Seen(producerNumber(n), true)
		if keep {
			p.Keep(producerNumber(n).Producer)
		}
	}
	await(1, true)
	await(2, false)
	for n := 10; n < 20; n++ { // plain ones
		p.Seen(producerNumber(n), false)
	}
	for n := 20; n < 30; n++ { // closed ones
		await(n, n > 20)
		if p.Release(producerNumber(n).Producer) != (n > 20) {
			t.Errorf("what the store has of %d is told wrong", n)
		}
	}
	if !p.Has(producerNumber(1)) || !p.Has(producerNumber(2)) || len(p.Forgotten()) != 0 {
		t.Error("1 and 2, which may send again, were forgotten")
	}
	if p.Has(producerNumber(26)) || !p.Has(producerNumber(27)) {
		t.Error("three that closed are to be known")
	}
	await(3, true)
	await(1, true)
	for n := 4; n < 7; n++ { // whatever the store has of them: who was used longest ago makes room
		await(n, false)
	}
	if got := forgottenBy(p); !slices.Equal(got, []string{"2", "3 stored", "1 stored"}) {
		t.Errorf("%q were forgotten", got)
	}
}

// Those that vanished, and whose numbers the store has, make room for who is there.
func TestProducersThatVanishedMakeRoomForTheLiving(t *testing.T) {
	p := NewProducers(64, 64)
	for n := range 64 {
		p.Seen(producerNumber(n), true)
		p.Keep(producerNumber(n).Producer)
	}
	for seq := range int64(100) {
		for _, n := range []int{100, 101, 102, 103} { // two await, two do not
			id := producerNumber(n)
			id.Sequence = seq
			p.Seen(id, n < 102)
		}
		for _, n := range []int{100, 101, 102, 103} {
			id := producerNumber(n)
			id.Sequence = seq
			if was, _ := p.Seen(id, n < 102); !was {
				t.Fatalf("number %d of %d is not known", seq, n)
			}
		}
	}
	if n := len(p.Forgotten()); n != 2 {
		t.Errorf("%d made room, want 2", n)
	}
}

// What comes back from the store takes no place of who is there and may send again.
func TestWhatTheStoreHasIsOlderThanAllThatIsHere(t *testing.T) {
	p := NewProducers(3, 64)
	for n := range 10 { // takes no place
		p.Seen(producerNumber(n), false)
	}
	p.Seen(producerNumber(50), true)
	used := message.NewNumbers(64)
	used.Add(1)
	for n := range 4 {
		if news := p.Restore(producerNumber(100+n).Producer, used); news != (n < 2) {
			t.Errorf("%d is awaited: %v", 100+n, news)
		}
	}
	if got := forgottenBy(p); !slices.Equal(got, []string{"102 stored", "103 stored"}) {
		t.Errorf("%q were forgotten", got)
	}
	p.Seen(producerNumber(51), true) // what was restored last counts as used longest ago
	if got := forgottenBy(p); !slices.Equal(got, []string{"101 stored"}) {
		t.Errorf("%q were forgotten, want 101", got)
	}
	p.Restore(producerNumber(50).Producer, used)
	if !p.Release(producerNumber(50).Producer) {
		t.Error("the store has numbers of 50, which is not known")
	}
}

func TestWhatTheStoreHasJoinsWhatCameMeanwhile(t *testing.T) {
	for _, await := range []bool{false, true} {
		p, id, used := NewProducers(3, 64), producerNumber(1), message.NewNumbers(64)
		id.Sequence = 5
		p.Seen(id, await)
		used.Add(3)
		if news := p.Restore(id.Producer, used); news == await {
			t.Errorf("it was awaited before: %v, and is from here on: %v", await, news)
		}
		for n := range int64(8) {
			if id.Sequence = n; p.Has(id) != (n == 3 || n == 5) {
				t.Errorf("awaited before: %v; %d is known: %v", await, n, p.Has(id))
			}
		}
	}
}

// lists are what an audit of four producers should be, as plain lists, the one used longest ago
// first.
type lists struct {
	awaited, others []int
	stored          map[int]bool
}

// use puts a producer into a list, at a place or with -1 at the end, and gives who made room.
func (l *lists) use(n int, list *[]int, at int) (gone []string) {
	same := func(m int) bool { return m == n }
	l.awaited, l.others = slices.DeleteFunc(l.awaited, same), slices.DeleteFunc(l.others, same)
	if at < 0 {
		at = len(*list)
	}
	*list = slices.Insert(*list, at, n)
	if len(*list) <= 4 {
		return nil
	}
	first := (*list)[0]
	if *list = (*list)[1:]; list == &l.others {
		return nil
	}
	was := fmt.Sprint(first)
	if l.stored[first] {
		was += " stored"
	}
	delete(l.stored, first)
	return []string{was}
}

// TestTheLastOfEachListAreKnown holds the audit to two plain lists.
func TestTheLastOfEachListAreKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, l := NewProducers(4, 64), &lists{stored: map[int]bool{}}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			n := rapid.IntRange(0, 12).Draw(t, "producer")
			id, is := producerNumber(n), slices.Contains(l.awaited, n)
			var news, wantNews bool
			var gone []string
			switch rapid.SampledFrom([]string{"see", "await", "await", "keep", "release",
				"restore"}).Draw(t, "what") {
			case "see":
				list := &l.others
				if is {
					list = &l.awaited
				}
				gone = l.use(n, list, -1)
				_, news = p.Seen(id, false)
			case "await":
				gone, wantNews = l.use(n, &l.awaited, -1), !is
				_, news = p.Seen(id, true)
			case "keep":
				if p.Keep(id.Producer); is {
					l.stored[n] = true
				}
			case "release":
				if got := p.Release(id.Producer); got != l.stored[n] {
					t.Fatalf("Release(%d) says %v", n, got)
				}
				if delete(l.stored, n); is {
					l.use(n, &l.others, -1)
				}
			default:
				switch {
				case is:
					l.stored[n] = true
				case len(l.awaited) == 4:
					gone = []string{fmt.Sprint(n, " stored")}
				default:
					l.use(n, &l.awaited, 0)
					l.stored[n], wantNews = true, true
				}
				used := message.NewNumbers(64)
				used.Add(1)
				news = p.Restore(id.Producer, used)
			}
			if got := forgottenBy(p); !slices.Equal(got, gone) || news != wantNews {
				t.Fatalf("%q were forgotten, want %q; news: %v", got, gone, news)
			}
			l.compare(t, p)
		}
	})
}

func (l *lists) compare(t *rapid.T, p *Producers) {
	for m := range 13 {
		want := slices.Contains(l.awaited, m) || slices.Contains(l.others, m)
		if p.Has(producerNumber(m)) != want {
			t.Fatalf("%d is known: %v; want %v", m, !want, l)
		}
	}
	var list []int
	for id := range p.Awaited() {
		list = append(list, int(id.Value))
	}
	if !slices.Equal(list, l.awaited) {
		t.Fatalf("%v are awaited, want %v", list, l.awaited)
	}
}
