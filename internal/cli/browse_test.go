package cli

import (
	"strings"
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/need"
	"hopwire/test/wait"
)

// brokers runs a test with each kind of broker.
func brokers(t *testing.T, o broker.Options, f func(t *testing.T, b *broker.Broker)) {
	for _, kind := range []broker.Kind{broker.Hopwire, broker.ActiveMQ} {
		t.Run(kind.String(), func(t *testing.T) {
			o.Name = "one"
			f(t, broker.Start(t, kind, o))
		})
	}
}

func TestBrowseTellsAQueueThatDoesNotExistFromAnEmptyOne(t *testing.T) {
	brokers(t, broker.Options{}, func(t *testing.T, b *broker.Broker) {
		at := "--brokerUrl=" + b.URL()
		expect(t, 0, `received 0`, "consumer", at, "--wait", "10ms", "EMPTY.A")
		expect(t, 0, `sent 1 message to`, "producer", at, "--messageCount", "1", "FULL.A")
		for range 2 { // looking makes none
			expect(t, 0, `(?m)^queue://NONE does not exist on this broker$`, "browse", at, "NONE")
		}
		expect(t, 0, `(?m)^queue://EMPTY.A: 0 messages$`, "browse", at, "EMPTY.A")
		expect(t, 0, `queue://FULL.A: 1 message$.*NO.* does not exist`, "browse", at,
			"--destination", "queue://NO", "FULL.A")
		expect(t, 0, `(?m)^queue://NO.\* does not exist on this broker$`, "browse", at, "NO.*")
		expect(t, 0, `JMSDestination = queue://FULL.A\n.*queue://\*.A: 1 message$`, "browse", at,
			"*.A")
		expect(t, 0, `queue://FULL.A,EMPTY.A: 1 message$`, "browse", at, "FULL.A,EMPTY.A")
	})
}

func TestWithoutAdvisoriesEveryQueueIsBrowsed(t *testing.T) {
	o := broker.Options{Attributes: `advisorySupport="false"`}
	brokers(t, o, func(t *testing.T, b *broker.Broker) {
		expect(t, 0, `(?m)^queue://NONE: 0 messages$`, "browse", "--amqurl", b.URL(), "NONE")
	})
}

func TestProducerConsumerAndBrowseTakeEachOthersNames(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "one"})
	url, amq := "--brokerUrl="+b.URL(), "--amqurl="+b.URL()
	expect(t, 0, `sent 1 message to queue://Q in`, "producer", amq, "Q", "--messageCount", "1",
		"--sleep", "1ms", "--msgTTL", "10m")
	expect(t, 0, `queue://Q: 1 message$`, "browse", url, "--destination", "queue://Q")
	expect(t, 0, `received 1 message from queue://Q`, "consumer", amq, "--messageCount", "1", "Q")
	expect(t, 0, `received 0 messages from topic://T`, "consumer", amq, "--wait", "1ms", "topic://T")
}

func TestWhoNamesABrokerToAClientIsToldOfItsAddress(t *testing.T) {
	for _, verb := range []string{"producer", "consumer", "browse"} {
		for _, flag := range []string{"-b", "--broker", "--broker=shop", "--pid"} {
			expect(t, exitUsage, `^hopwire: `+verb+` takes --brokerUrl, the address of a broker; `+
				`[^\n]*\n$`, verb, flag, "shop")
		}
	}
	expect(t, exitUsage, `^hopwire: unknown flag --frob`, "producer", "--frob")
}

