package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hopwire/internal/broker"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// onceOnly tells of what is delivered after it was consumed, or consumed twice.
func (l *Ledger) onceOnly(violate func(format string, args ...any)) {
	l.OnDeliver(func(d *Delivery) {
		if d.Fate.Finals > 0 && !d.Stale {
			violate("delivered after it was consumed: %s", d.Fate)
		}
	})
	l.OnFinal(func(d *Delivery) {
		if d.Fate.Finals > 1 {
			violate("consumed twice: %s", d.Fate)
		}
	})
}

// A broker crashes, and answers to its producers get lost, while what they send is consumed at
// once: from a queue, and by a durable subscriber of a topic. The producers fail over.
func playFailover(seed uint64, plant *Plant) (found []string) {
	w := New(seed, Options{DiskJitter: 30 * time.Millisecond})
	rnd := w.Rand()
	n := w.Broker(NodeConfig{Name: "a", Plant: plant})
	n.Slow(time.Duration(rnd.IntN(3)) * 20 * time.Millisecond)
	violate := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	w.ledger.onceOnly(violate)
	topic := message.Destination{Kind: message.Topic, Name: "T"}
	reader := w.Client("C").Steady()
	stay(n, reader, reader.Connect, func() {
		reader.Consume(Wants{From: queueQ})
		reader.Consume(Wants{From: topic, Durable: "s"})
	})
	w.Run(time.Second)
	var writers []*Client
	for i := range 2 {
		c := w.Client(fmt.Sprint("P", i))
		stay(n, c, c.Reconnect, func() {})
		writers = append(writers, c)
	}
	for range 60 {
		p := writers[rnd.IntN(len(writers))]
		switch rnd.IntN(8) {
		case 0:
			w.Clog("a", "client "+p.name)
		case 1:
			w.Reset("client "+p.name, "a", 0)
		case 2:
			n.Crash(false, 0)
			w.Run(w.within(100 * time.Millisecond))
			n.Start()
		default:
			for range 1 + rnd.IntN(4) {
				to := []message.Destination{queueQ, topic}[rnd.IntN(2)]
				if p.node != nil {
					p.Send(Mail{To: to, Body: make([]byte, rnd.IntN(100))}, func(error) {})
				}
			}
		}
		w.Run(w.within(60 * time.Millisecond))
	}
	for _, p := range writers {
		w.Heal("client "+p.name, "a")
		w.Reset("client "+p.name, "a", 0)
	}
	w.Run(time.Minute)
	for _, f := range w.ledger.Order {
		if !f.Confirmed || !slices.ContainsFunc(f.Deliveries, func(d *Delivery) bool {
			return d.Handled
		}) {
			violate("lost: %s", f)
		}
	}
	return append(found, w.Notes()...)
}

// stay has a client come to a broker whenever it can; then runs when it did.
func stay(n *Node, c *Client, come func(*Node) bool, then func()) {
	var again func()
	again = func() {
		if come(n) {
			then()
			return
		}
		c.w.After(50*time.Millisecond, again)
	}
	c.OnDown(func() { c.w.After(c.w.within(200*time.Millisecond), again) })
	again()
}

func TestWhatAProducerSendsAgainIsConsumedOnce(t *testing.T) {
	seeds := min(seedsOf(t), 20_000)
	sweep(1, seeds, func(seed uint64) {
		if found := playFailover(seed, nil); len(found) > 0 {
			t.Errorf("seed %d: %s", seed, found[0])
		}
	})
	withPut := func(b *store.Batch, keep func(store.Op) bool) *store.Batch {
		return &store.Batch{Bytes: b.Bytes, Ops: slices.DeleteFunc(slices.Clone(b.Ops),
			func(op store.Op) bool { return !keep(op) })}
	}
	isNumber := func(op store.Op) bool { return op.Kind == store.PutNumber }
	for name, plant := range map[string]*Plant{
		"numbers are forgotten at a restart": {Store: func(_ *Life, s broker.Storage) broker.Storage {
			return faultyStorage{Storage: s, receipts: func(_ store.DestID,
				done func(store.Receipts, error)) {
				s.Receipts(0, done)
			}}
		}},
		"a cancelled put takes its number along": commitPlant(
			func(s broker.Storage, b *store.Batch, done func(error)) {
				dropOfCancelled(b, store.PutNumber)
				s.Commit(b, done)
			}),
		"a number is durable before its message": commitPlant(
			func(s broker.Storage, b *store.Batch, done func(error)) {
				if slices.ContainsFunc(b.Ops, isNumber) {
					s.Commit(withPut(b, isNumber), func(error) {})
				}
				s.Commit(b, done)
			}),
		"a number is durable after its message": commitPlant(
			func(s broker.Storage, b *store.Batch, done func(error)) {
				s.Commit(withPut(b, func(op store.Op) bool { return !isNumber(op) }), func(error) {})
				s.Commit(withPut(b, isNumber), done)
			}),
	} {
		shown := uint64(0)
		for seed := uint64(1); seed <= plantedSeeds && shown == 0; seed++ {
			if len(playFailover(seed, plant)) > 0 {
				shown = seed
			}
		}
		if t.Logf("%s: seed %d", name, shown); shown == 0 {
			t.Errorf("%s: %d seeds do not show it", name, plantedSeeds)
		}
	}
}
