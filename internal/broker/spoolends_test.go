package broker

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

func TestWhatIsSpooledIsBrowsed(t *testing.T) {
	h, q := open(t, nil, spooling), queueNamed("q")
	h.burst(q, 1, 400, 3)
	b := &reader{guest: h.connect("b", "b", "", nil)}
	b.browse("b", q, 1000)
	if got := b.bodies(); got != numbered(1, 400, 0, 0) || b.ends() != 1 {
		t.Errorf("a browser sees %s, and %d ends", got, b.ends())
	}
	h.drainsAll(q, numbered(1, 400, 0, 0), "")
}

// A selector reads all there is, and what it does not take leaves memory again.
func TestASelectorFindsWhatIsSpooled(t *testing.T) {
	h, q := open(t, nil, spooling), queueNamed("q")
	p := h.connect("p", "p", "", nil)
	for i := range int64(600) {
		m := p.big("p", q, i+1, 10_000, i%5 == 0)
		m.Type = fmt.Sprint("t", i/100)
		p.do(m)
	}
	r := &reader{guest: h.connect("r", "r", "", nil)}
	r.id = r.window("r", q, 1000, "JMSType = 't4'")
	if got := r.bodies(); got != numbered(401, 500, 0, 0) {
		t.Errorf("got %s", got)
	}
	r.ackAll()
	r.leave()
	h.drainsAll(q, numbered(1, 600, 401, 500), "")
}

// What comes back was delivered, and stays in memory; what a client never saw may leave it again.
func TestWhatIsSpooledComesBack(t *testing.T) {
	for _, seen := range []bool{false, true} {
		h, q := open(t, nil, spooling), queueNamed("q")
		h.burst(q, 1, 400, 0)
		r := &reader{guest: h.connect("r", "r", "", nil)}
		r.consume("r", q)
		if len(r.got) < 150 {
			t.Fatalf("%d messages came", len(r.got))
		}
		n := len(r.got)
		if r.unsent = uint64(n); seen {
			r.unsent = 0
		}
		r.Gone()
		h.turn()
		c := &reader{guest: h.connect("c", "c", "", nil)}
		c.id = c.consume("c", q)
		if told := c.counts[0] == 1; told != seen {
			t.Errorf("seen %v: told to be redelivered %v", seen, told)
		}
		c.ackAll()
		if got := h.drains(q); seen && got != numbered(int64(n)+1, 400, 0, 0) {
			t.Errorf("seen %v: then %s", seen, got)
		}
		h.holdsNothing()
	}
}

func TestATransactionTakesWhatIsSpooled(t *testing.T) {
	for _, how := range []message.TransactionType{message.Rollback, message.CommitOnePhase} {
		h, q := open(t, nil, spooling), queueNamed("q")
		h.burst(q, 1, 300, 4)
		g := h.connect("g", "g", "", nil)
		id := g.consume("g", q)
		tx := g.begin("g", 1)
		n := len(g.got)
		for _, m := range g.got[:n] {
			g.ack(id, q, m, message.IndividualAck, tx)
		}
		if e := g.finish(tx, how); e != nil {
			t.Fatal(e)
		}
		g.Gone()
		h.turn()
		left := int64(300)
		if how == message.CommitOnePhase {
			left -= int64(n)
		}
		if got := h.b.find(q).queue.Len(); got != left {
			t.Errorf("%d messages are left, want %d", got, left)
		}
		h.drains(q)
		h.holdsNothing()
	}
}

func TestExpiredMessagesThatAreSpooledEnd(t *testing.T) {
	h, q := open(t, nil, func(o *Options) {
		spooling(o)
		e := policy.NewEntry()
		e.DeadLetter.ProcessNonPersistent = true
		o.Policies = &policy.Map{Default: e}
	}), queueNamed("q")
	p := h.connect("p", "p", "", nil)
	for i := range int64(400) {
		m := p.big("p", q, i+1, 10_000, i%3 == 0)
		if i%2 == 0 {
			m.Expiration = h.Wall() + 10_000
		}
		p.do(m)
	}
	if h.b.find(q).queue.SpooledOnly() < 100 {
		t.Fatal("too little is spooled")
	}
	h.pass(31 * time.Second)
	dead := message.Destination{Kind: message.Queue, Name: "ActiveMQ.DLQ"}
	if n, d := h.b.find(q).queue.Len(), h.b.find(dead); n != 200 || d == nil || d.queue.Len() != 200 {
		t.Errorf("%d messages are left", n)
	}
	h.drains(q)
	h.drains(dead)
	h.holdsNothing()
}

