package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"hopwire"
	"hopwire/internal/address"
	"hopwire/internal/plural"
	"hopwire/internal/rungroup"
	"hopwire/internal/terminal"
)

// startCommand is hopwire start.
type startCommand struct {
	Files []string `arg:"" name:"file" help:"${startFile}"`

	Compat int               `help:"${startCompat}" enum:"0,5,6" default:"0"`
	Define map[string]string `short:"D" mapsep:"none" placeholder:"NAME=VALUE" help:"${startDefine}"`

	Check                bool   `help:"Read the files, tell what they do here, and end."`
	NoWait               bool   `help:"Exit when a data folder is in use; do not wait as slave."`
	IgnoreSecurity       bool   `help:"Start although access is restricted less than written."`
	IgnoreUnknownPlugins bool   `help:"Start without plugins of unknown classes."`
	StrictListeners      bool   `help:"Refuse to be open to the network without authentication."`
	LogLevel             string `help:"One of ${enum}." enum:"debug,info,warn,error" default:"info"`
}

// Run runs the brokers until a signal or hopwire stop.
func (c *startCommand) Run(ctx context.Context, s *streams) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return usageError{err.Error()}
	}
	logTo, release := s.err, func() {}
	if logSeen(s, level) {
		h := hold(s.err)
		logTo, release = h, h.release
	}
	defer release()
	log := slog.New(slog.NewTextHandler(logTo, &slog.HandlerOptions{Level: level,
		ReplaceAttr: inOneLine}))
	manager := &serviceManager{log: log, up: make([]bool, len(c.Files))}
	options := hopwire.Options{
		Compat: c.Compat, Defines: c.Define, NoWait: c.NoWait,
		IgnoreSecurity: c.IgnoreSecurity, IgnoreUnknownPlugins: c.IgnoreUnknownPlugins,
		StrictListeners: c.StrictListeners,
		Log:             log,
	}
	var setups []*hopwire.Setup
	for i, f := range c.Files {
		file, err := fileOf(f)
		if err != nil {
			return err
		}
		options.Position = i
		options.OnWait = func(line string) {
			release()
			manager.started(i, line)
			if !logSeen(s, level) {
				terminal.Fprintln(s.out, line+" (--no-wait exits instead)")
			}
		}
		setup, err := load(ctx, file, options)
		if err == nil {
			setups = append(setups, setup)
			continue
		}
		if _, caught := errors.AsType[caughtError](err); caught && !c.Check {
			terminal.Fprintln(s.out, "stopped")
			return nil // as later: nothing runs
		}
		return err
	}
	if err := distinct(setups); err != nil {
		return err
	}
	for _, setup := range setups {
		setup.Beside(setups)
	}
	terminal.Fprintln(s.out, hopwire.About())
	tellUnused(s.out, setups)
	if c.Check {
		return tellChecked(s.out, setups)
	}
	return runBrokers(ctx, s.out, setups, manager, release)
}

// tellChecked tells what brokers would be, and what start would warn of.
func tellChecked(out io.Writer, setups []*hopwire.Setup) error {
	for _, setup := range setups {
		warnings, err := setup.Check()
		if err != nil {
			return err
		}
		terminal.Fprintf(out, "%s", describe(setup, setup))
		for _, line := range warnings {
			terminal.Fprintf(out, "  warning   %s\n", line)
		}
		if setup.InUse() {
			terminal.Fprintln(out, "  warning   the store's folder is in use by another broker, of"+
				" ActiveMQ or Hopwire: start waits as its slave until it ends")
		}
		terminal.Fprintln(out, "  checked   the file and the disk; addresses and ports are tried at"+
			" the start alone")
	}
	return nil
}

// inOneLine has errors say what they are: some have the stack of their making to show besides.
func inOneLine(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}

// tellUnused tells which definitions none of the files has a placeholder for.
func tellUnused(out io.Writer, setups []*hopwire.Setup) {
	for _, name := range setups[0].Unused() {
		if !slices.ContainsFunc(setups, func(s *hopwire.Setup) bool {
			return !slices.Contains(s.Unused(), name)
		}) {
			terminal.Fprintf(out, "-D %s is used by no placeholder\n", name)
		}
	}
}

// behindFile is the path, still encoded, of what follows file:, with or without // and a host that
// can only be this one.
func behindFile(rest string) string {
	path, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return rest
	}
	return strings.TrimPrefix(path, "localhost")
}

