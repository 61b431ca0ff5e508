package broker

import (
	"fmt"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
)

// sweeps has a broker look each second for destinations that nobody used for three.
func sweeps(change func(*Options, *policy.Entry)) func(*Options) {
	return func(o *Options) {
		e := policy.NewEntry()
		e.GC = policy.GC{Inactive: true, After: 3 * time.Second}
		o.Policies, o.PurgePeriod = &policy.Map{Default: e}, time.Second
		if change != nil {
			change(o, e)
		}
	}
}

// there reports whether the queue and the topic of that name are there.
func (h *house) there(name string) [2]bool {
	return [2]bool{h.b.find(queueNamed(name)) != nil, h.b.find(topicNamed(name)) != nil}
}

func TestADestinationThatNobodyUsesGoes(t *testing.T) {
	h := open(t, nil, sweeps(nil))
	l := h.connect("l", "l", "", nil)
	l.consume("l", topicNamed("ActiveMQ.Advisory.Queue"))
	g := h.connect("g", "g", "", nil)
	c := g.consume("g", queueQ)
	g.consume("g", topicNamed("other"))
	g.produce("g", queueQ, 1)
	g.do(&message.MessageAck{Consumer: c, Destination: queueQ, Last: g.got[0], HasLast: true,
		Count: 1, Type: message.StandardAck})
	g.do(&message.RemoveInfo{Object: c, LastDelivered: message.LastDeliveredUnset})
	next := h.b.find(queueQ).queue.NextSeq()
	h.pass(3500 * time.Millisecond)
	if h.b.find(queueQ) == nil {
		t.Fatal("it goes before its time")
	}
	h.pass(time.Second)
	told := 0
	for _, e := range h.events {
		if e.Kind == DestinationInactive && e.Reason == message.Inactive && e.Dest == queueQ {
			told++
		}
	}
	if h.b.find(queueQ) != nil || told != 1 || h.b.counts.Reasons[message.Inactive] != 1 ||
		h.there("other") != [2]bool{false, true} {
		t.Errorf("told %d times, counted %d; it is there: %t", told,
			h.b.counts.Reasons[message.Inactive], h.b.find(queueQ) != nil)
	}
	gone := l.data[len(l.data)-1].(*message.DestinationInfo)
	if gone.Destination != queueQ || gone.Op != message.RemoveDestination {
		t.Errorf("the last that is advised is %+v", gone)
	}
	for _, x := range headersOf(t, h) {
		if x.Destination == queueQ {
			t.Error("it is in the store")
		}
	}
	g.produce("g", queueQ, 2)
	g.consume("g", queueQ)
	if d := h.b.find(queueQ); len(g.got) != 2 || d == nil || d.queue.NextSeq() <= next {
		t.Errorf("made again it gave %d messages", len(g.got))
	}
	if h.again().b.find(queueQ) == nil {
		t.Error("made again it does not survive a kill")
	}
}

// useCase is who uses a destination, under which policy.
type useCase struct {
	name   string
	use    func(h *house, g *guest)
	policy func(*Options, *policy.Entry)
	want   [2]bool // the queue and the topic q are there
}

func (c *useCase) check(t *testing.T) {
	t.Helper()
	h := open(t, nil, sweeps(c.policy))
	h.b.destination(queueQ)
	h.b.destination(topicNamed("q"))
	c.use(h, h.connect("g", "g", "", nil))
	h.pass(time.Minute)
	if got := h.there("q"); got != c.want {
		t.Errorf("%s: there are queue and topic %v, want %v", c.name, got, c.want)
	}
}

