package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"hopwire/client"
	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/internal/message"
	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

func TestATopicsSubscriptionsAreExplained(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
	at := "--brokerUrl=" + b.URL()
	expect(t, exitDone, `received 0`, "consumer", at, "topic://T", "--durable", "--clientId", "me",
		"--wait", "10ms")
	expect(t, exitDone, `sent 3 messages`, "producer", at, "topic://T", "--messageCount", "3")
	expect(t, exitDone, `^broker b  topic://T: 3 messages, .* 3  NO_CONSUMER  \(durable .*`+
		`released by its subscriber, or`, "explain", "topic://T")
	expect(t, exitFailed, `broker b has no queue T, but a topic; hopwire explain topic://T tells`,
		"explain", "T")
	expect(t, exitFailed, `no running broker has queue NONE \(asked: b\)`, "explain", "NONE")
}

func TestWhatWasRefusedStandsBelowWhatWaits(t *testing.T) {
	var out strings.Builder
	new(explainCommand).print(&out, &manage.Explanation{Broker: "b",
		Destination: manage.Destination{Name: "queue://Q", Size: 30},
		Rows:        []manage.ExplanationRow{{Reason: "NO_CONSUMER", Count: 30, Releases: "a consumer"}},
		Ways:        []manage.ExplanationOfWay{{Bridge: "up", Reason: "NO_DEMAND"}},
		Refused: []manage.Refusal{{User: "net", What: "read from queue://Q", Who: "bridge to hub",
			Count: 3, AgoMs: 12_000, Releases: "the right"},
			{What: "read from queue://Q", Who: "bridge to hub", Count: 1, Releases: "a userName"}}})
	want := `broker b  queue://Q: 30 messages, 0 in flight, 0 consumers, 0 network consumers
      30  NO_CONSUMER
          released by a consumer
  bridge up takes none: NO_DEMAND
  DENIED since start: 3, last 12s ago: user net, who may not read from queue://Q (bridge to hub)
          released by the right
  DENIED since start: 1, last 0s ago: somebody without a user name, who may not read` +
		` from queue://Q (bridge to hub)
          released by a userName
`
	if out.String() != want {
		t.Errorf("explain says\n%s\nwant\n%s", out.String(), want)
	}
}

func TestABridgeThatIsDownIsExplainedWithItsLastAndNextTry(t *testing.T) {
	var out strings.Builder
	new(explainCommand).print(&out, &manage.Explanation{Ways: []manage.ExplanationOfWay{
		{Bridge: "up", Reason: "BRIDGE_DOWN", State: "BACKOFF", Error: "tcp://b:1: refused", Attempt: 3,
			NextTryMs: 12_000},
		{Bridge: "off", Reason: "BRIDGE_DOWN", State: "STOPPED"},
		{Bridge: "on", Reason: "BRIDGE_DOWN", State: "CONNECTING", Error: "tcp://b:1: refused"}}})
	want := `
  bridge up takes none: BRIDGE_DOWN; tried 3 times; next try in 12s; last: tcp://b:1: refused
  bridge off takes none: BRIDGE_DOWN; it is STOPPED
  bridge on takes none: BRIDGE_DOWN; last: tcp://b:1: refused
`
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("explain says\n%s\nwant at its end%s", out.String(), want)
	}
}

