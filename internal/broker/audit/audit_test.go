package audit

import (
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
