package broker

import (
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

func TestAPeerIsNamedWithItsIDBehind(t *testing.T) {
	h := open(t, nil, nil)
	if got := h.b.peerText("ID:x"); got != "ID:x" {
		t.Errorf("a peer that is away is %q", got)
	}
	h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: "ID:x", Name: "hub"}, Started: true})
	if got := h.b.peerText("ID:x"); got != "hub (ID:x)" {
		t.Errorf("a peer that is linked is %q", got)
	}
	h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: "ID:x", Name: "hub"}})
	if got := h.b.peerText("ID:x"); got != "hub (ID:x)" {
		t.Errorf("a peer that was linked is %q", got)
	}
}

func TestTheLimitThatKeepsSendsWaitingIsNamed(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		o.MemoryLimitBytes = 1 << 20
		e := policy.NewEntry()
		e.Destination, e.Memory.LimitBytes = queueNamed("Q"), 1000
		o.Policies = &policy.Map{Entries: []*policy.Entry{e}}
	})
	d := h.b.destination(queueNamed("other"))
	if got := h.b.memoryReleases(d); !strings.Contains(got, "memoryUsage of the broker (1.0 MiB, ") {
		t.Errorf("the broker's limit is full: released by %s", got)
	}
	d = h.b.destination(queueNamed("Q"))
	d.usage.Add(1500)
	got := h.b.memoryReleases(d)
	if !strings.Contains(got, "memoryLimit of its policyEntry (1000 B, of which 1.5 KiB are taken)") {
		t.Errorf("the policy's limit is full: released by %s", got)
	}
}

func TestWhatKeepsSendsFromTheStoreIsNamed(t *testing.T) {
	const mark = ", or a higher storeUsageHighWaterMark of its policyEntry (50%)"
	for _, c := range []struct {
		limit, onTheWay int64
		percent         int
		space           store.Space
		want            string
	}{
		{1 << 20, 0, 100, store.Space{UsedBytes: 2 << 20, FreeBytes: 9 << 30},
			"a larger storeUsage of the broker (1.0 MiB, of which 2.0 MiB are taken)"},
		{1 << 20, 1 << 20, 50, store.Space{FreeBytes: -1},
			"a larger storeUsage of the broker (1.0 MiB, of which 1.0 MiB are taken)" + mark},
		{1 << 20, 0, 100, store.Space{FreeBytes: 10, ReserveBytes: 20},
			"consumers, or room on the disk (10 B are free, of which 20 B are kept free)"},
		{0, 0, 100, store.Space{UsedBytes: 2 << 20, FreeBytes: -1, Full: true},
			"consumers, or disk space"},
	} {
		h := open(t, nil, func(o *Options) {
			o.StoreLimitBytes = c.limit
			e := policy.NewEntry()
			e.Destination, e.Memory.StoreHighWaterPercent = queueNamed("Q"), c.percent
			o.Policies = &policy.Map{Entries: []*policy.Entry{e}}
		})
		h.space = func() store.Space { return c.space }
		h.b.journal.undurable = c.onTheWay
		g := h.connect("g", "g", "", nil)
		g.Handle(g.mail("g", queueNamed("Q"), 1))
		row := h.explain(queueNamed("Q")).Rows[0]
		if row.Reason != message.StoreFull || !strings.HasSuffix(row.Releases, c.want) {
			t.Errorf("%+v: %s released by %s, want %s", c, row.Reason, row.Releases, c.want)
		}
		if s := h.b.Status(); s.StoreLimitBytes != c.limit {
			t.Errorf("the status tells a limit of %d, not %d", s.StoreLimitBytes, c.limit)
		}
	}
}

// In one turn nothing comes to the disk, which so cannot tell how much there is.
func TestWhatIsOnItsWayToTheStoreCountsForItsLimit(t *testing.T) {
	const limit, each = 1 << 20, 100_000
	h := open(t, nil, func(o *Options) { o.StoreLimitBytes = limit })
	h.space = func() store.Space { return store.Space{FreeBytes: -1} }
	g := h.connect("g", "g", "", nil)
	q := queueNamed("Q")
	var sends []*message.Message
	for n := range int64(30) {
		sends = append(sends, g.big("g", q, n+1, each, true))
	}
	for _, m := range sends {
		g.Handle(m)
	}
	if way := h.b.journal.undurable; way < limit || way > limit+2*each {
		t.Errorf("%d bytes are on their way, the limit is %d", way, limit)
	}
	if d := h.b.find(q); len(d.parked) == 0 || d.parked[0].reason() != message.StoreFull {
		t.Errorf("%d sends wait", len(d.parked))
	}
}

