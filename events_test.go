package hopwire

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// fakeClock runs timers when the test moves it.
type fakeClock struct {
	now    time.Duration
	timers []*fakeTimer
}

type fakeTimer struct {
	at   time.Duration
	f    func()
	dead bool
}

func (t *fakeTimer) Stop() { t.dead = true }

func (c *fakeClock) After(d time.Duration, f func()) loop.Timer {
	t := &fakeTimer{at: c.now + d, f: f}
	c.timers = append(c.timers, t)
	return t
}

func (c *fakeClock) Wall() int64 { return c.now.Milliseconds() }

func (c *fakeClock) advance(d time.Duration) {
	for end := c.now + d; ; {
		c.timers = slices.DeleteFunc(c.timers, func(t *fakeTimer) bool { return t.dead })
		if len(c.timers) == 0 {
			c.now = end
			return
		}
		t := slices.MinFunc(c.timers, func(a, b *fakeTimer) int { return int(a.at - b.at) })
		if t.at > end {
			c.now = end
			return
		}
		c.now, t.dead = t.at, true
		t.f()
	}
}

func logged() (*eventLog, *fakeClock, func() []string) {
	var buf bytes.Buffer
	clock := &fakeClock{}
	l := newEventLog(slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})), clock)
	return l, clock, func() []string {
		text := strings.TrimSpace(buf.String())
		buf.Reset()
		if text == "" {
			return nil
		}
		return strings.Split(text, "\n")
	}
}

func state(s bridge.State, text string) bridge.Event {
	return bridge.Event{Kind: bridge.StateChanged, Connector: "nc", URI: "tcp://b", State: s,
		Text: text}
}

func TestDeadPeerIsToldLessAndLess(t *testing.T) {
	l, clock, lines := logged()
	for range 60 * 12 { // twelve hours, a try each minute
		l.bridge(state(bridge.Connecting, ""))
		l.bridge(state(bridge.Backoff, "refused"))
		clock.advance(time.Minute)
	}
	if n := len(lines()); n < 12*5 || n > 12*8 {
		t.Errorf("%d lines in twelve hours", n)
	}
	l.bridge(state(bridge.Running, ""))
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "state=RUNNING") {
		t.Errorf("it came back: %q", got)
	}
	l.bridge(state(bridge.Degraded, "no advisories"))
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "level=WARN") {
		t.Errorf("and is degraded: %q", got)
	}
}

func TestABridgeThatBeginsOrCeasesToRunIsToldAtOnce(t *testing.T) {
	l, clock, lines := logged()
	for n := range 300 {
		for _, s := range []bridge.State{bridge.Running, bridge.Backoff, bridge.Degraded,
			bridge.Running, bridge.Stopped} {
			l.bridge(state(s, fmt.Sprint("cause ", n)))
			if got := lines(); len(got) != 1 || !strings.Contains(got[0], "state="+s.String()) {
				t.Fatalf("%s is told as %q", s, got)
			}
			clock.advance(time.Second)
		}
		clock.advance(4 * time.Minute)
		if got := lines(); len(got) != 0 {
			t.Fatalf("in peace: %q", got)
		}
	}
	clock.advance(time.Hour)
	if got := lines(); len(got) != 0 || len(l.held) != 0 {
		t.Errorf("in peace: %q, %d held", got, len(l.held))
	}
}

// A link that flaps for days must not fill a disk, and none of it is forgotten. When it ends, how
// the bridge stands is told soon, and what it does then is told at once again.
func TestABridgeThatFlapsIsToldLessAndLess(t *testing.T) {
	for _, cycle := range []time.Duration{2 * time.Second, 20 * time.Second, 80 * time.Second} {
		l, clock, lines := logged()
		began := clock.now
		flaps := 0
		var all []string
		for clock.now-began < 24*time.Hour {
			l.bridge(state(bridge.Running, ""))
			clock.advance(cycle / 2)
			l.bridge(state(bridge.Backoff, fmt.Sprint("reset ", flaps)))
			clock.advance(cycle / 2)
			flaps++
			all = append(all, lines()...)
		}
		if n := len(all); n < 140 || n > 170 {
			t.Errorf("%v: %d lines of %d flaps in a day", cycle, n, flaps)
		}
		clock.advance(quietMost / 4)
		last := lines()
		if n := len(last); n > 1 {
			t.Errorf("%v: it ended, and it is told %d times", cycle, n)
		}
		all = append(all, last...)
		if got := all[len(all)-1]; !strings.Contains(got, fmt.Sprintf("reset %d", flaps-1)) {
			t.Errorf("%v: the last line is %s", cycle, got)
		}
		if told := toldOf(t, all); told != 2*flaps {
			t.Errorf("%v: %d of %d events are told of", cycle, told, 2*flaps)
		}
		clock.advance(time.Hour)
		l.bridge(state(bridge.Running, ""))
		if got := lines(); len(got) != 1 || len(l.held) != 1 {
			t.Errorf("%v: after an hour in peace: %q, %d held", cycle, got, len(l.held))
		}
	}
}

