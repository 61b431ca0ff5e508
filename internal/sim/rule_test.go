package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/message"
	"hopwire/internal/policy"
)

var queueQ = message.Destination{Kind: message.Queue, Name: "Q"}

// linkUp makes brokers a, b … that replay, each linked both ways as pairs say.
func linkUp(w *World, brokers int, ttl int32, pairs ...string) {
	e := policy.NewEntry()
	e.Bridge.Conditional, e.Bridge.ReplayWhenNoConsumers = true, true
	for i := range brokers {
		w.Broker(NodeConfig{Name: nameOf(i), Policies: &policy.Map{Default: e}})
	}
	for _, x := range pairs {
		o := bridge.DefaultOptions(5)
		o.Name, o.MessageTTL, o.ConsumerTTL = x, ttl, ttl
		o.URIs = []string{"sim://" + x[1:]}
		w.Node(x[:1]).Connect(o)
	}
	w.Run(2 * time.Second)
}

func send(w *World, to string, n int) *Client {
	c := w.Client("producer " + to)
	c.Connect(w.Node(to))
	for range n {
		c.Send(Mail{To: queueQ}, func(error) {})
	}
	return c
}

func sizeOf(n *Node) int64 {
	for _, d := range n.Core().Status().Destinations {
		if d.Name == queueQ {
			return d.Size
		}
	}
	return 0
}

func TestWorldIsTheSameForTheSameSeed(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		var a, b []string
		Run(Draw(seed), func(l string) { a = append(a, l) }, nil)
		Run(Draw(seed), func(l string) { b = append(b, l) }, nil)
		if !slices.Equal(a, b) {
			for i := range a {
				if i >= len(b) || a[i] != b[i] {
					t.Fatalf("seed %d differs at line %d:\n%s\n%s", seed, i, a[i], b[min(i, len(b)-1)])
				}
			}
			t.Fatalf("seed %d: %d lines and %d", seed, len(a), len(b))
		}
	}
}

func TestCommitKeepsWhatItAcknowledgedWhenTheConsumerCloses(t *testing.T) {
	w := New(1, Options{})
	linkUp(w, 1, 1)
	send(w, "a", 5)
	w.Run(time.Second)
	w.Node("a").Slow(time.Second)
	c := w.Client("C")
	c.Connect(w.Node("a"))
	c.Consume(Wants{From: queueQ, Mode: Transacted, Batch: 5})
	w.Run(time.Second + 10*time.Millisecond) // the first delivery waits for the disk
	c.Close()
	other := w.Client("D")
	other.Connect(w.Node("a"))
	d := other.Consume(Wants{From: queueQ})
	w.Run(10 * time.Second)
	if d.Got != 0 || sizeOf(w.Node("a")) != 0 {
		t.Fatalf("the other consumer got %d, %d are left", d.Got, sizeOf(w.Node("a")))
	}
}

func TestParkedSendOfADeadLinkIsForgottenWhenItsPeerAsks(t *testing.T) {
	w := New(1, Options{})
	linkUp(w, 2, 1, "ab")
	cb := w.Client("CB")
	cb.Connect(w.Node("b"))
	cb.Consume(Wants{From: queueQ})
	w.Run(time.Second)
	w.Node("b").Capacity(1, 1<<20)
	send(w, "a", 5)
	w.Run(100 * time.Millisecond)
	w.Reset("a", "b", 0)
	cb.Close()
	w.Run(5 * time.Second)
	ca := w.Client("CA")
	ca.Connect(w.Node("a"))
	got := ca.Consume(Wants{From: queueQ})
	w.Run(5 * time.Second)
	w.Node("b").Capacity(0, 0)
	w.Run(5 * time.Second)
	if got.Got != 5 || sizeOf(w.Node("b")) != 0 {
		t.Fatalf("a's consumer got %d of 5, and %d came up at b", got.Got, sizeOf(w.Node("b")))
	}
}

func TestCleanStopKeepsTheMarksOfCopiesUnderWay(t *testing.T) {
	w := New(1, Options{})
	linkUp(w, 2, 1, "ab")
	cb := w.Client("CB")
	cb.Connect(w.Node("b"))
	cb.Consume(Wants{From: queueQ, Mode: Manual})
	w.Run(time.Second)
	w.Clog("b", "a")
	send(w, "a", 5)
	w.Run(time.Second)
	l := w.Node("a").life
	none := func() {}
	l.env.post(func() { l.core.Stop(none, func() { l.down(none) }) }) // its bridges do not know
	w.Run(10 * time.Second)
	w.Heal("a", "b")
	w.Node("a").Start()
	ca := w.Client("CA")
	ca.Connect(w.Node("a"))
	got := ca.Consume(Wants{From: queueQ})
	w.Run(20 * time.Second)
	if got.Got != 0 || sizeOf(w.Node("b")) != 5 {
		t.Fatalf("a's consumer got %d that b has, %d are at b", got.Got, sizeOf(w.Node("b")))
	}
}

func TestReplayToAndFroDoesNotUseUpTheTTL(t *testing.T) {
	w := New(1, Options{})
	linkUp(w, 3, 4, "ab", "ba", "bc", "cb")
	send(w, "a", 3)
	for i := range 8 {
		c := w.Client(fmt.Sprint("C", i))
		c.Connect(w.Node(nameOf(i % 2)))
		c.Consume(Wants{From: queueQ, Mode: Manual, Prefetch: 1})
		w.Run(20 * time.Second)
		c.Close()
	}
	c := w.Client("C")
	c.Connect(w.Node("c"))
	got := c.Consume(Wants{From: queueQ})
	w.Run(2 * time.Minute)
	if got.Got != 3 {
		t.Fatalf("c's consumer got %d of 3 (a has %d, b has %d)", got.Got, sizeOf(w.Node("a")),
			sizeOf(w.Node("b")))
	}
}
