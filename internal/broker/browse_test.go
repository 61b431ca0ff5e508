package broker

import (
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// browse opens a browser.
func (g *guest) browse(id string, d message.Destination, prefetch int32) message.ConsumerID {
	c := message.ConsumerID{Connection: g.cid(id), Session: 1, Value: 99}
	if e := g.do(&message.ConsumerInfo{ID: c, Destination: d, PrefetchSize: prefetch,
		Browser: true}); e != nil {
		g.h.t.Fatal(e)
	}
	return c
}

// ends counts the end marks.
func (g *guest) ends() int {
	n := 0
	for _, s := range g.sent {
		if d, ok := s.(*message.MessageDispatch); ok && d.Message == nil {
			n++
		}
	}
	return n
}

// filled is a broker that was restarted over a queue with n messages, so that they are read by
// pages.
func filled(t *testing.T, d message.Destination, n int64) *house {
	h := open(t, nil, nil)
	p := h.connect("p", "p", "", nil)
	for i := range n {
		p.produce("p", d, i+1)
	}
	return open(t, h.disk, nil)
}

func TestABrowserIsSentWhatItsPrefetchHasRoomFor(t *testing.T) {
	for _, how := range []message.AckType{message.IndividualAck, message.StandardAck,
		message.DeliveredAck} {
		q := queueNamed("q")
		h := filled(t, q, 450)
		g := h.connect("g", "g", "", nil)
		id := g.browse("g", q, 10)
		if len(g.got) != 10 || g.ends() != 0 {
			t.Fatalf("%d messages and %d end marks without an acknowledgement", len(g.got), g.ends())
		}
		for n := 0; n < len(g.got); n++ {
			g.ack(id, q, g.got[n], how, message.TransactionID{})
			if have := len(g.got) - n - 1; have > 10 {
				t.Fatalf("%d messages are unacknowledged", have)
			}
		}
		if len(g.got) != 450 || g.ends() != 1 || h.b.find(q).queue.Len() != 450 {
			t.Errorf("browsed %d of 450, %d end marks, %d left", len(g.got), g.ends(),
				h.b.find(q).queue.Len())
		}
	}
}

func TestABrowserWithoutPrefetchPulls(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 3)
	g := h.connect("g", "g", "", nil)
	id := g.browse("g", q, 0)
	for n := range 5 {
		if want := min(n, 3); len(g.got) != want {
			t.Errorf("%d messages for %d pulls", len(g.got), n)
		}
		g.do(&message.MessagePull{Consumer: id, Destination: q, Timeout: 100})
	}
	if g.ends() == 0 {
		t.Error("there is no end mark")
	}
}

func TestABrowserWhoseQueueIsRemovedIsToldTheEnd(t *testing.T) {
	for _, reading := range []bool{true, false} {
		q := queueNamed("q")
		h := filled(t, q, 450)
		g := h.connect("g", "g", "", nil)
		if reading {
			g.Handle(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "g", Session: 1},
				Destination: q, PrefetchSize: 1000, Browser: true})
		} else {
			g.browse("g", q, 10)
		}
		g.do(&message.DestinationInfo{Destination: q, Op: message.RemoveDestination})
		if g.ends() != 1 {
			t.Errorf("reading %v: %d end marks", reading, g.ends())
		}
	}
}

func TestAPullWaitsForThePageAndAsksNoClock(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 3)
	g := h.connect("g", "g", "", nil)
	id := message.ConsumerID{Connection: "g", Session: 1}
	g.do(&message.ConsumerInfo{ID: id, Destination: q})
	timers := len(h.timers)
	g.Handle(&message.MessagePull{Consumer: id, Destination: q, Timeout: -1})
	h.b.EndTurn()
	if len(h.timers) != timers {
		t.Error("the pull polls")
	}
	h.turn()
	if len(g.got) != 1 || g.ends() != 0 {
		t.Errorf("%d messages, %d answers of nothing", len(g.got), g.ends())
	}
	g.do(&message.MessagePull{Consumer: id, Destination: q, Timeout: 1 << 62})
	if len(g.got) != 2 {
		t.Errorf("%d messages for two pulls", len(g.got))
	}
}

func TestAPullOfARemovedQueueIsAnswered(t *testing.T) {
	q := queueNamed("q")
	h := filled(t, q, 3)
	g := h.connect("g", "g", "", nil)
	id := message.ConsumerID{Connection: "g", Session: 1}
	g.do(&message.ConsumerInfo{ID: id, Destination: q})
	g.Handle(&message.MessagePull{Consumer: id, Destination: q, Timeout: -1})
	g.Handle(&message.DestinationInfo{Destination: q, Op: message.RemoveDestination, Timeout: 1})
	h.turn()
	h.pass(time.Minute)
	if len(g.got) != 0 || g.ends() != 1 {
		t.Errorf("%d messages, %d answers of nothing", len(g.got), g.ends())
	}
}

