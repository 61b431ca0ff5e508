package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"hopwire/client"
	"hopwire/test/interop/broker"
	"hopwire/test/proxy"
	"hopwire/test/wait"
)

// A command that Ctrl-C ends says in one line what it had done.
func TestACommandThatIsInterruptedSaysInALineWhatItDid(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b", Persistent: true})
	at := "--brokerUrl=" + b.URL()
	expect(t, exitDone, `sent 300`, "producer", at, "--messageCount", "300", "FULL")
	var opened time.Time
	for _, c := range []struct {
		begun func() bool
		want  string // all of what it prints but messages
		args  []string
	}{
		{
			func() bool { return b.Queue("Q").Size > 5 },
			`^hopwire: interrupted; the broker confirmed \d+ messages to queue://Q\n$`,
			[]string{"producer", at, "--parallelThreads", "2", "--sleep", "5", "Q"},
		},
		{
			func() bool { return b.Queue("T").Size > 5 },
			`^hopwire: interrupted; the broker confirmed \d*[02468] messages to queue://T` +
				`(; 1 more was sent in a transaction that was rolled back: it does not come in)?\n$`,
			[]string{"producer", at, "--transactionBatchSize", "2", "--sleep", "5", "T"},
		},
		{ // the rest of the batch never comes
			func() bool { // and the send, which nothing shows, had a second
				if b.Queue("U").Producers > 0 && opened.IsZero() {
					opened = time.Now()
				}
				return !opened.IsZero() && time.Since(opened) > time.Second
			},
			`^hopwire: interrupted; the broker confirmed 0 messages to queue://U; 1 more was sent in a` +
				` transaction that was rolled back: it does not come in\n$`,
			[]string{"producer", at, "--transactionBatchSize", "9", "--sleep", "60000", "U"},
		},
		{
			func() bool { return b.Queue("FULL").Dequeued > 5 },
			`^hopwire: interrupted; received \d+ messages from queue://FULL, of which \d+ are ack\w+\n$`,
			[]string{"consumer", at, "--sleep", "5", "FULL"},
		},
		{
			func() bool { return b.Queue("NONE").Consumers > 0 },
			`^hopwire: interrupted; received 0 messages from queue://NONE, of which 0 are ack\w+\n$`,
			[]string{"consumer", at, "--wait", "0", "NONE"},
		},
	} {
		var out wait.Output
		done := make(chan int)
		go func() { done <- Main(c.args, strings.NewReader(""), &out, &out) }()
		wait.For(t, patience, "begun", func() (string, bool) { return out.String(), c.begun() })
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		code := <-done
		said := regexp.MustCompile(`(?m)^consumer-1: test message: \d+\n`).ReplaceAllString(
			out.String(), "")
		if code != exitFailed || !regexp.MustCompile(c.want).MatchString(said) {
			t.Errorf("%q exits with %d and says\n%swant %s", c.args, code, said, c.want)
		}
		queue := c.args[len(c.args)-1]
		if has := b.Queue(queue).Size; c.args[0] == "producer" &&
			!strings.Contains(said, fmt.Sprintf(" %d messages ", has)) {
			t.Errorf("%q says %s, and %s has %d", c.args, said, queue, has)
		}
	}
}

// What was sent and not answered is neither confirmed nor not there.
func TestAProducerThatIsInterruptedTellsWhatWasNotAnswered(t *testing.T) {
	b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b", Persistent: true})
	for _, c := range []struct {
		queue, more string                  // the end of the line
		begun       func(broker.Stats) bool // no answer comes from then on
		sent        int                     // that many more are in the queue, and it is interrupted
		args        []string
	}{
		{"Q", `[1-9]\d* more w\w+ sent and not answered: \w+ may come in`,
			func(q broker.Stats) bool { return q.Size > 0 }, 3,
			[]string{"--sleep", "5"}},
		{"T", `2 more were committed and not answered: they may come in`,
			func(q broker.Stats) bool { return q.Producers > 0 }, 2,
			[]string{"--sleep", "2000", "--transactionBatchSize", "2", "--messageCount", "2"}},
	} {
		var out wait.Output
		p := proxy.Start(t, b.Addr())
		done := make(chan int)
		go func() {
			done <- Main(append([]string{"producer", "--brokerUrl=" + p.URL(), c.queue}, c.args...),
				strings.NewReader(""), &out, &out)
		}()
		wait.For(t, patience, "begun", func() (string, bool) {
			return out.String(), c.begun(b.Queue(c.queue))
		})
		p.Stall(proxy.Down)
		had := b.Queue(c.queue).Size
		wait.For(t, patience, "some are sent and not answered", func() (string, bool) {
			return out.String(), b.Queue(c.queue).Size >= had+c.sent
		})
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		code := <-done
		want := `^hopwire: the broker did not answer the good-bye within 5s\nhopwire: interrupted; the` +
			` broker confirmed \d+ messages? to queue://` + c.queue + `; ` + c.more + `\n`
		if code != exitFailed || !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("exits with %d and says\n%s\nwant %s", code, out.String(), want)
		}
	}
}

// The loss of a broker is told once.
func TestACommandThatLosesItsBrokerSaysSoOnce(t *testing.T) {
	for _, c := range []struct {
		begun func(broker.Stats) bool
		args  []string
	}{
		{func(q broker.Stats) bool { return q.Consumers > 0 }, []string{"consumer", "Q"}},
		{func(q broker.Stats) bool { return q.Size > 0 }, []string{"producer", "--sleep", "5", "Q"}},
	} {
		b := broker.Start(t, broker.Hopwire, broker.Options{Name: "b"})
		var out wait.Output
		done := make(chan int)
		go func() {
			done <- Main(append(c.args, "--brokerUrl="+b.URL()), strings.NewReader(""), &out, &out)
		}()
		wait.For(t, patience, "begun", func() (string, bool) {
			return out.String(), c.begun(b.Queue("Q"))
		})
		b.Kill9()
		if code := <-done; code != exitUnavailable ||
			strings.Count(out.String(), "connection lost") != 1 {
			t.Errorf("%q exits with %d and says\n%s", c.args, code, out.String())
		}
	}
}

// What was rolled back cannot come in; a commit whose answer was lost may have taken place.
func TestOnlyACommitThatWasNotAnsweredMayHold(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&client.BrokerError{Message: "no"}, false},
		{fmt.Errorf("%w: x", client.ErrRolledBack), false},
		{context.Canceled, false},
		{fmt.Errorf("%w: %w", client.ErrInDoubt, context.Canceled), true},
		{errors.Join(client.ErrInDoubt, client.ErrUnavailable), true},
	} {
		if got := mayHold(c.err); got != c.want {
			t.Errorf("%v: it may hold: %v", c.err, got)
		}
	}
}
