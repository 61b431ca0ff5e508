package cli

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hopwire/test/interop/broker"
)

// play runs a command line and gives what it printed and its exit code.
func play(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out strings.Builder
	code := Main(args, strings.NewReader(""), &out, &out)
	return out.String(), code
}

// expect runs a command line that must print what a pattern fits.
func expect(t *testing.T, code int, pattern string, args ...string) {
	t.Helper()
	out, got := play(t, args...)
	if got != code || !regexp.MustCompile(`(?ms)`+pattern).MatchString(out) {
		t.Errorf("%q exits with %d and prints\n%s\nwant %d and %s", args, got, out, code, pattern)
	}
}

func TestActiveMQsCommandLinesSendReceiveAndBrowse(t *testing.T) {
	b := broker.Start(t, broker.ActiveMQ, broker.Options{Name: "real"})
	at := "--brokerUrl=" + b.URL()
	amq := "--amqurl=" + b.URL()
	file := filepath.Join(t.TempDir(), "payload")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}

	expect(t, 0, `sent 5 messages to queue://TEST in`, "producer", at, "--messageCount", "5")
	expect(t, 0, `consumer-1: test message: 0.*: test message: 4.*received 5 messages from queue`,
		"consumer", at, "--messageCount", "5")
	expect(t, 0, `sent 4 messages.*sent 4 messages`, "producer", at, "--destination", "queue://P",
		"--parallelThreads", "2", "--messageCount", "4", "--transactionBatchSize", "3",
		"--persistent", "false", "--message", "hi", "--msgTTL", "60000", "--msgGroupID", "g",
		"--messagePriority", "7")
	expect(t, 0, `JMSDeliveryMode = non-persistent.*JMSPriority = 7.*JMSExpiration = 20.*`+
		`JMSXGroupID = g.*body +JMSText = hi.*queue://P: 8 messages`, "browse", amq, "P")
	expect(t, 0, `received 8 messages`, "consumer", at, "--destination", "queue://P",
		"--transacted", "--batchSize", "3", "--wait", "200ms")
	expect(t, 0, `received 0 messages`, "consumer", at, "--destination", "P", "--wait", "100ms")

	expect(t, 0, `sent 1 message `, "producer", at, "--destination", "B", "--messageSize", "3",
		"--messageCount", "1", "--disableMessageTimestamp")
	expect(t, 0, `\[ActiveMQBytesMessage of 3 bytes\]`, "consumer", at, "--destination", "B",
		"--messageCount", "1", "--ackMode", "CLIENT_ACKNOWLEDGE")
	expect(t, 0, `sent 1 message `, "producer", at, "--destination", "F", "--payloadUrl",
		"file://"+file, "--messageCount", "1")
	expect(t, 0, `sent 1 message `, "producer", at, "--destination", "F", "--textMessageSize", "20",
		"--messageCount", "1", "--messagePriority", "9")
	expect(t, 0, `JMSText = from a file\n\nqueue://F: 1 message\n`, "browse", amq, "queue:F",
		"--msgsel", "JMSPriority < 5, JMSDeliveryMode='PERS*'", "-V", "body")
	expect(t, 0, `JMSText = message 0 x{10}\n\nqueue://F: 1 message\n`, "browse", amq, "F",
		"--xmsgsel", "JMSPriority = 4", "-Vbody,header", "--view", "JMSText")
	expect(t, 0, `from a file.*received 2 messages`, "consumer", at, "--destination", "F",
		"--ackMode", "individual_acknowledge", "--messageCount", "2", "--sleep", "1")

	expect(t, 0, `sent 1 message `, "producer", at, "E", "--message", "", "--messageCount", "1")
	expect(t, 0, `^consumer-1: \nconsumer-1: received 1`, "consumer", at, "E", "--messageCount", "1")

	expect(t, 0, `received 0`, "consumer", at, "--destination", "topic://D", "--durable",
		"--clientId", "me", "--wait", "10ms")
	expect(t, 0, `sent 2 messages`, "producer", at, "--destination", "topic://D",
		"--messageCount", "2")
	expect(t, 0, `received 2`, "consumer", at, "--destination", "topic://D", "--durable", "true",
		"--clientId", "me", "--wait", "500ms")
}