func TestADestinationStaysWhileSomebodyUsesIt(t *testing.T) {
	for _, c := range []useCase{
		{"nobody", func(*house, *guest) {}, nil, [2]bool{false, false}},
		{"messages", func(_ *house, g *guest) { g.produce("g", queueQ, 1) }, nil, [2]bool{true, false}},
		{"a consumer", func(_ *house, g *guest) { g.consume("g", queueQ) }, nil,
			[2]bool{true, false}},
		{"a consumer of all", func(_ *house, g *guest) {
			g.consume("g", topicNamed(">"))
		}, nil, [2]bool{false, true}},
		{"a producer", func(_ *house, g *guest) {
			g.do(&message.ProducerInfo{ID: message.ProducerID{Connection: "g", Session: 1, Value: 9},
				Destination: topicNamed("q")})
		}, nil, [2]bool{false, true}},
		{"a browser", func(_ *house, g *guest) { g.browse("g", queueQ, 10) }, nil,
			[2]bool{true, false}},
		{"a durable subscription", func(h *house, _ *guest) {
			h.subscribe("a", "s", "q", nil).leave()
		}, nil, [2]bool{false, true}},
		{"a bridge", func(h *house, _ *guest) { h.bridge("ID:p", queueQ, &bridgeEnd{}) }, nil,
			[2]bool{true, false}},
		{"a bridge that does not count", func(h *house, _ *guest) {
			h.bridge("ID:p", queueQ, &bridgeEnd{})
		}, func(_ *Options, e *policy.Entry) { e.GC.WithNetworkConsumers = true }, [2]bool{}},
		{"what is kept for later", func(_ *house, g *guest) { g.produce("g", topicNamed("q"), 1) },
			func(_ *Options, e *policy.Entry) {
				e.Recovery = policy.NewRecovery(policy.RecoverLastImage)
			}, [2]bool{false, true}},
		{"a prepared branch", func(_ *house, g *guest) {
			c := g.consume("g", queueQ)
			g.produce("g", queueQ, 1)
			g.walk(xid(1), message.Begin, "ok")
			g.do(&message.MessageAck{Consumer: c, Destination: queueQ, Last: g.got[0], HasLast: true,
				Count: 1, Type: message.StandardAck, Transaction: xid(1)})
			g.walk(xid(1), message.End, "ok", message.Prepare, "vote 0")
			g.Gone()
		}, nil, [2]bool{true, false}},
		{"a send that waits for memory", func(h *house, g *guest) {
			g.produce("g", queueNamed("other"), 1)
			g.hand(g.mail("g", topicNamed("q"), 2))
		}, func(o *Options, _ *policy.Entry) { o.MemoryLimitBytes = 1 }, [2]bool{false, true}},
	} {
		c.check(t)
	}
}

func TestThePolicySaysWhichDestinationsGo(t *testing.T) {
	for _, c := range []useCase{
		{"a consumer, and no bridge counts", func(_ *house, g *guest) { g.consume("g", queueQ) },
			func(_ *Options, e *policy.Entry) { e.GC.WithNetworkConsumers = true },
			[2]bool{true, false}},
		{"a peer's consumer that does not count", func(_ *house, g *guest) {
			g.do(&message.ConsumerInfo{ID: message.ConsumerID{Connection: "g", Session: 1, Value: 7},
				Destination: queueQ, PrefetchSize: 2, NetworkSubscription: true})
		}, func(_ *Options, e *policy.Entry) { e.GC.WithNetworkConsumers = true }, [2]bool{}},
		{"a policy of queues alone", func(*house, *guest) {}, func(o *Options, e *policy.Entry) {
			e.Destination = queueNamed(">")
			o.Policies = &policy.Map{Entries: []*policy.Entry{e}}
		}, [2]bool{false, true}},
		{"no policy", func(*house, *guest) {},
			func(o *Options, _ *policy.Entry) { o.Policies = &policy.Map{} }, [2]bool{true, true}},
		{"a policy without", func(*house, *guest) {},
			func(_ *Options, e *policy.Entry) { e.GC.Inactive = false }, [2]bool{true, true}},
		{"no time", func(*house, *guest) {},
			func(_ *Options, e *policy.Entry) { e.GC.After = 0 }, [2]bool{true, true}},
		{"no sweeps", func(*house, *guest) {},
			func(o *Options, _ *policy.Entry) { o.PurgePeriod = 0 }, [2]bool{true, true}},
	} {
		c.check(t)
	}
}

// A peer that was not seen for long asks for nothing any more: what it forwarded keeps nothing.
func TestAPeerThatWasNotSeenForLongKeepsNoDestination(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		away time.Duration
		want bool
	}{{unseenDays * day, true}, {(unseenDays + 2) * day, false}} {
		h := open(t, nil, sweeps(nil))
		h.receive(network.Peer{ID: "ID:p", Hopwire: true, Prefetch: 1000}, 1, true)
		h.b.Purge(queueQ, "", func(Purged, error) {})
		h.turn()
		h.now += c.away // nobody looks meanwhile
		if h.pass(time.Minute); (h.b.find(queueQ) != nil) != c.want {
			t.Errorf("after %v it is there: %t", c.away, !c.want)
		}
	}
}