// toldOf counts the events that lines are about.
func toldOf(t *testing.T, lines []string) int {
	t.Helper()
	told := len(lines)
	for _, x := range lines {
		held := 0
		if _, n, ok := strings.Cut(x, "sinceLastLine="); ok {
			if _, err := fmt.Sscan(n, &held); err != nil {
				t.Errorf("%s: %v", x, err)
			}
		}
		told += held
	}
	return told
}

func TestALineThatWasHeldBackHasTheTimeOfItsEvent(t *testing.T) {
	l, clock, lines := logged()
	for range 3 {
		l.core(broker.Event{Kind: broker.DuplicateKnown})
		clock.advance(time.Second)
	}
	if got := lines(); len(got) != 1 || strings.Contains(got[0], " at=") {
		t.Errorf("the first: %q", got)
	}
	clock.advance(time.Minute)
	at := time.UnixMilli(2000).Format("2006-01-02T15:04:05.000Z07:00")
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "at="+at+" sinceLastLine=1") {
		t.Errorf("the others: %q, want the time %s", got, at)
	}
}

func TestEveryLineAboutABridgeSaysWhatHappened(t *testing.T) {
	for kind := bridge.StateChanged; kind <= bridge.SameName; kind++ {
		if bridgeWords[kind].text == "" {
			t.Errorf("kind %d has no text", kind)
		}
	}
}

func TestBridgesOfOneConnectorAreToldApart(t *testing.T) {
	l, _, lines := logged()
	other := state(bridge.Backoff, "refused")
	other.URI = "tcp://c"
	l.bridge(state(bridge.Backoff, "refused"))
	l.bridge(other)
	if got := lines(); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func TestWhichBridgeOfANameIsStoppedIsTold(t *testing.T) {
	l, _, lines := logged()
	l.bridge(bridge.Event{Kind: bridge.StateChanged, State: bridge.Stopped, Connector: "c",
		URI: "tcp://u:p@a:1?x=y"})
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "address=tcp://...@a:1") &&
		!strings.Contains(got[0], "address=tcp://a:1") || strings.Contains(got[0], "u:p") {
		t.Errorf("%q", got)
	}
}

// Every event is in a line or in its count, whatever there is of them.
func TestHeldLinesAreCountedAndNoneIsForgotten(t *testing.T) {
	queue := func(n int) message.Destination {
		return message.Destination{Kind: message.Queue, Name: fmt.Sprint("q", n)}
	}
	for _, c := range []struct {
		name string
		tell func(l *eventLog, n int)
	}{
		{"dead letters", func(l *eventLog, n int) {
			l.core(broker.Event{Kind: broker.MessageDead, Dest: queue(n % 3)})
		}},
		{"without a reason", func(l *eventLog, n int) {
			l.core(broker.Event{Kind: broker.ConnectionRefused, Text: fmt.Sprint("from ", n)})
		}},
		{"without a reason, on destinations", func(l *eventLog, n int) {
			l.core(broker.Event{Kind: broker.ConsumerWarning, Dest: queue(n % 100)})
		}},
		{"more destinations than are kept apart", func(l *eventLog, n int) {
			l.core(broker.Event{Kind: broker.MessageDropped, Reason: message.Expired,
				Dest: queue(n % 3000)})
		}},
		{"refused demand", func(l *eventLog, n int) {
			l.bridge(bridge.Event{Kind: bridge.DemandRefused, Connector: "nc",
				Destination: queue(n % 3), Reason: message.DemandRefused, Text: "no"})
		}},
	} {
		l, clock, lines := logged()
		const events = 6000
		for n := range events {
			c.tell(l, n)
		}
		at := lines()
		clock.advance(quietTime)
		after := lines()
		if len(at) > heldMost+1 || len(after) > heldMost+1 {
			t.Errorf("%s: %d lines, then %d", c.name, len(at), len(after))
		}
		if told := toldOf(t, append(at, after...)); told != events {
			t.Errorf("%s: %d of %d events are told of", c.name, told, events)
		}
		clock.advance(quietTime)
		if got := lines(); len(got) != 0 || len(l.held) != 0 {
			t.Errorf("%s: %d lines about nothing, %d kept", c.name, len(got), len(l.held))
		}
	}
}

