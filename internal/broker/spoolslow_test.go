package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// Consumers that take nothing, whatever they hold, keep no senders waiting while there is a spool.
func TestSlowConsumersDoNotHoldSenders(t *testing.T) {
	for _, queues := range []int64{1, 30} {
		for _, limit := range []int64{0, 300_000} {
			h := open(t, nil, func(o *Options) {
				spooling(o)
				e := policy.NewEntry()
				e.Memory.LimitBytes = limit
				o.Policies = &policy.Map{Default: e}
			})
			names := make([]message.Destination, queues)
			slow := h.connect("slow", "slow", "", nil)
			for i := range names {
				names[i] = queueNamed(string(rune('A' + i)))
				slow.window("slow", names[i], 1, "")
			}
			p := h.connect("p", "p", "", nil)
			for i := range int64(900) {
				if e := p.do(p.big("p", names[i%queues], i+1, 10_000, false)); e != nil {
					t.Fatal(e)
				}
			}
			slow.Gone()
			h.turn()
			n := 0
			for _, q := range names {
				d := h.b.find(q)
				if d.parkedCount() > 0 {
					t.Errorf("%d queues, limit %d: %d sends wait at %s", queues, limit, d.parkedCount(), q)
				}
				r := &reader{guest: h.connect("r", "r", "", nil)}
				r.id = r.consume("r", q)
				for len(r.got) > 0 {
					n += len(r.got)
					r.ackAll()
				}
				r.leave()
			}
			if n != 900 {
				t.Errorf("%d queues, limit %d: %d of 900 came", queues, limit, n)
			}
			h.holdsNothing()
		}
	}
}

// What could not be spooled, as a bridge had it, can be when that is gone: memory does not grow
// meanwhile, and the senders that wait for it go on.
func TestWhatComesBackIsSpooled(t *testing.T) {
	for _, limit := range []int64{0, 300_000} {
		h, q := open(t, nil, func(o *Options) {
			spooling(o)
			e := policy.NewEntry()
			e.Memory.LimitBytes = limit
			o.Policies = &policy.Map{Default: e}
		}), queueNamed("q")
		e := &bridgeEnd{}
		id := h.bridge("ID:p", q, e)
		h.park(q, 1, 300)
		if h.b.spool.total != 0 {
			t.Fatalf("%d are spooled that the bridge has", h.b.spool.total)
		}
		h.pass(3 * time.Second)
		h.b.Settle(id, e.got[:1], network.Returned)
		h.b.Unsubscribe(id)
		h.pass(3 * time.Second)
		if n := h.b.find(q).parkedCount(); n != 0 {
			t.Errorf("limit %d: %d sends wait", limit, n)
		}
		if got := h.drains(q); got != numbered(1, 300, 0, 0) {
			t.Errorf("limit %d: got %s", limit, got)
		}
		h.holdsNothing()
	}
}
