package bridge

import (
	"slices"
	"strings"
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
)

// dialTimeout bounds making the connection and both hellos.
const dialTimeout = 40 * time.Second

// Connector keeps one bridge to one peer alive: it dials, waits and dials again until Stop.
type Connector struct {
	home    *Home
	opts    Options
	state   State
	errs    []string // by URI, why the last try of it failed; until a link runs
	since   time.Duration
	round   int // index of the URI that is tried
	attempt int // failed rounds since the last success
	delay   time.Duration
	next    time.Duration
	try     int // number of the dial; what comes from older ones is ignored
	began   time.Duration
	lone    bool             // the peer is this broker
	last    message.BrokerID // whom the last link led to
	again   bool             // started while stopping: starts when that is done
	cancel  func()
	timer   loop.Timer
	bridge  *Bridge
	count   *counters
}

// Connector makes a connector; Start sets it going.
func (h *Home) Connector(o Options) (*Connector, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if len(o.URIs) == 0 {
		return nil, message.Errorf(message.NotFound,
			"networkConnector %q: uri names no broker; write static:(tcp://host:61616)", o.Name)
	}
	o.URIs = slices.Clone(o.URIs)
	c := &Connector{home: h, opts: o, count: newCounters(), errs: make([]string, len(o.URIs))}
	h.connectors = append(h.connectors, c)
	return c, nil
}

// Seen tells that a peer has just connected to this broker: connectors that wait to try it again
// need not wait longer.
func (h *Home) Seen(peer message.BrokerID) {
	for _, c := range h.connectors {
		if c.state == Backoff && c.last == peer && !c.lone {
			c.dial()
		}
	}
}

// Start begins to connect. A stopped connector may be started again; one that is stopping starts
// when that is done.
func (c *Connector) Start() {
	if c.state == Stopping {
		c.again = true
		return
	}
	if c.state != New && c.state != Stopped {
		return
	}
	c.round, c.attempt, c.delay = 0, 0, 0
	c.dial()
}

// Stop ends the connector for good: no new copies, a wait of at most 5 s for answers, the end.
// done, which may be nil, is called then.
func (c *Connector) Stop(done func()) {
	if done == nil {
		done = func() {}
	}
	c.stopTimer()
	c.again = false
	if b := c.bridge; b != nil {
		c.enter(Stopping)
		b.stop(done)
		return
	}
	c.try++
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
	if c.state != Stopping {
		c.enter(Stopped)
	}
	done()
}

// Restart ends the current link, if there is one; the next follows after the usual wait.
func (c *Connector) Restart(why string) {
	if c.bridge != nil {
		c.bridge.fail(message.Unavailable, "restarted: %s", why)
	}
}

func (c *Connector) stopTimer() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

func (c *Connector) enter(s State) { c.enterWith(s, "") }

// enterWith enters a state; why is the failure that led to it.
func (c *Connector) enterWith(s State, why string) {
	if c.state == s {
		return
	}
	c.state, c.since = s, c.home.env.Mono()
	e := Event{Kind: StateChanged, Connector: c.opts.Name, URI: c.opts.URIs[0], State: s,
		Text: why}
	if c.bridge != nil {
		e.Peer, e.PeerName = c.bridge.peer.ID, c.bridge.peer.Name
		switch s {
		case Degraded:
			e.Text, e.Reason = c.bridge.unseen, message.DemandUnseen
		case Running:
			e.Text = c.bridge.blindSpots()
		}
	}
	c.home.observe(e)
}

func (c *Connector) dial() {
	c.stopTimer()
	c.try++
	try := c.try
	c.enter(Connecting)
	cancel := func() {}
	c.timer = c.home.env.After(dialTimeout, func() {
		c.timer = nil
		c.lost(try, message.Errorf(message.Unavailable,
			"bridge %s: %s: no connection and hello within %v", c.opts.Name, c.uri(), dialTimeout))
		cancel()
	})
	cancel = c.home.dialer.Dial(c.uri(),
		func(l Link, h Hello) { c.up(try, l, h) },
		func(cmd message.Command) { c.receive(try, cmd) },
		func(err error) { c.lost(try, err) })
	if c.try == try && c.state == Connecting {
		c.cancel = cancel
	}
}

func (c *Connector) uri() string { return c.opts.URIs[c.round] }

func (c *Connector) up(try int, l Link, h Hello) {
	if try != c.try || c.bridge != nil {
		l.Close("no longer wanted")
		return
	}
	c.stopTimer()
	c.cancel = nil
	c.began = c.home.env.Mono()
	b := newBridge(c.home, &c.opts, l, h, c.count)
	c.bridge, b.uri = b, c.uri()
	b.onEnd = func(err error) { c.ended(try, b, err) }
	b.onPhase = func() { c.followed(b) }
	c.enter(RemoteInfo)
	b.await()
}

