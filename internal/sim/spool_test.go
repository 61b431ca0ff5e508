package sim

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/policy"
)

// A broker forwards to another; both have little memory and a spool that is full, slow or cannot be
// read now and then. Most messages are not persistent. Nobody crashes: all come, each once.
func playSpool(seed uint64) (found []string, spooled int64) {
	w := New(seed, Options{DiskJitter: 30 * time.Millisecond})
	rnd := w.Rand()
	e := policy.NewEntry()
	e.Memory.LimitBytes = []int64{0, 30_000}[rnd.IntN(2)]
	e.Memory.ProducerFlowControl = rnd.IntN(2) == 0
	for _, name := range []string{"a", "b"} {
		w.Broker(NodeConfig{Name: name, Spool: true, MemoryLimit: 60_000,
			Policies: &policy.Map{Default: e}})
	}
	a, b := w.Node("a"), w.Node("b")
	o := bridge.DefaultOptions(5)
	o.Name, o.URIs, o.InDoubtTimeout = "nc", []string{"sim://b"}, bridge.NeverTimeout
	o.PrefetchSize = int32(1 + rnd.IntN(100))
	a.Connect(o)
	violate := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	w.ledger.onceOnly(violate)
	w.Run(time.Second)
	reader := w.Client("C")
	reader.Connect(b)
	opened := rnd.IntN(40)
	var writers []*Client
	for i := range 3 {
		c := w.Client(fmt.Sprint("P", i))
		c.Connect([]*Node{b, a}[min(i, 1)])
		writers = append(writers, c)
	}
	for step := range 60 {
		if step == opened {
			reader.Consume(Wants{From: queueQ, Prefetch: 1 + rnd.IntN(300),
				Work: time.Duration(rnd.IntN(3)) * time.Millisecond})
		}
		n := []*Node{a, b}[rnd.IntN(2)]
		switch what := rnd.IntN(10); what {
		case 0, 1, 2:
			trouble(w, n, what)
		default:
			for range 1 + rnd.IntN(30) {
				writers[rnd.IntN(len(writers))].Send(Mail{To: queueQ, Volatile: rnd.IntN(4) > 0,
					Body: make([]byte, rnd.IntN(100))}, func(error) {})
			}
		}
		w.Run(w.within(60 * time.Millisecond))
	}
	for _, n := range []*Node{a, b} {
		n.SpoolCapacity(0, 0)
		n.Spoil(0)
		n.Slow(0)
	}
	w.Run(2 * time.Minute)
	for _, f := range w.ledger.Order {
		if !f.Confirmed || !slices.ContainsFunc(f.Deliveries, func(d *Delivery) bool {
			return d.Handled
		}) {
			violate("lost: %s", f)
		}
	}
	for _, n := range []*Node{a, b} {
		if x := n.Core().Status().Spool; x.Count != 0 || x.Bytes != 0 {
			violate("%s: %+v is left in the spool", n.Name(), x)
		}
		spooled += n.Spooled()
	}
	return append(found, w.Notes()...), spooled
}

// trouble comes over a broker's disk for a while.
func trouble(w *World, n *Node, what int) {
	switch what {
	case 0:
		n.SpoolCapacity(int64(1+w.rnd.IntN(60_000)), 8_000)
		w.After(w.within(2*time.Second), func() { n.SpoolCapacity(0, 0) })
	case 1:
		n.Slow(w.within(100 * time.Millisecond))
	default:
		n.Spoil(w.rnd.IntN(60))
		w.After(w.within(2*time.Second), func() { n.Spoil(0) })
	}
}

func TestASpoolLosesAndDoublesNothing(t *testing.T) {
	var used atomic.Int64
	sweep(1, min(seedsOf(t), 20_000), func(seed uint64) {
		found, spooled := playSpool(seed)
		if len(found) > 0 {
			t.Errorf("seed %d: %s", seed, found[0])
		}
		used.Add(spooled)
	})
	if used.Load() == 0 {
		t.Error("nothing was ever spooled")
	}
	t.Logf("%d copies were spooled", used.Load())
}