func TestWhatIsSpooledIsPurged(t *testing.T) {
	h, q := open(t, nil, spooling), queueNamed("q")
	h.burst(q, 1, 500, 3)
	if got := h.purge(q); got != (Purged{Dropped: 500}) {
		t.Errorf("purged %+v", got)
	}
	h.has(q, 0)
	h.holdsNothing()
}

func TestAQueueIsRemovedWithWhatIsSpooled(t *testing.T) {
	for name, at := range map[string]func(h *house, q message.Destination){
		"spooled":     func(h *house, q message.Destination) { h.burst(q, 1, 300, 0) },
		"on its way":  func(h *house, q message.Destination) { h.under(q) },
		"and refused": func(h *house, q message.Destination) { h.under(q); h.spool.SetCapacity(1, 1000) },
	} {
		h, q := open(t, nil, spooling), queueNamed("q")
		at(h, q)
		if err := h.b.removeDestination(h.b.find(q), true); err != nil {
			t.Fatal(name, err)
		}
		h.turn()
		h.spool.SetCapacity(0, 0)
		h.pass(2 * time.Second)
		h.holdsNothing()
		h.burst(q, 1, 300, 0)
		h.drainsAll(q, numbered(1, 300, 0, 0), name)
	}
}

func TestABridgeGetsWhatIsSpooled(t *testing.T) {
	h, q := open(t, nil, spooling), queueNamed("q")
	h.burst(q, 1, 400, 2)
	e := &bridgeEnd{}
	id := h.bridge("ID:p", q, e)
	all := []message.CopyRef{}
	for len(e.got) > 0 {
		got := e.got
		e.got = nil
		all = append(all, got...)
		half := len(got) / 2
		h.b.Settle(id, got[half:], network.Returned) // and again
		h.b.Settle(id, got[:half+1], network.Acked)
		h.turn()
		all = all[:len(all)-len(got)+min(len(got), half+1)]
		if len(all) > 2000 {
			t.Fatal("it goes round")
		}
		if half == 0 {
			h.b.Settle(id, got, network.Acked)
			h.turn()
		}
	}
	if h.b.find(q).counts.Forwarded != 400 {
		t.Errorf("%d of 400 were forwarded", h.b.find(q).counts.Forwarded)
	}
	h.holdsNothing()
}

// One message that cannot be read ends; a range waits until it can be, or is purged.
func TestDamageOfTheSpool(t *testing.T) {
	for _, every := range []int64{0, 2} {
		h, q := open(t, nil, spooling), queueNamed("q")
		h.burst(q, 1, 400, every)
		h.unchecked = true
		d := h.b.find(q)
		from, _ := d.queue.Gap(300)
		h.spool.Damage(d.id, store.Seq(from), store.Seq(from+20))
		got := h.drains(q)
		want := numbered(1, 400, 300, 319)
		if every == 2 { // the store has the others
			want = numbered(1, 299, 0, 0)
			for i := int64(300); i <= 400; i++ {
				if i >= 320 || i%2 == 0 {
					want += fmt.Sprint(" ", i)
				}
			}
		}
		if got != want || h.corrupt() == 0 {
			t.Errorf("every %d: got %s, want %s", every, got, want)
		}
		lost := int64(20)
		if every == 2 {
			lost = 10
		}
		if p := h.purge(q); p.Dropped != lost {
			t.Errorf("every %d: purged %+v, want %d", every, p, lost)
		}
		h.has(q, 0)
		h.unchecked = false
		h.holdsNothing()
	}
}

