package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"hopwire/internal/manage"
	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

func TestAQueueIsPurgedAndDeletedByHand(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	a := broker.Start(t, broker.Hopwire, broker.Options{Name: "a", Persistent: true})
	broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
	at := "--brokerUrl=" + a.URL()
	expect(t, exitDone, `sent 2000`, "producer", at, "--messageCount", "2000", "ORDERS")
	expect(t, exitFailed, `has queue ORD\* \(in patterns \* is a whole element`,
		"explain", "ORD*")
	expect(t, exitFailed, `no running broker has queue://ORDER \(asked: a, b\); did you mean`+
		` queue://ORDERS\?`, "purge", "ORDER")
	expect(t, exitDone, `sent 1`, "producer", at, "--messageCount", "1", "topic://NEWS")
	expect(t, exitFailed, `is a topic, which keeps no messages .* hopwire remove-durable`, "purge",
		"topic://NEWS", "-f")
	expect(t, exitUsage, `queue://ORDERS.> is several destinations: name one`, "purge", "ORDERS.>")
	expect(t, exitDone, `^broker a: queue://ORDERS: 2000 messages dropped\n$`, "purge", "ORDERS", "-f")
	expect(t, exitDone, `PURGED 2000`, "status", "-b", "a")
	a.Kill9()
	a.Restart()
	expect(t, exitDone, `^broker a: queue://ORDERS: 0 messages dropped\n$`, "purge",
		"queue://ORDERS", "-f")
	expect(t, exitDone, `^broker a: queue://ORDERS is deleted, 0 messages dropped\n$`, "delete",
		"ORDERS", "--force")
	expect(t, exitFailed, `no running broker has queue://ORDERS`, "delete", "ORDERS")
}

func TestWithoutATerminalNothingIsDroppedUnlessForced(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
	at := "--brokerUrl=" + b.URL()
	expect(t, exitDone, `sent 3`, "producer", at, "--messageCount", "3", "Q")
	expect(t, exitDone, `received 0`, "consumer", at, "topic://T", "--durable", "--clientId", "me",
		"--wait", "10ms")
	for what, args := range map[string][]string{
		"purge queue://Q":                           {"purge", "Q"},
		"delete queue://Q":                          {"delete", "Q"},
		"end durable subscription consumer-1 of me": {"remove-durable", "me", "consumer-1"},
	} {
		expect(t, exitUsage, `^hopwire: `+what+` of broker b \(.*\): there is no terminal to ask on,`+
			` nothing was changed; --force does it\n$`, args...)
	}
	expect(t, exitDone, `^broker b: queue://Q: 3 messages dropped\n$`, "purge", "Q", "--force")
}

func TestANameHasNoOptions(t *testing.T) {
	for _, verb := range []string{"purge", "delete", "explain"} {
		for name, want := range map[string]string{
			"q?consumer.x=1":   `q\?consumer\.x=1: options are for consumers.*; write q\n`,
			"queue://a.>?b":    `; write queue://a.>\n`,
			"topic://t?":       `; write topic://t\n`,
			" ":                `the name is empty\n`,
			"queue://A,B?b=1 ": `; write queue://A,B\n`,
		} {
			expect(t, exitUsage, "^hopwire: .*"+want, verb, name)
		}
	}
}

func TestOfSeveralBrokersThatHaveItOneIsNamed(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	for name, n := range map[string]string{"a": "3", "b": "1"} {
		x := broker.Start(t, broker.Hopwire, broker.Options{Name: name})
		at := "--brokerUrl=" + x.URL()
		expect(t, exitDone, `sent `+n, "producer", at, "--messageCount", n, "Q")
		expect(t, exitDone, `received 0`, "consumer", at, "topic://T", "--durable", "--clientId", "me",
			"--wait", "10ms")
		expect(t, exitDone, `sent `+n, "producer", at, "topic://T", "--messageCount", n)
	}
	for _, verb := range []string{"purge", "delete"} {
		expect(t, exitUsage, `^hopwire: queue://Q is at brokers a \(3 messages, 0 in flight, 0`+
			` consumers\), b \(1 message, 0 in flight, 0 consumers\); name one with --broker NAME, or`,
			verb, "Q")
	}
	expect(t, exitUsage, `^hopwire: durable subscription consumer-1 of me is at brokers a \(topic:`+
		`//T, 3 messages\), b \(topic://T, 1 message\); name one`, "remove-durable", "me", "consumer-1")
	expect(t, exitDone, `^broker a: queue://Q: 3 messages dropped\n$`, "purge", "-f", "-b", "a",
		"Q")
	expect(t, exitDone, `^broker a: queue://Q is deleted.*\nbroker b: queue://Q is deleted, 1 mess`,
		"delete", "-f", "-b", "a", "-b", "b", "Q")
}

func TestADurableSubscriptionIsRemovedByHand(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
	at := "--brokerUrl=" + b.URL()
	expect(t, exitDone, `received 0`, "consumer", at, "topic://T", "--durable", "--clientId", "me",
		"--wait", "10ms")
	expect(t, exitDone, `sent 3 messages`, "producer", at, "topic://T", "--messageCount", "3")
	expect(t, exitFailed, `^hopwire: broker b: topic://T is not removed: it has 1 durable sub`,
		"delete", "topic://T", "-f")
	expect(t, exitFailed, `has durable subscription consumer-2 of me \(asked: b\); did you mean`+
		` durable subscription consumer-1 of me\?`, "remove-durable", "me", "consumer-2")
	expect(t, exitDone, `^broker b: durable subscription consumer-1 of me is removed, 3 messages`+
		` dropped\n$`, "remove-durable", "me", "consumer-1", "--force")
	expect(t, exitDone, `^broker b: topic://T is deleted`, "delete", "topic://T", "-f")
}

func TestWhatSomebodyHasIsToldOfAPurge(t *testing.T) {
	got := purged("queue://Q", &manage.Purged{Dropped: 1, InFlight: 2, Transacted: 3, InDoubt: 4,
		Parked: 1})
	want := "queue://Q: 1 message dropped; not purged: 2 in flight to a consumer or peer, 3 in open" +
		" or prepared transactions, 4 in doubt: a peer may have them; 1 send that waited for room may" +
		" come in now"
	if got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestSomebodyAtATerminalIsAsked(t *testing.T) {
	for answer, yes := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false,
		"": false} {
		var out strings.Builder
		err := confirm(t.Context(), &streams{in: strings.NewReader(answer), err: &out}, "purge it")
		if (err == nil) != yes || !strings.HasPrefix(out.String(), "purge it? It cannot be undone. ") {
			t.Errorf("%q: %v, asked %q", answer, err, out.String())
		}
		if !yes && (exitCode(err) != exitFailed || err.Error() != "nothing was changed") {
			t.Errorf("%q: exit code %d with %v", answer, exitCode(err), err)
		}
	}
	typed, never := io.Pipe()
	defer never.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	err := confirm(ctx, &streams{in: typed, err: io.Discard}, "purge it")
	if soFar(err) != "; nothing was changed" {
		t.Errorf("interrupted at the question: %v", err)
	}
	them := []*asked{{}, {}}
	if got, err := every(ctx, them, func(context.Context, *asked) (int, error) {
		return 1, nil
	}); err == nil || len(got) > 0 {
		t.Errorf("interrupted before anybody is asked: %v, %v", got, err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isSeen(null) || isSeen(strings.NewReader("")) {
		t.Error("nobody sits before what is no terminal")
	}
}
