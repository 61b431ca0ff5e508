package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hopwire/test/interop/broker"
	"hopwire/test/need"
)

// full is a file that takes nothing.
func full(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err) // Linux has it
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestHelpAndChecksThatCannotBePrintedFail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.xml")
	if err := os.WriteFile(file, []byte(`<broker/>`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		nil, {"help"}, {"--help"}, {"help", "start"}, {"start", "--help"}, {"--version"},
		{"start", "--check", file},
	} {
		var said strings.Builder
		code := Main(args, strings.NewReader(""), full(t), &said)
		if want := "hopwire: the output cannot be written: "; code != exitFailed ||
			!strings.HasPrefix(said.String(), want) || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("%q exits with %d and says\n%swant %d, %s", args, code, said.String(), exitFailed,
				want)
		}
	}
}

func TestWhatCannotBePrintedIsNotAcknowledged(t *testing.T) {
	t.Setenv("TMPDIR", need.ShortDir(t))
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
	at := "--brokerUrl=" + b.URL()
	for mode := range strings.FieldsSeq("AUTO_ACKNOWLEDGE DUPS_OK_ACKNOWLEDGE" +
		" CLIENT_ACKNOWLEDGE INDIVIDUAL_ACKNOWLEDGE SESSION_TRANSACTED") {
		expect(t, exitDone, `sent 3 messages`, "producer", at, "--messageCount", "3", mode)
		for _, args := range [][]string{
			{"consumer", at, "--ackMode", mode, "--wait", "1s", mode},
			{"status"},
			{"explain", mode},
			{"browse", "--amqurl", b.URL(), mode},
			{"version"},
		} {
			var said strings.Builder
			code := Main(args, strings.NewReader(""), full(t), &said)
			if want := "hopwire: the output cannot be written: "; code != exitFailed ||
				!strings.HasPrefix(said.String(), want) || strings.Count(said.String(), "\n") != 1 {
				t.Errorf("%q exits with %d and says\n%swant %d, %s", args, code, said.String(),
					exitFailed, want)
			}
		}
		expect(t, exitDone, `received 3 messages`, "consumer", at, "--ackMode", mode, "--wait", "1s",
			mode)
		expect(t, exitDone, `received 0 messages`, "consumer", at, "--wait", "100ms", mode)
	}
}
