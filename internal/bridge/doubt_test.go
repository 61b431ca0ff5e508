package bridge

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

func doubtsOf(n int) []network.Doubt {
	var out []network.Doubt
	for i := range n {
		d := network.Doubt{Ref: message.CopyRef{Destination: queue("Q"), Seq: uint64(i + 1)}}
		d.Key.Destination = queue("Q")
		d.Key.Key[0], d.Key.Key[1] = byte(i), byte(i>>8)
		out = append(out, d)
	}
	return out
}

func TestB037AHopwirePeerIsAskedBeforeAnythingNew(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{HopwireLevel: 1})
	w.consume(1, "Q")
	w.deliver("queue://Q", 1, text("Q", 1))
	w.deliver("queue://Q", 2, text("Q", 2))
	plain := text("Q", 3)
	plain.Persistent = false
	w.deliver("queue://Q", 3, plain)
	w.home.take()
	w.dial.down(nil)
	same(t, "home", w.home.take(), []string{"doubted queue://Q 1 2 3",
		"unsubscribe queue://Q", "peer netB started=false"})
	w.home.doubts = doubtsOf(700)
	w.env.advance(time.Second)
	w.connect(Hello{HopwireLevel: 1})
	w.state(Resolving)
	w.consume(1, "Q")
	w.demands()
	rounds := 0
	for w.c.Status().State == Resolving && rounds < 10 {
		rounds++
		sent := w.link.take()
		ask, err := network.ParseTalk(sent[len(sent)-1].(*message.ControlCommand).Command)
		if err != nil || ask.Kind != network.Ask {
			t.Fatalf("round %d: %v %v", rounds, ask, err)
		}
		known := make([]bool, len(ask.Keys))
		for i := range known {
			known[i] = rounds == 1 && i < 2
		}
		reply := network.Talk{Kind: network.Known, ID: ask.ID, Known: known}
		w.dial.receive(&message.ControlCommand{Command: reply.Encode()})
	}
	w.state(Running)
	w.demands("queue://Q")
	log := w.home.take()
	if rounds != 2 || len(w.home.doubts) != 0 || log[1] != "was-taken 1 2" ||
		!strings.HasPrefix(log[2], "was-not-taken 3 4 ") {
		t.Errorf("%d rounds, %d left, %.200q", rounds, len(w.home.doubts), log)
	}
	w.env.advance(10 * time.Minute)
	for _, l := range w.home.take() {
		if strings.HasPrefix(l, "never-learned") {
			t.Error("the clock went on after the doubts were resolved")
		}
	}
}

func TestWhatAKilledPeerMayHaveGivenToAClientGoesBackAsSeen(t *testing.T) {
	w := newWorld(t, nil)
	w.lose()
	w.env.advance(2 * time.Second)
	w.connect(Hello{HopwireLevel: 1})
	w.state(Resolving)
	sent := w.link.take()
	ask, err := network.ParseTalk(sent[len(sent)-1].(*message.ControlCommand).Command)
	if err != nil || !ask.Seen {
		t.Fatalf("%+v %v, want a question that says it reads the word", ask, err)
	}
	w.home.take()
	w.dial.receive(&message.ControlCommand{Command: network.Talk{Kind: network.Known, ID: ask.ID,
		Known: []bool{false}, Seen: true}.Encode()})
	if log := w.home.take(); len(log) == 0 || log[0] != "maybe-seen 1" {
		t.Errorf("%q", log)
	}
}

