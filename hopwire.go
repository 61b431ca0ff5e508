package hopwire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/config"
	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
	"hopwire/internal/store/mem"
)

// Version is the version of this Hopwire.
const Version = "0.1.0"

// About says in one line what this is.
func About() string {
	return "hopwire " + Version + " (" + runtime.Version() + " " + runtime.GOOS + "/" +
		runtime.GOARCH + ")"
}

// ErrRefused is the cause of an error when a configuration would run without something that keeps
// it safe.
var ErrRefused = errors.New("the configuration is refused")

// Options say how brokers are read and run. The zero value works.
type Options struct {
	// Compat takes the defaults of ActiveMQ 5 (up to 5.17) or 6 (5.18 and later). Default 0: 5,
	// with a warning about settings that only newer versions have.
	Compat int
	// Defines are values of ${name} placeholders; property files come first.
	Defines map[string]string

	// NoControl opens no control socket: hopwire status, explain and stop do not find the broker.
	NoControl            bool
	NoWait               bool // fail when a data folder is in use, instead of waiting as its slave
	IgnoreSecurity       bool // start although settings that restrict access are not honoured
	IgnoreUnknownPlugins bool // start without plugins of unknown classes
	StrictListeners      bool // refuse to listen beyond this machine without authentication

	// Position is the place of the broker among those of its process, which a status tells.
	Position int

	// Log gets the log lines; default is slog.Default(), from Embed without what is no warning.
	Log *slog.Logger
	// OnWait is called with a line that names the holder when a data folder is in use. The log gets
	// it, too.
	OnWait func(line string)
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.OnWait == nil {
		o.OnWait = func(string) {} // the log has it
	}
	return o
}

// Setup is one broker as its file describes it, ready to start.
type Setup struct {
	config  *config.Config
	options Options
	beside  []string // data folders of the brokers of its process
}

// Load reads a configuration file. The error holds a line for each mistake; one that wraps
// ErrRefused names what would have to be ignored.
func Load(path string, o Options) (*Setup, error) {
	c, err := config.Load(path, o.config())
	if err != nil {
		return nil, err
	}
	return newSetup(c, o)
}

// Parse is Load for a text; path is its name in messages. In path's folder begin property files
// that the text names by relative paths, and of it ${activemq.conf}, ${activemq.base} and
// ${activemq.data} are made. A relative dataDirectory begins in the working folder, see
// Setup.Folder.
func Parse(path, text string, o Options) (*Setup, error) {
	c, err := config.Parse(path, []byte(text), o.config())
	if err != nil {
		return nil, err
	}
	return newSetup(c, o)
}

func (o Options) config() config.Options {
	return config.Options{Compat: o.Compat, Defines: o.Defines}
}

func newSetup(c *config.Config, o Options) (*Setup, error) {
	if r := c.Refusals(o.IgnoreSecurity, o.IgnoreUnknownPlugins); len(r) > 0 {
		lines := refusedSettings{ErrRefused.Error() + ":"}
		for _, n := range r {
			lines = append(lines, n.String())
		}
		return nil, append(lines, "("+strings.Join(overrides(r), " ")+" starts anyway)")
	}
	if err := check(c.Broker(), c.Compat); err != nil {
		return nil, err
	}
	return &Setup{config: c, options: o.withDefaults()}, nil
}

// refusedSettings is an error of several lines, of the kind ErrRefused.
type refusedSettings []string

func (r refusedSettings) Error() string        { return strings.Join(r, "\n") }
func (r refusedSettings) Is(target error) bool { return target == ErrRefused }

// Unwrap gives each line.
func (r refusedSettings) Unwrap() []error {
	lines := make([]error, len(r))
	for i, l := range r {
		lines[i] = errors.New(l)
	}
	return lines
}

// overrides names the options that would let refused settings pass.
func overrides(refused []config.Notice) []string {
	var out []string
	for _, n := range refused {
		flag := "--ignore-security"
		if n.Kind == config.UnknownPlugin {
			flag = "--ignore-unknown-plugins"
		}
		if !slices.Contains(out, flag) {
			out = append(out, flag)
		}
	}
	return out
}

// Folder is where the store will be, as an absolute path, "" for none.
func (s *Setup) Folder() string {
	if c := s.config.Broker(); !c.Persistence.Memory {
		return absolute(c.Persistence.Directory)
	}
	return ""
}

// Relative is the store's folder as the file says, where that begins at the working folder; ""
// where it is a whole path, or there is no store.
func (s *Setup) Relative() string {
	if p := s.config.Broker().Persistence; !p.Memory && !filepath.IsAbs(p.Directory) {
		return p.Directory
	}
	return ""
}

// InUse reports whether another broker, of ActiveMQ or Hopwire, has the store's folder.
func (s *Setup) InUse() bool {
	dir := s.Folder()
	if dir == "" {
		return false
	}
	lock, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil { // nobody had it, or start will say what is wrong
		return false
	}
	defer lock.Close()
	return disk.InUse(dir)
}

// Name is the broker's name.
func (s *Setup) Name() string { return s.config.Broker().Name }

// File is the path of the file.
func (s *Setup) File() string { return s.config.File }

// Unused are the names in Options.Defines that no placeholder of the file has, sorted.
func (s *Setup) Unused() []string { return s.config.Unused }

// Notices are the settings of the file that have no effect, and other things to know, a line each.
func (s *Setup) Notices() []string {
	var lines []string
	for _, n := range s.config.Notices {
		lines = append(lines, n.String())
	}
	return lines
}

// Remark is a notice with what it is: Ignored for a setting without effect, or else a warning.
type Remark struct {
	Ignored bool
	Text    string // a line: its place, and what there is to know
}

