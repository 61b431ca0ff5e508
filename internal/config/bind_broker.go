package config

import (
	"path/filepath"
	"strings"
	"unicode"

	"hopwire/internal/address"
	"hopwire/internal/config/schema"
	"hopwire/internal/message"
)

// broker binds <broker>.
func (b *builder) broker(n *bean) *Broker {
	out := &Broker{
		Pos:                        n.pos,
		Name:                       b.name(n),
		ID:                         n.text("brokerId"),
		DeleteAllMessagesOnStartup: n.bool("deleteAllMessagesOnStartup"),
		AdvisorySupport:            n.bool("advisorySupport"),
		OfflineDurableTimeout:      n.millis("offlineDurableSubscriberTimeout"),
		OfflineDurableCheck:        n.millis("offlineDurableSubscriberTaskSchedule"),
		RejectDurableConsumers:     n.bool("rejectDurableConsumers"),
		MaxUncommitted:             n.int("maxUncommittedCount"),
		CommitWithoutFailed:        !n.bool("rollbackOnlyOnAsyncException"),
		PurgePeriod:                max(0, n.millis("schedulePeriodForDestinationPurge")),
		PurgeMost:                  n.int("maxPurgedDestinationsPerSweep"),
	}
	data := b.folder(n, "dataDirectory")
	if n.has("dataDirectoryFile") {
		data = b.folder(n, "dataDirectoryFile")
	}
	out.Persistence = b.persistence(n, filepath.Join(data, out.Name))
	out.Persistence.SpoolDirectory = b.spool(n, filepath.Join(data, out.Name, "tmp_storage"))
	b.apart(n, out, data)
	out.Usage = b.usage(n)
	out.Policy = b.policyMap(n.one("destinationPolicy"))
	if out.PurgePeriod == 0 {
		b.unswept(n.one("destinationPolicy"))
	}
	for _, d := range n.many("destinations") {
		out.Destinations = append(out.Destinations, b.destination(d).Destination)
	}
	for _, i := range n.many("destinationInterceptors") {
		if i.el.Name == "virtualDestinationInterceptor" {
			out.Composites = append(out.Composites, b.composites(i)...)
		}
	}
	lines := map[string]int{}
	for _, t := range n.many("transportConnectors") {
		if t := b.transport(t); t != nil {
			if line := lines[t.Name]; line > 0 {
				b.notice(t.Pos, Warning, "a second <transportConnector> is called %s: line %d has one",
					t.Name, line)
			} else {
				lines[t.Name] = t.Pos.Line
			}
			out.Transports = append(out.Transports, t)
		}
	}
	b.networks(n, out)
	b.plugins(n, out)
	return out
}

// composites binds the composite destinations of a <virtualDestinationInterceptor>.
func (b *builder) composites(n *bean) (out []Composite) {
	for _, v := range n.many("virtualDestinations") {
		kind := message.Queue
		switch v.el.Name {
		case "compositeQueue":
		case "compositeTopic":
			kind = message.Topic
		default:
			continue
		}
		c := Composite{Destination: message.Destination{Kind: kind, Name: v.text("name")}}
		for _, to := range v.many("forwardTo") {
			d := message.Destination{Kind: message.Queue}
			if to.el.Name != "filteredDestination" {
				d = b.destination(to).Destination
			} else if d.Name = to.text("queue"); d.Name == "" {
				d = message.Destination{Kind: message.Topic, Name: to.text("topic")}
			}
			c.Targets = append(c.Targets, d)
		}
		if c.Destination.Name == "" {
			b.problem(v.pos, "<%s> without name", v.el.Name)
			continue
		}
		out = append(out, c)
	}
	return out
}

// folder gives the name of a folder. An empty one is a mistake: to ActiveMQ it is the folder that
// it was started in.
func (b *builder) folder(n *bean, name string) string {
	d := n.text(name)
	if n.has(name) && d == "" {
		b.problem(n.at(name), "%s on <%s> is empty; name a folder, or leave it out", name, n.el.Name)
	}
	return d
}