// A temporary queue goes with its owner's connection, and not before.
func TestATemporaryQueueThatNobodyUsesStays(t *testing.T) {
	h := open(t, nil, sweeps(nil))
	g := h.connect("g", "g", "", nil)
	q := message.Destination{Kind: message.TempQueue, Name: "g:1"}
	if err := g.do(&message.DestinationInfo{Connection: "g", Destination: q}); err != nil {
		t.Fatal(err)
	}
	if h.pass(time.Hour); h.b.find(q) == nil {
		t.Error("it is gone")
	}
}

// A broker of which no policy has it looks for nothing.
func TestABrokerThatRemovesNothingDoesNotSweep(t *testing.T) {
	timers := func(inactive bool) int {
		h := open(t, nil, sweeps(func(_ *Options, e *policy.Entry) { e.GC.Inactive = inactive }))
		return len(h.timers)
	}
	if with, without := timers(true), timers(false); with != without+1 {
		t.Errorf("%d timers, %d without", with, without)
	}
}

// A broker that stops removes no destinations any more, also when it is in the middle of a sweep.
func TestABrokerThatStopsRemovesNothing(t *testing.T) {
	h := open(t, nil, sweeps(nil))
	h.unchecked = true
	for n := range 3 * sweepRemovals {
		h.b.destination(queueNamed(fmt.Sprint("q", n)))
	}
	h.connect("g", "g", "", nil).consume("g", queueNamed("used")) // it is not closed at once
	h.pass(2 * time.Second)
	h.now += 10 * time.Second
	for _, x := range h.timers {
		if x.f != nil && x.at <= h.now {
			x.f()
			x.f = nil
		}
	}
	left := len(h.b.order) // the first slice is done
	h.b.Stop(func() {}, func() {})
	if h.pass(10 * time.Second); len(h.b.order) != left || left < 2*sweepRemovals {
		t.Errorf("%d are left of %d", len(h.b.order), left)
	}
}

func TestWhoComesAndGoesBetweenSweepsUsesADestination(t *testing.T) {
	for name, use := range map[string]func(g *guest, n int64){
		"a message": func(g *guest, n int64) {
			g.produce("g", queueQ, n)
			g.h.b.Purge(queueQ, "", func(Purged, error) {})
		},
		"what is expired": func(g *guest, n int64) {
			m := g.mail("g", queueQ, n)
			m.Persistent, m.Expiration = false, 1
			g.do(m)
		},
		"a consumer": func(g *guest, _ int64) {
			g.do(&message.RemoveInfo{Object: g.consume("g", queueQ)})
		},
		"a producer": func(g *guest, n int64) {
			id := message.ProducerID{Connection: "g", Session: 1, Value: 100 + n}
			g.do(&message.ProducerInfo{ID: id, Destination: queueQ})
			g.do(&message.RemoveInfo{Object: id})
		},
	} {
		h := open(t, nil, sweeps(nil))
		g := h.connect("g", "g", "", nil)
		for n := range int64(20) {
			use(g, n+1)
			h.turn()
			if h.pass(2500 * time.Millisecond); h.b.find(queueQ) == nil {
				t.Fatalf("%s: it was removed after %v", name, h.now)
			}
		}
		if h.pass(5 * time.Second); h.b.find(queueQ) != nil {
			t.Errorf("%s: it stays", name)
		}
	}
}

// A bridge's subscription that does not count is of the destination again when somebody makes it.
func TestABridgeGetsWhatComesToADestinationMadeAgain(t *testing.T) {
	h := open(t, nil, sweeps(func(_ *Options, e *policy.Entry) { e.GC.WithNetworkConsumers = true }))
	e := &bridgeEnd{}
	h.bridge("ID:p", queueQ, e)
	if h.pass(10 * time.Second); h.b.find(queueQ) != nil {
		t.Fatal("it stays")
	}
	h.connect("g", "g", "", nil).produce("g", queueQ, 1)
	if h.turn(); len(e.got) != 1 {
		t.Errorf("the bridge has %d messages", len(e.got))
	}
}

func TestASweepRemovesNoMoreThanItMay(t *testing.T) {
	h := open(t, nil, sweeps(func(o *Options, _ *policy.Entry) { o.PurgeMost = 2 }))
	for n := range 5 {
		h.b.destination(queueNamed(fmt.Sprint("q", n)))
	}
	h.pass(3500 * time.Millisecond)
	for _, want := range []int{3, 1, 0} {
		h.pass(time.Second)
		if n := len(h.b.order); n != want {
			t.Errorf("%d are left, want %d", n, want)
		}
	}
}