func TestPatternsAndMisspeltNamesAreExplained(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
	at := "--brokerUrl=" + b.URL()
	for _, q := range []string{"shop.a", "shop.b", "shop.c.d"} {
		expect(t, exitDone, `sent 2`, "producer", at, "--messageCount", "2", q)
	}
	expect(t, exitDone, `received 2`, "consumer", at, "--messageCount", "2", "shop.b")
	expect(t, exitDone, `received 0`, "consumer", at, "topic://shop.t", "--durable", "--clientId",
		"till", "--wait", "10ms")
	expect(t, exitDone, `sent 4`, "producer", at, "--messageCount", "4", "topic://shop.t")
	expect(t, exitDone, `^broker b  queue://shop.a: 2 messages.*^broker b  queue://shop.c.d: 2 mess.*`+
		`^broker b  queue://shop.> fits 1 more destination that has no messages\n$`, "explain", "shop.>")
	expect(t, exitDone, `^broker b  queue://shop.a: 2 messages.*\nbroker b  queue://shop.* fits 1 m`,
		"explain", "shop.*")
	expect(t, exitDone, `^broker b  queue://shop.a: .*^broker b  queue://shop.c.d: `, "explain",
		"queue://shop.a,shop.c.d")
	expect(t, exitDone, `^broker b  topic://shop.t: 4 messages,`, "explain", "topic://shop.>")
	expect(t, exitFailed, `no running broker has a destination that queue://none.> fits \(asked: b\)`,
		"explain", "none.>")
	expect(t, exitUsage, `is several destinations; name the one`, "explain", "shop.>", "-m", "ID:1")
	expect(t, exitFailed, `has queue shop.aa \(asked: b\); did you mean queue://shop.a, queue`,
		"explain", "shop.aa")
	expect(t, exitFailed, `did you mean topic://shop.t\?`, "explain", "topic://shop.tt")
	expect(t, exitDone, `^broker b  queue://shop.a: 2 messages`, "explain", "queue://shop.a")
	expect(t, exitUsage, `write queue://shop.a`, "explain", "queue:shop.a")
	expect(t, exitFailed, `broker b has no topic shop.a, but a queue; see hopwire explain shop.a\n`,
		"explain", "topic://shop.a")
	expect(t, exitFailed, `has queue till, but durable subscription consumer-1 of till; hopwire expl`+
		`ain 'topic://shop.t' tells`, "explain", "till")
	expect(t, exitDone, `sent 1 `, "producer", at, "--messageCount", "1", "topic://plain")
	expect(t, exitDone, `^broker b  topic://plain: 0 messages.*a topic keeps messages for durable`,
		"explain", "topic://plain")
}

func TestWhatIsKnownOfTheOldestMessageIsTold(t *testing.T) {
	rows := []manage.ExplanationRow{
		{Count: 2, Reason: "A", Releases: "r", Example: "ID:1", SinceMs: 9000},
		{Count: 2, Reason: "B", Releases: "r", Example: "ID:2", SinceMs: 9000, Unknown: true},
		{Count: 2, Reason: "C", Releases: "r", Unknown: true},
		{Count: 2, Reason: "D", Releases: "r", SinceMs: 9000},
		{Count: 2, Reason: "E", Releases: "r"},
	}
	var out strings.Builder
	new(explainCommand).print(&out, &manage.Explanation{Rows: rows, StoredOnly: 1,
		StoredOldest: &manage.Oldest{SinceMs: 8000, Example: "ID:3"}})
	_, got, _ := strings.Cut(out.String(), "\n")
	want := `       2  A
          released by r
          the oldest came 9s ago: ID:1
       2  B
          released by r
          the oldest that could be read came 9s ago: ID:2
       2  C
          released by r
          how long they have been here could not be read from the store
       2  D
          released by r
          they came more than 9s ago
       2  E
          released by r
       1  waits in the store, and is looked at when read
          it came 8s ago: ID:3
`
	if got != want {
		t.Errorf("explain says\n%s\nwant\n%s", got, want)
	}
}

