package network

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/internal/sim"
	"hopwire/openwire/primitive"
)

// commands are the words of the language.
var commands map[string]func(*script, line) error

func init() {
	commands = map[string]func(*script, line) error{
		"broker": (*script).broker, "link": (*script).link,
		"crash": (*script).crash, "restart": (*script).restart,
		"stop": (*script).stop, "start": (*script).start, "disk": (*script).disk,
		"ask": (*script).ask, "stall": (*script).stall,
		"cut": (*script).cut, "heal": (*script).heal, "clog": (*script).clog,
		"sub": (*script).sub, "close": (*script).close, "kill": (*script).kill,
		"ack": (*script).ack, "send": (*script).send, "run": (*script).run,
		"got": (*script).got, "state": (*script).state, "browse": (*script).browse,
		"grant":   (*script).grant,
		"explain": (*script).explain, "links": (*script).links,
		"spooled":  (*script).spooled,
		"captured": (*script).capturedBetween, "count": (*script).count,
		"redelivered": (*script).redelivered, "unique": (*script).unique,
		"longest": (*script).longest, "ordered": (*script).ordered, "rate": (*script).rate,
	}
}

func (s *script) node(name string) (*sim.Node, error) {
	if n := s.w.Node(name); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("no broker %q", name)
}

func (s *script) broker(l line) error {
	p := policy.NewEntry()
	p.Expiry.Period = 30 * time.Second
	b := &p.Bridge
	b.Conditional = true
	b.ReplayWhenNoConsumers, b.SelectorAware = l.has("replay"), l.has("selectorAware")
	p.EnableAudit = l.option("audit", "true") == "true"
	var err error
	if b.ReplayDelay, err = duration(l.option("delay", ""), 0); err != nil {
		return err
	}
	if b.RateDuration, err = duration(l.option("per", ""), time.Second); err != nil {
		return err
	}
	if b.RateLimit, err = strconv.Atoi(l.option("rate", "0")); err != nil {
		return err
	}
	if p.GC.After, err = duration(l.option("gc", ""), 0); err != nil {
		return err
	}
	p.GC.Inactive, p.GC.WithNetworkConsumers = p.GC.After > 0, l.has("gcNetworks")
	policies := &policy.Map{Default: p}
	name, limit, ofOne := strings.Cut(l.option("memory", "0"), ":")
	if !ofOne {
		limit = name
	}
	bytes, err := strconv.ParseInt(limit, 10, 64)
	if err != nil {
		return err
	}
	if ofOne {
		q := *p
		q.Destination, q.Memory.LimitBytes, bytes = destination(name), bytes, 0
		policies.Entries = append(policies.Entries, &q)
	}
	rights, err := rightsOf(l.option("rights", ""))
	if err != nil {
		return err
	}
	s.rights[l.word(0)] = rights
	s.w.Broker(sim.NodeConfig{Name: l.word(0), ActiveMQ: l.has("activemq"),
		Volatile: l.has("volatile"), NoAdvisories: l.option("advisories", "true") == "false",
		Spool: l.has("spool"), MemoryLimit: bytes,
		Policies: policies, Rights: rights, PurgePeriod: p.GC.After / 4})
	return nil
}

// rightsOf reads (user:letters:pattern,...); a user without letters may do nothing else.
func rightsOf(text string) (sim.Rights, error) {
	if text == "" {
		return nil, nil
	}
	rights := sim.Rights{}
	for one := range strings.SplitSeq(text, ",") {
		if err := give(rights, strings.TrimSpace(one)); err != nil {
			return nil, err
		}
	}
	return rights, nil
}

func give(rights sim.Rights, text string) error {
	f := strings.SplitN(text, ":", 3)
	if len(f) != 3 {
		return fmt.Errorf("write user:rwa:pattern, not %q", text)
	}
	rights[f[0]] = append(rights[f[0]], sim.Grant{Letters: f[1], To: destination(f[2])})
	return nil
}

// grant gives a user more rights at a broker, which knows of them from its next start.
func (s *script) grant(l line) error {
	rights := s.rights[l.word(0)]
	if rights == nil {
		return fmt.Errorf("broker %q has no rights", l.word(0))
	}
	return give(rights, l.word(1))
}