func TestABrowserThatWantsNothingYieldsTheLoop(t *testing.T) {
	h := open(t, nil, nil)
	q := queueNamed("q")
	g := h.connect("g", "g", "", nil)
	for n := range int64(3 * browseSlice) {
		g.Handle(g.mail("g", q, n+1))
	}
	before := len(g.sent)
	g.Handle(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "g", Session: 1, Value: 1},
		Destination: q, PrefetchSize: 10, Browser: true, NoLocal: true})
	if len(g.sent) != before {
		t.Error("the walk went through the queue in one event")
	}
	h.turn()
	if len(g.sent) != before+1 {
		t.Errorf("%d commands came, want the end", len(g.sent)-before)
	}
}

// A browser sees what consumers may get: not what waits for a commit that is on its way.
func TestABrowserSeesNothingOfACommitThatIsOnItsWay(t *testing.T) {
	for _, how := range []message.TransactionType{message.CommitOnePhase, message.CommitTwoPhase} {
		q := queueNamed("q")
		h := open(t, nil, nil)
		g, p := h.connect("g", "g", "", nil), h.connect("p", "p", "", nil)
		p.produce("p", q, 1)
		tx := p.begin("p", 1)
		if how == message.CommitTwoPhase {
			tx = xid(1)
			p.walk(tx, begin, "ok")
		}
		p.sendTx(tx, q, 2)
		if how == message.CommitTwoPhase {
			p.walk(tx, prepare, "vote 0")
		}
		p.hand(&message.TransactionInfo{Connection: "p", ID: tx, Type: how})
		for h.b.find(q).queue.OutCount() == 0 && h.step() {
		}
		g.hand(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "g", Session: 1},
			Destination: q, PrefetchSize: 10, Browser: true})
		if got := numbers(g); got != "1" || g.ends() != 1 {
			t.Errorf("commit %d: the browser gets %q and %d end marks", how, got, g.ends())
		}
		h.turn()
		g.browse("g", q, 10)
		if got := numbers(g); got != "1 1 2" {
			t.Errorf("commit %d: after it, the browser gets %q", how, got)
		}
	}
}

// The end mark of a browser says whether there is more than it may see.
func TestABrowserIsToldThatItsPageWasCut(t *testing.T) {
	for _, c := range []struct {
		limit, have int64
		cut         int32
	}{{0, 5, 0}, {5, 5, 0}, {5, 6, 1}, {400, 401, 1}} {
		q := queueNamed("q")
		h := open(t, filled(t, q, c.have).disk, func(o *Options) {
			e := policy.NewEntry()
			e.MaxBrowsePageSize = int(c.limit)
			o.Policies = &policy.Map{Default: e}
		})
		g := h.connect("g", "g", "", nil)
		g.browse("g", q, 1000)
		last, _ := g.sent[len(g.sent)-1].(*message.MessageDispatch)
		want := c.have
		if c.limit > 0 {
			want = min(want, c.limit)
		}
		if int64(len(g.got)) != want || last == nil || last.Message != nil ||
			last.RedeliveryCounter != c.cut {
			t.Errorf("limit %d of %d: %d came, the end is %+v", c.limit, c.have, len(g.got), last)
		}
	}
}

// Behind its limit a browser looks for one message more, and not through the whole queue for it.
func TestABrowserLooksNoFurtherThanItMustForOneMessageMore(t *testing.T) {
	for _, c := range []struct {
		between int64 // what it does not want, behind its page
		more    bool  // there is one more that it wants
		cut     int32
	}{{0, false, 0}, {0, true, cutPage}, {browsePast - 1, true, cutPage}, {browsePast, false, 0},
		{browsePast, true, cutMaybe}, {5 * browsePast, false, cutMaybe}} {
		for _, restarted := range []bool{false, true} {
			q := queueNamed("q")
			limited := func(o *Options) {
				e := policy.NewEntry()
				e.MaxBrowsePageSize = 2
				o.Policies = &policy.Map{Default: e}
			}
			h := open(t, nil, limited)
			p, own := h.connect("p", "p", "", nil), h.connect("g", "g", "", nil)
			p.produce("p", q, 1)
			p.produce("p", q, 2)
			for n := range c.between {
				own.produce("g", q, n+1)
			}
			if c.more {
				p.produce("p", q, 3)
			}
			if restarted { // what it sees is read by pages
				h = open(t, h.disk, limited)
				own = h.connect("g", "g", "", nil)
			}
			own.do(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "g", Session: 1, Value: 99},
				Destination: q, PrefetchSize: 1000, Browser: true, NoLocal: true})
			end, _ := own.sent[len(own.sent)-1].(*message.MessageDispatch)
			if len(own.got) != 2 || end == nil || end.Message != nil || end.RedeliveryCounter != c.cut {
				t.Errorf("%d between, one more %v, restarted %v: %d came, the end is %+v", c.between,
					c.more, restarted, len(own.got), end)
			}
		}
	}
}
