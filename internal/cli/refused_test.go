package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hopwire/test/interop/broker"
)

const rights = `<simpleAuthenticationPlugin anonymousAccessAllowed="true"><users>` +
	`<authenticationUser username="boss" password="b" groups="admins"/>` +
	`</users></simpleAuthenticationPlugin><authorizationPlugin><map><authorizationMap>` +
	`<authorizationEntries>` +
	`<authorizationEntry queue=">" read="admins" write="admins" admin="admins"/>` +
	`<authorizationEntry topic=">" read="anonymous,admins" write="anonymous,admins"` +
	` admin="anonymous,admins"/>` +
	`<authorizationEntry topic="ActiveMQ.Advisory.>" read="anonymous,admins"` +
	` write="anonymous,admins" admin="anonymous,admins"/>` +
	`</authorizationEntries></authorizationMap></map></authorizationPlugin>`

// A consumer that was refused has made no queue.
func TestARefusedConsumerTellsOfItsRefusalAlone(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b", Plugins: rights})
	out, code := play(t, "consumer", "LOCAL.X", "--brokerUrl", b.URL(), "--wait", "100ms")
	if code != exitFailed || !strings.Contains(out, "is not authorized") ||
		strings.Contains(out, "was not there") {
		t.Errorf("exit %d\n%s", code, out)
	}
	expect(t, exitDone, `queue://LOCAL.X was not there before`, "consumer", "LOCAL.X",
		"--user", "boss", "--password", "b", "--brokerUrl", b.URL(), "--wait", "100ms")
}

// Why a broker refused a send of a transaction is all that is told, not what a commit meets then.
func TestARefusedTransactionTellsWhy(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b",
		Attributes: `maxUncommittedCount="50"`})
	out, code := play(t, "producer", "Q", "--brokerUrl", b.URL(), "--messageCount", "120",
		"--transactionBatchSize", "60")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != exitFailed || len(lines) != 2 ||
		!strings.Contains(lines[0], "sent 0 messages") ||
		!strings.Contains(lines[1], "maximum allowed number") {
		t.Errorf("exit %d\n%s", code, out)
	}
	expect(t, exitDone, `sent 120 messages`, "producer", "Q", "--brokerUrl", b.URL(),
		"--messageCount", "120", "--transactionBatchSize", "50")
	expect(t, exitDone, `received 120 messages`, "consumer", "Q", "--brokerUrl", b.URL(),
		"--messageCount", "120")
}

func TestAPayloadIsFoundAsItIsWritten(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"a.txt": "plain", "a b.txt": "blank", "1%.txt": "odd"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	full := filepath.Join(dir, "a.txt")
	for where, want := range map[string]string{
		"a.txt": "plain", full: "plain", "file:a.txt": "plain", "file://a.txt": "plain",
		"file:" + full: "plain", "file://" + full: "plain", "file://localhost" + full: "plain",
		"FILE:a.txt": "plain", "file:a%20b.txt": "blank", "a b.txt": "blank", "1%.txt": "odd",
		"./a.txt": "plain", "file:./a.txt?x=y": "plain",
	} {
		if got, err := payload(t.Context(), where); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", where, got, err, want)
		}
	}
}

// What --messageSize allows fits into a frame as brokers take it, headers and all.
func TestTheLargestMessageIsTaken(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
	queue := strings.Repeat("Q", 1000)
	for _, size := range []string{"--messageSize", "--textMessageSize"} {
		expect(t, exitDone, `sent 1 message `, "producer", queue, "--brokerUrl", b.URL(), size,
			strconv.Itoa(payloadLimit), "--messageCount", "1", "--persistent=false", "--msgGroupID", queue)
	}
}
