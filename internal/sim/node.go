package sim

import (
	"fmt"
	"slices"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/broker"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/policy"
	"hopwire/internal/selector"
	"hopwire/internal/store"
	"hopwire/internal/store/mem"
)

// NodeConfig says what a broker of the world is.
type NodeConfig struct {
	Name         string // of one word; its id is ID:name
	ActiveMQ     bool   // behaves toward its peers as if it were no Hopwire broker
	NoAdvisories bool   // advisorySupport=false
	Volatile     bool   // persistent=false
	Policies     *policy.Map
	MemoryLimit  int64
	Spool        bool // messages of queues that are not persistent are spooled when memory is short
	StoreLimit   int64
	PurgePeriod  time.Duration // of sweeps for unused destinations; 0 none
	Rights       Rights        // nil lets everybody do everything
	Plant        *Plant        // a fault planted in it; nil is none
}

// Node is one broker of the world, whether it runs or not.
type Node struct {
	w          *World
	cfg        NodeConfig
	disk       *Disk
	spool      *Disk         // of this life; nil is none
	spooled    int64         // copies that were, in earlier lives
	skew       time.Duration // its clock is ahead by
	connectors []bridge.Options
	life       *life // nil while it is down
	lives      int
	stopping   bool
	locked     bool // lets no bridge in
}

// life is a broker from its start to its end.
type life struct {
	node       *Node
	number     int
	env        *env
	storage    *storage
	core       *broker.Broker
	home       *bridge.Home
	connectors []*bridge.Connector
	ends       []*end
}

// Broker makes a broker and starts it.
func (w *World) Broker(cfg NodeConfig) *Node {
	n := &Node{w: w, cfg: cfg, disk: newDisk(w)}
	w.nodes = append(w.nodes, n)
	n.Start()
	return n
}

// Name gives the broker's name.
func (n *Node) Name() string { return n.cfg.Name }

// ID gives the broker's id.
func (n *Node) ID() message.BrokerID { return message.BrokerID("ID:" + n.cfg.Name) }

// Up reports whether the broker runs.
func (n *Node) Up() bool { return n.life != nil }

// Core gives the running broker, nil while it is down. It is only called between events.
func (n *Node) Core() *broker.Broker {
	if n.life == nil {
		return nil
	}
	return n.life.core
}

// Home gives the running broker's bridges, nil while it is down.
func (n *Node) Home() *bridge.Home {
	if n.life == nil {
		return nil
	}
	return n.life.home
}

// Connectors gives the running broker's connectors.
func (n *Node) Connectors() []*bridge.Connector {
	if n.life == nil {
		return nil
	}
	return n.life.connectors
}

// Skew sets how far the broker's time of day is ahead.
func (n *Node) Skew(d time.Duration) {
	n.w.trace("%s: clock jumps from %v to %v ahead", n.cfg.Name, n.skew, d)
	n.skew = d
}

// Slow makes each operation of the broker's disk take longer by d.
func (n *Node) Slow(d time.Duration) {
	n.w.trace("%s: disk slower by %v", n.cfg.Name, d)
	for _, x := range n.disks() {
		x.slow = d
	}
}

// disks are the broker's disk, and that of its spool.
func (n *Node) disks() []*Disk {
	if n.spool == nil {
		return []*Disk{n.disk}
	}
	return []*Disk{n.disk, n.spool}
}

// Spoil makes so many percent of the reads of the broker's disk fail.
func (n *Node) Spoil(percent int) {
	n.w.trace("%s: %d%% of the reads fail", n.cfg.Name, percent)
	for _, x := range n.disks() {
		x.spoilt = percent
	}
}

// Capacity limits the broker's disk; 0 is no limit.
func (n *Node) Capacity(capacityBytes, reserveBytes int64) {
	n.w.trace("%s: disk limited to %d bytes", n.cfg.Name, capacityBytes)
	n.disk.store.SetCapacity(capacityBytes, reserveBytes)
}

// SpoolCapacity limits the disk of the broker's spool; 0 is no limit.
func (n *Node) SpoolCapacity(capacityBytes, reserveBytes int64) {
	if n.spool != nil {
		n.w.trace("%s: spool limited to %d bytes", n.cfg.Name, capacityBytes)
		n.spool.store.SetCapacity(capacityBytes, reserveBytes)
	}
}

// bridgeUser is who bridges log in as.
const bridgeUser = "bridge"

// Lock makes the broker refuse the logins of bridges from now on, or let them in again.
func (n *Node) Lock(on bool) {
	n.w.trace("%s: bridges are refused: %v", n.cfg.Name, on)
	n.locked = on
}

// Authenticate implements broker.Authenticator.
func (n *Node) Authenticate(user, _ string) (message.Principal, error) {
	if n.locked && user == bridgeUser {
		return message.Principal{}, message.Errorf(message.Denied, "bridges are not let in")
	}
	return message.Principal{User: user}, nil
}