// The peer hears of its own restart from the first link that forwards again, and denies then that
// clients may have seen what another link asks about.
func TestWhatAnotherRunOfThePeerMayHaveGivenToAClientGoesBackAsSeen(t *testing.T) {
	for _, c := range []struct {
		before, now int64
		want        string
	}{{7, 8, "maybe-seen 1"}, {7, 7, "was-not-taken 1"}, {0, 8, "was-not-taken 1"}} {
		w := newWorld(t, nil)
		w.connect(Hello{HopwireLevel: 1, HopwireRun: c.before})
		w.consume(1, "Q")
		w.deliver("queue://Q", 1, text("Q", 1))
		w.dial.down(nil)
		w.home.doubts = doubtsOf(1)
		w.env.advance(2 * time.Second)
		w.connect(Hello{HopwireLevel: 1, HopwireRun: c.now})
		w.home.take()
		w.tell(false)
		if log := w.home.take(); len(log) == 0 || log[0] != c.want {
			t.Errorf("run %d, then %d: %q", c.before, c.now, log)
		}
	}
}

// A link that does not know yet that its peer is gone leaves copies beside those of a link to the
// peer's next run. Which run had which is not known: all of them may have been seen.
func TestWhatSeveralRunsOfThePeerMayHaveGoesBackAsSeen(t *testing.T) {
	for _, c := range []struct {
		first, second, now int64
		want               string
	}{{7, 8, 8, "maybe-seen 1"}, {8, 7, 8, "maybe-seen 1"}, {7, 8, 7, "maybe-seen 1"},
		{8, 8, 8, "was-not-taken 1"}} {
		w := newWorld(t, nil)
		w.connect(Hello{HopwireLevel: 1, HopwireRun: c.first})
		w.consume(1, "Q")
		w.deliver("queue://Q", 1, text("Q", 1))
		other := w.second(c.second, func(*Options) {})
		w.dial.down(nil)
		other.down(nil)
		w.home.doubts = doubtsOf(1)
		w.env.advance(2 * time.Second)
		w.connect(Hello{HopwireLevel: 1, HopwireRun: c.now})
		w.home.take()
		w.tell(false)
		if log := w.home.take(); len(log) == 0 || log[0] != c.want {
			t.Errorf("runs %d and %d, then %d: %q", c.first, c.second, c.now, log)
		}
	}
}

func TestOnlyAPeerThatReadsItIsToldWhatMayHaveBeenSeen(t *testing.T) {
	for _, reads := range []bool{true, false} {
		w := newWorld(t, nil)
		w.connect(Hello{HopwireLevel: 1})
		w.home.restarted = true
		w.link.take()
		w.dial.receive(&message.ControlCommand{Command: network.Talk{Kind: network.Ask, ID: 5,
			Keys: []network.DoubtKey{{Destination: queue("Q")}}, Seen: reads}.Encode()})
		want := "known 5 0"
		if reads {
			want += " seen"
		}
		if got := shorts(w.link.take()); len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("it reads it: %v, it is told %q", reads, got)
		}
	}
}

func TestDoubtsAreReleasedWhenThePeerStaysAway(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{HopwireLevel: 1})
	w.consume(1, "Q")
	w.deliver("queue://Q", 1, text("Q", 1))
	w.dial.down(nil)
	w.home.doubts = doubtsOf(1)
	w.home.take()
	w.env.advance(5*time.Minute - time.Millisecond)
	same(t, "before", w.home.take(), nil)
	w.env.advance(time.Millisecond)
	same(t, "after", w.home.take(), []string{"never-learned 1"})
	last := w.events[len(w.events)-1]
	if last.Kind != DoubtsReleased || last.Count != 1 {
		t.Errorf("event %+v", last)
	}
}

// lose leaves one copy in doubt toward the peer.
func (w *world) lose() {
	w.connect(Hello{HopwireLevel: 1})
	w.consume(1, "Q")
	w.deliver("queue://Q", 1, text("Q", 1))
	w.dial.down(nil)
	w.home.doubts = doubtsOf(1)
	w.home.take()
}

// tellAll answers the question that was asked last: none of the copies is there.
func (w *world) tellAll() {
	sent := w.link.take()
	ask, err := network.ParseTalk(sent[len(sent)-1].(*message.ControlCommand).Command)
	if err != nil {
		w.t.Fatal(err)
	}
	w.dial.receive(&message.ControlCommand{Command: network.Talk{Kind: network.Known, ID: ask.ID,
		Known: make([]bool, len(ask.Keys))}.Encode()})
}