// filePath is the path of what follows file:, without a query.
func filePath(rest string) (string, error) {
	rest, _, _ = strings.Cut(rest, "?")
	return address.Path(behindFile(rest))
}

// fileOf is the path of a file that is named as it is for ActiveMQ: with or without xbean:, file:
// or both. What has one of these is a URI, and decoded.
func fileOf(arg string) (string, error) {
	name, xbean := strings.CutPrefix(arg, "xbean:")
	uri := xbean
	switch scheme, rest, found := strings.Cut(name, ":"); {
	case found && scheme == "file":
		name, uri = behindFile(rest), true
	case found && strings.HasPrefix(scheme, "classpath"):
		return "", usageError{fmt.Sprintf("%s: there is no class path here; name the file, as"+
			" xbean:conf/activemq.xml", arg)}
	case found && (scheme == "broker" || scheme == "properties" || strings.HasPrefix(rest, "//")):
		return "", usageError{fmt.Sprintf("%s: hopwire start reads files, named as activemq.xml,"+
			" file:activemq.xml or xbean:activemq.xml", arg)}
	}
	if name == "" {
		return "", usageError{arg + " names no file"}
	}
	if xbean {
		name, _, _ = strings.Cut(name, "?")
	}
	if uri {
		path, err := address.Path(name)
		if err != nil {
			return "", usageError{fmt.Sprintf("%s: %v", arg, err)}
		}
		name = path
	}
	return kong.ExpandPath(name), nil
}

// logSeen reports whether the log's ordinary lines stand where the output does: on a terminal.
func logSeen(s *streams, level slog.Level) bool {
	return level <= slog.LevelInfo && isTerminal(s.out) && isTerminal(s.err)
}

// distinct refuses two files that would get in each other's way.
func distinct(setups []*hopwire.Setup) error {
	for i, a := range setups {
		for _, b := range setups[:i+1] {
			switch {
			case a == b:
			case a.Name() == b.Name():
				return usageError{fmt.Sprintf("%s and %s both have brokerName %q", b.File(), a.File(),
					a.Name())}
			case a.Folder() != "" && filepath.Clean(a.Folder()) == filepath.Clean(b.Folder()):
				return usageError{fmt.Sprintf("%s and %s both have their store in %s", b.File(),
					a.File(), a.Folder())}
			}
			if both := a.Meets(b); both != "" {
				return usageError{both}
			}
		}
	}
	return nil
}