func TestTheOldestMessageIsKnownAfterARestart(t *testing.T) {
	q := queueNamed("q")
	pause := func(old int64) *house {
		h := filled(t, q, old)
		return openAt(t, time.Hour, h.disk, nil)
	}
	first := message.MessageID{Sequence: 1, Producer: message.ProducerID{Connection: "p",
		Session: 1, Value: 1}}
	for _, fresh := range []int64{0, 1} {
		h := pause(2)
		if p := h.connect("n", "n", "", nil); fresh > 0 {
			p.produce("n", q, 1)
		}
		row := h.explain(q).Rows[0]
		if row.Count != 2+fresh || row.Oldest != (Oldest{ID: first, Age: time.Hour}) {
			t.Errorf("with %d new: %+v", fresh, row)
		}
	}
	h := pause(2)
	h.connect("n", "n", "", nil).produce("n", q, 1)
	h.broken = 1
	if o := h.explain(q).Rows[0].Oldest; o.ID == first || !o.Unknown {
		t.Errorf("the store cannot be read, and the oldest is %+v", o)
	}
	h = pause(900)
	g := h.connect("g", "g", "", nil)
	id := message.ConsumerID{Connection: "g", Session: 1, Value: 1}
	g.do(&message.ConsumerInfo{ID: id, Destination: q, PrefetchSize: 10})
	x := h.explain(q)
	if x.Stored == 0 || x.StoredOldest.Age != time.Hour || len(g.got) != 10 {
		t.Errorf("with a consumer that has its window full: %+v", x)
	}
}

// An older one may be where the store could not be read.
func TestWhatIsBehindAFailedReadIsNotKnownToBeTheOldest(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 3)
	g := h.connect("g", "g", "", nil)
	id := g.consume("g", q)
	g.walk(xid(1), begin, "ok") // has the second, so that two ranges are read
	g.ack(id, q, g.got[1], message.IndividualAck, xid(1))
	g.walk(xid(1), end, "ok", prepare, "vote 0")
	for broken, want := range []int64{1, 3} {
		h = h.killed()
		h.broken = broken
		row := h.explain(q).Rows[0]
		if row.Reason != message.NoConsumer || row.Count != 2 ||
			row.Oldest.ID.Sequence != want || row.Oldest.Unknown != (broken > 0) {
			t.Errorf("%d reads fail: %+v, want number %d", broken, row, want)
		}
	}
}

// What comes into memory while the oldest of the store is looked for is not that.
func TestTheOldestOfTheStoreIsNotWhatWasReadMeanwhile(t *testing.T) {
	q := queueNamed("q")
	h := openAt(t, time.Hour, filled(t, q, 900).disk, nil)
	g := h.connect("g", "g", "", nil)
	g.Handle(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "g", Session: 1, Value: 1},
		Destination: q, PrefetchSize: 250})
	for len(g.got) == 0 {
		h.step()
	}
	for h.b.EndTurn(); len(h.jobs) == 0; h.b.EndTurn() {
		h.step()
	}
	had := h.b.find(q).queue.StoredOnly()
	var x *Explanation
	h.b.Explain(q, nil, func(e *Explanation) { x = e })
	h.turn()
	o := x.StoredOldest
	if has := h.b.find(q).queue.StoredOnly(); has >= had || o.Unknown ||
		o.ID.Sequence != 900-has+1 {
		t.Errorf("of %d in the store before, and %d now, the oldest is %+v", had, has, o)
	}
}

func TestWhoAsksForOneMessageIsToldOfNoOther(t *testing.T) {
	q := queueNamed("q")
	for _, n := range []int64{1, 900} {
		for _, consumed := range []bool{false, true} {
			h := filled(t, q, n)
			if consumed {
				h.connect("g", "g", "", nil).consume("g", q)
			}
			id := message.MessageID{Sequence: n, Producer: message.ProducerID{Connection: "p",
				Session: 1, Value: 1}}
			var x *Explanation
			h.b.Explain(q, &id, func(e *Explanation) { x = e })
			h.turn()
			if !x.Found || len(x.Rows) != 1 || x.Rows[0].Count != 1 || x.Stored != 0 {
				t.Errorf("the last of %d, consumed %v: %+v", n, consumed, x)
			}
		}
	}
}

