package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"hopwire"
	"hopwire/internal/cli/demo"
	"hopwire/internal/message"
	"hopwire/internal/rungroup"
	"hopwire/internal/terminal"
)

// Exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2 // the command line or a file is wrong
	exitUnavailable = 3 // a port, a lock or a peer cannot be had
)

// grammar is the command line.
type grammar struct {
	Start   startCommand   `cmd:"" help:"Run brokers from activemq.xml files, in the foreground."`
	Demo    demoCommand    `cmd:"" help:"Play three stories about two linked brokers, live."`
	Status  statusCommand  `cmd:"" help:"Show running brokers, their bridges and destinations."`
	Explain explainCommand `cmd:"" help:"Tell why a queue's messages are where they are."`
	Stop    stopCommand    `cmd:"" help:"Stop running brokers."`

	Purge         purgeCommand         `cmd:"" help:"Drop what waits in a queue."`
	Delete        deleteCommand        `cmd:"" help:"Delete a queue or topic that nobody uses."`
	RemoveDurable removeDurableCommand `cmd:"" help:"End a durable subscription."`

	Repair repairCommand `cmd:"" help:"Rebuild a stopped broker's store from what can be read."`

	Transactions transactionsCommand `cmd:"" help:"Show or end prepared XA transactions."`

	Producer producerCommand `cmd:"" help:"Send messages to a broker, Hopwire or ActiveMQ."`
	Consumer consumerCommand `cmd:"" help:"Receive messages from a broker."`
	Browse   browseCommand   `cmd:"" help:"Look at the messages of a queue without taking them."`

	Version versionCommand `cmd:"" help:"Print the version."`
	Help    helpCommand    `cmd:"" help:"Show the help of a command."`

	VersionFlag kong.VersionFlag `name:"version" help:"Print the version."`
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Main runs the command line and gives the exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	var g grammar
	exited, code := false, exitDone
	told := &output{Writer: out}
	parser, err := kong.New(&g,
		kong.Name("hopwire"),
		kong.Description("A message broker for networks of brokers. It speaks OpenWire, links"+
			" with ActiveMQ Classic in either direction, and reads its activemq.xml."),
		kong.Writers(told, errOut),
		kong.Help(told.help),
		kong.Exit(func(c int) { exited, code = true, c }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		words,
	)
	if err != nil {
		terminal.Fprintln(errOut, "hopwire:", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if args[0] == "help" {
		args = append(slices.Clip(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	if lost := told.lost(); lost != nil { // of the help
		terminal.Fprintln(errOut, "hopwire:", lost)
		return exitFailed
	}
	if exited {
		return code
	}
	if meant := meant(args[0]); err != nil && meant != "" {
		terminal.Fprintf(errOut, "hopwire: %s\n", meant)
		return exitUsage
	}
	if word := args[0]; err != nil && slices.Contains(args, "--help") && verb(parser, word) == "" {
		terminal.Fprintf(errOut, "hopwire: no command is called %s; there are %s\n", word,
			strings.Join(verbs(parser), ", "))
		return exitUsage
	}
	if err != nil {
		err = inOurWords(err, args[0])
		terminal.Fprintf(errOut, "hopwire: %v; see hopwire help%s\n", err, verb(parser, args[0]))
		return exitUsage
	}
	ctx, cancel := interruptible()
	defer cancel()
	parsed.BindTo(ctx, (*context.Context)(nil))
	lines := streams{in, told, errOut}
	if strings.HasPrefix(parsed.Command(), "start") && !g.Start.Check {
		lines.out = out // how its brokers end is what its exit code tells
	}
	if err := errors.Join(parsed.Run(&lines), told.lost()); err != nil {
		// What broke off because of a signal is no news.
		if ctx.Err() != nil && !strings.HasPrefix(parsed.Command(), "start") {
			terminal.Fprintln(errOut, "hopwire: interrupted"+soFar(err))
			return exitFailed
		}
		if err := told.lost(); err != nil {
			terminal.Fprintln(errOut, "hopwire:", err)
			return exitFailed
		}
		terminal.Fprintln(errOut, "hopwire:", err)
		return exitCode(err)
	}
	return exitDone
}

// output is where a command writes. It remembers that something could not be written.
type output struct {
	io.Writer
	mu  sync.Mutex
	err error
}

// Write writes, unless an earlier part is missing.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.Writer.Write(p)
	return n, o.fail(err)
}

// help prints a help, as wide as the terminal is: kong asks that of a file alone.
func (o *output) help(options kong.HelpOptions, ctx *kong.Context) error {
	ctx.Stdout = o.Writer
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fail(kong.DefaultHelpPrinter(options, ctx))
}

// fail remembers an error, and gives the first; o.mu is held.
func (o *output) fail(err error) error {
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("the output cannot be written: %w", err)
	}
	return o.err
}

// lost is why something could not be written; nil when all was.
func (o *output) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

var notHere = regexp.MustCompile(`^unknown flag (-b|--broker|--pid)\b`)

var tooMuch = regexp.MustCompile(`^unexpected argument (.*)$`)

// asking are the commands that ask brokers of this machine, and what they take beside options.
var asking = map[string]string{
	"status": "no argument", "transactions": "no argument", "explain": "one destination",
	"purge": "one destination", "delete": "one destination",
	"remove-durable": "a client id and a name",
}

var belowZero = regexp.MustCompile(`^(--\w+): expected (?:int|time) value but got "(-\d\w*)"`)

// dialling are the commands that connect as a client, by an address and not by a broker's name.
var dialling = []string{"producer", "consumer", "browse"}

// inOurWords says what kong says of a negative number, which it takes for an option, and of an
// option that other commands have.
func inOurWords(err error, verb string) error {
	if slices.Contains(dialling, verb) && notHere.MatchString(err.Error()) {
		return usageError{verb + " takes --brokerUrl, the address of a broker;" +
			" -b, --broker and --pid are for commands that ask brokers of this machine"}
	}
	if parts := tooMuch.FindStringSubmatch(err.Error()); parts != nil && asking[verb] != "" {
		return usageError{fmt.Sprintf("unexpected argument %s: %s takes %s; --broker NAME says which"+
			" broker is asked", parts[1], verb, asking[verb])}
	}
	if parts := belowZero.FindStringSubmatch(err.Error()); parts != nil {
		return usageError{fmt.Sprintf("%s %s; it may not be negative", parts[1], parts[2])}
	}
	return err
}

// verbs are the names of the commands.
func verbs(k *kong.Kong) []string {
	var out []string
	for _, command := range k.Model.Children {
		out = append(out, command.Name)
	}
	return out
}

// verb is a blank and the name of a command, or "" when there is no such command.
func verb(k *kong.Kong, name string) string {
	for _, command := range k.Model.Children {
		if command.Name == name {
			return " " + name
		}
	}
	return ""
}

// sameSignal is how soon a signal after the first is taken for the same one: shells and supervisors
// send it to the process and to its group.
const sameSignal = 300 * time.Millisecond

// interruptible is a context that the first SIGINT or SIGTERM ends; the second ends the process.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	g := rungroup.New(context.Background())
	g.Go("signals", func(done context.Context) error {
		var first time.Time
		for {
			var caught os.Signal
			select {
			case caught = <-signals:
			case <-done.Done():
				return nil
			}
			switch {
			case ctx.Err() == nil:
				first = time.Now()
				cancel(caughtError{caught})
			case time.Since(first) > sameSignal:
				terminal.Fprintln(os.Stderr, "hopwire: second signal: ends now")
				os.Exit(exitFailed)
			}
		}
	})
	return ctx, func() { signal.Stop(signals); g.Stop(); cancel(nil) }
}

// caughtError is the end of a context by a signal.
type caughtError struct{ signal os.Signal }

func (e caughtError) Error() string {
	if e.signal == syscall.SIGINT {
		return "SIGINT"
	}
	return "SIGTERM"
}

// interruptedError is the end of a command by a signal that had done something before.
type interruptedError struct{ done string }

func (e interruptedError) Error() string { return "interrupted; " + e.done }

// soFar tells what an interrupted command had done; "" when it does not say.
func soFar(err error) string {
	if e, ok := errors.AsType[interruptedError](err); ok {
		return "; " + e.done
	}
	return ""
}

// usageError is a mistake on the command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// fileError is a file that the command line names and that cannot be read or is wrong.
type fileError struct{ error }

func (e fileError) Unwrap() error { return e.error }

// exitCode tells the kind of an error by the exit code.
func exitCode(err error) int {
	var usage usageError
	var file fileError
	switch {
	case errors.As(err, &usage), errors.As(err, &file), errors.Is(err, hopwire.ErrRefused):
		return exitUsage
	case message.KindOf(err) == message.Unavailable, errors.Is(err, syscall.EADDRINUSE),
		errors.Is(err, syscall.ECONNREFUSED):
		return exitUnavailable
	case errors.Is(err, os.ErrNotExist):
		return exitUsage
	}
	return exitFailed
}

// demoCommand is hopwire demo.
type demoCommand struct {
	Plain bool `help:"Write plain lines, also on a terminal."`
	Keep  bool `help:"Leave the two configurations behind. They stay after a failure in any case."`
}

// Run plays the demo.
func (c *demoCommand) Run(ctx context.Context, s *streams) error {
	return demo.Run(ctx, s.out, demo.Options{Live: !c.Plain && isTerminal(s.out), Keep: c.Keep})
}

// isTerminal reports whether what is written is seen as it is written.
func isTerminal(w io.Writer) bool { return isDevice(w) && os.Getenv("TERM") != "dumb" }

// isDevice reports whether what is written goes to a terminal, a dumb one or not.
func isDevice(w io.Writer) bool {
	if o, ok := w.(*output); ok {
		return isDevice(o.Writer)
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// helpCommand is hopwire help, which Main reads as --help.
type helpCommand struct {
	Verb string `arg:"" optional:"" name:"command" help:"The command."`
}

// versionCommand is hopwire version.
type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(s *streams) error {
	_, err := terminal.Fprintln(s.out, hopwire.About())
	return err
}
