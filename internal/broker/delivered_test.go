package broker

import (
	"slices"
	"testing"

	"hopwire/internal/message"
)

// again starts a broker on what is durable now, as after kill -9.
func (h *house) again() *house {
	h.t.Helper()
	return open(h.t, h.disk.CrashClone(0), nil)
}

// window is consume with that prefetch.
func (g *guest) window(id string, d message.Destination, prefetch int32, selector string,
) message.ConsumerID {
	c := message.ConsumerID{Connection: g.cid(id), Session: 1, Value: int64(g.number)}
	if e := g.do(&message.ConsumerInfo{ID: c, Destination: d, PrefetchSize: prefetch,
		Selector: selector}); e != nil {
		g.h.t.Fatal(e)
	}
	return c
}

// counts consumes all of a queue, and gives the redelivery counts that come.
func (h *house) counts(q message.Destination) []int32 {
	h.t.Helper()
	c := h.connect("all", "all", "", nil)
	c.window("all", q, 1000, "")
	return c.counts
}

// stocked gives a broker whose queue holds so many messages, all durable.
func stocked(t *testing.T, q message.Destination, n int64) *house {
	h := open(t, nil, nil)
	p := h.connect("p", "p", "", nil)
	for i := range n {
		p.produce("p", q, i+1)
	}
	return h
}

func TestWhatAClientGotBeforeAKillIsToldToBeRedelivered(t *testing.T) {
	q := queueNamed("q")
	for name, prefetch := range map[string]int32{"small window": 1, "large window": 1000} {
		t.Run(name, func(t *testing.T) {
			h := stocked(t, q, 5)
			c := h.connect("c", "c", "", nil)
			id := c.window("c", q, prefetch, "")
			c.ack(id, q, c.got[0], message.IndividualAck, message.TransactionID{})
			got := len(c.got)
			for kills := range 3 { // the count is of deliveries, not of kills
				h = h.again()
				c = h.connect("c", "c", "", nil)
				c.window("c", q, 1000, "")
				if len(c.counts) != 4 {
					t.Fatalf("%d messages came back, want 4", len(c.counts))
				}
				for i, n := range c.counts[:got-min(1, got-1)] {
					if n != 1 {
						t.Errorf("after %d kills message %d has the count %d, want 1", kills+1, i, n)
					}
				}
			}
		})
	}
}

func TestWhatWasGivenToAClientAheadOfTheDiskIsToldToBeRedelivered(t *testing.T) {
	q := queueNamed("q")
	h := open(t, nil, nil)
	c, p := h.connect("c", "c", "", nil), h.connect("p", "p", "", nil)
	c.window("c", q, 1000, "")
	for n := range int64(3) {
		p.produce("p", q, n+1)
	}
	h = h.again()
	c = h.connect("k", "k", "", nil)
	c.window("k", q, 1000, "")
	if !slices.Equal(c.counts, []int32{1, 1, 1}) {
		t.Errorf("the counts are %v, want all 1", c.counts)
	}
}

func TestNoClientGetsAStoredMessageBeforeTheMarkIsDurable(t *testing.T) {
	q := queueNamed("q")
	h := stocked(t, q, 3)
	h = h.again() // now they are in the store alone
	c := h.connect("c", "c", "", nil)
	c.do(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "c", Session: 1, Value: 1},
		Destination: q, PrefetchSize: 1})
	if len(c.got) != 1 {
		t.Fatalf("%d messages delivered, want 1", len(c.got))
	}
	seen := false
	for _, x := range headersOf(t, h) {
		seen = seen || x.Destination == q && x.DeliveredBelow > 1
	}
	if !seen {
		t.Error("the first message is out and no durable mark says so")
	}
}

