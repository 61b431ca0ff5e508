package hopwire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/config"
	"hopwire/internal/link"
	"hopwire/internal/loop"
	"hopwire/internal/manage"
	"hopwire/internal/manage/control"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/rungroup"
	"hopwire/internal/selector"
	"hopwire/internal/store"
	"hopwire/internal/transport"
	"hopwire/internal/wire"
)

// edges are the parts of a running broker that touch the world.
type edges struct {
	group      *rungroup.Group // links, listeners, connections
	loops      *rungroup.Group // the loop; it outlives the others
	controls   *rungroup.Group // the control socket; it outlives all
	hub        *wire.Hub
	listeners  []listener
	inside     *transport.Inside // for this process
	connectors []connector
	control    *control.Server
	stopping   chan string // why
	events     *eventLog   // on the loop, and when that has ended
}

// connector is one bridge of a networkConnector.
type connector struct {
	*bridge.Connector
	config    *config.Network
	options   bridge.Options
	addresses map[string]string // by URI, without its options
}

// Status is the bridge's, with an address that shows no options.
func (c *connector) Status() bridge.Status {
	s := c.Connector.Status()
	s.URI = cmp.Or(c.addresses[s.URI], s.URI)
	return s
}

// Start starts the broker: Open and StartBridges.
func (s *Setup) Start(ctx context.Context) (*Broker, error) {
	b, err := s.Open(ctx)
	if err == nil {
		b.StartBridges()
	}
	return b, err
}

// Open starts the broker without its bridges, so that several brokers can open their ports before
// the first of them dials. When it returns without an error the ports are open. The broker ends
// when ctx does, or by Stop.
func (s *Setup) Open(ctx context.Context) (*Broker, error) {
	c := s.config.Broker()
	b := &Broker{config: c, compat: s.config.Compat, options: s.options,
		log:  s.options.Log.With("broker", c.Name),
		done: make(chan struct{})}
	b.log.Info("starting", "version", Version, "pid", pid, "file", s.File())
	if limit, err := transport.RaiseOpenFiles(); err != nil {
		b.log.Warn("the limit of open files cannot be raised", "limit", limit, "error", err)
	}
	warnings, err := s.Check()
	if err != nil {
		return nil, err
	}
	if line := tooMany(c, transport.OpenFileLimit()); line != "" {
		b.log.Warn(line)
	}
	for _, line := range warnings {
		b.log.Warn(line)
	}
	b.stopping = make(chan string, 1)
	b.stop = func(why string) {
		select {
		case b.stopping <- why:
		default:
		}
	}
	failed := make(chan error, 1)
	fatal := func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	st, id, err := s.openStore(ctx, c, fatal)
	if err != nil {
		return nil, err
	}
	b.spool = s.openSpool(c, fatal)
	b.started = time.Now()
	if err := b.assemble(st, id, fatal); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	if err := b.open(); err != nil {
		b.end(nil)
		return nil, errors.Join(err, b.err)
	}
	for _, l := range b.listeners {
		b.log.Info("listening", "connector", l.config.Name, "address", l.address())
	}
	rungroup.New(context.Background()).Go("watch", func(context.Context) error {
		b.watch(ctx, failed)
		return nil
	})
	return b, nil
}

// assemble makes core, bridges and loop over an open store. Nothing runs yet.
func (b *Broker) assemble(st store.Store, id message.BrokerID, fatal func(error)) error {
	headers, err := st.Headers()
	if err != nil {
		return err
	}
	b.store = st
	b.loop = loop.New()
	b.committer = store.NewCommitter(st, b.loop.Post)
	b.committer.OnFatal = fatal
	events := newEventLog(b.log, b.loop)
	b.events = events
	o := brokerOptions(b.config, id, b.url())
	o.Observe = events.core
	o.PeerAsks = func(from network.Asker, links []message.ConnectionID) int {
		return b.home.EndOthers(from, links)
	}
	o.PeerSeen = func(peer message.BrokerID) { b.home.Seen(peer) }
	var storage broker.Storage = b.committer
	if b.spool != nil {
		overlay := b.spool.over(b.committer, b.loop.Post, fatal)
		storage, o.Spool = overlay, overlay.Spool()
	}
	if o.NextDest, err = broker.NextDest(st); err != nil {
		return err
	}
	if o.DoubtPatience, err = broker.DoubtPatience(st); err != nil {
		return err
	}
	if o.NextSequence, err = broker.NextSequence(st); err != nil {
		return err
	}
	if o.PeersSeen, err = broker.PeersSeen(st); err != nil {
		return err
	}
	if a := b.config.Auth; a != nil {
		if o.Authenticator, err = authenticator(a); err != nil {
			return err
		}
	}
	o.Authorizer = authorizer(b.config.Authorization)
	b.group = rungroup.New(context.Background())
	b.loops = rungroup.New(context.Background())
	b.controls = rungroup.New(context.Background())
	b.core = broker.New(b.loop, storage, headers, o)
	b.loop.OnTurn(b.core.EndTurn)
	b.hub = newHub(b.loop, o)
	b.home = bridge.NewHome(bridge.Config{
		Local: b.core, Env: b.loop,
		Dialer:  link.NewDialer(link.Options{Hub: b.hub, Group: b.group}),
		Observe: events.bridge,
		Selectors: func(text string) (bridge.Selector, error) {
			sel, err := selector.Parse(text)
			if err != nil {
				return nil, err
			}
			return demandSelector{sel}, nil
		},
	})
	return b.makeConnectors(o)
}

