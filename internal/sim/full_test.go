package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/internal/bridge"
)

// A broker whose disk is full again and again, with what is under way, crashes and stops, while a
// peer forwards to it, producers that fail over send, and what comes is consumed.
func playFull(seed uint64, plant *Plant) (found []string) {
	w := New(seed, Options{DiskJitter: 30 * time.Millisecond})
	rnd := w.Rand()
	a, b := w.Broker(NodeConfig{Name: "a"}), w.Broker(NodeConfig{Name: "b", Plant: plant})
	o := bridge.DefaultOptions(5)
	o.Name, o.URIs, o.InDoubtTimeout = "nc", []string{"sim://b"}, bridge.NeverTimeout
	a.Connect(o)
	b.disk.frees = true
	b.Slow(time.Duration(rnd.IntN(3)) * 20 * time.Millisecond)
	violate := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	w.ledger.onceOnly(violate)
	mode := []AckMode{Auto, Transacted}[rnd.IntN(2)]
	reader := w.Client("C").Steady()
	stay(b, reader, reader.Connect, func() {
		reader.Consume(Wants{From: queueQ, Mode: mode, Work: time.Duration(rnd.IntN(3)) * 10 *
			time.Millisecond})
	})
	w.Run(2 * time.Second)
	var writers []*Client
	for i := range 3 {
		n := a
		if i == 0 {
			n = b
		}
		c := w.Client(fmt.Sprint("P", i))
		stay(n, c, c.Reconnect, func() {})
		writers = append(writers, c)
	}
	for range 60 {
		switch rnd.IntN(12) {
		case 0, 1:
			b.Capacity(1, 1<<20)
			w.After(w.within(time.Second), func() { b.Capacity(0, 0) })
		case 2:
			w.Reset("a", "b", 0)
		case 3:
			w.Reset("client P0", "b", 0)
		case 4:
			b.Crash(false, 0)
			w.Run(w.within(100 * time.Millisecond))
			b.Start()
		case 5:
			b.Stop(b.Start)
		default:
			for range 1 + rnd.IntN(8) {
				if p := writers[rnd.IntN(len(writers))]; p.node != nil {
					p.Send(Mail{To: queueQ, Body: make([]byte, rnd.IntN(100))}, func(error) {})
				}
			}
		}
		w.Run(w.within(60 * time.Millisecond))
	}
	b.Capacity(0, 0)
	w.Run(2 * time.Second)
	b.Capacity(0, 0)
	b.Start()
	w.Run(2 * time.Minute)
	for _, f := range w.ledger.Order {
		if !f.Confirmed || !slices.ContainsFunc(f.Deliveries, func(d *Delivery) bool {
			return d.Handled
		}) {
			violate("lost: %s", f)
		}
	}
	return append(found, w.Notes()...)
}

func TestAFullDiskLosesAndDoublesNothing(t *testing.T) {
	sweep(1, min(seedsOf(t), 20_000), func(seed uint64) {
		if found := playFull(seed, nil); len(found) > 0 {
			t.Errorf("seed %d: %s", seed, found[0])
		}
	})
	shown := uint64(0)
	for seed := uint64(1); seed <= plantedSeeds && shown == 0; seed++ {
		if len(playFull(seed, &Plant{Store: receiptsAhead})) > 0 {
			shown = seed
		}
	}
	if t.Logf("receipts ahead of what has no room: seed %d", shown); shown == 0 {
		t.Errorf("%d seeds do not show receipts that are durable before their messages", plantedSeeds)
	}
}
