package bridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

func TestForwardedMessageKeepsWhatItIs(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "Q")
	m := text("Q", 7)
	m.BrokerPath = nil
	m.Transaction = message.TransactionID{Connection: "c", Value: 3}
	m.OriginalDestination = topic("VirtualTopic.x")
	before := *m
	w.deliver("queue://Q", 1, m)
	if m.Producer != before.Producer || m.Transaction != before.Transaction || m.BrokerPath != nil {
		t.Error("the shared message was changed")
	}
	sent := w.link.take()
	got := sent[len(sent)-1].(*message.Message)
	if got.ID != m.ID || !got.Transaction.IsZero() || got.OriginalTransaction != m.Transaction ||
		got.OriginalDestination != m.OriginalDestination || got.Producer != w.c.bridge.producer() {
		t.Errorf("forwarded %+v", got)
	}
}

func TestOneWayWithoutAlwaysSyncSend(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AlwaysSyncSend = false })
	w.connect(Hello{})
	w.consume(1, "Q")
	w.home.take()
	m := text("Q", 1)
	m.Persistent = false
	w.deliver("queue://Q", 1, m)
	same(t, "home", w.home.take(), []string{"acked queue://Q 1", "wake queue://Q"})
	w.deliver("queue://Q", 2, text("Q", 2))
	same(t, "a persistent one waits", w.home.take(), nil)
}

func TestRefusedOneWayForwardKeepsTheLink(t *testing.T) {
	for _, c := range []struct {
		x    message.Throwable
		want message.Reason
	}{
		{message.Throwable{Class: "java.lang.SecurityException",
			Message: "User b is not authorized to write to: queue://S"}, message.RemoteDenied},
		{message.Throwable{Class: "javax.jms.InvalidDestinationException"}, message.NoConsumer},
		{message.Throwable{Class: "javax.jms.ResourceAllocationException"},
			message.RemoteWindowFull},
	} {
		w := newWorld(t, func(o *Options) {
			o.AlwaysSyncSend, o.StaticBridge = false, true
			o.StaticallyIncluded = []message.Destination{queue("S")}
		})
		w.connect(Hello{})
		send := func(seq int64) (asks bool) {
			m := text("S", seq)
			m.Persistent = false
			w.deliver("queue://S", uint64(seq), m)
			return w.link.sent[len(w.link.sent)-1].Head().ResponseRequired
		}
		if !send(1) {
			t.Error("a message that asks no answer went out before the login was proven")
		}
		w.answerAll(nil)
		if send(2) {
			t.Error("alwaysSyncSend=false, and an answer is asked")
		}
		for range 3 {
			w.dial.receive(&message.ConnectionError{Exception: &c.x})
		}
		w.state(Running)
		if got := w.c.Status().Counts; !slices.Contains(got, Count{c.want, 3}) {
			t.Errorf("%s: counts %v", c.x.Class, got)
		}
		if e := w.events[len(w.events)-1]; e.Kind != ForwardRefused || e.Reason != c.want {
			t.Errorf("%s: event %+v", c.x.Class, e)
		}
	}
}

func TestRefusedLoginSaysSo(t *testing.T) {
	refuse := &message.ConnectionError{Exception: &message.Throwable{
		Class: "java.lang.SecurityException", Message: "no"}}
	w := newWorld(t, nil)
	w.connect(Hello{HopwireLevel: 1})
	w.dial.receive(refuse)
	w.state(Backoff)
	if got := w.c.Status().Error; !strings.Contains(got, "refused this bridge's login: no") {
		t.Errorf("after the login: %q", got)
	}
	w.env.advance(w.waitOf())
	w.dialer.last().up(&fakeLink{}, Hello{Remote: "netB:61616"})
	w.dialer.last().receive(refuse)
	if got := w.c.Status().Error; !strings.Contains(got, "refused the connection: no") {
		t.Errorf("before BrokerInfo: %q", got)
	}
}

func TestAnswersOfATurnAreSettledTogether(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.PrefetchSize = 50 })
	w.connect(Hello{})
	w.consume(1, "Q")
	w.home.take()
	for n := range 5 {
		w.deliver("queue://Q", uint64(n+1), text("Q", int64(n)))
	}
	w.answerAll(nil)
	same(t, "home", w.home.take(), []string{"acked queue://Q 1 2 3 4 5"})
	w.dial.receive(&message.Response{Correlation: 8})
	if got := w.c.Status().Late; got != 1 {
		t.Errorf("late answers %d", got)
	}
}