// A peer that is away may ask, when it comes back, whether what it forwarded arrived.
func TestWhatAPeerMayAskAboutIsNotForgotten(t *testing.T) {
	p := network.Peer{ID: "ID:p", Hopwire: true, Prefetch: 1000}
	forwarded := func(h *house) {
		h.receive(p, 1, true)
		h.b.Purge(queueQ, "", func(Purged, error) {})
		h.turn()
	}
	h := open(t, nil, sweeps(nil))
	forwarded(h)
	h.b.destination(queueNamed("other"))
	h.pass(time.Hour)
	if h.b.find(queueQ) == nil || h.b.find(queueNamed("other")) != nil {
		t.Errorf("away: there are %v and %v", h.there("q"), h.there("other"))
	}
	h = open(t, h.disk, sweeps(nil))
	h.pass(time.Hour)
	if h.b.find(queueQ) == nil {
		t.Error("it is gone after a restart, and the peer was not there")
	}
	if h.receive(p, 1, true) != 1 || h.b.find(queueQ).queue.Len() != 0 {
		t.Error("a copy that was here before is not recognised")
	}
	link := network.Event{Peer: message.BrokerInfo{ID: p.ID}, Link: "x", Started: true}
	h.b.Advise(link)
	if h.pass(time.Hour); h.b.find(queueQ) == nil {
		t.Error("it is gone, and the peer can ask over no link")
	}
	link.Duplex = true
	h.b.Advise(link)
	h.pass(linkSettles / 2)
	if h.b.find(queueQ) == nil {
		t.Error("it is gone before the peer can have asked")
	}
	if h.pass(linkSettles); h.b.find(queueQ) != nil {
		t.Error("it stays although the peer is there")
	}
}

// A peer asks over a connection that it made, too; what comes again is a use.
func TestWhatAPeerHasAskedAboutMayGo(t *testing.T) {
	p := network.Peer{ID: "ID:p", Hopwire: true, Prefetch: 1000}
	h := open(t, nil, sweeps(nil))
	h.receive(p, 1, true)
	h.b.Purge(queueQ, "", func(Purged, error) {})
	h.connect("x", "x", "", &message.BrokerInfo{ID: p.ID, Name: "p", NetworkConnection: true})
	if h.pass(linkSettles / 2); h.b.find(queueQ) == nil {
		t.Error("it is gone before the peer can have asked")
	}
	for n := range 10 {
		h.receive(p, 1, true)
		if h.pass(linkSettles / 2); h.b.find(queueQ) == nil {
			t.Fatalf("it is gone after the copy came %d times", n+2)
		}
	}
	if h.pass(2 * linkSettles); h.b.find(queueQ) != nil {
		t.Error("it stays although the peer is there")
	}
}

// A destination of which a peer asks stays while the store is asked, however long that takes.
func TestADestinationStaysWhileItsReceiptsAreRead(t *testing.T) {
	p := network.Peer{ID: "ID:p", Hopwire: true, Prefetch: 1000}
	h := open(t, nil, sweeps(nil))
	h.receive(p, 1, true)
	h.b.Purge(queueQ, "", func(Purged, error) {})
	h.turn()
	m := &message.Message{BrokerPath: []message.BrokerID{p.ID},
		ID: message.MessageID{Producer: message.ProducerID{Connection: "x"}, Sequence: 1}}
	key := network.DoubtKey{Destination: queueQ,
		Key: message.Receipt(m, queueQ, m.BrokerPath, h.b.opt.ID)}
	h = open(t, h.disk, sweeps(nil))
	h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: p.ID}, Link: "x", Started: true,
		Duplex: true})
	g := h.connect("g", "g", "", nil)
	uses := g.consume("g", queueQ)
	h.pass(2 * linkSettles)
	g.do(&message.RemoveInfo{Object: uses})
	h.b.destination(queueNamed("other"))
	h.broken = 1 << 30
	var answers []bool
	h.b.Known(overOurs(p.ID), []message.ConnectionID{"x"}, []network.DoubtKey{key},
		func(known []bool, _ bool) { answers = known })
	h.pass(time.Minute)
	if h.there("q") != [2]bool{true, false} || h.b.find(queueNamed("other")) != nil {
		t.Errorf("unread: there are %v and %v", h.there("q"), h.there("other"))
	}
	h.broken = 0
	if h.pass(time.Minute); len(answers) != 1 || !answers[0] {
		t.Errorf("the peer hears %v", answers)
	}
}