func (w *world) tell(known bool) {
	sent := w.link.take()
	ask, err := network.ParseTalk(sent[len(sent)-1].(*message.ControlCommand).Command)
	if err != nil {
		w.t.Fatal(err)
	}
	w.dial.receive(&message.ControlCommand{Command: network.Talk{Kind: network.Known, ID: ask.ID,
		Known: []bool{known}}.Encode()})
}

func TestTheTimeOfADoubtStandsStillWhileThePeerIsAsked(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.InDoubtTimeout = 10 * time.Second })
	w.lose()
	w.env.advance(2 * time.Second)
	w.connect(Hello{HopwireLevel: 1})
	w.env.advance(15 * time.Second)
	w.state(Resolving)
	w.tell(true)
	w.state(Running)
	w.env.advance(time.Hour)
	got := w.home.take()
	if len(got) != 2 || got[1] != "was-taken 1" {
		t.Errorf("home %q", got)
	}
}

func TestTheTimeOfADoubtCountsFromWhatThePeerSaidLast(t *testing.T) {
	for _, c := range []struct {
		name   string
		linked time.Duration // how long the second link lives
		answer bool          // it is told about one of two copies first
		wait   time.Duration // what is left when it ends
	}{
		{"a cut link", 3 * time.Second, false, 5001 * time.Millisecond},
		{"a cut link, beyond the time", 15 * time.Second, false, 0},
		{"a silent peer", doubtTimeout, false, 0},
		{"a peer that told of some", 15 * time.Second, true, 10 * time.Second},
	} {
		w := newWorld(t, func(o *Options) {
			o.InDoubtTimeout, o.InitialReconnectDelay = 10*time.Second, time.Second
			o.MaxReconnectDelay = time.Hour
		})
		w.lose()
		w.env.advance(2 * time.Second)
		if w.home.doubts = doubtsOf(1); c.answer {
			w.home.doubts = doubtsOf(network.MaxTalkKeys + 1)
		}
		w.connect(Hello{HopwireLevel: 1})
		w.env.advance(c.linked - time.Millisecond)
		if c.answer {
			w.tellAll()
		}
		released := func() bool {
			return slices.ContainsFunc(w.home.take(), func(l string) bool {
				return strings.HasPrefix(l, "never-learned")
			})
		}
		if released() {
			t.Errorf("%s: released while a link asks", c.name)
		}
		if c.linked < doubtTimeout {
			w.dial.down(nil)
		}
		if c.wait > 0 {
			w.env.advance(c.wait - time.Millisecond)
			if released() {
				t.Errorf("%s: released too early", c.name)
			}
		}
		if w.env.advance(time.Millisecond); !released() {
			t.Errorf("%s: not released in time", c.name)
		}
	}
}

// refuse plays a peer that does not let the bridge in.
func (w *world) refuse() {
	w.dial.receive(&message.ConnectionError{Exception: &message.Throwable{
		Class: "java.lang.SecurityException", Message: "User name [x] or password is invalid."}})
	w.env.settle()
}

func TestAPeerThatRefusesTheLoginTookNothing(t *testing.T) {
	for _, level := range []int{0, 1} {
		w := newWorld(t, func(o *Options) { o.StaticallyIncluded = []message.Destination{queue("Q")} })
		w.connect(Hello{HopwireLevel: level})
		w.deliver("queue://Q", 1, text("Q", 1))
		w.deliver("queue://Q", 2, text("Q", 2))
		w.home.take()
		w.refuse()
		w.state(Backoff)
		if got := w.home.take(); got[0] != "returned queue://Q 1 2" {
			t.Errorf("level %d: %q", level, got)
		}
	}
}

