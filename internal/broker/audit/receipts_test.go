package audit

import (
	"testing"

	"hopwire/internal/message"
)

// Two copies of one message exist after a doubt was given up. Ours went to c, where the other had
// been before: c suppresses ours, so the other, which came through c, must not be suppressed here.
func TestForkThatOutlivedOursIsTaken(t *testing.T) {
	key := message.ReceiptKey{1}
	path := func(ids ...message.BrokerID) []message.BrokerID { return ids }
	for _, x := range []struct {
		name string
		gone message.BrokerID
		been int
		path []message.BrokerID
		want bool
	}{
		{"a resend on the same way is a duplicate", "c", 0, path("b"), false},
		{"ours is still here", "", 0, path("b", "c"), false},
		{"the other was at the broker ours went to", "c", 0, path("b", "c"), true},
		{"ours had been there as often", "c", 1, path("b", "c", "d"), false},
		{"the other was there once more", "c", 1, path("b", "c", "d", "c"), true},
	} {
		r := NewReceipts()
		r.Remember("b", key)
		r.Forwarded(key, x.gone, x.been)
		if got := r.Outlived(key, x.path); got != x.want {
			t.Errorf("%s: taken=%v, want %v", x.name, got, x.want)
		}
	}
}

// A peer asks about a copy in doubt, and the copy we know under that key went to this very peer,
// where it had never been: that peer suppressed it in favour of the one it asks about.
func TestCopyThatWentToWhoAsksIsNotKnown(t *testing.T) {
	key := message.ReceiptKey{1}
	for _, x := range []struct {
		name string
		gone message.BrokerID
		been int
		want bool
	}{
		{"still here", "", 0, false},
		{"went elsewhere", "d", 0, false},
		{"went to who asks", "b", 0, true},
		{"went back to who asks, by replay", "b", 1, false},
	} {
		r := NewReceipts()
		r.Remember("a", key)
		r.Forwarded(key, x.gone, x.been)
		if got := r.WentBack(key, "b"); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}
