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
	same(t, "home", w.home.take(), []string{"acked queue://Q 1"})
	w.deliver("queue://Q", 2, text("Q", 2))
	same(t, "a persistent one waits", w.home.take(), nil)
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
	for _, told := range w.home.take() {
		if told == "wake queue://Q" {
			t.Fatal("answers made the home broker look at all copies again")
		}
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

func TestDoubtsAfterARestartAreWatched(t *testing.T) {
	w := newWorld(t, nil)
	w.home.doubts = doubtsOf(3)
	w.h.WatchDoubts(netB, 5*time.Minute)
	w.env.advance(5 * time.Minute)
	same(t, "home", w.home.take(), []string{"never-learned 1 2 3"})
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