func TestAPeerThatRefusesTheLoginIsAway(t *testing.T) {
	w := newWorld(t, nil)
	w.lose()
	for w.env.now < 2*w.c.opts.InDoubtTimeout {
		w.env.advance(w.waitOf())
		w.connect(Hello{HopwireLevel: 1})
		w.env.advance(10 * time.Millisecond)
		w.refuse()
		if w.home.take(); len(w.home.doubts) == 0 {
			break
		}
	}
	if w.env.now < w.c.opts.InDoubtTimeout ||
		w.env.now > w.c.opts.InDoubtTimeout+w.c.opts.MaxReconnectDelay {
		t.Errorf("%d copies are in doubt after %v", len(w.home.doubts), w.env.now)
	}
}

// connector makes another connector to the peer.
func (w *world) connector(change func(*Options)) *Connector {
	o := DefaultOptions(5)
	o.Name, o.URIs = "nc2", []string{"tcp://netB:61617"}
	change(&o)
	c, err := w.h.Connector(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// linked plays a run of the peer of another connector up to its BrokerInfo.
func (w *world) linked(c *Connector, run int64) *fakeDial {
	c.Start()
	d := w.dialer.last()
	d.up(&fakeLink{}, Hello{Remote: "netB:61617", HopwireLevel: 1, HopwireRun: run})
	info := peerInfo
	d.receive(&info)
	w.env.settle()
	return d
}

// second links another connector to the peer; the link would leave a copy of Z in doubt.
func (w *world) second(run int64, change func(*Options)) *fakeDial {
	c := w.connector(change)
	d := w.linked(c, run)
	m := advisoryMessage("Consumer.Queue.Z", consumer(7, "queue://Z"))
	d.receive(&message.MessageDispatch{Consumer: c.bridge.advisories.id,
		Destination: m.Destination, Message: m})
	w.env.settle()
	w.deliver("queue://Z", 2, text("queue://Z", 6))
	return d
}

func TestTheLongestTimeOfTheLinksThatLeftCopiesCounts(t *testing.T) {
	for _, c := range []struct{ first, second, want time.Duration }{
		{NeverTimeout, time.Minute, 0}, {time.Minute, NeverTimeout, 0},
		{time.Minute, time.Hour, time.Hour}, {time.Hour, time.Minute, time.Hour},
	} {
		w := newWorld(t, func(o *Options) { o.InDoubtTimeout = c.first })
		w.connect(Hello{HopwireLevel: 1})
		w.consume(1, "Q")
		w.deliver("queue://Q", 1, text("Q", 1))
		d := w.second(0, func(o *Options) { o.InDoubtTimeout = c.second })
		w.dial.down(nil)
		d.down(nil)
		w.home.doubts = doubtsOf(2)
		limit := c.want
		if limit == 0 {
			limit = 3 * time.Hour
		}
		w.env.advance(limit - time.Millisecond)
		if len(w.home.doubts) != 2 {
			t.Errorf("%v and %v: released early", c.first, c.second)
		}
		w.env.advance(time.Millisecond)
		if c.want > 0 && len(w.home.doubts) != 0 {
			t.Errorf("%v and %v: not released after %v", c.first, c.second, c.want)
		}
	}
}

func TestALinkThatOnlyAskedDoesNotMakeTheTimeLonger(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.InDoubtTimeout = time.Minute })
	w.lose()
	c := w.connector(func(o *Options) { o.InDoubtTimeout = NeverTimeout })
	w.linked(c, 0).down(nil)
	w.env.advance(time.Minute)
	if len(w.home.doubts) != 0 {
		t.Error("the copies are held on")
	}
}

