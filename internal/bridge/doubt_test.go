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

func TestTheTimeOfADoubtBeginsAnewWithTheLinksEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		linked time.Duration // how long the second link lives without an answer
		wait   time.Duration // what is left then
	}{
		{"a cut link: the peer was there", 15 * time.Second, 10 * time.Second},
		{"a silent peer: as if it had not been", doubtTimeout, 0},
	} {
		w := newWorld(t, func(o *Options) {
			o.InDoubtTimeout, o.InitialReconnectDelay = 10*time.Second, time.Second
			o.MaxReconnectDelay = time.Hour
		})
		w.lose()
		w.env.advance(2 * time.Second)
		w.connect(Hello{HopwireLevel: 1})
		w.env.advance(c.linked - time.Millisecond)
		same(t, c.name, w.home.take(), []string{"peer netB started=true"})
		if c.linked == doubtTimeout {
			w.env.advance(time.Millisecond)
		} else {
			w.dial.down(nil)
			w.env.advance(c.wait - time.Millisecond)
			same(t, c.name, w.home.take(), []string{"peer netB started=false"})
			w.env.advance(time.Millisecond)
		}
		got := w.home.take()
		if got[len(got)-1] != "never-learned 1" {
			t.Errorf("%s: %q", c.name, got)
		}
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

func TestDoubtsAfterARestartAreWatched(t *testing.T) {
	w := newWorld(t, nil)
	w.home.doubts = doubtsOf(3)
	w.h.WatchDoubts(netB, 5*time.Minute)
	w.env.advance(5 * time.Minute)
	same(t, "home", w.home.take(), []string{"never-learned 1 2 3"})
}

func TestDoubtsAfterARestartHaveTheLongestTimeOfTheConnectors(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.InDoubtTimeout = time.Minute })
	for _, c := range []struct{ next, want time.Duration }{
		{time.Second, time.Minute}, {time.Hour, time.Hour}, {NeverTimeout, NeverTimeout},
		{2 * time.Hour, NeverTimeout},
	} {
		o := w.c.opts
		o.InDoubtTimeout = c.next
		if _, err := w.h.Connector(o); err != nil || w.h.InDoubtTimeout() != c.want {
			t.Errorf("with %v more: %v, want %v (%v)", c.next, w.h.InDoubtTimeout(), c.want, err)
		}
	}
	if got := NewHome(Config{Env: w.env}).InDoubtTimeout(); got != 5*time.Minute {
		t.Errorf("without connectors: %v", got)
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