func TestBrowseCounts(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "one",
		Policy: `<policyEntry queue="FEW" maxBrowsePageSize="3"/>` +
			`<policyEntry queue="LONG" maxBrowsePageSize="3"/>`})
	at := "--brokerUrl=" + b.URL()
	for q, n := range map[string]string{"Q": "5", "MANY": "400", "FEW": "4"} {
		expect(t, exitDone, `sent `+n+` messages`, "producer", at, q, "--messageCount", n)
	}
	expect(t, exitDone, `sent 1 messages?`, "producer", at, "Q", "--messageCount", "1",
		"--messagePriority", "7")
	expect(t, exitDone, `^queue://Q: 6 messages\nqueue://NO does not exist on this broker\n$`,
		"browse", at, "--count", "Q", "NO")
	expect(t, exitDone, `^queue://MANI does not exist on this broker; did you mean MANY\?\n$`,
		"browse", at, "MANI")
	expect(t, exitDone, `received 0 messages.*\nqueue://FEV was not there before this consumer; did`+
		` you mean FEW\?\n$`, "consumer", at, "--wait", "10ms", "FEV")
	expect(t, exitDone, `received 0 messages [^\n]*\n$`, "consumer", at, "--wait", "10ms", "FEV")
	expect(t, exitDone, `^queue://Q: 1 message\n$`, "browse", at, "--count", "Q", "--msgsel",
		"JMSPriority = 7")
	const cut = `; the queue's policy lets a browser see no more \(maxBrowsePageSize\)\n$`
	expect(t, exitDone, `^queue://FEW: at least 3 messages`+cut, "browse", at, "--count", "FEW")
	const why = `the queue's policy lets a browser see no more \(maxBrowsePageSize\)\n$`
	expect(t, exitDone, `^queue://FEW: about 0 messages; [^;]*; --xmsgsel may leave out too few,`+
		` since `+why, "browse", at, "--count", "FEW", "--xmsgsel", "JMSPriority = 4")
	expect(t, exitDone, `^queue://Q: 1 message\n$`, "browse", at, "--count", "Q", "--xmsgsel",
		"JMSPriority = 4")
	// Of what is far behind the last that may be seen nothing is known.
	for _, p := range [][2]string{{"7", "3"}, {"4", "1100"}} {
		expect(t, exitDone, `sent`, "producer", at, "LONG", "--messagePriority", p[0],
			"--messageCount", p[1])
	}
	expect(t, exitDone, `^queue://LONG: at least 3 messages; the broker may let a browser see no more`,
		"browse", at, "--count", "LONG", "--msgsel", "JMSPriority = 7")
	for _, counts := range [][]string{{"--count"}, {"-Vheader", "--view=NONE"}} {
		expect(t, exitDone, `^\s*queue://MANY: 400 messages\n$`, append([]string{"browse", at, "MANY"},
			counts...)...)
	}
	expect(t, exitDone, `^body    JMSText = test message: 0\n\n.*\nqueue://Q: 6 messages\n$`, "browse",
		at, "Q", "-V", "body", "--view", "JMSType")
	expect(t, exitDone, `^header  JMSPriority = 7\nbody    JMSText = .*\nqueue://Q: 1 message\n$`,
		"browse", at, "Q", "-Vheader", "-Vbody", "--view", "JMSPriority", "--msgsel", "JMSPriority = 7")
}

func TestAConsumerThatGetsFewerThanAskedFails(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "one"})
	at := "--brokerUrl=" + b.URL()
	expect(t, 0, `sent 2 messages`, "producer", at, "Q", "--messageCount", "2")
	expect(t, exitFailed, `received 2 messages.*hopwire: .*2 of 3 messages: no more came within 50ms`,
		"consumer", at, "Q", "--messageCount", "3", "--wait", "50ms")
	expect(t, exitDone, `received 0 messages`, "consumer", at, "Q", "--wait", "50ms")
	expect(t, exitDone, `received 0 messages`, "consumer", at, "Q", "--messageCount", "0")
}

func TestADurableConsumerGetsWhatCameWhileItWasAway(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "one", Persistent: true})
	at := "--brokerUrl=" + b.URL()
	consume := []string{"consumer", at, "--durable", "--clientId", "me", "--wait", "100ms",
		"topic://T"}
	expect(t, 0, `received 0 messages from topic://T`, consume...)
	expect(t, 0, `sent 2 messages`, "producer", at, "topic://T", "--messageCount", "2")
	expect(t, 0, `durable consumer-1 of me on topic://T: 2 messages; away for`, "status", "-b", "one")
	expect(t, 0, `2  NO_CONSUMER  .durable subscription consumer-1 of client me.`, "explain", "-b",
		"one", "topic://T")
	expect(t, 0, `received 2 messages from topic://T`, consume...)
}

func TestADeadLetterShowsWhereItWasSent(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "one", Persistent: true})
	at := "--brokerUrl=" + b.URL()
	expect(t, 0, `sent 1 message to`, "producer", at, "--messageCount", "1", "--msgTTL", "1", "POOR")
	expect(t, 0, `received 0`, "consumer", at, "--wait", "50ms", "POOR")
	wait.For(t, patience, "dead", func() (string, bool) {
		out, _ := play(t, "browse", at, "ActiveMQ.DLQ")
		return out, strings.Contains(out, "OriginalDestination = queue://POOR\n")
	})
}