func TestManySubscriptionsInOneStateAreSummedUp(t *testing.T) {
	x := &manage.Explanation{Destination: manage.Destination{Name: "topic://T", Size: 6000}}
	for n := range 1500 {
		r := manage.ExplanationRow{Reason: "NO_CONSUMER", Who: fmt.Sprintf("durable subscription s%d", n),
			Count: 4, Releases: "its subscriber", Example: "ID:x", SinceMs: 1000}
		if n == 1400 {
			r.Remark = "something is wrong"
		}
		x.Rows = append(x.Rows, r)
	}
	x.Rows = append(x.Rows, manage.ExplanationRow{Reason: "IN_DOUBT", Who: "peer p", Count: 1,
		Releases: "the peer"})
	for _, c := range []struct {
		all   bool
		lines int
		want  string
	}{
		{false, 1 + 3 + 19*2 + 3 + 2 + 1, `(?s)s0\)\n +released by its subscriber\n.* s19\).*s1400\)\n` +
			` +something is wrong\n.*IN_DOUBT  \(peer p\)\n +released by the peer\n  and 1479 more of 1500` +
			` that are NO_CONSUMER: hopwire explain --all\n$`},
		{true, 1 + 3*1500 + 1 + 2, `s1499\)\n +released by its subscriber\n`},
	} {
		var out strings.Builder
		(&explainCommand{All: c.all}).print(&out, x)
		if n := strings.Count(out.String(), "\n"); n != c.lines ||
			!regexp.MustCompile(c.want).MatchString(out.String()) {
			t.Errorf("all %t: %d lines, want %d and %s\n%.5000s", c.all, n, c.lines, c.want, out.String())
		}
	}
}

// answers is a broker with one queue that answers, or does not.
type answers struct {
	manage.Subject
	name   string
	status error
	why    error
}

func (a *answers) Presence() *manage.Presence { return &manage.Presence{} }

func (a *answers) Status(context.Context) (*manage.Status, error) {
	return &manage.Status{Broker: a.name, Destinations: []manage.Destination{
		{Name: "queue://Q", Size: 1}}}, a.status
}

func (a *answers) Explain(context.Context, string, string) (*manage.Explanation, error) {
	return &manage.Explanation{Destination: manage.Destination{Name: "queue://Q", Size: 1}}, a.why
}

func TestWhatSomeBrokersDoNotAnswerIsToldBesideWhatOthersDo(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	for _, a := range []*answers{
		{name: "a", status: message.Errorf(message.Internal, "a has no status")},
		{name: "b", why: message.Errorf(message.Internal, "b does not explain")}, {name: "c"},
	} {
		server, l, err := control.Listen(a.name, need.ShortDir(t), a)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if err := server.Serve(l); err != nil {
				t.Error(err)
			}
		}()
		t.Cleanup(func() { server.Close(context.Background()) })
	}
	expect(t, exitFailed, `^broker c  queue://Q: 1 message,.*^hopwire: .*a has no status\n.*`+
		`b does not explain\n$`, "explain", "Q,R")
}

func TestARowNamesTheMachineAndTheSelectorOfItsConsumer(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
	at := "--brokerUrl=" + b.URL()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	c, err := client.Dial(ctx, b.URL(), client.WithClientID("me"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	s, err := c.Session(ctx, client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	for _, selector := range []string{"kind='a'", "kind='" + strings.Repeat("b", 300) + "'"} {
		if _, err := s.Consumer(ctx, client.Queue("Q"), client.WithSelector(selector)); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, exitDone, `sent 1 `, "producer", at, "--messageCount", "1", "Q")
	expect(t, exitDone, `SELECTOR_NO_MATCH  \(consumer ID:.* of client me at tcp://127.0.0.1:\d+, `+
		`selector "kind='a'"\)\n`, "explain", "Q")
	expect(t, exitDone, `at tcp://127.0.0.1:\d+, selector "kind='b{194}"\.\.\.\)\n`, "explain", "Q")
}

func TestWhereMessagesAreStandsFirst(t *testing.T) {
	of := func(broker string, size int64, parked int) *manage.Explanation {
		return &manage.Explanation{Broker: broker,
			Destination: manage.Destination{Size: size, Parked: parked}}
	}
	found := []*manage.Explanation{of("hub", 0, 0), of("region", 0, 1), of("shop", 15, 0),
		of("x", 0, 0)}
	mostFirst(found)
	got := ""
	for _, x := range found {
		got += x.Broker + " "
	}
	if got != "shop region hub x " {
		t.Errorf("the order is %s", got)
	}
}