// A record is there until its delete is: who reads meanwhile does not get what expired once more.
func TestWhatIsTakenFromTheSpoolIsNotReadAgain(t *testing.T) {
	h, q := open(t, nil, spooling), queueNamed("q")
	p := h.connect("p", "p", "", nil)
	for i := range int64(300) {
		m := p.big("p", q, i+1, 10_000, false)
		m.Expiration = h.Wall() + 10_000
		p.do(m)
	}
	h.now += 11 * time.Second
	h.b.spool.batch = &spoolBatch{} // one is on its way, and what is collected waits
	h.b.expiring = true
	(&expirySearch{b: h.b, now: h.Wall()}).memory()
	h.turn()
	d := h.b.find(q)
	if d.queue.Len() != 0 || len(h.b.spool.now) < 100 {
		t.Fatalf("%d are left, %d deletes wait", d.queue.Len(), len(h.b.spool.now))
	}
	c := h.connect("c", "c", "", nil)
	c.consume("c", q)
	if len(c.got) != 0 || d.counts.Expired != 300 {
		t.Errorf("%d messages came, %d of 300 expired", len(c.got), d.counts.Expired)
	}
	h.b.spool.batch = nil
	h.turn()
	h.holdsNothing()
}

// noPuts refuses what puts.
func noPuts(batches []*store.Batch) error {
	if slices.ContainsFunc(batches, (*store.Batch).Puts) {
		return message.Errorf(message.Limit, "no room")
	}
	return nil
}

// errand is a machine of one queue with a spool: what is sent comes once, or expires or is purged.
type errand struct {
	*house
	q       message.Destination
	p       *guest
	sent    int64
	expires map[int64]bool
	done    map[int64]bool
	readers []*reader
	ids     int
	purged  bool
}

func (x *errand) send(t *rapid.T) {
	for range rapid.SampledFrom([]int{1, 10, 60, 300}).Draw(t, "n") {
		x.sent++
		m := x.p.big("p", x.q, x.sent, rapid.IntRange(0, 3000).Draw(t, "size"),
			rapid.IntRange(0, 3).Draw(t, "persistent") == 0)
		m.GroupID = rapid.SampledFrom([]string{"", "", "", "A", "B"}).Draw(t, "group")
		m.Type = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "type")
		if rapid.IntRange(0, 5).Draw(t, "expires") == 0 {
			m.Expiration = x.Wall() + 20_000
			x.expires[x.sent] = true
		}
		x.p.Handle(m)
	}
}

func (x *errand) reader(t *rapid.T) *reader {
	if len(x.readers) == 0 {
		return nil
	}
	return rapid.SampledFrom(x.readers).Draw(t, "reader")
}

func (x *errand) open(prefetch int32, selector string) {
	x.ids++
	r := &reader{guest: x.connect(fmt.Sprint("r", x.ids), fmt.Sprint("r", x.ids), "", nil)}
	r.id = r.window(fmt.Sprint("r", x.ids), x.q, prefetch, selector)
	x.readers = append(x.readers, r)
}

func (x *errand) browses() {
	x.ids++
	name := fmt.Sprint("b", x.ids)
	x.connect(name, name, "", nil).browse(name, x.q, 2000)
}

func (x *errand) acks(t interface{ Fatalf(string, ...any) }, r *reader, n int) {
	for ; n > 0 && len(r.got) > 0; n-- {
		id := r.got[0]
		r.got = r.got[1:]
		if x.done[id.Sequence] {
			t.Fatalf("%d comes again when it is consumed", id.Sequence)
		}
		x.done[id.Sequence] = true
		r.ack(r.id, x.q, id, message.IndividualAck, message.TransactionID{})
	}
}

