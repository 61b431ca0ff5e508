package broker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// lastOf looks through all that waits.
func (d *destination) lastOf(a *arrival) *arrival {
	passes := a.peer != nil && a.b.isStored(d, a.m)
	for _, p := range slices.Backward(d.parked) {
		if d.parks(p) && p.m.ID.Producer == a.m.ID.Producer && (!passes || p.wait.stored) {
			return p
		}
	}
	return nil
}

func TestASendWaitsBehindTheLastOfItsProducer(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := open(t, nil, nil)
		d := h.b.destination(queueNamed("q"))
		var in []*arrival
		for range 2000 {
			p := message.ProducerID{Connection: "c", Session: 1, Value: r.Int64N(3)}
			a := &arrival{b: h.b, m: &message.Message{ID: message.MessageID{Producer: p},
				Persistent: r.IntN(2) == 0}}
			if r.IntN(2) == 0 {
				a.peer = &network.Peer{}
			}
			if got, want := d.behind(a), d.lastOf(a); got != want {
				t.Fatalf("seed %d: it waits behind %p, want %p", seed, got, want)
			}
			switch n := r.IntN(len(in) + 1); {
			case n == len(in) || r.IntN(2) == 0:
				h.b.park(d, a, h.b.class(d, a), message.MemoryFull)
				in = append(in, a)
			case r.IntN(5) == 0:
				d.recount(in[n], transacted-in[n].wait.class&transacted, r.IntN(2) == 0)
			default:
				d.unpark(in[n])
				in = slices.Delete(in, n, n+1)
			}
		}
		for _, a := range in {
			d.unpark(a)
		}
		if len(d.waiting) != 0 {
			t.Fatalf("seed %d: nothing waits, and %v is counted", seed, d.waiting)
		}
	}
}

func TestASendThatWaitsFindsThoseOfItsProducerAtOnce(t *testing.T) {
	h := quick(t, func(o *Options) { o.MemoryLimitBytes = 1000 })
	g := h.connect("g", "g", "", nil)
	q := queueNamed("q")
	const many = 20_000
	producer := func(p int64) message.ProducerID {
		return message.ProducerID{Connection: "g", Session: 1, Value: p}
	}
	for p := range int64(many) {
		g.Handle(&message.ProducerInfo{ID: producer(p)})
	}
	h.turn()
	longest(t, "the sends of 20,000 producers, three times in turn", 2*time.Second, func() {
		for n := range int64(3 * many) {
			p := producer(n % many)
			// What goes to the store has room and waits because of the first one only.
			g.Handle(&message.Message{Producer: p, Destination: q, Persistent: n >= many,
				ID: message.MessageID{Producer: p, Sequence: n}, Content: make([]byte, 100)})
		}
	})
	if d := h.b.find(q); d.parkedCount() < 2*many {
		t.Errorf("%d wait", d.parkedCount())
	}
}