// runBrokers runs brokers until all have ended. Each opens by itself: one that waits as a slave
// keeps none of the others from starting. The first that fails ends all. ready is called when all
// are open.
func runBrokers(ctx context.Context, out io.Writer, setups []*hopwire.Setup,
	manager *serviceManager, ready func(),
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, manager.stopping)()
	opened := newOpenings(len(setups))
	boundHeap(setups)
	defer runtime.KeepAlive(cushion())
	memory := rungroup.New(ctx)
	memory.Go("memory", trim)
	defer memory.Stop()
	g := rungroup.New(context.Background())
	for i, setup := range setups {
		g.Go("broker "+setup.Name(), func(context.Context) error {
			b, err := setup.Open(ctx)
			if err != nil {
				if errors.Is(err, hopwire.ErrStopped) ||
					ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) { // a slave that waited
					return nil
				}
				cancel(brokerFailed(setup, err))
				return err
			}
			opened.one()
			if ctx.Err() == nil { // another may have failed meanwhile
				b.StartBridges()
				if opened.tell(out, i, describe(setup, b)) {
					ready()
				}
				manager.started(i, "ready")
			}
			if err := b.Wait(); err != nil {
				cancel(brokerFailed(setup, err))
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	terminal.Fprintln(out, "stopped")
	return nil
}

// brokerFailed is why the other brokers of the process stop.
func brokerFailed(setup *hopwire.Setup, err error) error {
	return fmt.Errorf("broker %s of this process failed: %w", setup.Name(), err)
}

// openings counts the brokers whose ports are open.
type openings struct {
	all chan struct{} // closed when all are

	mu      sync.Mutex
	waiting int             // to open
	silent  int             // to be described
	texts   []terminal.Text // of those that opened, to be written, by position
}

func newOpenings(n int) *openings {
	return &openings{all: make(chan struct{}), waiting: n, silent: n, texts: make([]terminal.Text, n)}
}

// together is how long a broker's bridges wait for the ports of the others in this process.
const together = 200 * time.Millisecond

// one tells that a broker is open, and waits a moment for the others.
func (o *openings) one() {
	o.mu.Lock()
	if o.waiting--; o.waiting == 0 {
		close(o.all)
	}
	o.mu.Unlock()
	select {
	case <-o.all:
	case <-time.After(together):
	}
}

// tell writes what a broker is, and that all are ready behind the last, which it reports. Those
// that open together are told in their order.
func (o *openings) tell(out io.Writer, position int, text terminal.Text) (ready bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.texts[position] = text
	if o.silent--; o.silent > o.waiting {
		return false // another that is open has not been described
	}
	for i, text := range o.texts {
		terminal.Fprintf(out, "%s", text)
		o.texts[i] = ""
	}
	if o.silent == 0 {
		terminal.Fprintln(out, "ready")
	}
	return o.silent == 0
}

// ways are those to and from a broker: one that runs, or one that its setup would make.
type ways interface {
	Connectors() []hopwire.Connector
	Bridges() []hopwire.Bridge
}

// describe tells in a few lines what a broker is.
func describe(setup *hopwire.Setup, b ways) terminal.Text {
	var t strings.Builder
	terminal.Fprintf(&t, "broker %s  (%s)\n", setup.Name(), setup.File())
	for _, c := range b.Connectors() {
		terminal.Fprintf(&t, "  listens   %s%s\n", before(c.Name, c.Address), c.Address)
	}
	if len(b.Connectors()) == 0 {
		terminal.Fprintf(&t, "  listens   nowhere: no client can connect; add a transportConnector with"+
			" uri tcp://0.0.0.0:61616\n")
	}
	if dir := setup.Folder(); dir != "" {
		terminal.Fprintf(&t, "  store     %s\n", dir)
		if name := setup.Relative(); name != "" {
			terminal.Fprintf(&t, "            %s begins at the folder of the start: from another it is"+
				" another store\n", name)
		}
	} else {
		terminal.Fprintf(&t, "  store     none: persistent messages end with the process\n")
	}
	terminal.Fprintf(&t, "  limits    %s\n", limits(setup.Limits()))
	for _, n := range b.Bridges() {
		terminal.Fprintf(&t, "  bridge    %s to %s", n.Name, n.URI)
		if n.Addresses > 1 {
			terminal.Fprintf(&t, ", of %d addresses", n.Addresses)
		}
		if n.State != "" {
			terminal.Fprintf(&t, ": %s", n.State)
		}
		terminal.Fprintln(&t)
	}
	return terminal.Text(t.String()) + remarks(setup)
}

// before is the name of a connector before its address; "" of one without, which is called so.
func before(name, address string) string {
	if name == address || strings.HasPrefix(name, address+"?") {
		return ""
	}
	return name + "  "
}

// limits tells what messages may take of memory and disks.
func limits(l hopwire.Limits) string {
	most := func(n int64) string {
		if n == 0 {
			return "without limit"
		}
		return plural.Bytes(n)
	}
	text := "memory " + most(l.MemoryBytes)
	if l.OfHeap > 0 {
		text += fmt.Sprintf(" (%d %% of %s, which stands for the Java heap)", l.OfHeap,
			plural.Bytes(l.HeapBytes))
	}
	if !l.Stored {
		return text
	}
	left := func(free int64) string {
		if free == 0 {
			return ""
		}
		return onDisk(free)
	}
	return text + ", store " + most(l.StoreBytes) + left(l.StoreFree) + ", temp " +
		most(l.TempBytes) + left(l.TempFree)
}

// onDisk tells that a limit is beyond what its disk has.
func onDisk(free int64) string { return " (its disk has " + plural.Bytes(free) + " free)" }

// remarks are the lines about a file: the compatibility level, and what is not as it says.
func remarks(setup *hopwire.Setup) terminal.Text {
	var t strings.Builder
	if l := setup.GuessedBase(); l != "" {
		terminal.Fprintf(&t, "  guessed   %s\n", l)
	}
	for _, l := range setup.Compatibility() {
		terminal.Fprintf(&t, "  compat    %s\n", l)
	}
	for _, r := range setup.Remarks() {
		word := "warning"
		if r.Ignored {
			word = "ignored"
		}
		terminal.Fprintf(&t, "  %s   %s\n", word, r.Text)
	}
	return terminal.Text(t.String())
}
