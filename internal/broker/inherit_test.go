package broker

import (
	"testing"

	"hopwire/internal/message"
)

// TestANewRetroactiveSubscriptionGetsWhatIsCommittedNoSooner subscribes while a transaction's
// commit is on its way to the disk, which has no room at first.
func TestANewRetroactiveSubscriptionGetsWhatIsCommittedNoSooner(t *testing.T) {
	h := open(t, nil, nil)
	a, b, p := h.subscribe("a", "s", "T", nil), h.connect("b", "b", "", nil),
		h.connect("p", "p", "", nil)
	p.produce("p", topicNamed("T"), 1)
	tx := p.begin("p", 1)
	p.sendTx(tx, topicNamed("T"), 2)
	n := p.hand(&message.TransactionInfo{Connection: "p", ID: tx, Type: commit1})
	b.hand(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "b", Session: 1, Value: 5},
		Destination: topicNamed("T"), PrefetchSize: 10, SubscriptionName: "s", Retroactive: true})
	h.b.EndTurn()
	h.disk.SetCapacity(1, 1000)
	h.turn()
	if got := numbers(b); p.answered(n) || got != "" && got != "1" {
		t.Errorf("committed %v, and the subscription gets %s", p.answered(n), got)
	}
	h.disk.SetCapacity(0, 0)
	h.pass(retryMost * 3)
	if x, y := numbers(a.guest), numbers(b); !p.answered(n) || x != "1 2" || y != "1 2" {
		t.Errorf("committed %v, and subscriptions get %s and %s, want 1 2", p.answered(n), x, y)
	}
}