func TestAPeerThatComesToUsSucceedsNobody(t *testing.T) {
	w := newWorld(t, nil)
	shop := func(id message.BrokerID, remote string) *Acceptor {
		a, err := w.h.Accept(&fakeLink{}, Hello{Remote: remote, HopwireLevel: 1},
			&message.BrokerInfo{ID: id, Name: "localhost", NetworkProperties: "name=NC\n"})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := shop("ID:shop1", "10.0.0.1")
	a.Receive(advisoryMessage("Consumer.Queue.Q", consumer(1, "Q")))
	w.env.settle()
	w.deliver("queue://Q", 1, text("Q", 1))
	a.Down(nil)
	w.home.doubts, w.home.doubtful = doubtsOf(1), "ID:shop1"
	shop("ID:shop2", "10.0.0.2")
	w.env.settle()
	if len(w.home.doubts) != 1 {
		t.Error("another peer of that name set the copies free")
	}
	w.env.advance(5 * time.Minute)
	if len(w.home.doubts) != 0 {
		t.Error("they are held beyond the time")
	}
}

func TestDoubtsAreReleasedWhenThePeerLostItsStore(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Options)
		info message.BrokerInfo
		want bool
	}{
		{"same name, another id", nil, message.BrokerInfo{ID: "ID:new", Name: "netB"}, true},
		{"another broker took the address", nil,
			message.BrokerInfo{ID: "ID:new", Name: "netX"}, false},
		{"another address of a list", func(o *Options) {
			o.URIs = append(o.URIs, "tcp://netB2:61616")
		}, message.BrokerInfo{ID: "ID:new", Name: "netB"}, false},
		{"strict", func(o *Options) { o.InDoubtTimeout = NeverTimeout },
			message.BrokerInfo{ID: "ID:new", Name: "netB"}, false},
	} {
		w := newWorld(t, c.edit)
		w.lose()
		w.env.advance(time.Second)
		w.home.doubtful = netB
		w.dial, w.link = w.dialer.last(), &fakeLink{}
		w.dial.up(w.link, Hello{Remote: "netB:61616"})
		w.dial.receive(&c.info)
		w.c.bridge.prove()
		w.state(Running)
		got := slices.Contains(w.home.take(), "never-learned 1")
		if got != c.want {
			t.Errorf("%s: released %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDoubtsAfterARestartHaveTheLongestTimeThatIsKnown(t *testing.T) {
	for _, c := range []struct {
		connectors []time.Duration
		told, want time.Duration // 0 is for ever
	}{
		{nil, 0, inDoubtDefault},
		{nil, time.Second, time.Second},
		{nil, NeverTimeout, 0},
		{[]time.Duration{time.Minute}, 0, time.Minute},
		{[]time.Duration{time.Minute, time.Second}, 0, time.Minute},
		{[]time.Duration{time.Minute}, time.Hour, time.Hour},
		{[]time.Duration{time.Hour}, time.Minute, time.Hour},
		{[]time.Duration{NeverTimeout, time.Hour}, time.Minute, 0},
		{[]time.Duration{time.Hour}, NeverTimeout, 0},
	} {
		w := newWorld(t, nil)
		w.h = NewHome(Config{Local: w.home, Env: w.env, Dialer: w.dialer})
		for _, d := range c.connectors {
			o := w.c.opts
			o.InDoubtTimeout = d
			if _, err := w.h.Connector(o); err != nil {
				t.Fatal(err)
			}
		}
		w.home.doubts = doubtsOf(3)
		w.h.WatchDoubts(netB, c.told)
		limit := c.want
		if limit == 0 {
			limit = 3 * time.Hour
		}
		w.env.advance(limit - time.Millisecond)
		if len(w.home.doubts) != 3 {
			t.Errorf("%+v: released early", c)
		}
		w.env.advance(time.Millisecond)
		if c.want > 0 && len(w.home.doubts) != 0 {
			t.Errorf("%+v: not released", c)
		}
	}
}

func TestAnActiveMQPeerIsNotAsked(t *testing.T) {
	w := newWorld(t, nil)
	w.home.doubts = doubtsOf(2)
	w.connect(Hello{})
	w.c.bridge.prove()
	w.state(Running)
	same(t, "home", w.home.take(), []string{"peer netB started=true", "never-learned 1 2"})
	for _, c := range w.link.take() {
		if _, ok := c.(*message.ControlCommand); ok {
			t.Error("it was talked to")
		}
	}
}