func TestMistakesAreUsageAndMissingBrokersUnavailable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "tcp://" + l.Addr().String()
	l.Close()
	for _, c := range []struct {
		code          int
		pattern, args string
	}{
		{exitUnavailable, `\d: broker unavailable: connection refused\n`, "producer --amqurl " + nobody},
		{exitUnavailable, `refused`, "consumer --brokerUrl " + nobody},
		{exitUnavailable, `refused`, "browse Q --amqurl " + nobody},
		{
			exitUnavailable, `gave up after attempt 1`,
			"producer --brokerUrl failover:(" + nobody + ")?startupMaxReconnectAttempts=1",
		},
		{exitUsage, `unknown option randomise`, "producer --brokerUrl failover:(tcp://a)?randomise=1"},
		{exitUsage, `scheme "http"`, "consumer --brokerUrl http://a"},
		{exitUsage, `127.0.0.1:1: no tcp:// in front; use tcp://`, "producer --brokerUrl 127.0.0.1:1"},
		{exitUsage, `localhost: no tcp:// in front`, "browse Q --amqurl localhost"},
		{exitUsage, `is no address; use file:`, "producer --payloadUrl http://[a"},
		{exitUsage, `no name`, "producer --destination queue://"},
		{exitUsage, `quque is no kind of destination; write queue://NAME or`, "producer quque://FOO"},
		{exitUsage, `write queue://FOO\n`, "producer queue:FOO"},
		{exitUsage, `write topic://FOO\n`, "consumer topic:FOO"},
		{exitUsage, `queue://FOO.> is a pattern`, "producer FOO.>"},
		{exitUsage, `--messageCount -1; it may not be`, "producer --messageCount=-1"},
		{exitUsage, `--messageCount -1; it may not be`, "producer --messageCount -1"},
		{exitUsage, `--messageCount -1; it may not be`, "consumer --messageCount=-1"},
		{exitUsage, `0 to 9`, "producer --messagePriority 10"},
		{exitUsage, `neither true nor false`, "producer --persistent=maybe"},
		{exitUsage, `--ackMode NEVER`, "consumer --ackMode NEVER"},
		{exitUsage, `needs a --clientId`, "consumer --destination topic://T --durable"},
		{exitUsage, `-V tail`, "browse Q -Vtail"},
		{exitUsage, `no queue is named`, "browse"},
		{exitUsage, `topic://T is a topic`, "browse topic://T"},
		{exitUsage, `topic:T is a topic`, "browse topic:T"},
		{exitUsage, `two destinations: A and --destination B`, "producer A --destination B"},
		{exitUsage, `two destinations`, "consumer A --destination B"},
		{
			exitUsage, `--wait: 5 has no unit; write 5s or 5ms; see hopwire help consumer`,
			"consumer --wait 5",
		},
		{exitUsage, `--wait: "soon" is no time`, "consumer --wait soon"},
		{exitUsage, `--sleep: "soon" is no time; write milliseconds`, "producer --sleep soon"},
		{exitUsage, `--msgTTL: -1 is from 0 to \d+ milliseconds`, "producer --msgTTL=-1"},
		{exitUsage, `no such file`, "producer --payloadUrl /nowhere/at/all"},
		{exitUsage, `unknown flag`, "producer --colour"},
	} {
		expect(t, c.code, c.pattern, strings.Fields(c.args)...)
	}
}

func TestShortSelectors(t *testing.T) {
	for short, want := range map[string]string{
		"":                            "",
		"a = 1":                       "a = 1",
		"a='x*', b > 2":               "(a LIKE 'x%') AND (b > 2)",
		"a='x,y'":                     "a='x,y'",
		"a='10%_?'":                   `a LIKE '10\%\__' ESCAPE '\'`,
		"a = '*' OR b = 2":            "a = '*' OR b = 2",
		"JMSPriority>3,color = 'red'": "(JMSPriority>3) AND (color = 'red')",
	} {
		if got := selector([]string{short}); got != want {
			t.Errorf("%s becomes %s, want %s", short, got, want)
		}
	}
}

func TestAWrongFileIsAUsageErrorWithItsPlace(t *testing.T) {
	for content, want := range map[string]string{
		`<networkConnectors><networkConnector uri="static:(tcp://h:1)"
			advisoryAckPercentage="0"/></networkConnectors>`: `activemq.xml:3:\d+: advisoryAck`,
		`<transportConnectors><transportConnector
			uri="tcp://127.0.0.1:0?wireFormat.version=99"/></transportConnectors>`: `activemq.xml:3:\d+:` +
			` .*version of tcp://127.0.0.1:0: "99" is not a whole number from 1 to 12`,
		`<transportConnectors><transportConnector uri="tcp://0.0.0.0:0"/></transportConnectors>` +
			`<plugins><jaasAuthenticationPlugin/></plugins>`: `activemq.xml:2:\d+: .*restricts access`,
	} {
		path := filepath.Join(t.TempDir(), "activemq.xml")
		text := `<broker xmlns="http://activemq.apache.org/schema/core" persistent="false">` + "\n" +
			content + `</broker>`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		expect(t, exitUsage, want, "start", path)
	}
}
