package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hopwire/internal/config/schema"
	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// DefaultCompat is the compatibility level without --compat: ActiveMQ 5.17.
const DefaultCompat = 5

// Options say how a file is read. The zero value reads from the disk, with the environment.
type Options struct {
	// Compat is the ActiveMQ line whose defaults apply, 5 or 6; default 0, which is 5 and warns
	// about settings that only newer versions have.
	Compat int
	// Defines are -Dname=value definitions.
	Defines map[string]string
	// LookupEnv finds environment variables; default os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// ReadFile reads the file and its property files; default is to read regular files and pipes, of
	// 4 MiB at most.
	ReadFile func(path string) ([]byte, error)

	guess string // what ${activemq.base} is taken to be without a word of anybody; "" is no guess
}

func (o *Options) withDefaults() *Options {
	c := *o
	if c.LookupEnv == nil {
		c.LookupEnv = os.LookupEnv
	}
	if c.ReadFile == nil {
		c.ReadFile = readFile
	}
	return &c
}

// paths returns what ActiveMQ's scripts define: activemq.conf is the file's folder, base the folder
// above it when it is called conf, home the same, data a folder in base. The environment variables
// ACTIVEMQ_CONF, _BASE, _HOME and _DATA say otherwise, as do definitions.
func (o *Options) paths(file string) map[string]string {
	conf := filepath.Dir(file)
	if abs, err := filepath.Abs(conf); err == nil {
		conf = abs
	}
	pick := func(name, def string) string {
		if v, ok := o.Defines["activemq."+name]; ok {
			return v
		}
		if v, ok := o.LookupEnv("ACTIVEMQ_" + strings.ToUpper(name)); ok && v != "" {
			return v
		}
		return def
	}
	conf = pick("conf", conf)
	base := conf
	if filepath.Base(conf) == "conf" {
		base = filepath.Dir(conf)
	}
	if given := pick("base", ""); given != "" {
		base = given
	} else if base == conf {
		o.guess = base
	}
	return map[string]string{
		"activemq.conf": conf,
		"activemq.base": base,
		"activemq.home": pick("home", base),
		"activemq.data": pick("data", filepath.Join(base, "data")),
	}
}

// Config is what a file says.
type Config struct {
	File        string
	Compat      int  // 5 or 6
	CompatGiven bool // false: nobody said which
	Brokers     []*Broker
	Notices     []Notice // in file order
	// GuessedBase is ${activemq.base} where a value has it and nothing says what it is but the file's
	// folder, which is not called conf; "" otherwise.
	GuessedBase string
	// Unused are the names in Options.Defines that no placeholder has, sorted.
	Unused []string
}

// Broker returns the broker to run: the one whose bean is called broker, else the first.
func (c *Config) Broker() *Broker {
	for _, b := range c.Brokers {
		if b.BeanID == "broker" {
			return b
		}
	}
	return c.Brokers[0]
}

// Refusals returns the notices that keep a broker from starting, given what it was told to ignore.
func (c *Config) Refusals(ignoreSecurity, ignoreUnknownPlugins bool) []Notice {
	var out []Notice
	for _, n := range c.Notices {
		if n.Kind == Restricting && !ignoreSecurity ||
			n.Kind == UnknownPlugin && !ignoreUnknownPlugins {
			out = append(out, n)
		}
	}
	return out
}

// CompatDefaults returns a line for each default that differs between the compatibility levels,
// with the value at the given one.
func CompatDefaults(compat int) []string {
	var out []string
	for _, e := range schema.Elements() {
		for i := range e.Attributes {
			if a := &e.Attributes[i]; a.Default6 != "" {
				out = append(out, fmt.Sprintf("%s on <%s>: %s", a.Name, e.Name, a.DefaultAt(compat)))
			}
		}
	}
	return out
}

// Broker is one broker. Fields are named after the attributes of <broker>, see package schema.
type Broker struct {
	Pos                        Pos
	BeanID                     string // the id attribute
	Name                       string
	ID                         string // "" is made once and kept
	Persistence                Persistence
	DeleteAllMessagesOnStartup bool

	AdvisorySupport        bool
	OfflineDurableTimeout  time.Duration // negative: never
	OfflineDurableCheck    time.Duration
	RejectDurableConsumers bool
	MaxUncommitted         int // sends of a transaction; 0: any number
	CommitWithoutFailed    bool

	PurgePeriod time.Duration // schedulePeriodForDestinationPurge; 0 is never
	PurgeMost   int           // maxPurgedDestinationsPerSweep; 0: any number

	Usage        Usage
	Policy       policy.Map
	Destinations []message.Destination // created at start
	Transports   []*Transport
	Composites   []Composite // not honoured
	Networks     []*Network
	Unserved     []Unserved  // network connectors that never connect
	Auth         *SimpleAuth // nil: everybody may connect
	Statistics   bool        // statisticsBrokerPlugin
	// Authorization is the authorizationPlugin; nil: everybody may do everything.
	Authorization *Authorization
}

