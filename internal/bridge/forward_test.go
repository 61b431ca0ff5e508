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
	same(t, "the first shows whether the peer takes any", w.home.take(), nil)
	w.answerAll(nil)
	same(t, "home", w.home.take(), []string{"acked queue://Q 1"})
	m = text("Q", 2)
	m.Persistent = false
	w.deliver("queue://Q", 2, m)
	same(t, "home", w.home.take(), []string{"acked queue://Q 2"})
	w.deliver("queue://Q", 3, text("Q", 3))
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

func TestARefusedLoginNamesItsCure(t *testing.T) {
	for _, c := range []struct{ user, remote, class, want string }{
		{"", "", "java.lang.SecurityException",
			"no; give connector NC the userName and password of a user there"},
		{"u", "", "java.lang.SecurityException", "no; see userName and password of connector NC"},
		{"u", "r", "java.lang.SecurityException",
			"no; see remoteUserName and remotePassword of connector NC"},
		{"", "", "java.io.IOException", ": no"},
	} {
		w := newWorld(t, func(o *Options) {
			o.Name, o.UserName, o.RemoteUserName = "NC", c.user, c.remote
		})
		w.connect(Hello{HopwireLevel: 1})
		w.dial.receive(&message.ConnectionError{Exception: &message.Throwable{Class: c.class,
			Message: "no"}})
		if got := w.c.Status().Error; !strings.HasSuffix(got, c.want) {
			t.Errorf("user %q, remote user %q: %q, want %q", c.user, c.remote, got, c.want)
		}
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

func TestMessageThatCannotBeSentWaitsAlone(t *testing.T) {
	for _, want := range []message.Reason{message.FrameTooBig, message.NotEncodable} {
		w := newWorld(t, nil)
		w.connect(Hello{HopwireLevel: 1})
		w.consume(1, "Q")
		w.home.take()
		w.deliver("queue://Q", 1, text("Q", 1))
		w.answerAll(&message.Throwable{Class: want.Class(), Message: "no"})
		same(t, "home", w.home.take(), []string{"returned queue://Q 1"})
		f := w.home.sub(t, "queue://Q").Filter
		if v := f.Verdict(candidate{m: text("Q", 1)}); v != message.Refused(want) {
			t.Errorf("%s: the message itself: %+v", want, v)
		}
		if v := f.Verdict(candidate{m: text("Q", 2)}); v.Outcome != message.Deliver {
			t.Errorf("%s: the one behind it: %+v", want, v)
		}
		if e := w.events[len(w.events)-1]; e.Kind != ForwardRefused || e.Reason != want {
			t.Errorf("event %+v", e)
		}
		w.dial.receive(&message.Response{Correlation: 999,
			Exception: &message.Throwable{Class: want.Class()}})
		s := w.c.Status()
		if s.Late != 0 || !slices.Contains(s.Counts, Count{want, 2}) {
			t.Errorf("a one-way message: late %d, counts %v", s.Late, s.Counts)
		}
		w.state(Running)
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
	told := func(r message.Reason, silent time.Duration, want string) {
		t.Helper()
		d := w.home.sub(t, "queue://Q").Sink.(network.Remarker)
		if got := d.Remark(r, network.Replay{}, w.env.Mono()); got != want {
			t.Errorf("%s: %q, want %q", r, got, want)
		}
		if got := w.c.Status().Silent; got != silent {
			t.Errorf("silent for %v, want %v", got, silent)
		}
	}
	told(message.RemoteWindowFull, 0, "")
	w.env.advance(12 * time.Second)
	told(message.RemoteWindowFull, 12*time.Second, "the peer has answered nothing for 12s")
	told(message.ReplayDelay, 12*time.Second, "")
	w.env.advance(19 * time.Second)
	explain(message.RemoteSilent)
	w.answerAll(nil)
	explain("")
	told(message.RemoteWindowFull, 0, "")
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

func TestWhatClientsCallAnAdvisoryIsAnsweredFor(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{HopwireLevel: 1})
	w.consume(1, "Q")
	m := text("Q", 1)
	m.Type = "Advisory"
	w.home.take()
	w.deliver("queue://Q", 1, m)
	same(t, "home, before the peer answered", w.home.take(), nil)
	w.answerAll(nil)
	same(t, "home, after", w.home.take(), []string{"acked queue://Q 1"})
}

func TestWhatEndsWhileOthersAreToldIsToldToo(t *testing.T) {
	w := newWorld(t, nil)
	w.connect(Hello{HopwireLevel: 1})
	w.consume(1, "Q")
	b, d := w.c.bridge, w.c.bridge.table.demands[0]
	ended := func(seq uint64, how network.Settlement) {
		b.settle(d, message.CopyRef{Destination: queue("Q"), Seq: seq}, how)
	}
	w.home.take()
	w.home.settled = func() { ended(3, network.Returned) }
	ended(1, network.Acked)
	ended(2, network.Returned)
	w.env.settle()
	same(t, "home", w.home.take(), []string{"acked queue://Q 1", "returned queue://Q 2",
		"returned queue://Q 3"})
}
