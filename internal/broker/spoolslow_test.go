package broker

import (
	"fmt"
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
		h.drainsAll(q, numbered(1, 300, 0, 0), fmt.Sprintf("limit %d", limit))
	}
}

// What ends in a turn whose batch is refused, as it puts something, is deleted with the next one.
func TestWhatEndsWithARefusedBatchIsDeleted(t *testing.T) {
	h, q := open(t, nil, spooling), queueNamed("q")
	h.burst(q, 1, 300, 0)
	r := &reader{guest: h.connect("r", "r", "", nil)}
	r.id = r.window("r", q, 60, "")
	for range 3 { // what it has then was spooled
		got := r.got
		r.got = nil
		for _, id := range got {
			r.ack(r.id, q, id, message.IndividualAck, message.TransactionID{})
		}
	}
	p := h.connect("p", "p", "", nil)
	var more []*message.Message
	for i := range int64(60) {
		more = append(more, p.big("p", q, 301+i, 5000, false))
	}
	h.spool.SetFault(noPuts)
	for _, m := range more {
		p.Handle(m)
	}
	r.Handle(&message.MessageAck{Destination: q, Consumer: r.id, Type: message.IndividualAck,
		Last: r.got[59], HasLast: true, Count: 1})
	h.b.EndTurn()
	if x := h.b.spool.batch; x == nil || len(x.puts) == 0 || len(x.ops) == 0 {
		t.Fatalf("the batch is %+v", x)
	}
	h.turn()
	h.spool.SetFault(nil)
	h.pass(3 * time.Second)
	r.Gone()
	h.turn()
	h.drains(q)
	h.holdsNothing()
}

// A send that fails without room waits while the spool makes some, and fails when it makes none.
func TestASendDoesNotFailWhileTheSpoolMakesRoom(t *testing.T) {
	h, q := open(t, nil, func(o *Options) {
		spooling(o)
		o.SendFailIfNoSpace = true
	}), queueNamed("q")
	p := h.connect("p", "p", "", nil)
	for round := range int64(3) {
		var all []*message.Message
		for i := range int64(300) {
			all = append(all, p.big("p", q, round*300+i+1, 10_000, false))
		}
		for _, m := range all {
			p.Handle(m)
		}
		h.turn()
	}
	if n := h.b.counts.Reasons[message.MemoryFull]; n != 0 || h.b.find(q).queue.Len() != 900 {
		t.Errorf("%d sends failed, %d of 900 are there", n, h.b.find(q).queue.Len())
	}
	h.bridge("ID:p", queueNamed("held"), &bridgeEnd{})
	for i := range int64(200) { // the bridge has these, and they cannot be spooled
		p.Handle(p.big("p", queueNamed("held"), 1000+i, 10_000, false))
	}
	h.pass(3 * time.Second)
	if d := h.b.find(queueNamed("held")); d.parkedCount() != 0 ||
		h.b.counts.Reasons[message.MemoryFull] == 0 {
		t.Errorf("%d wait, %d failed", d.parkedCount(), h.b.counts.Reasons[message.MemoryFull])
	}
}