// A link that answers do not get through any more is found to be dead after a while: until then
// what came over it is not forgotten.
func TestWhatCameOverALinkThatMayBeDeadIsNotForgotten(t *testing.T) {
	p := network.Peer{ID: "ID:p", Hopwire: true, Prefetch: 1000}
	h := open(t, nil, sweeps(nil))
	h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: p.ID}, Link: "x", Started: true,
		Duplex: true})
	h.pass(time.Hour)
	h.receive(p, 1, true)
	h.b.Purge(queueQ, "", func(Purged, error) {})
	h.turn()
	if h.pass(linkSettles / 2); h.b.find(queueQ) == nil {
		t.Error("it is gone at once")
	}
	if h.pass(linkSettles); h.b.find(queueQ) != nil {
		t.Error("it stays")
	}
}

func TestASweepGoesOnBehindAReadThatFails(t *testing.T) {
	h := open(t, nil, sweeps(nil))
	h.receive(network.Peer{ID: "ID:p", Hopwire: true}, 1, true)
	h = open(t, h.disk, sweeps(nil))
	h.b.Purge(queueQ, "", func(Purged, error) {})
	h.turn()
	h.broken = 1 << 30
	h.pass(8 * time.Second)
	h.b.destination(queueNamed("other"))
	h.pass(20 * time.Second)
	if h.b.find(queueNamed("other")) != nil || h.b.find(queueQ) == nil {
		t.Errorf("%v and %v", h.there("q"), h.there("other"))
	}
}

// A sweep asks the store once whose receipts an unused destination has, and brings none of them,
// nor the numbers of producers, into memory; unless some are damaged, which is told of as ever.
func TestASweepKeepsNoReceiptsInMemory(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		h := open(t, nil, sweeps(nil))
		for _, peer := range []message.BrokerID{"ID:p", "ID:r"} {
			h.receive(network.Peer{ID: peer, Hopwire: true}, 1, true)
			h.b.Purge(queueQ, "", func(Purged, error) {})
			h.turn()
		}
		linked := queueNamed("linked") // who forwarded to it is there
		h.b.Receive(&message.Message{ID: message.MessageID{Sequence: 9}, Destination: linked,
			Persistent: true, BrokerPath: []message.BrokerID{"ID:r"}},
			network.Peer{ID: "ID:r", Hopwire: true}, func(error) {})
		h.turn()
		h.b.Purge(linked, "", func(Purged, error) {})
		h.turn()
		h = open(t, h.disk, sweeps(nil))
		h.lost = damaged
		reads := 0
		h.reads = func() { reads++ }
		h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: "ID:r"}, Link: "x", Started: true,
			Duplex: true})
		h.pass(time.Hour)
		d := h.b.find(queueQ)
		if d == nil || (d.receipts != nil) != damaged || reads < 2 || !damaged && reads != 2 ||
			h.b.find(linked) != nil ||
			(h.b.counts.Reasons[message.Unreadable] > 0) != damaged {
			t.Errorf("damaged %t: it is there %t, %d reads", damaged, d != nil, reads)
		}
		h.b.Advise(network.Event{Peer: message.BrokerInfo{ID: "ID:p"}, Link: "y", Started: true,
			Duplex: true})
		if h.pass(time.Hour); h.b.find(queueQ) != nil {
			t.Errorf("damaged %t: it stays although the peers are there", damaged)
		}
	}
}

func TestASweepOfManyDestinationsIsSliced(t *testing.T) {
	const many = 20_000
	h := open(t, nil, sweeps(nil))
	h.unchecked = true
	for n := range many {
		h.b.destination(queueNamed(fmt.Sprint("q", n)))
	}
	h.turn()
	sweep := func(what string, left int) {
		most := 0
		longest(t, what, 20*time.Second, func() {
			h.now += time.Second
			seen := len(h.events)
			for _, x := range h.timers {
				if x.f != nil && x.at <= h.now {
					x.f()
					x.f = nil
				}
			}
			for more := true; more; more = h.step() {
				most, seen = max(most, len(h.events)-seen), len(h.events)
			}
		})
		if most > 2*sweepRemovals { // each is told of as gone, and as unused
			t.Errorf("%s: %d are removed in one event", what, most/2)
		}
		if len(h.b.order) != left {
			t.Errorf("%s: %d are left", what, len(h.b.order))
		}
	}
	sweep("a sweep that removes none", many)
	h.now += 10 * time.Second
	sweep("a sweep that removes all", 0)
}