// maxNameBytes is what the name of a folder may have.
const maxNameBytes = 255

// name looks at a broker's name, which is that of a folder and a word in many lines. What ActiveMQ
// does not take in it is _ here as there.
func (b *builder) name(n *bean) string {
	was := n.text("brokerName")
	name := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) ||
			strings.ContainsRune("._-:", r) {
			return r
		}
		return '_'
	}, was)
	at := n.at("brokerName")
	switch {
	case was == "":
		b.problem(at, "brokerName on <broker> is empty")
	case strings.Trim(was, ".") == "":
		b.problem(at, "brokerName on <broker> is %q, which names no folder of its own", was)
	case len(was) > maxNameBytes:
		b.problem(at, "brokerName on <broker> has %d bytes; it names a folder, and may have %d",
			len(was), maxNameBytes)
	case was != name:
		b.notice(at, Warning, "brokerName %q is taken as %q, as by ActiveMQ: a name has letters of"+
			" ASCII, digits and . _ - : alone", was, name)
	}
	return name
}

func (b *builder) persistence(n *bean, dir string) Persistence {
	p := Persistence{Memory: !n.bool("persistent"),
		Directory: filepath.Join(dir, "KahaDB")}
	adapter := n.one("persistenceAdapter")
	if adapter == nil {
		adapter = n.one("persistenceFactory")
	}
	if adapter == nil {
		return p
	}
	switch adapter.el.Name {
	case "memoryPersistenceAdapter":
		p.Memory = true
	case "mKahaDB":
		if d := b.folder(adapter, "directory"); d != "" {
			p.Directory = d
		}
	case "kahaDB":
		if d := b.folder(adapter, "directory"); d != "" {
			p.Directory = d
		}
		if s := strings.ToUpper(adapter.text("purgeRecoveredXATransactionStrategy")); s != "NEVER" {
			p.PurgeRecoveredXA = s
		}
	}
	return p
}

// spool gives the folder of spooled messages.
func (b *builder) spool(n *bean, dir string) string {
	if n.has("tmpDataDirectory") {
		dir = b.folder(n, "tmpDataDirectory")
	}
	if s := n.one("tempDataStore"); s != nil && s.has("directory") {
		dir = b.folder(s, "directory")
	}
	return dir
}

// apart looks whether a broker's spool, which is wiped at each start and stop, and what it keeps
// are in each other's way.
func (b *builder) apart(n *bean, out *Broker, data string) {
	p := &out.Persistence
	if p.Memory {
		return
	}
	at := n.at("tmpDataDirectory")
	if s := n.one("tempDataStore"); s != nil && s.has("directory") {
		at = s.at("directory")
	} else if a := n.one("persistenceAdapter"); a != nil && !n.has("tmpDataDirectory") {
		at = a.at("directory")
	}
	spool := p.Spool(out.Name)
	switch {
	case within(p.Directory, spool):
		b.problem(at, "the store %s is in the folder %s of spooled messages, which is wiped at each"+
			" start; name another tmpDataDirectory", p.Directory, spool)
	case within(data, spool):
		b.problem(at, "the dataDirectory %s is in the folder %s of spooled messages, which is wiped at"+
			" each start; name another tmpDataDirectory", data, spool)
	case filepath.Dir(spool) == filepath.Clean(p.Directory),
		within(spool, filepath.Join(p.Directory, "db")):
		b.problem(at, "the folder %s of spooled messages is among the store's files in %s; name"+
			" another tmpDataDirectory", spool, p.Directory)
	}
}