// Remarks are the Notices, by what they are.
func (s *Setup) Remarks() []Remark {
	var out []Remark
	for _, n := range s.config.Notices {
		out = append(out, Remark{n.Kind != config.Warning, n.Pos.String() + ": " + n.Text})
	}
	return out
}

// GuessedBase says what ${activemq.base} is taken for, and how to say otherwise, where a value of
// the file has it and nothing but the file's folder tells; "" elsewhere.
func (s *Setup) GuessedBase() string {
	base := s.config.GuessedBase
	if base == "" {
		return ""
	}
	example := "..."
	if parent := filepath.Dir(base); strings.HasPrefix(parent, "/etc/activemq/instances-") {
		example = "/var/lib/activemq/" + filepath.Base(base) // of Debian's instances
	}
	return "${activemq.base} is taken to be " + base + ", the file's folder; if it is another," +
		" ACTIVEMQ_BASE=" + example + " or -D activemq.base=" + example + " says so"
}

// Compatibility says which ActiveMQ's defaults hold, and what that decides.
func (s *Setup) Compatibility() []string {
	level := fmt.Sprintf("level %d", s.config.Compat)
	if !s.config.CompatGiven {
		level += " (no --compat given)"
	}
	return []string{level + ": by default " +
		strings.Join(config.CompatDefaults(s.config.Compat), ", ")}
}

// Broker is a running broker. Its methods may be called from any goroutine.
type Broker struct {
	config  *config.Broker
	compat  int
	options Options
	log     *slog.Logger
	started time.Time

	loop      *loop.Loop
	store     store.Store
	committer *store.Committer
	spool     *spool // nil: there is none
	core      *broker.Broker
	home      *bridge.Home
	edges

	stop   func(why string) // begins to stop
	ending atomic.Bool      // nothing is started any more
	done   chan struct{}
	err    error // set before done is closed
}

// metaBrokerID is the name under which a store keeps its broker's id.
const metaBrokerID = "brokerId"

// openStore opens the broker's store and gives the broker's id.
func (s *Setup) openStore(ctx context.Context, c *config.Broker,
	fatal func(error)) (store.Store, message.BrokerID, error) {
	fresh := newBrokerID(c.Name, time.Now())
	if c.ID != "" {
		fresh = message.BrokerID(c.ID)
	}
	if c.Persistence.Memory {
		return mem.New(), fresh, nil
	}
	slave := newSlave(ctx, s)
	st, err := disk.Open(slave.ctx, disk.Options{Dir: s.Folder(),
		LimitBytes: storeLimit(c), NoWait: s.options.NoWait, OnWait: slave.wait, OnFatal: fatal,
		MaxOpenFiles: s.tableFiles(),
		OnFull:       slave.full,
		OnRoom:       func() { s.options.Log.Warn("the store has room again") },
		OnWarning:    func(line string) { s.options.Log.Warn(line) },
	})
	err = slave.end(err)
	if err != nil {
		return nil, "", err
	}
	if c.DeleteAllMessagesOnStartup {
		err = empty(st)
	}
	id := fresh
	if err == nil {
		id, err = keepID(st, fresh, c.ID != "")
	}
	if err != nil {
		if errors.Is(err, ErrRefused) {
			err = fmt.Errorf("%s: %w", c.Pos, err)
		}
		return nil, "", errors.Join(err, st.Close())
	}
	return st, id, nil
}

// keepID gives the id that the store's broker has; a new store, or a configured id, sets it. While
// the store has destinations another id is refused: their receipts and forward marks count by how
// often the own id is in a path, and would be void. Receipts cannot be listed without their
// peers, so every destination counts.
func keepID(st store.Store, fresh message.BrokerID, configured bool) (message.BrokerID, error) {
	old, err := st.Meta(metaBrokerID)
	if err != nil {
		return "", err
	}
	if old != nil && !configured {
		return message.BrokerID(old), nil
	}
	if string(old) == string(fresh) {
		return fresh, nil
	}
	if old != nil {
		switch headers, err := st.Headers(); {
		case err != nil:
			return "", err
		case len(headers) > 0:
			return "", fmt.Errorf("%w: brokerId is %s, but the store belongs to %s and has"+
				" destinations (%d), whose messages could come twice under another id; set brokerId to that,"+
				" leave it out, or use an empty data folder (or deleteAllMessagesOnStartup once)",
				ErrRefused, fresh, old, len(headers))
		}
	}
	return fresh, st.Apply([]*store.Batch{{Ops: []store.Op{
		{Kind: store.PutMeta, Name: metaBrokerID, Value: []byte(fresh)}}}})
}

// empty removes all destinations of a store.
func empty(st store.Store) error {
	headers, err := st.Headers()
	if err != nil || len(headers) == 0 {
		return err
	}
	next, err := broker.NextDest(st)
	if err != nil {
		return err
	}
	return st.Apply([]*store.Batch{{Ops: broker.DropAll(headers, next)}})
}

// Name is the broker's name.
func (b *Broker) Name() string { return b.config.Name }

// DataFolder is the store's folder, "" when there is none.
func (b *Broker) DataFolder() string {
	if b.config.Persistence.Memory {
		return ""
	}
	return b.config.Persistence.Directory
}

// Stop begins a clean stop: links are drained, clients closed, the store closed. Wait tells when
// it is done.
func (b *Broker) Stop() { b.stop("asked to by the program") }

// Wait waits until the broker has ended, and gives the reason unless it was Stop.
func (b *Broker) Wait() error {
	<-b.done
	return b.err
}

// pid is told by the management model.
var pid = os.Getpid()