func TestWhatIsDoneByHandIsNeverHeldBack(t *testing.T) {
	l, clock, lines := logged()
	for range 3 {
		l.core(broker.Event{Kind: broker.ByHand, Reason: message.Purged, By: "user root, pid 7",
			Dest: message.Destination{Kind: message.Queue, Name: "Q"}, Text: "purged: 0 messages dropped"})
	}
	want := `level=WARN msg="done by hand" reason=PURGED destination=queue://Q what="purged: 0` +
		` messages dropped" by="user root, pid 7"`
	if got := lines(); len(got) != 3 || got[2] != want {
		t.Errorf("told as %q", got)
	}
	if clock.advance(time.Hour); len(lines()) > 0 {
		t.Error("it is told again")
	}
}

func refusal(of string, n int) broker.Event {
	return broker.Event{Kind: broker.ConnectionRefused, Reason: message.LoginRefused, Of: of,
		Text: fmt.Sprint(of, ", try ", n)}
}

func TestWhoIsRefusedHidesNobodyElse(t *testing.T) {
	l, clock, lines := logged()
	for n := range 5 {
		for _, of := range []string{"admin", "shop", "link"} {
			l.core(refusal(of, n))
		}
	}
	if got := strings.Join(lines(), "\n"); strings.Count(got, "try 0") != 3 ||
		strings.Contains(got, "try 1") {
		t.Errorf("told as %s", got)
	}
	clock.advance(quietTime)
	if got := strings.Join(lines(), "\n"); strings.Count(got, "try 4") != 3 ||
		strings.Count(got, "sinceLastLine=3") != 3 {
		t.Errorf("and later as %s", got)
	}
	clock.advance(quietTime)
	for n := range 5 * apartMost { // names without end are a sum
		l.core(refusal(fmt.Sprint("user ", n), 0))
	}
	got := lines()
	clock.advance(quietTime)
	late := lines()
	if len(got) != apartMost+1 || len(late) != 1 ||
		!strings.Contains(late[0], fmt.Sprintf("sinceLastLine=%d", 4*apartMost-2)) {
		t.Errorf("%d lines, then %q", len(got), late)
	}
	clock.advance(quietTime)
	if len(l.held) != 0 || l.apart[int(broker.ConnectionRefused)] != 0 {
		t.Errorf("kept: %d, %v", len(l.held), l.apart)
	}
}

func TestWhatIsHeldBackIsWrittenAtTheEnd(t *testing.T) {
	l, clock, lines := logged()
	for n := range 3 {
		for _, of := range []string{"b", "a"} {
			l.core(refusal(of, n))
			clock.advance(time.Millisecond)
		}
	}
	lines()
	l.flush()
	got := lines()
	if len(got) != 2 || !strings.Contains(got[0], "b, try 2") ||
		!strings.Contains(got[1], "a, try 2") || !strings.Contains(got[1], "sinceLastLine=1") {
		t.Errorf("at the end: %q", got)
	}
	l.flush()
	if got := lines(); len(got) != 0 {
		t.Errorf("and again: %q", got)
	}
}

func TestABridgeThatWaitsAfterAFailureIsAWarning(t *testing.T) {
	for state, want := range map[bridge.State]slog.Level{bridge.Backoff: slog.LevelWarn,
		bridge.Degraded: slog.LevelWarn, bridge.Gone: slog.LevelWarn, bridge.Running: slog.LevelInfo,
		bridge.Stopped: slog.LevelInfo, bridge.Connecting: slog.LevelDebug} {
		if got := levelOf(bridge.Event{Kind: bridge.StateChanged, State: state}); got != want {
			t.Errorf("%s is told at %s, want %s", state, got, want)
		}
	}
}