func TestWindowRampsUpAfterConnect(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{})
	w.consume(1, "Q")
	f := w.home.sub(t, "queue://Q").Filter
	sent := 0
	fill := func() {
		for f.Gate(w.env.Mono()).Outcome == message.Deliver && sent < 5000 {
			sent++
			w.deliver("queue://Q", uint64(sent), text("Q", int64(sent)))
		}
	}
	fill()
	if sent != rampStart {
		t.Fatalf("%d copies at once", sent)
	}
	w.home.take()
	for range 4 {
		w.answerAll(nil)
		fill()
	}
	if !slices.Contains(w.home.take(), "wake queue://Q") {
		t.Error("the gate opened and nobody was told")
	}
	if got := f.Gate(0); got.Outcome != message.Deliver {
		t.Errorf("ramped up: gate %+v", got)
	}
}

func TestRefusedForwardParksOnlyItsDestination(t *testing.T) {
	denied := &message.Throwable{Class: "javax.jms.JMSSecurityException", Message: "no"}
	full := &message.Throwable{Class: "javax.jms.ResourceAllocationException", Message: "full"}
	for _, c := range []struct {
		x    *message.Throwable
		want message.Reason
	}{{denied, message.RemoteDenied}, {full, message.RemoteWindowFull},
		{&message.Throwable{Class: "java.lang.Exception"}, message.RemoteDenied}} {
		w := newWorld(t, nil)
		w.connect(Hello{})
		w.consume(1, "Q")
		w.consume(2, "R")
		w.home.take()
		verdict := func(dest string) message.Verdict {
			return w.home.sub(t, "queue://"+dest).Filter.Verdict(
				candidate{m: text(dest, 1), now: w.env.Mono()})
		}
		var waits []string
		for range 8 {
			w.deliver("queue://Q", 1, text("Q", 1))
			w.answerAll(c.x)
			same(t, "home", w.home.take(), []string{"returned queue://Q 1"})
			v := verdict("Q")
			if v.Reason != c.want || v.Wake != message.WakeAt {
				t.Fatalf("verdict %+v", v)
			}
			waits = append(waits, fmt.Sprint((v.At - w.env.Mono()).Seconds()))
			w.env.advance(v.At - w.env.Mono())
			if v := verdict("Q"); v.Outcome != message.Deliver {
				t.Fatalf("after the wait: %+v", v)
			}
		}
		if got := strings.Join(waits, " "); got != "1 2 4 8 16 32 60 60" {
			t.Errorf("waits %s", got)
		}
		if v := verdict("R"); v.Outcome != message.Deliver {
			t.Errorf("the other queue: %+v", v)
		}
		w.state(Running)
		w.deliver("queue://Q", 1, text("Q", 1))
		if v := verdict("Q"); v.Outcome != message.Refuse {
			t.Errorf("more than one copy tries: %+v", v)
		}
		w.answerAll(nil)
		if v := verdict("Q"); v.Outcome != message.Deliver {
			t.Errorf("after it was taken: %+v", v)
		}
		if !slices.Contains(w.home.take(), "wake queue://Q") {
			t.Error("nobody was told that the queue goes again")
		}
	}
}

func TestSilentPeerIsTheReasonOfTheWait(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.PrefetchSize = 2 })
	w.connect(Hello{})
	w.consume(1, "Q")
	explain := func(want message.Reason) {
		t.Helper()
		if got := w.c.Explain(queue("Q")); got != want {
			t.Errorf("explain %q, want %q", got, want)
		}
	}
	explain("")
	w.deliver("queue://Q", 1, text("Q", 1))
	w.deliver("queue://Q", 2, text("Q", 2))
	explain(message.RemoteWindowFull)
	w.env.advance(31 * time.Second)
	explain(message.RemoteSilent)
	w.answerAll(nil)
	explain("")
}

func TestB038ReplyToARequesterThatIsGone(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.AdvisoryForFailedForward = true })
	w.connect(Hello{})
	w.consume(1, "temp-queue://ID:c:1:1")
	w.home.take()
	w.deliver("temp-queue://ID:c:1:1", 1, text("temp-queue://ID:c:1:1", 1))
	w.answerAll(&message.Throwable{Class: "javax.jms.InvalidDestinationException"})
	if got := w.home.take()[0]; got != "poisoned temp-queue://ID:c:1:1 1" {
		t.Error(got)
	}
	if len(w.home.failure) != 1 {
		t.Error("no ForwardFailure")
	}
	w.state(Running)
}

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
	w.state(Running)
	same(t, "home", w.home.take(), []string{"peer netB started=true", "never-learned 1 2"})
	for _, c := range w.link.take() {
		if _, ok := c.(*message.ControlCommand); ok {
			t.Error("it was talked to")
		}
	}
}