// within reports whether a folder is another one, or in it, as they are written.
func within(dir, in string) bool {
	a, no := filepath.Abs(dir)
	b, nor := filepath.Abs(in)
	if no != nil || nor != nil {
		return false
	}
	rel, err := filepath.Rel(b, a)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func (b *builder) usage(n *bean) Usage {
	var u Usage
	outer := n.one("systemUsage")
	if outer == nil {
		outer = b.empty("systemUsage", n.pos)
	}
	limit := func(name, percent string) Limit {
		l := outer.one(name)
		if l == nil {
			l = b.empty(name, outer.pos)
		}
		if l.has("limit") && l.has(percent) {
			b.problem(l.at(percent), "<%s> has both limit and %s", name, percent)
		}
		if !l.has(percent) {
			return Limit{Bytes: l.size("limit")}
		}
		out := Limit{Percent: l.int(percent)}
		if out.Percent > 0 && percent == "percentLimit" {
			out.Total = l.size("total")
		}
		return out
	}
	u.Memory = limit("memoryUsage", "percentOfJvmHeap")
	u.Store = limit("storeUsage", "percentLimit")
	u.Temp = limit("tempUsage", "percentLimit")
	u.FailIfNoSpace = outer.bool("sendFailIfNoSpace")
	u.FailAfter = outer.millis("sendFailIfNoSpaceAfterTimeout")
	return u
}

// empty returns an element without settings: all defaults.
func (b *builder) empty(name string, at Pos) *bean {
	return &bean{el: schema.ElementNamed(name), pos: at, compat: b.compat}
}

// plugins binds the plugins that are honoured.
func (b *builder) plugins(n *bean, out *Broker) {
	for _, p := range n.many("plugins") {
		switch p.el.Name {
		case "statisticsBrokerPlugin":
			out.Statistics = true
		case "simpleAuthenticationPlugin":
			if out.Auth != nil {
				b.problem(p.pos, "a second <simpleAuthenticationPlugin>")
			}
			out.Auth = b.simpleAuth(p)
		case "authorizationPlugin":
			if out.Authorization != nil {
				b.problem(p.pos, "a second <authorizationPlugin>")
			}
			out.Authorization = b.authorization(p)
		}
	}
	b.strangers(n, out)
}

func (b *builder) simpleAuth(n *bean) *SimpleAuth {
	auth := &SimpleAuth{
		Anonymous:      n.bool("anonymousAccessAllowed"),
		AnonymousUser:  n.text("anonymousUser"),
		AnonymousGroup: n.text("anonymousGroup"),
	}
	seen := make(map[string]bool)
	for _, u := range n.many("users") {
		user := User{Name: u.text("username"), Password: u.raw("password")}
		for g := range strings.SplitSeq(u.text("groups"), ",") {
			if g = strings.TrimSpace(g); g != "" {
				user.Groups = append(user.Groups, g)
			}
		}
		if len(user.Groups) == 0 && b.compat >= 6 {
			user.Groups = []string{everybody}
		}
		switch {
		case user.Name == "":
			b.problem(u.pos, "<authenticationUser> without username")
		case !u.has("password"):
			b.problem(u.pos, "<authenticationUser> %s without password", user.Name)
		case seen[user.Name]:
			b.problem(u.pos, "a second <authenticationUser> %s", user.Name)
		}
		if _, ok := encrypted(user.Password); ok {
			b.problem(u.at("password"), "ENC(...) is only decrypted in a property file: name it by ${...}")
		}
		seen[user.Name] = true
		auth.Users = append(auth.Users, user)
	}
	return auth
}

var destinationKinds = map[string]message.Kind{"queue": message.Queue, "topic": message.Topic,
	"tempQueue": message.TempQueue, "tempTopic": message.TempTopic}

// destination binds one <queue>, <topic>, <tempQueue> or <tempTopic>.
func (b *builder) destination(n *bean) NetworkDestination {
	attribute := "physicalName"
	if !n.has(attribute) && n.has("name") {
		attribute = "name"
	}
	d, query := message.ParseDestination(n.text(attribute), destinationKinds[n.el.Name])
	if d.Name == "" {
		b.problem(n.pos, "<%s> without physicalName", n.el.Name)
	}
	out := NetworkDestination{Destination: d}
	var err error
	if out.Options, err = address.Options(query); err != nil {
		b.problem(n.at(attribute), "%v", err)
	}
	out.Options = b.once(out.Options, n.at(attribute), d.String())
	return out
}