// Composite is a compositeQueue or compositeTopic with what it forwards to.
type Composite struct {
	Destination message.Destination // a name or a pattern
	Targets     []message.Destination
}

// Persistence is where persistent messages are.
type Persistence struct {
	Memory    bool   // no store: persistent="false" or memoryPersistenceAdapter
	Directory string // of the store; relative to the working folder unless absolute
	// SpoolDirectory is the folder in which the broker makes that of its spool; as Directory.
	SpoolDirectory string
	// PurgeRecoveredXA is COMMIT or ROLLBACK for XA transactions that are prepared at start; "" has
	// them wait (purgeRecoveredXATransactionStrategy).
	PurgeRecoveredXA string
}

// Spool is the folder of spooled messages of a broker of a name.
func (p *Persistence) Spool(name string) string {
	return filepath.Join(p.SpoolDirectory, name+".hopwire")
}

// Limit is a usage limit: Bytes, or Percent of Total. With both 0 there is none, as in ActiveMQ.
type Limit struct {
	Bytes   int64
	Percent int   // 0: Bytes counts
	Total   int64 // 0: all there is of the resource
}

// Usage is systemUsage.
type Usage struct {
	Memory, Store, Temp Limit
	FailIfNoSpace       bool // fail sends at a limit
	FailAfter           time.Duration
}

// SimpleAuth is the simpleAuthenticationPlugin.
type SimpleAuth struct {
	Users          []User
	Anonymous      bool // clients without a name get in
	AnonymousUser  string
	AnonymousGroup string
}

// Authorization is the authorizationMap of the authorizationPlugin.
type Authorization struct {
	Pos     Pos
	Entries []AuthorizationEntry
	Default *Rights // nil: none
	Temp    *Rights // to temporary destinations; nil: everybody has all
}

// AuthorizationEntry is one authorizationEntry.
type AuthorizationEntry struct {
	Destination message.Destination // a name, a pattern, or several
	Rights
}

// Rights are who may read, write, and make and remove.
type Rights struct {
	Read, Write, Admin []string // groups; "*" is everybody who is in one
}

// User is one authenticationUser.
type User struct {
	Name, Password string
	Groups         []string
}

// Load reads a configuration file. The error holds all mistakes found (Problems), or is that of
// reading the file.
func Load(path string, opts Options) (*Config, error) {
	o := opts.withDefaults()
	data, err := o.ReadFile(path)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = plainPathError{e}
		}
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return Parse(path, data, *o)
}

// Parse is Load for a text; path is its name in messages, and where its property files are.
func Parse(path string, data []byte, opts Options) (*Config, error) {
	o := opts.withDefaults()
	root, err := readXML(path, data)
	if err != nil {
		return nil, asProblems(err)
	}
	r, err := newResolver(root, o)
	if err != nil {
		return nil, asProblems(err)
	}
	b := &builder{resolver: r, compat: o.Compat, guessed: o.Compat == 0,
		named: r.named, broken: make(map[Pos]bool), notices: r.notices,
		brokers: make(map[string]bool)}
	if b.guessed {
		b.compat = DefaultCompat
	}
	c := &Config{File: path, Compat: b.compat, CompatGiven: !b.guessed}
	b.file(root, c)
	b.warnNewer()
	if len(b.problems) > 0 {
		slices.SortStableFunc(b.problems, func(x, y Problem) int { return comparePos(x.Pos, y.Pos) })
		return nil, b.problems[:min(len(b.problems), maxProblems)]
	}
	slices.SortStableFunc(b.notices, func(x, y Notice) int { return comparePos(x.Pos, y.Pos) })
	c.Notices = b.notices
	if r.usedBase {
		c.GuessedBase = o.guess
	}
	for _, name := range slices.Sorted(maps.Keys(o.Defines)) {
		if _, path := r.builtin[name]; !path && !r.asked[name] {
			c.Unused = append(c.Unused, name)
		}
	}
	return c, nil
}