func TestTheMarkIsRaisedAsFarAsClientsComeWhileTheDiskWrites(t *testing.T) {
	for _, c := range []struct {
		name   string
		last   uint64 // above where it was raised
		waited bool
		lead   uint64
	}{
		{"few are taken", 10, false, 40},
		{"many are taken", 4000, false, 16_000},
		{"a client waited", 500, true, 2000},
		{"it is bounded", 1_000_000, false, deliveredLead},
		{"nothing is taken yet", 0, false, 0},
	} {
		m := delivered{below: 2000, handed: 2000, durable: 1500, raised: 1000, last: 1000 + c.last,
			waited: c.waited}
		m.committed()
		if m.durable != 2000 || m.lead != c.lead {
			t.Errorf("%s: durable below %d, the next raise %d ahead, want %d", c.name, m.durable,
				m.lead, c.lead)
		}
	}
	m := delivered{below: 3000, handed: 2000, durable: 1500, raised: 2000, last: 2900, lead: 7}
	m.committed()
	if m.durable != 2000 || m.lead != 7 {
		t.Errorf("a raise is under way: %+v", m)
	}
}

func TestACrashBeforeTheMarkIsDurableFindsNothingDelivered(t *testing.T) {
	q := queueNamed("q")
	h := stocked(t, q, 3)
	h = h.again()
	c := h.connect("c", "c", "", nil)
	c.hand(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "c", Session: 1, Value: 1},
		Destination: q, PrefetchSize: 1000})
	for n := 0; len(c.got) == 0; n++ {
		if n == 1000 {
			t.Fatal("nothing is delivered")
		}
		before := h.disk.CrashClone(0)
		h.step()
		if len(c.got) == 0 {
			continue
		}
		again := open(t, before, nil)
		if counts := again.counts(q); len(counts) != 3 || slices.Contains(counts, 0) {
			t.Errorf("killed as the first was delivered, the counts are %v", counts)
		}
	}
}

func TestNothingIsSuspectAfterACleanStop(t *testing.T) {
	q := queueNamed("q")
	h := stocked(t, q, 5)
	c := h.connect("c", "c", "", nil)
	c.window("c", q, 2, "")
	c.do(&message.RemoveInfo{Object: message.ConnectionID("c"),
		LastDelivered: message.LastDeliveredUnset})
	h.stop()
	if counts := h.again().counts(q); !slices.Equal(counts, []int32{0, 0, 0, 0, 0}) {
		t.Errorf("the counts are %v, want none raised: nothing was seen", counts)
	}
}

func TestSuspectsStaySoOverACleanStop(t *testing.T) {
	q := queueNamed("q")
	h := stocked(t, q, 5)
	h.connect("c", "c", "", nil).window("c", q, 1000, "")
	h = h.again()
	h.stop()
	if counts := h.again().counts(q); len(counts) != 5 || slices.Contains(counts, 0) {
		t.Errorf("the counts are %v, want all 1", counts)
	}
}

func TestASuspectWhoseClientDiesCountsThatDeliveryOnly(t *testing.T) {
	q := queueNamed("q")
	h := stocked(t, q, 1)
	h.connect("c", "c", "", nil).window("c", q, 1000, "")
	h = h.again()
	a := h.connect("a", "a", "", nil)
	a.window("a", q, 1000, "")
	a.Gone()
	b := h.connect("b", "b", "", nil)
	b.window("b", q, 1000, "")
	if !slices.Equal(b.counts, []int32{1}) {
		t.Errorf("the counts are %v, want 1: the kill counts nothing", b.counts)
	}
}

func TestMessagesSentAfterAKillAreNotSuspect(t *testing.T) {
	q := queueNamed("q")
	h := stocked(t, q, 1)
	h.connect("c", "c", "", nil).window("c", q, 1000, "")
	h = h.again()
	p := h.connect("p2", "p2", "", nil)
	for n := range int64(3) {
		p.produce("p2", q, n+1)
	}
	h = h.again()
	c := h.connect("c", "c", "", nil)
	c.window("c", q, 1000, "")
	if !slices.Equal(c.counts, []int32{1, 0, 0, 0}) {
		t.Errorf("the counts are %v", c.counts)
	}
}