// demandSelector is a selector as bridges ask it: about a message as it is sent.
type demandSelector struct{ *selector.Selector }

// Matches implements bridge.Selector.
func (s demandSelector) Matches(m *message.Message) bool {
	return s.Selector.Matches(message.View{Message: m})
}

// makeConnectors makes a bridge for each peer of each networkConnector.
func (b *Broker) makeConnectors(o broker.Options) error {
	for _, n := range b.config.Networks {
		as := localUser(n, o)
		for _, l := range n.Links {
			c := connector{config: n, options: connectorOptions(n, l, b.compat),
				addresses: map[string]string{}}
			for _, p := range l.Peers {
				c.addresses[p.URI.Text()] = p.URI.String()
			}
			c.options.As = as
			c.options.URIs = inTurn(l, c.options.URIs)
			var err error
			if c.Connector, err = b.home.Connector(c.options); err != nil {
				return fmt.Errorf("%s: networkConnector %s: %w", n.Pos, n.Name, err)
			}
			b.connectors = append(b.connectors, c)
		}
	}
	return nil
}

// open starts the loop, the control socket and the ports.
func (b *Broker) open() error {
	b.loops.Go("loop", func(ctx context.Context) error {
		b.loop.Run(ctx)
		return nil
	})
	inside, err := b.listen()
	if err != nil {
		return err
	}
	b.openControl()
	for _, l := range b.listeners {
		l.Start()
	}
	inside.Start()
	return nil
}

// openControl opens the control socket. A broker that cannot have one works without.
func (b *Broker) openControl() {
	if b.options.NoControl {
		return
	}
	server, socket, err := control.Listen(b.config.Name, b.DataFolder(), managed{b})
	if err != nil {
		b.log.Warn("hopwire status, explain and stop will not find this broker", "error", err)
		return
	}
	b.control = server
	b.controls.Go("control", func(context.Context) error { return server.Serve(socket) })
}

// StartBridges lets the broker's network connectors dial. Those with autoStart=false are stopped.
func (b *Broker) StartBridges() {
	b.loop.Post(func() {
		if b.ending.Load() {
			return
		}
		for _, p := range b.core.DoubtedPeers() {
			b.home.WatchDoubts(p, b.core.DoubtPatience(p))
		}
		for _, c := range b.connectors {
			if c.config.AutoStart {
				c.Start()
			} else {
				c.Stop(nil)
			}
		}
		b.log.Info("ready")
	})
}

// watch waits for the reason to end, and ends.
func (b *Broker) watch(ctx context.Context, failed <-chan error) {
	var err error
	select {
	case <-ctx.Done():
		b.log.Info("stopping", "why", context.Cause(ctx).Error())
	case why := <-b.stopping:
		b.log.Info("stopping", "why", why)
	case err = <-failed:
		err = fmt.Errorf("the store failed: %w", err)
		b.log.Error("stopping", "why", err.Error())
	}
	b.end(err)
}

// errEnded says that a broker answers no more.
func (b *Broker) errEnded() error {
	return message.Errorf(message.Unavailable, "broker %s has ended", b.config.Name)
}

// Bridges tells how the bridges stand; it waits up to 10 s for the broker's turn.
func (b *Broker) Bridges() []Bridge {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	var out []manage.Bridge
	b.loop.Call(ctx, func() { out = b.bridges() })
	return out
}

// bridges runs on the loop.
func (b *Broker) bridges() []manage.Bridge {
	var out []manage.Bridge
	for _, c := range b.connectors {
		out = append(out, manage.FromBridge(c.Status(), b.loop.Mono()))
	}
	out = append(out, unservedBridges(b.config)...)
	for _, a := range b.home.Accepted() {
		out = append(out, manage.FromBridge(a.Status(), b.loop.Mono()))
	}
	for _, a := range b.home.Away() {
		out = append(out, manage.FromBridge(a.Status(), b.loop.Mono()))
	}
	return out
}