func asProblems(err error) error {
	if p, ok := errors.AsType[Problem](err); ok {
		return Problems{p}
	}
	return err
}

func comparePos(a, b Pos) int {
	if a.Line != b.Line {
		return a.Line - b.Line
	}
	return a.Col - b.Col
}

// warnNewer warns once about settings that tell that the file was not written for 5.17.
func (b *builder) warnNewer() {
	if !b.guessed || len(b.newer) == 0 {
		return
	}
	var names []string
	for _, s := range b.newer {
		if !slices.Contains(names, s.text) {
			names = append(names, s.text)
		}
	}
	b.notice(b.newer[0].pos, Warning, "%s: only in ActiveMQ 5.18 and later, but the defaults are "+
		"those of 5.17; choose with --compat=6 or --compat=5", strings.Join(names, ", "))
}

// file takes in the root element.
func (b *builder) file(root *node, c *Config) {
	if root.name == "broker" {
		b.addBroker(root, c)
		return
	}
	if root.name != "beans" {
		b.problem(root.pos, "<%s> is not the root of a configuration; expected <beans> or <broker>%s",
			root.raw, b.suggest(root.name, []string{"beans", "broker"}))
		return
	}
	for _, n := range root.children {
		switch {
		case n.name == "broker" || n.name == "brokerService":
			b.addBroker(n, c)
		case n.name == "bean" && isPlaceholderClass(n.get("class")),
			n.name == "property-placeholder", n.name == "description",
			n.name == "bean" && strings.Contains(n.get("class"), "jasypt"):
		case b.resolver.used[n]:
		case n.name == "bean":
			b.notice(n.pos, NotHonoured, "Java class %s is ignored", n.get("class"))
		case n.name == "import":
			b.imported(n)
		case n.name == "camelContext" || strings.Contains(n.ns, "camel.apache.org"):
			b.notice(n.pos, Warning, "<%s> is ignored: "+routesRest, n.raw)
		case n.ns == springNS && len(schema.Suggest(n.name, []string{"broker"})) == 0,
			schema.ElementNamed(n.name) == nil && n.ns != "" && !strings.Contains(n.ns, "activemq"):
			hint := ""
			if n.ns == springNS {
				hint = b.belongs(n.name, nil, nil, false)
			}
			b.notice(n.pos, NotHonoured, "<%s> is ignored%s", n.raw, hint)
		default:
			b.problem(n.pos, "unknown element <%s> in <beans>%s", n.raw, cmp.Or(
				b.belongs(n.name, nil, nil, false),
				b.suggest(n.name, []string{"broker", "bean", "import"})))
		}
	}
	if len(c.Brokers) == 0 && len(b.problems) == 0 {
		b.problem(root.pos, "no <broker> in <beans>")
	}
	b.noticeOthers(c)
}

const routesRest = "Camel routes do not run here, and what they would move or answer stays where" +
	" it is"

// imported tells of a file that is not read. Of ActiveMQ's own, jetty.xml is the web console.
func (b *builder) imported(n *node) {
	name := n.get("resource")
	switch file := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:]); {
	case strings.HasPrefix(file, "jetty"):
		b.notice(n.pos, NotHonoured, "import of %s is ignored", name)
	case strings.Contains(file, "camel"):
		b.notice(n.pos, Warning, "import of %s is ignored: "+routesRest, name)
	default:
		b.notice(n.pos, Warning, "import of %s is ignored: what it has is not read, placeholders and"+
			" plugins among it; write into this file what the broker needs", name)
	}
}

// noticeOthers tells of the brokers that are not run.
func (b *builder) noticeOthers(c *Config) {
	if len(c.Brokers) == 0 {
		return
	}
	run := c.Broker()
	for _, other := range c.Brokers {
		if other != run {
			b.notice(other.Pos, NotHonoured, "broker %s is not started: a file starts one broker, and"+
				" this one starts %s; give it a file of its own", other.Name, run.Name)
		}
	}
}

func (b *builder) addBroker(n *node, c *Config) {
	broker := b.broker(b.bean(n, schema.ElementNamed("broker")))
	broker.BeanID = n.get("id")
	if b.brokers[broker.Name] {
		b.problem(n.pos, "two brokers are called %s", broker.Name)
	}
	b.brokers[broker.Name] = true
	c.Brokers = append(c.Brokers, broker)
}