func (c *Connector) receive(try int, cmd message.Command) {
	if try == c.try && c.bridge != nil {
		c.bridge.Receive(cmd)
	}
}

// followed turns a link's phase into the connector's state.
func (c *Connector) followed(b *Bridge) {
	switch {
	case c.state == Stopping:
	case b.phase == resolving:
		c.enter(Resolving)
	case b.phase == running && b.unseen != "":
		clear(c.errs)
		c.enter(Degraded)
	case b.phase == running && !b.letIn():
	case b.phase == running:
		clear(c.errs)
		c.enter(Running)
	}
}

// lost is told by the dialer: there is no connection, or none any more.
func (c *Connector) lost(try int, err error) {
	if try != c.try || c.state == Stopped {
		return
	}
	if err == nil {
		err = message.Errorf(message.Unavailable, "bridge %s: %s: the connection ended",
			c.opts.Name, c.uri())
	}
	if c.bridge != nil {
		c.bridge.end(err)
		return
	}
	c.lone = false
	c.failed(err, false)
}

// ended is told by the link, once.
func (c *Connector) ended(try int, b *Bridge, err error) {
	if try != c.try {
		return
	}
	c.lone = b.peer.ID != "" && b.peer.ID == b.self.ID
	if b.peer.ID != "" {
		c.last = b.peer.ID
	}
	c.bridge = nil
	if c.state == Stopping {
		c.try++
		c.enter(Stopped)
		if c.again {
			c.again = false
			c.Start()
		}
		return
	}
	lived := c.home.env.Mono()-c.began >= c.opts.MinConnectTime
	c.failed(err, lived && !c.lone)
}

// failed plans the next dial: the next URI at once, and after a round of all a wait that doubles
// with each failure. A link that lived long enough begins anew with the first URI and wait.
func (c *Connector) failed(err error, lived bool) {
	c.try++
	c.cancel = nil
	c.stopTimer()
	c.errs[c.round] = err.Error()
	if lived {
		c.attempt, c.delay, c.round = 0, 0, 0
	} else {
		c.round = (c.round + 1) % len(c.opts.URIs)
	}
	c.count.add(message.BridgeDown)
	wait := time.Duration(0)
	if lived || c.round == 0 {
		wait = c.backOff()
	}
	c.next = c.home.env.Mono() + wait
	c.timer = c.home.env.After(wait, func() {
		c.timer = nil
		c.dial()
	})
	c.enterWith(Backoff, err.Error())
}

// trouble is why no link runs: what befell each of the addresses last. A broker that refuses is
// told with the one beside it that is not there.
func (c *Connector) trouble() string {
	var all []string
	for _, e := range c.errs {
		if e != "" && !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return strings.Join(all, "; ")
}

// backOff gives the next wait: up to a quarter shorter by chance, so that the bridges of a
// network do not come all at once. A connector that found its own broker waits the longest.
func (c *Connector) backOff() time.Duration {
	c.attempt++
	switch {
	case c.lone:
		c.delay = c.opts.MaxReconnectDelay
	case c.delay == 0:
		c.delay = c.opts.InitialReconnectDelay
	case c.opts.UseExponentialBackOff:
		c.delay = min(2*c.delay, c.opts.MaxReconnectDelay)
	}
	quarter := uint64(c.delay / 4)
	if quarter == 0 {
		return c.delay
	}
	return c.delay - time.Duration(c.home.env.Rand()%quarter)
}

func selfConnect(name, remote string) error {
	return message.Errorf(message.IllegalState,
		"bridge %s: %s is this broker itself (%s); take it out of the uri", name, remote,
		message.SelfConnect)
}

// Status tells how the connector stands.
func (c *Connector) Status() Status {
	s := Status{Name: c.opts.Name, URI: c.uri(), Addresses: len(c.opts.URIs), State: c.state,
		Error: c.trouble(), Since: c.since, Attempt: c.attempt, Duplex: c.opts.Duplex}
	if c.state == Backoff {
		s.NextTry = c.next
	}
	if c.bridge != nil {
		c.bridge.fill(&s)
	}
	c.count.fill(&s)
	return s
}

// Explain gives the reason why messages of d have no way over this connector; "" when they have.
func (c *Connector) Explain(d message.Destination) message.Reason {
	if c.bridge != nil {
		return c.bridge.explain(d)
	}
	r := newRules(&c.opts)
	if why := r.refuses(d); why != "" {
		return why
	}
	if c.lone {
		return message.SelfConnect
	}
	return message.BridgeDown
}