// shortNames are the attributes of networkConnector that scripts need often.
var shortNames = map[string]string{
	"conduit": "conduitSubscriptions", "decrease": "decreaseNetworkConsumerPriority",
	"dynamic": "dynamicallyIncludedDestinations", "static": "staticallyIncludedDestinations",
	"excluded": "excludedDestinations", "ttl": "networkTTL", "prefetch": "prefetchSize",
	"temps": "bridgeTempDestinations", "filter": "destinationFilter",
}

func (s *script) link(l line) error {
	o := bridge.DefaultOptions(5)
	from, to, ok := strings.Cut(l.word(0), "->")
	rest := l.args
	if !ok {
		// "a=b" reads as an option.
		if len(l.args) == 0 || len(l.args[0].Vals) != 1 {
			return fmt.Errorf("write link a->b or link a=b")
		}
		from, to, o.Duplex = l.args[0].Key, l.args[0].Vals[0], true
		rest = rest[1:]
	}
	for _, a := range rest {
		if len(a.Vals) == 0 {
			continue
		}
		name, value := a.Key, strings.Join(a.Vals, ",")
		if long := shortNames[name]; long != "" {
			name = long
		}
		if known, err := o.Set(name, value); err != nil || !known {
			return fmt.Errorf("option %s: known=%v %w", name, known, err)
		}
	}
	o.URIs = []string{"sim://" + to}
	n, err := s.node(from)
	if err == nil {
		n.Connect(o)
	}
	return err
}

func (s *script) crash(l line) error {
	n, err := s.node(l.word(0))
	if err == nil {
		n.Crash(false, 0)
	}
	return err
}

func (s *script) start(l line) error {
	n, err := s.node(l.word(0))
	if err == nil {
		n.Start()
	}
	return err
}

func (s *script) restart(l line) error {
	if err := s.crash(l); err != nil {
		return err
	}
	return s.start(l)
}

func (s *script) stop(l line) error {
	n, err := s.node(l.word(0))
	if err == nil {
		n.Stop(func() {})
	}
	return err
}

func (s *script) disk(l line) error {
	n, err := s.node(l.word(0))
	if err != nil {
		return err
	}
	slow, err := duration(l.option("slow", ""), 0)
	n.Slow(slow)
	switch {
	case l.has("full"):
		n.Capacity(1, 1<<20)
	case l.has("free"):
		n.Capacity(0, 0)
	}
	return err
}

func (s *script) cut(l line) error {
	a, b, _ := strings.Cut(l.word(0), "-")
	noticed, err := duration(l.option("noticed", ""), 0)
	s.w.Cut(a, b, noticed)
	return err
}

func (s *script) heal(l line) error {
	a, b, _ := strings.Cut(l.word(0), "-")
	s.w.Heal(a, b)
	return nil
}

func (s *script) clog(l line) error {
	a, b, _ := strings.Cut(l.word(0), "->")
	s.w.Clog(a, b)
	return nil
}

func (s *script) stall(l line) error {
	from, to, _ := strings.Cut(l.word(0), "->")
	d, err := duration(l.option("for", ""), time.Second)
	s.w.Stall(from, to, d)
	return err
}

// ask sends requests whose answers come to a temporary queue of the application.
func (s *script) ask(l line) error {
	n, err := s.node(l.word(0))
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(l.option("n", "1"))
	if err != nil {
		return err
	}
	x := &client{c: s.w.Client(l.as())}
	s.clients[l.as()] = x
	if !x.c.Connect(n) {
		return fmt.Errorf("broker %s is down", l.word(0))
	}
	temp := x.c.Temp()
	x.s = x.c.Consume(sim.Wants{From: temp, Handle: func(m *message.Message) {
		x.got = append(x.got, receipt{m.ID, s.w.Now(), m.RedeliveryCounter > 0, len(m.BrokerPath)})
	}})
	mail := sim.Mail{To: destination(l.word(1)), ReplyTo: temp, Volatile: l.has("volatile")}
	s.sendNext(x.c, mail, count, 0)
	return nil
}

// reply answers a request as an application does that waits for the confirmation.
func (s *script) reply(x *client, m *message.Message) {
	id := x.c.Send(sim.Mail{To: m.ReplyTo}, func(err error) {
		if err != nil {
			x.refused++
		}
	})
	s.numbers[id] = len(s.numbers)
}

