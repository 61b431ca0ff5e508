package bridge

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
)

func (w *world) waitOf() time.Duration { return w.c.Status().NextTry - w.env.Mono() }

func TestBackOffDoublesWithJitterAndIsBounded(t *testing.T) {
	w := newWorld(t, nil)
	w.c.Start()
	full := time.Second
	for range 12 {
		w.dialer.last().down(message.Errorf(message.Unavailable, "refused"))
		w.state(Backoff)
		if wait := w.waitOf(); wait > full || wait < full*3/4 {
			t.Fatalf("wait %v, want up to a quarter below %v", wait, full)
		}
		w.env.advance(w.waitOf())
		w.state(Connecting)
		full = min(2*full, 30*time.Second)
	}
}

func TestALinkThatLivedBeginsBackOffAnew(t *testing.T) {
	for _, c := range []struct {
		lived time.Duration
		full  time.Duration
	}{{time.Second, 8 * time.Second}, {6 * time.Second, time.Second}} {
		w := newWorld(t, nil)
		w.c.Start()
		for range 3 {
			w.dialer.last().down(message.Errorf(message.Unavailable, "refused"))
			w.env.advance(w.waitOf())
		}
		w.connect(Hello{})
		w.env.advance(c.lived)
		w.dial.down(message.Errorf(message.Unavailable, "reset"))
		if wait := w.waitOf(); wait > c.full || wait < c.full*3/4 {
			t.Errorf("lived %v: wait %v, want about %v", c.lived, wait, c.full)
		}
	}
}

func TestURIsAreTriedInTurnBeforeTheWait(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.URIs = []string{"tcp://m:1", "tcp://s:1"} })
	w.c.Start()
	for range 4 {
		w.dialer.last().down(message.Errorf(message.Unavailable, "refused"))
		w.env.advance(w.waitOf())
	}
	var uris []string
	for _, d := range w.dialer.dials {
		uris = append(uris, d.uri)
	}
	same(t, "dials", uris, []string{"tcp://m:1", "tcp://s:1", "tcp://m:1", "tcp://s:1",
		"tcp://m:1"})
	if w.c.Status().Attempt != 2 {
		t.Errorf("failed rounds %d, want 2", w.c.Status().Attempt)
	}
}

// Of a pair of brokers one always has its port closed: it must not hide what the other says.
func TestWhatEachAddressSaidLastIsTold(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.URIs = []string{"tcp://m:1", "tcp://s:1"} })
	w.c.Start()
	for _, why := range []string{"m: old", "s: refused", "m: bad password", "s: refused"} {
		w.dialer.last().down(message.Errorf(message.Unavailable, "%s", why))
		w.env.advance(w.waitOf())
	}
	if got := w.c.Status().Error; got != "m: bad password; s: refused" {
		t.Errorf("status says %q", got)
	}
	if got := w.c.Said(message.Destination{Kind: message.Queue, Name: "Q"}); !strings.Contains(got,
		"m: bad password") {
		t.Errorf("explain says %q", got)
	}
	w.connect(Hello{})
	w.consume(1, "Q")
	w.state(Running)
	if got := w.c.Status().Error; got != "" {
		t.Errorf("linked, and status says %q", got)
	}
}

// B032: whatever half of a handshake the peer leaves out, the bridge is retried, says why, and
// leaves nothing behind.
func TestB032HalfAHandshakeIsRetried(t *testing.T) {
	link := func(w *world) {
		w.link = &fakeLink{}
		w.dialer.last().up(w.link, Hello{Remote: "netB:61616"})
	}
	for _, c := range []struct {
		name  string
		play  func(w *world)
		error string
	}{
		{"never a byte", func(w *world) { w.env.advance(dialTimeout) }, "hello within 40s"},
		{"closes after the hello", func(w *world) {
			w.dialer.last().down(message.Errorf(message.Unavailable, "closed in the hello"))
		}, "closed in the hello"},
		{"stalls before BrokerInfo", func(w *world) {
			link(w)
			w.env.advance(infoTimeout)
		}, "sent no BrokerInfo within 30s"},
		{"something else before BrokerInfo", func(w *world) {
			link(w)
			w.dialer.last().receive(&message.Response{})
		}, "came before BrokerInfo"},
		{"a BrokerInfo without id", func(w *world) {
			link(w)
			w.dialer.last().receive(&message.BrokerInfo{Name: "x"})
		}, "has no id"},
		{"refuses the connection", func(w *world) {
			w.connect(Hello{})
			w.dial.receive(&message.ConnectionError{Exception: &message.Throwable{
				Class: "java.lang.SecurityException", Message: "User name is invalid"}})
		}, "User name is invalid"},
		{"shuts down", func(w *world) {
			w.connect(Hello{})
			w.dial.receive(&message.ShutdownInfo{})
		}, "shut down"},
		{"the local side is closed", func(w *world) {
			w.connect(Hello{})
			w.consume(1, "Q")
			s := w.home.sub(w.t, "queue://Q")
			s.Sink.(interface{ Closed(string) }).Closed("by an operator")
			delete(w.home.subs, s.Info.ID)
		}, "by an operator"},
		{"never answers about doubts", func(w *world) {
			w.home.doubts = doubtsOf(1)
			w.connect(Hello{HopwireLevel: 1})
			w.env.advance(doubtTimeout)
		}, "did not answer about copies in doubt"},
	} {
		w := newWorld(t, func(o *Options) { o.InDoubtTimeout = NeverTimeout })
		w.c.Start()
		for range 1000 {
			c.play(w)
			w.failedFor(c.name, c.error)
		}
		w.home.doubts = nil
		w.connect(Hello{HopwireLevel: 1})
		w.c.bridge.prove()
		w.state(Running)
	}
}

