package cli

import (
	"context"
	"strings"
	"testing"
	"unicode"

	"github.com/alecthomas/kong"

	"hopwire/client"
	"hopwire/openwire/primitive"
	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

// hostile is a name that a client may give: colours, a window's title, a row of its own.
const hostile = "ESC\x1b[31mRED\x1b]0;title\a\u009b31m\u202e\nqueue://forged  9  9"

// quiet fails when a command printed what a terminal obeys, or a line that the name made.
func quiet(t *testing.T, what, printed string) {
	t.Helper()
	for line := range strings.SplitSeq(printed, "\n") {
		bad := strings.IndexFunc(line, func(r rune) bool {
			return r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
		})
		if bad >= 0 || strings.HasPrefix(line, "queue://forged") {
			t.Errorf("%s prints %q", what, line)
		}
	}
}

// hostileClient stays connected with consumers, and leaves a message.
func hostileClient(t *testing.T, url string) {
	t.Helper()
	conn, err := client.Dial(t.Context(), url, client.WithClientID(hostile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	session, err := conn.Session(t.Context(), client.AutoAck)
	if err != nil {
		t.Fatal(err)
	}
	topic := client.Topic("T" + hostile)
	if _, err := session.Consumer(t.Context(), topic, client.WithDurable(hostile),
		client.WithSelector("a = '"+hostile+"'")); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Consumer(t.Context(), client.Queue(hostile),
		client.WithSelector("a = '"+hostile+"'")); err != nil {
		t.Fatal(err)
	}
	producer, err := session.Producer(t.Context(), client.Queue(hostile))
	if err != nil {
		t.Fatal(err)
	}
	m := client.NewText("a\x1b[2J\u009b\n\tof two lines")
	m.CorrelationID, m.Type = hostile, hostile
	if err := m.SetProperty("p", hostile); err != nil {
		t.Fatal(err)
	}
	if err := producer.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if m, err = client.NewMap(primitive.Map{{Key: hostile, Value: hostile}}); err != nil {
		t.Fatal(err)
	}
	if producer, err = session.Producer(t.Context(), client.Queue("MAPS")); err != nil {
		t.Fatal(err)
	}
	if err := producer.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func TestNoNameOfOthersReachesTheTerminalAsItIs(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
	hostileClient(t, b.URL())
	file := t.TempDir() + "/a.xml"
	at, amq := "--brokerUrl="+b.URL(), "--amqurl="+b.URL()
	walked := map[string]bool{}
	for _, args := range [][]string{
		{"status"}, {"status", "--all"}, {"status", "--json"},
		{"explain", hostile}, {"explain", "forged"}, {"explain", "topic://T" + hostile},
		{"explain", "-m", hostile, hostile},
		{"explain", hostile + "x"},
		{"producer", at, "--messageCount", "1", hostile},
		{"producer", at, "--messageCount", "1", "nix://" + hostile},
		{"producer", at, hostile + "*"}, {"producer", hostile + "tcp://x"},
		{"producer", "--brokerUrl", hostile, "q"},
		{"consumer", at, "--wait", "100ms", "--selector", "a = 'b' " + hostile, hostile},
		{"consumer", at, "--wait", "100ms", "--ackMode", hostile, hostile},
		{"consumer", at, "--clientId", hostile, "--wait", "100ms", hostile},
		{"consumer", at, "--messageCount", "1", "MAPS"},
		{"browse", amq, hostile}, {"browse", amq, "no" + hostile}, {"browse", amq, "topic:" + hostile},
		{"purge", hostile + "x"}, {"purge", hostile},
		{"delete", hostile}, {"delete", "x" + hostile},
		{"remove-durable", hostile, hostile + "x"}, {"remove-durable", hostile, hostile},
		{"transactions", "--commit", hostile}, {"transactions", "-b", hostile},
		{"stop", "no" + hostile},
		{"start", file + hostile}, {"start", "--" + hostile}, {"repair", file + hostile},
		{hostile}, {"help", hostile}, {"demo", hostile}, {"version", hostile},
	} {
		out, code := play(t, args...)
		walked[args[0]] = true
		if out == "" {
			t.Errorf("%q exits with %d and prints nothing", args, code)
		}
		what := strings.Join(args[:1], "")
		quiet(t, what, out)
	}
	parser, err := kong.New(&grammar{}, words)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range verbs(parser) {
		if !walked[verb] {
			t.Errorf("hopwire %s is not walked", verb)
		}
	}
}