func TestWhatIsSpooledComesOnce(t1 *testing.T) {
	used := int64(0)
	rapid.Check(t1, func(t *rapid.T) {
		x := &errand{q: queueNamed("q"), expires: map[int64]bool{}, done: map[int64]bool{},
			house: open(t1, nil, func(o *Options) {
				o.Spool, o.MemoryLimitBytes = wantSpool{}, 100_000
				e := policy.NewEntry()
				e.Memory.LimitBytes = rapid.SampledFrom([]int64{0, 0, 20_000, 90_000}).Draw(t, "limit")
				o.Policies = &policy.Map{Default: e}
			})}
		x.p = x.connect("p", "p", "", nil)
		actions := map[string]func(*rapid.T){
			"send": x.send, "send again": x.send,
			"open": func(t *rapid.T) {
				x.open(rapid.SampledFrom([]int32{1, 10, 1000}).Draw(t, "prefetch"),
					rapid.SampledFrom([]string{"", "", "JMSType = 'x'"}).Draw(t, "selector"))
			},
			"close": func(t *rapid.T) {
				if r := x.reader(t); r != nil {
					drop(&x.readers, r)
					r.Gone()
				}
			},
			"ack": func(t *rapid.T) {
				if r := x.reader(t); r != nil {
					x.acks(t, r, rapid.IntRange(1, 30).Draw(t, "acks"))
				}
			},
			"browse": func(*rapid.T) { x.browses() },
			"": func(t *rapid.T) {
				if d := x.b.find(x.q); d != nil && d.queue.SpooledOnly() > d.queue.StoredOnly() {
					t.Fatalf("%d are in the spool alone of %d", d.queue.SpooledOnly(),
						d.queue.StoredOnly())
				}
			},
		}
		maps.Copy(actions, x.spoolFaults())
		if rapid.IntRange(0, 3).Draw(t, "purges") == 0 {
			actions["purge"] = func(*rapid.T) {
				x.purged = true
				x.b.Purge(x.q, "", func(Purged, error) {})
			}
		}
		t.Repeat(actions)
		x.ends(t)
		used += x.b.spool.total
	})
	if t1.Logf("%d copies were spooled", used); used == 0 && !testing.Short() {
		t1.Error("nothing was ever spooled")
	}
}

// spoolFaults are what befalls a broker with a spool beside what its clients do, and time.
func (h *house) spoolFaults() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"steps": func(t *rapid.T) {
			for range rapid.IntRange(1, 20).Draw(t, "n") {
				h.step()
			}
		},
		"turn": func(*rapid.T) { h.turn() },
		"full": func(t *rapid.T) {
			h.spool.SetCapacity(rapid.SampledFrom([]int64{1, 80_000, 300_000}).Draw(t, "room"), 20_000)
		},
		"refuse": func(*rapid.T) { h.spool.SetFault(noPuts) },
		"free":   func(*rapid.T) { h.freeSpool() },
		"time": func(t *rapid.T) {
			h.pass(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
		},
		"unread": func(t *rapid.T) { h.broken = rapid.IntRange(1, 3).Draw(t, "reads") },
	}
}

// freeSpool ends what is wrong with the spool.
func (h *house) freeSpool() {
	h.spool.SetCapacity(0, 0)
	h.spool.SetFault(nil)
}

// ends frees all, has one consumer take what is left, and looks at what became of everything.
func (x *errand) ends(t *rapid.T) {
	x.freeSpool()
	x.broken = 0
	x.pass(5 * time.Second)
	for _, r := range x.readers {
		r.Gone()
	}
	x.turn()
	x.open(1000, "")
	last := x.readers[len(x.readers)-1]
	for range 10_000 {
		if x.turn(); len(last.got) == 0 {
			break
		}
		x.acks(t, last, len(last.got))
	}
	last.Gone()
	x.pass(40 * time.Second)
	gone := 0
	for i := int64(1); i <= x.sent; i++ {
		if !x.done[i] && !x.expires[i] {
			gone++
		}
	}
	if gone > 0 && !x.purged {
		t.Errorf("%d of %d are lost; %v", gone, x.sent, slices.Sorted(maps.Keys(x.done)))
	}
	if d := x.b.find(x.q); d != nil && d.queue.Len() > 0 {
		t.Errorf("%d are left", d.queue.Len())
	}
	for _, n := range []string{"ActiveMQ.DLQ"} {
		if d := x.b.find(queueNamed(n)); d != nil {
			x.drains(d.name)
		}
	}
	if err := x.nothing(); err != nil {
		t.Error(err)
	}
}