func TestABridgeWithAWrongPasswordIsNeverRunning(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{HopwireLevel: 1})
	w.state(Resolving)
	w.dial.receive(&message.ConnectionError{Exception: &message.Throwable{Message: "wrong password"}})
	w.state(Backoff)
	w.env.advance(w.waitOf())
	w.connect(Hello{HopwireLevel: 1})
	w.state(Resolving)
	w.consume(1, "Q") // the first sign that the login was good
	w.state(Running)
}

// A duplex Hopwire peer answers the probe with plain messages, as everything that it forwards; its
// half of the bridge begins when it has let ours in.
func TestADuplexBridgeIsRunningWhenItsPeerLetItIn(t *testing.T) {
	for name, sign := range map[string]func(w *world) message.Command{
		"its half begins": func(*world) message.Command {
			return &message.ConnectionInfo{ID: "theirs"}
		},
		"the probe is answered": func(w *world) message.Command {
			return advisoryMessage("Connection", &message.ConnectionInfo{ID: w.c.bridge.remote})
		},
		"a consumer shows": func(*world) message.Command {
			return advisoryMessage("Consumer.Queue.Q", consumer(1, "Q"))
		},
	} {
		w := newWorld(t, func(o *Options) { o.Duplex = true })
		w.connect(Hello{HopwireLevel: 1})
		w.state(Resolving)
		w.dial.receive(sign(w))
		if got := w.c.Status().State; got != Running {
			t.Errorf("%s: %v", name, got)
		}
		w.dial.down(nil)
		w.env.advance(w.waitOf())
		w.connect(Hello{HopwireLevel: 1})
		w.env.advance(probeTimeout)
		w.state(Degraded) // no sign came: the connector does not wait for ever
	}
}

// failedFor checks that nothing of a failed link is left but its error and the next try, and goes
// on to that.
func (w *world) failedFor(name, why string) {
	w.t.Helper()
	w.state(Backoff)
	if got := w.c.Status().Error; !strings.Contains(got, why) {
		w.t.Fatalf("%s: error %q", name, got)
	}
	if w.link != nil && w.link.closed == "" {
		w.t.Fatalf("%s: the link is open", name)
	}
	if n := w.env.live(); n != 1 || len(w.home.subs) != 0 || len(w.h.bridges) != 0 {
		w.t.Fatalf("%s: %d timers, %d subscriptions, %d bridges left", name, n,
			len(w.home.subs), len(w.h.bridges))
	}
	w.env.advance(w.waitOf())
	w.state(Connecting)
}

func TestSelfConnectWaitsTheLongest(t *testing.T) {
	w := newWorld(t, nil)
	w.c.Start()
	w.link = &fakeLink{}
	w.dialer.last().up(w.link, Hello{Remote: "localhost:61616"})
	info := w.home.info
	w.dialer.last().receive(&info)
	w.state(Backoff)
	s := w.c.Status()
	if w.waitOf() < 22*time.Second || !strings.Contains(s.Error, "SELF_CONNECT") ||
		!slices.Contains(s.Counts, Count{message.SelfConnect, 1}) {
		t.Errorf("wait %v, status %+v", w.waitOf(), s)
	}
	if len(w.link.take()) != 0 {
		t.Error("the broker introduced itself to itself")
	}
	if got := w.c.Explain(queue("Q")); got != message.SelfConnect {
		t.Errorf("explain %q", got)
	}
}

