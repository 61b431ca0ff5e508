package broker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"hopwire/internal/message"
)

// TestLogsAreEmptyWhenAllDurablesAreThroughWithThem lets subscriptions that share topics
// acknowledge in any order, over restarts. The disk's check tells of heads that rise too far.
func TestLogsAreEmptyWhenAllDurablesAreThroughWithThem(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := open(t, nil, nil)
		of := []string{">", "T.0", "T.0,T.1", "T.*,T.1", "T.2"}
		var readers []*reader
		come := func() {
			readers = nil
			for n, topics := range of {
				readers = append(readers, h.subscribe(fmt.Sprint("c", n), "s", topics,
					func(c *message.ConsumerInfo) { c.PrefetchSize = 10_000 }))
			}
		}
		come()
		g := h.connect("g", "g", "", nil)
		sent := int64(0)
		ack := func(a *reader, n int) {
			id := a.got[n]
			a.got = append(a.got[:n:n], a.got[n+1:]...)
			a.ack(a.id, a.from[id], id, message.IndividualAck, message.TransactionID{})
		}
		for range 300 {
			switch a := readers[r.IntN(len(readers))]; {
			case r.IntN(3) == 0:
				sent++
				if e := g.produce("g", topicNamed(fmt.Sprint("T.", r.IntN(4))), sent); e != nil {
					t.Fatal(e)
				}
			case r.IntN(100) == 0:
				h = open(t, h.disk, nil)
				g = h.connect("g", "g", "", nil)
				come()
			case len(a.got) > 0:
				ack(a, r.IntN(min(3, len(a.got))))
			}
		}
		for _, a := range readers {
			for len(a.got) > 0 {
				ack(a, 0)
			}
		}
		h.publish("U", 1, 1) // of ">" alone
		h.whole(fmt.Sprint("seed ", seed))
		for n := range 4 {
			topic := fmt.Sprint("T.", n)
			if h.b.find(topicNamed(topic)) != nil && h.loggedOf(topic) > 0 {
				t.Fatalf("seed %d: %d messages of %s stay", seed, h.loggedOf(topic), topic)
			}
		}
	}
}