// Status tells how the broker stands. It waits for the broker's turn, which an overloaded one gives
// late; the error says that the broker has ended or the context has.
func (b *Broker) Status(ctx context.Context) (*Status, error) {
	s := &manage.Status{Version: Version, PID: pid, Compat: b.compat,
		DataFolder: absolute(b.DataFolder()), Position: b.options.Position,
		UptimeMs: time.Since(b.started).Milliseconds()}
	for _, l := range b.listeners {
		s.Connectors = append(s.Connectors, manage.Connector{Name: l.config.Name,
			Address: l.address()})
	}
	var core broker.Status
	var f wire.Frames
	wayless := map[int][]string{}
	if !b.loop.Call(ctx, func() {
		core, f, s.Bridges = b.core.Status(), b.hub.Frames(), b.bridges()
		for i := range core.Destinations {
			if d := &core.Destinations[i]; slices.Contains(d.Waits, message.NoConsumer) {
				wayless[i] = b.wayless(d.Name)
			}
		}
	}) {
		return nil, b.errEnded()
	}
	s.FromBroker(core, b.edgeReasons(f))
	s.FrameBytes, s.FrameLimitBytes, s.FramesWaiting = f.Bytes, f.LimitBytes, f.Waiting
	for i, waits := range wayless {
		s.Destinations[i].Waits = append(s.Destinations[i].Waits, waits...)
	}
	return s, nil
}

// Explain tells why the messages of a queue are where they are, or that with an id alone; "" is all
// of them. Of topic://NAME it tells of the durable subscriptions.
func (b *Broker) Explain(ctx context.Context, queue, id string) (*Explanation, error) {
	name, err := nameOf(queue)
	if err != nil {
		return nil, err
	}
	var wanted *message.MessageID
	if id != "" {
		m := message.ParseMessageID(id)
		wanted = &m
	}
	answer := make(chan *broker.Explanation, 1)
	ways := make(chan []manage.ExplanationOfWay, 1)
	ok := b.loop.Post(func() {
		ways <- b.ways(name)
		b.core.Explain(name, wanted, func(e *broker.Explanation) { answer <- e })
	})
	if !ok {
		return nil, b.errEnded()
	}
	select {
	case e := <-answer:
		if e == nil || wanted != nil && !e.Found {
			what := name.String()
			if wanted != nil {
				what = "message " + id + " on " + what
			}
			return nil, message.Errorf(message.NotFound, "broker %s has no %s", b.config.Name, what)
		}
		x := manage.FromExplanation(b.config.Name, e)
		x.Ways = <-ways
		return x, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.done:
		return nil, b.errEnded()
	}
}

// wayless are the reasons for which bridges take nothing from a destination, each once: those that
// may pass before those that the configuration makes. It runs on the loop.
func (b *Broker) wayless(name message.Destination) []string {
	var passing, lasting []string
	for _, w := range b.ways(name) {
		to := &passing
		switch message.Reason(w.Reason) {
		case message.Excluded, message.NotIncluded, message.SelfConnect, message.TTLConsumer:
			to = &lasting
		}
		if !slices.Contains(*to, w.Reason) {
			*to = append(*to, w.Reason)
		}
	}
	return append(passing, lasting...)
}

// ways tells why each bridge takes nothing from a destination, for those that do not; it runs on
// the loop.
func (b *Broker) ways(name message.Destination) []manage.ExplanationOfWay {
	var out []manage.ExplanationOfWay
	add := func(which string, r message.Reason, said string, st bridge.Status) {
		w := manage.ExplanationOfWay{Bridge: which, Reason: string(r)}
		switch r {
		case "":
			return
		case message.AccessDenied, message.RemoteDenied, message.DemandUnseen, message.TTLConsumer:
			w.Text = said
		}
		if x := manage.FromBridge(st, b.loop.Mono()); r == message.BridgeDown ||
			st.State == bridge.Backoff {
			w.State, w.Error, w.Attempt, w.NextTryMs = x.State, x.Error, x.Attempt, x.NextTryMs
			w.SinceMs = x.SinceMs
		}
		out = append(out, w)
	}
	for _, c := range b.connectors {
		s := c.Status()
		add(s.Name+" to "+s.URI, c.Explain(name), c.Said(name), s)
	}
	for _, a := range b.home.Accepted() {
		s := a.Status()
		add(s.Name+" of "+s.Peer.Name, a.Explain(name), a.Said(name), s)
	}
	for _, a := range b.home.Away() {
		s := a.Status()
		add(s.Name+" of "+s.Peer.Name, a.Explain(name), "", s)
	}
	return out
}