// Start starts the broker over what its disk has.
func (n *Node) Start() {
	if n.life != nil {
		return
	}
	n.lives++
	n.stopping = false
	l := &life{node: n, number: n.lives, env: newEnv(n)}
	n.life = l
	l.storage = &storage{env: l.env, disk: n.disk}
	headers, err := n.disk.store.Headers()
	if err != nil {
		panic(err)
	}
	next, err := broker.NextDest(n.disk.store)
	if err != nil {
		panic(err)
	}
	sequence, err := broker.NextSequence(n.disk.store)
	if err != nil {
		panic(err)
	}
	patience, err := broker.DoubtPatience(n.disk.store)
	if err != nil {
		panic(err)
	}
	seen, err := broker.PeersSeen(n.disk.store)
	if err != nil {
		panic(err)
	}
	n.w.trace("%s: starts, %d stored destinations", n.cfg.Name, len(headers))
	disk, local, clock := n.cfg.Plant.around(l)
	if p := n.cfg.Plant; p != nil && p.Headers != nil {
		headers = p.Headers(headers)
	}
	options := broker.Options{
		Name: n.cfg.Name, ID: n.ID(), URL: "sim://" + n.cfg.Name,
		Persistent: !n.cfg.Volatile, Advisories: !n.cfg.NoAdvisories, Policies: n.cfg.Policies,
		MemoryLimitBytes: n.cfg.MemoryLimit, StoreLimitBytes: n.cfg.StoreLimit,
		PurgePeriod: n.cfg.PurgePeriod,
		NextDest:    next, NextSequence: sequence, DoubtPatience: patience,
		PeersSeen: seen, Observe: l.observe,
		Authenticator: n,
		PeerAsks: func(from network.Asker, links []message.ConnectionID) int {
			return l.home.EndOthers(from, links)
		},
	}
	n.cfg.Rights.apply(&options)
	disk = n.spoolOver(disk, l, &options)
	l.core = broker.New(clock, disk, headers, options)
	l.env.end = func() {
		l.core.EndTurn()
		l.storage.idle()
	}
	l.home = bridge.NewHome(bridge.Config{Local: local(l.core), Env: clock, Dialer: l,
		Observe: l.observeBridge, Selectors: parseSelector})
	for _, o := range n.connectors {
		l.connector(o)
	}
	for _, peer := range l.core.DoubtedPeers() {
		l.home.WatchDoubts(peer, l.core.DoubtPatience(peer))
	}
}

// spoolOver lays a new spool over a life's storage, if the broker has one.
func (n *Node) spoolOver(under broker.Storage, l *life, o *broker.Options) broker.Storage {
	if !n.cfg.Spool {
		return under
	}
	n.spool = &Disk{w: n.w, store: mem.New(), slow: n.disk.slow, spoilt: n.disk.spoilt}
	overlay := store.NewOverlay(under, &storage{env: l.env, disk: n.spool})
	o.Spool = overlay.Spool()
	return overlay
}

// Spooled is how many copies were spooled, ever.
func (n *Node) Spooled() int64 {
	if n.life == nil {
		return n.spooled
	}
	return n.spooled + n.life.core.Status().Spool.Total
}

// Connect adds a connector to the broker, now and at each later start.
func (n *Node) Connect(o bridge.Options) {
	n.connectors = append(n.connectors, o)
	if n.life != nil {
		n.life.connector(o)
	}
}

func (l *life) connector(o bridge.Options) {
	o.As = l.node.cfg.Rights.user(&o)
	c, err := l.home.Connector(o)
	if err != nil {
		panic(fmt.Sprintf("sim: connector %s of %s: %v", o.Name, l.node.cfg.Name, err))
	}
	l.connectors = append(l.connectors, c)
	l.env.post(c.Start)
}

// Crash kills the broker. What it sent is on its way still; with lost its peers do not even hear
// that it is gone before detect is over.
func (n *Node) Crash(lost bool, detect time.Duration) {
	l := n.life
	if l == nil {
		return
	}
	n.w.trace("%s: crashes", n.cfg.Name)
	l.env.dead = true
	n.spooled, n.life = n.Spooled(), nil
	for _, e := range slices.Clone(l.ends) {
		if lost {
			e.socket.sever(detect)
		}
		e.close()
	}
	n.disk.crash()
}

// Stop ends the broker cleanly; done is called when it is down.
func (n *Node) Stop(done func()) {
	l := n.life
	if l == nil {
		done()
		return
	}
	n.w.trace("%s: stops", n.cfg.Name)
	n.stopping = true
	l.env.post(func() {
		halves := l.home.Accepted()
		left := len(l.connectors) + len(halves) + 1
		ended := func() {
			if left--; left == 0 && !l.env.dead {
				l.core.Stop(func() {}, func() { l.down(done) })
			}
		}
		for _, c := range l.connectors {
			c.Stop(ended)
		}
		for _, a := range halves {
			a.Stop(ended)
		}
		ended()
	})
}

// down is the end of a clean stop.
func (l *life) down(done func()) {
	n := l.node
	if l.env.dead {
		return
	}
	l.env.dead = true
	n.spooled, n.life = n.Spooled(), nil
	for _, e := range slices.Clone(l.ends) {
		e.close()
	}
	n.w.trace("%s: is down", n.cfg.Name)
	done()
}

func (l *life) observe(e broker.Event) {
	w := l.node.w
	w.ledger.told(l, e)
	if w.opt.Trace != nil {
		w.trace("%s: event %d %s %s %s", l.node.cfg.Name, e.Kind, e.Reason, e.Dest, e.Text)
	}
}

func (l *life) observeBridge(e bridge.Event) {
	w := l.node.w
	if w.opt.Trace != nil {
		w.trace("%s: bridge %s event %d %s %s %s %s n=%d", l.node.cfg.Name, e.Connector, e.Kind,
			e.State, e.Destination, e.Reason, e.Text, e.Count)
	}
}

// simSelector lets a bridge judge messages by a parsed selector.
type simSelector struct{ *selector.Selector }

func (s simSelector) Matches(m *message.Message) bool {
	return s.Selector.Matches(message.View{Message: m})
}

func parseSelector(text string) (bridge.Selector, error) {
	s, err := selector.Parse(text)
	if err != nil {
		return nil, err
	}
	return simSelector{s}, nil
}