func TestStopDrainsAnswersThenSaysGoodbye(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "Q")
	w.deliver("queue://Q", 1, text("Q", 1))
	done := 0
	w.c.Stop(func() { done++ })
	w.c.Stop(func() { done++ })
	w.state(Stopping)
	w.home.take()
	w.answerAll(nil)
	w.state(Stopped)
	same(t, "home", w.home.take(), []string{"acked queue://Q 1", "unsubscribe queue://Q",
		"peer netB started=false"})
	sent := shorts(w.link.take())
	if len(sent) != 1 || !strings.Contains(sent[0], "ShutdownInfo") || done != 2 {
		t.Errorf("sent %v, done %d", sent, done)
	}
	w.env.advance(time.Hour)
	if n := w.env.live(); n != 0 || len(w.dialer.dials) != 1 {
		t.Errorf("%d timers and %d dials after Stop", n, len(w.dialer.dials))
	}
	w.c.Start()
	w.state(Connecting)
}

func TestStartWhileStoppingIsRemembered(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(*Connector)
		want State
	}{
		{"started", func(c *Connector) { c.Start() }, Connecting},
		{"started and stopped again", func(c *Connector) { c.Start(); c.Stop(nil) }, Stopped},
	} {
		w := newWorld(t, nil)
		w.connect(Hello{})
		w.consume(1, "Q")
		w.deliver("queue://Q", 1, text("Q", 1))
		w.c.Stop(nil)
		c.then(w.c)
		w.state(Stopping)
		w.answerAll(nil)
		if got := w.c.Status().State; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "Q")
	w.deliver("queue://Q", 1, text("Q", 1))
	w.c.Stop(nil)
	w.env.advance(stopTimeout)
	w.state(Stopped)
}

func TestStopWhileDialling(t *testing.T) {
	w := newWorld(t, nil)
	w.c.Start()
	w.c.Stop(nil)
	w.state(Stopped)
	if !w.dialer.last().cancelled {
		t.Error("the dial goes on")
	}
	late := &fakeLink{}
	w.dialer.last().up(late, Hello{})
	if late.closed == "" || w.env.live() != 0 {
		t.Error("a late connection is kept")
	}
}

func TestB029NoDemandSignalIsDegraded(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.StaticallyIncluded = []message.Destination{queue("S")}
	})
	w.connect(Hello{})
	w.env.advance(probeTimeout)
	w.state(Degraded)
	if got := w.c.Explain(queue("Q")); got != message.DemandUnseen {
		t.Errorf("explain %q", got)
	}
	if got := w.c.Explain(queue("S")); got != "" {
		t.Errorf("a static destination: %q", got)
	}
	w.consume(1, "Q")
	w.state(Running)
}

func TestAConnectorTellsTheNextAddressAndWhatTheLastOneSaid(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.URIs = []string{"tcp://m:1", "tcp://s:1"} })
	w.c.Start()
	w.dialer.last().down(message.Errorf(message.Unavailable, "m refused"))
	if s := w.c.Status(); s.URI != "tcp://s:1" || s.Addresses != 2 || s.Error != "m refused" {
		t.Errorf("after a refusal: next %s of %d, last %q", s.URI, s.Addresses, s.Error)
	}
	w.env.advance(w.waitOf())
	w.connect(Hello{})
	w.env.advance(probeTimeout)
	w.state(Degraded)
	if s := w.c.Status(); s.URI != "tcp://s:1" || s.Error != "" {
		t.Errorf("linked to %s, last %q", s.URI, s.Error)
	}
}

func TestDegradedBridgeProbesAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.env.advance(probeTimeout)
	w.state(Degraded)
	w.link.take()
	w.env.advance(probeAgain)
	w.dial.receive(&message.MessageDispatch{Consumer: w.c.bridge.probe.id,
		Message: advisoryMessage("Connection", &message.ConnectionInfo{ID: w.c.bridge.remote})})
	w.state(Running)
	same(t, "sent", shorts(w.link.take()), []string{
		"8 ConsumerInfo 1:2 topic://ActiveMQ.Advisory.Connection prefetch=1000 async=true",
		"9 RemoveInfo 2"})
}