// Sends that wait for space are others, too, and each is found.
func TestWhoAsksForOneMessageIsToldOfNoOtherThatWaitsForSpace(t *testing.T) {
	h := open(t, nil, func(o *Options) {
		e := policy.NewEntry()
		e.Memory.LimitBytes = 2000
		o.Policies = &policy.Map{Default: e}
	})
	g := h.connect("p", "p", "", nil)
	p := message.ProducerID{Connection: "p", Session: 1, Value: 1}
	g.do(&message.ProducerInfo{ID: p})
	const sends = 10
	id := func(n int) *message.MessageID { return &message.MessageID{Producer: p, Sequence: int64(n)} }
	for n := range sends {
		g.hand(&message.Message{Producer: p, Destination: queueQ, ID: *id(n),
			Content: make([]byte, 500)})
		h.turn()
	}
	d := h.b.find(queueQ)
	if d.parkedCount() < 2 || d.queue.Len() < 2 {
		t.Fatalf("%d wait, %d are in the queue", d.parkedCount(), d.queue.Len())
	}
	for n := range sends + 1 {
		var x *Explanation
		h.b.Explain(queueQ, id(n), func(e *Explanation) { x = e })
		h.turn()
		want := message.NoConsumer
		if int64(n) >= d.queue.Len() {
			want = message.MemoryFull
		}
		if n == sends {
			if x.Found || len(x.Rows) != 0 {
				t.Errorf("of one that is not here: %+v", x)
			}
		} else if !x.Found || len(x.Rows) != 1 || x.Rows[0].Count != 1 || x.Rows[0].Reason != want {
			t.Errorf("number %d: %+v, want one that waits for %s", n, x, want)
		}
	}
}

func TestARowSaysWhereItsConsumerIsAndWhatItSelects(t *testing.T) {
	q := queueNamed("q")
	h := open(t, nil, nil)
	h.connect("p", "p", "", nil).produce("p", q, 1)
	g := h.connect("g", "g", "", nil)
	g.remote.Address = "tcp://10.0.0.7:50312"
	id := message.ConsumerID{Connection: g.cid("g"), Session: 1, Value: 1}
	if e := g.do(&message.ConsumerInfo{ID: id, Destination: q, PrefetchSize: 1,
		Selector: "kind='a'"}); e != nil {
		t.Fatal(e)
	}
	x := h.explain(q)
	if len(x.Rows) != 1 || x.Rows[0].Reason != message.SelectorNoMatch ||
		x.Rows[0].Selector != "kind='a'" || x.Rows[0].Address != g.remote.Address {
		t.Errorf("explained as %+v", x.Rows)
	}
}

// What a consumer's selector refuses does not wait for its window, however full that is.
func TestWhatASelectorRefusesDoesNotWaitForRoom(t *testing.T) {
	q := queueNamed("q")
	h := open(t, nil, nil)
	p, g := h.connect("p", "p", "", nil), h.connect("g", "g", "", nil)
	if e := g.do(&message.ConsumerInfo{ID: message.ConsumerID{Connection: g.cid("g"), Session: 1,
		Value: 1}, Destination: q, PrefetchSize: 2, Selector: "kind='a'"}); e != nil {
		t.Fatal(e)
	}
	for n := range int64(20) {
		m := p.mail("p", q, n+1)
		if n%2 == 0 {
			if err := m.SetProperties(message.Property{Name: "kind", Value: "a"}); err != nil {
				t.Fatal(err)
			}
		}
		p.do(m)
	}
	counts := map[message.Reason]int64{}
	for _, row := range h.explain(q).Rows {
		counts[row.Reason] += row.Count
	}
	if counts[message.SelectorNoMatch] != 10 || counts[message.WindowFull] != 8 ||
		counts[message.InFlight] != 2 {
		t.Errorf("explained as %v", counts)
	}
	id := message.MessageID{Producer: message.ProducerID{Connection: "p", Session: 1, Value: 1},
		Sequence: 2}
	var x *Explanation
	h.b.Explain(q, &id, func(e *Explanation) { x = e })
	h.turn()
	if len(x.Rows) != 1 || x.Rows[0].Reason != message.SelectorNoMatch {
		t.Errorf("one of them is explained as %+v", x.Rows)
	}
}

// The oldest of several that came at one time is the first of them, though the clock goes on while
// they are looked at.
func TestTheOldestIsTheFirst(t *testing.T) {
	h := open(t, nil, nil)
	p := h.connect("p", "p", "", nil)
	for i := range int64(5) {
		p.produce("p", queueQ, i+1)
	}
	at := h.now
	h.mono = func() time.Duration { at++; return at }
	if x := h.explain(queueQ); len(x.Rows) != 1 || x.Rows[0].Oldest.ID.Sequence != 1 {
		t.Errorf("%+v", x.Rows)
	}
}