var ackModes = map[string]sim.AckMode{"auto": sim.Auto, "client": sim.ClientAck,
	"individual": sim.Individual, "manual": sim.Manual, "transacted": sim.Transacted}

func destination(text string) message.Destination {
	d, _ := message.ParseDestination(text, message.Queue)
	return d
}

func (s *script) sub(l line) error {
	n, err := s.node(l.word(0))
	if err != nil {
		return err
	}
	name := l.as()
	prefetch, err := strconv.Atoi(l.option("prefetch", "1000"))
	if err != nil {
		return err
	}
	batch, _ := strconv.Atoi(l.option("batch", "1"))
	most, _ := strconv.Atoi(l.option("max", "0"))
	work, err := duration(l.option("work", ""), 0)
	if err != nil {
		return err
	}
	x := s.clients[name]
	if x == nil {
		x = &client{c: s.w.Client(name)}
		s.clients[name] = x
	}
	if l.option("durable", "") != "" {
		x.c.Steady()
	}
	if !x.c.Connect(n) {
		return fmt.Errorf("broker %s is down", l.word(0))
	}
	count := 0
	mode := ackModes[l.option("ack", "auto")]
	wants := sim.Wants{From: destination(l.word(1)), Prefetch: prefetch, Work: work,
		Selector: l.option("selector", ""), Mode: mode, Batch: batch,
		Durable: l.option("durable", "")}
	wants.Handle = func(m *message.Message) {
		count++
		if most == 0 || count <= most {
			x.got = append(x.got, receipt{m.ID, s.w.Now(), m.RedeliveryCounter > 0,
				len(m.BrokerPath)})
		}
		if l.has("reply") && !m.ReplyTo.IsZero() {
			s.reply(x, m)
		}
		if count == most {
			s.w.After(0, x.s.Stall)
		}
	}
	x.s = x.c.Consume(wants)
	return nil
}

func (s *script) consumer(name string) (*client, error) {
	if x := s.clients[name]; x != nil {
		return x, nil
	}
	return nil, fmt.Errorf("no application %q", name)
}

func (s *script) close(l line) error {
	for _, name := range l.words() {
		x, err := s.consumer(name)
		if err != nil {
			return err
		}
		x.c.Close()
	}
	return nil
}

func (s *script) kill(l line) error {
	x, err := s.consumer(l.word(0))
	if err == nil {
		x.c.Crash(0)
	}
	return err
}

func (s *script) ack(l line) error {
	x, err := s.consumer(l.word(0))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(l.option("n", "1000000"))
	x.s.Ack(n)
	return err
}

func (s *script) send(l line) error {
	n, err := s.node(l.word(0))
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(l.option("n", "1"))
	if err != nil {
		return err
	}
	every, err := duration(l.option("every", ""), 0)
	if err != nil {
		return err
	}
	c := s.sender[l.word(0)]
	if c == nil {
		c = s.w.Client("P" + l.word(0))
		s.sender[l.word(0)] = c
	}
	if c.Node() == nil {
		c.Connect(n)
	}
	known := []string{"n", "every", "body", "type"}
	props := primitive.Map{}
	for _, a := range l.args {
		if len(a.Vals) == 1 && !slices.Contains(known, a.Key) {
			props.Set(a.Key, a.Vals[0])
		}
	}
	mail := sim.Mail{To: destination(l.word(1)), Volatile: l.has("volatile"),
		Type: l.option("type", "")}
	if size, _ := strconv.Atoi(l.option("body", "0")); size > 0 {
		mail.Body = make([]byte, size)
	}
	if len(props) > 0 {
		if mail.Properties, err = primitive.AppendMap(nil, props); err != nil {
			return err
		}
	}
	s.sendNext(c, mail, count, every)
	return nil
}

func (s *script) sendNext(c *sim.Client, m sim.Mail, left int, every time.Duration) {
	for ; left > 0; left-- {
		s.numbers[c.Send(m, func(error) {})] = len(s.numbers)
		if every > 0 && left > 1 {
			s.w.After(every, func() { s.sendNext(c, m, left-1, every) })
			return
		}
	}
}

func (s *script) run(l line) error {
	d, err := time.ParseDuration(l.word(0))
	s.w.Run(d)
	return err
}