func TestProbeSeesItsOwnConnection(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	b := w.c.bridge
	probe := func(id message.ConnectionID) {
		w.dial.receive(&message.MessageDispatch{Consumer: b.probe.id,
			Message: advisoryMessage("Connection", &message.ConnectionInfo{ID: id})})
	}
	probe("somebody")
	w.link.take()
	probe(b.remote)
	same(t, "sent", shorts(w.link.take()), []string{"7 RemoveInfo 2"})
	w.env.advance(time.Minute)
	w.state(Running)
	if got := w.c.Explain(queue("Q")); got != message.NoDemand {
		t.Errorf("explain %q", got)
	}
}

func TestB029AdvisoriesThatMayNotBeReadDegrade(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.dial.receive(&message.ConnectionError{Exception: &message.Throwable{
		Class:   "java.lang.SecurityException",
		Message: "User b is not authorized to read from: topic://ActiveMQ.Advisory.Consumer.>"}})
	w.state(Degraded)
}

func TestAdvisoriesAreAcknowledgedByCount(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AdvisoryPrefetchSize = 4 })
	w.connect(Hello{})
	w.link.take()
	for n := range int64(9) {
		w.consume(n, "Q")
	}
	same(t, "acks", shorts(w.link.take()), []string{"7 RemoveInfo 2",
		"8 MessageAck 1:1 type=2 count=4 first=false",
		"9 MessageAck 1:1 type=2 count=4 first=false"})
}

func TestAdvisoryFilterStrings(t *testing.T) {
	temp := message.Destination{Kind: message.TempQueue, Name: "TEST.>"}
	for _, c := range []struct {
		name   string
		filter string
		temps  bool
		list   []message.Destination
		want   string
	}{
		{"N013", "", false, []message.Destination{queue("include.test.foo"),
			topic("include.test.bar")}, "ActiveMQ.Advisory.Consumer.Queue.include.test.foo," +
			"ActiveMQ.Advisory.Consumer.Topic.include.test.bar"},
		{"N014", "", false, nil, "ActiveMQ.Advisory.Consumer.>"},
		{"N014 temps add nothing", "", false, []message.Destination{queue("TEST.>"), temp},
			"ActiveMQ.Advisory.Consumer.Queue.TEST.>"},
		{"N015", "Queue.a,ActiveMQ.Advisory.Consumer.Topic.b", false, nil,
			"ActiveMQ.Advisory.Consumer.Queue.a,ActiveMQ.Advisory.Consumer.Topic.b"},
		{"N016", ">", true, []message.Destination{queue("q")}, "ActiveMQ.Advisory.Consumer.>," +
			"ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic"},
		{"N016 the prefix comes once", "ActiveMQ.Advisory.Consumer.>", false, nil,
			"ActiveMQ.Advisory.Consumer.>"},
	} {
		o := DefaultOptions(5)
		o.DestinationFilter, o.BridgeTempDestinations = c.filter, c.temps
		o.DynamicallyIncluded = c.list
		if got := o.advisoryTopic().Name; got != c.want {
			t.Errorf("%s:\n got  %s\n want %s", c.name, got, c.want)
		}
	}
}

func TestTempDestinationsOfThePeer(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.home.take()
	temp := message.Destination{Kind: message.TempQueue, Name: "ID:c:1:1"}
	w.advise("TempQueue", &message.DestinationInfo{Destination: temp})
	w.advise("TempQueue", &message.DestinationInfo{Destination: temp,
		BrokerPath: []message.BrokerID{"ID:netA"}})
	w.advise("TempQueue", &message.DestinationInfo{Destination: temp,
		Op: message.RemoveDestination})
	same(t, "home", w.home.take(), []string{
		"temp temp-queue://ID:c:1:1 op 0 path [ID:netB]",
		"temp temp-queue://ID:c:1:1 op 1 path []", // the peer has it by way of us only
		"temp temp-queue://ID:c:1:1 op 1 path [ID:netB]"})
}

func TestAPeerThatConnectsIsTriedAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.c.Start()
	w.connect(Hello{})
	w.dial.down(message.Errorf(message.Unavailable, "reset"))
	for range 4 {
		w.env.advance(w.waitOf())
		w.dialer.last().down(message.Errorf(message.Unavailable, "refused"))
	}
	w.state(Backoff)
	dials := len(w.dialer.dials)
	w.c.home.Seen("ID:somebody else")
	if len(w.dialer.dials) != dials {
		t.Error("another peer's coming was taken for this one's")
	}
	w.c.home.Seen(w.c.last)
	if len(w.dialer.dials) != dials+1 {
		t.Error("the peer is back and was not tried")
	}
	w.state(Connecting)
}
