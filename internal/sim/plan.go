package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"hopwire/internal/bridge"
	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// Plan is what a seed draws: a network, what its applications do, and which faults there are at
// all. A fault that is not drawn never happens in that run, so that the others can go far.
type Plan struct {
	Seed     uint64
	Topology string // line, ring, mesh, star
	Brokers  int
	Duplex   bool
	ActiveMQ int // index of a broker that is none of ours; -1 for none
	Replay   bool
	Delay    time.Duration // replayDelay
	Selector bool          // some consumers take only some messages
	Conduit  bool
	Decrease bool
	Ahead    bool
	TTL      int32
	Prefetch int32
	InDoubt  time.Duration

	Queues    int
	Producers int
	Messages  int // of each producer
	Consumers int
	Volatile  bool          // some messages are not persistent
	Groups    bool          // messages are in groups
	Sessions  bool          // producers and consumers use transactions
	Branches  bool          // these have two phases
	Memory    int64         // memoryLimit of each queue
	Broker    int64         // memoryUsage of each broker
	Spool     bool          // brokers have a spool
	Resend    bool          // producers send again what was not confirmed when they come back
	Twin      bool          // two connectors between each pair
	Suppress  bool          // suppressDuplicateQueueSubscriptions
	Length    time.Duration // of the time with faults

	Hop, ClientCrash            bool
	Lingers                     bool
	Cuts, Clogs, Crashes, Stops bool
	FullDisks, SlowDisks, Jumps bool
	Locks                       bool          // brokers refuse the logins of bridges for a while
	Static                      bool          // connectors list the queues, and so forward at once
	BadReads                    bool          // much of what is read of a disk cannot be, for a while
	Detect                      time.Duration // how late a broken connection is noticed at most
	OneConsumer                 bool          // at the end one application takes everything
	LatencyJitter, DiskJitter   time.Duration
	TurnEvents                  int
	Flying                      int // messages on their way that fill a connection; 0 is no bound
	// Unused queues are removed after that time, with UnusedBridged those that bridges alone consume;
	// 0 for never.
	Unused        time.Duration
	UnusedBridged bool
}

// Draw makes the plan of a seed.
func Draw(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 77))
	some := func(percent int) bool { return r.IntN(100) < percent }
	pick := func(list ...int) int { return list[r.IntN(len(list))] }
	p := Plan{Seed: seed, Topology: []string{"line", "ring", "mesh", "star"}[r.IntN(4)],
		Brokers: pick(2, 2, 2, 3, 3, 4, 5), Duplex: some(40), ActiveMQ: -1,
		Replay: some(55), Selector: some(25), Conduit: some(70), Decrease: some(40),
		Ahead: some(15), TTL: int32(pick(1, 2, 10, 10)), Prefetch: int32(pick(1, 3, 20, 1000)),
		InDoubt: bridge.NeverTimeout,
		Queues:  pick(1, 1, 2, 3), Producers: pick(1, 2, 3), Messages: pick(5, 20, 60, 150),
		Consumers: pick(1, 2, 3, 5), Volatile: some(15), Sessions: some(30),
		Length: time.Duration(pick(5, 15, 40)) * time.Second,
		Hop:    some(50), ClientCrash: some(30), Cuts: some(45), Clogs: some(30),
		Crashes: some(45), Stops: some(20), FullDisks: some(20), SlowDisks: some(30),
		Jumps: some(20), Detect: time.Duration(pick(0, 5, 500, 10000)) * time.Millisecond,
		LatencyJitter: time.Duration(pick(0, 1, 20)) * time.Millisecond,
		DiskJitter:    time.Duration(pick(0, 5, 50)) * time.Millisecond,
		TurnEvents:    pick(1, 3, 50, 1000)}
	if some(12) {
		p.ActiveMQ = r.IntN(p.Brokers)
	}
	if some(30) {
		p.InDoubt = time.Duration(pick(5, 30, 300)) * time.Second
	}
	if p.Replay && some(50) {
		p.Delay = time.Duration(pick(10, 500, 3000)) * time.Millisecond
	}
	if some(15) {
		p.Memory = int64(pick(20_000, 100_000))
	}
	p.Resend, p.Twin, p.Suppress = some(30), some(10), some(15)
	p.Lingers = some(25)
	if some(10) {
		p.Broker = int64(pick(100_000, 400_000))
	}
	p.OneConsumer = p.Replay && p.TTL == 10 && some(60)
	calm := some(8)
	p.Flying = pick(0, 0, 3, 40)
	p.Locks, p.Static = some(20), some(10)
	if calm {
		p.calm()
	}
	p.BadReads, p.Groups = some(15), some(15) && !p.Selector
	// Drawn apart: what else a seed gives is as without.
	p.Branches = p.Sessions && rand.New(rand.NewPCG(seed, 78)).IntN(2) == 0
	p.spools(rand.New(rand.NewPCG(seed, 79)), calm)
	p.drawUnused(rand.New(rand.NewPCG(seed, 80)))
	return p
}

// spools gives the brokers spools, and has some of them need these.
func (p *Plan) spools(r *rand.Rand, calm bool) {
	if p.Spool = r.IntN(2) == 0; !p.Spool || calm || r.IntN(4) > 0 {
		return
	}
	p.Volatile = true
	if r.IntN(2) == 0 {
		p.Broker = []int64{15_000, 50_000}[r.IntN(2)]
	} else {
		p.Memory = []int64{10_000, 30_000}[r.IntN(2)]
	}
}

// drawUnused has unused queues removed in some plans. A producer that comes back and sends again is
// not recognised by a queue that was made since: there is none then.
func (p *Plan) drawUnused(r *rand.Rand) {
	if r.IntN(3) == 0 && !p.Resend {
		p.Unused = time.Duration([]int{500, 2000, 10_000}[r.IntN(3)]) * time.Millisecond
		p.UnusedBridged = r.IntN(2) == 0
	}
}

// calm makes the applications so quiet that order has to be kept.
func (p *Plan) calm() {
	p.Consumers, p.ActiveMQ, p.InDoubt = 1, -1, bridge.NeverTimeout
	p.Replay, p.Twin, p.Volatile, p.OneConsumer = false, false, false, false
	p.Static = false // the list forwards whether somebody consumes there or not
	p.Hop, p.ClientCrash, p.Crashes, p.Stops, p.Sessions, p.Resend = false, false, false, false,
		false, false
	if p.Topology == "ring" || p.Topology == "mesh" {
		p.Topology = "line"
	}
}

// String is the plan in a few words.
func (p *Plan) String() string {
	var on []string
	add := func(name string, is bool) {
		if is {
			on = append(on, name)
		}
	}
	add("duplex", p.Duplex)
	add("replay", p.Replay)
	add("selectors", p.Selector)
	add("conduit", p.Conduit)
	add("decrease", p.Decrease)
	add("forwardAhead", p.Ahead)
	add("volatile", p.Volatile)
	add("spool", p.Spool)
	add("transactions", p.Sessions)
	add("branches", p.Branches)
	add("resend", p.Resend)
	add("twin", p.Twin)
	add("suppress", p.Suppress)
	add("hop", p.Hop)
	add("clientCrash", p.ClientCrash)
	add("cuts", p.Cuts)
	add("lingers", p.Lingers)
	add("clogs", p.Clogs)
	add("crashes", p.Crashes)
	add("stops", p.Stops)
	add("fullDisks", p.FullDisks)
	add("slowDisks", p.SlowDisks)
	add("jumps", p.Jumps)
	add("locks", p.Locks)
	add("static", p.Static)
	add("badReads", p.BadReads)
	add("groups", p.Groups)
	add("oneConsumer", p.OneConsumer)
	add("unused", p.Unused > 0)
	add("unusedBridged", p.UnusedBridged)
	return fmt.Sprintf("seed %d: %s of %d, activemq=%d ttl=%d prefetch=%d delay=%v"+
		" inDoubt=%v memory=%d/%d queues=%d producers=%dx%d consumers=%d %v detect=%v turn=%d: %s",
		p.Seed, p.Topology, p.Brokers, p.ActiveMQ, p.TTL, p.Prefetch, p.Delay, p.InDoubt,
		p.Memory, p.Broker, p.Queues,
		p.Producers, p.Messages, p.Consumers, p.Length, p.Detect, p.TurnEvents,
		strings.Join(on, " "))
}

// pairs are the brokers that are linked.
func (p *Plan) pairs() [][2]int {
	var out [][2]int
	for i := range p.Brokers {
		for j := i + 1; j < p.Brokers; j++ {
			linked := j == i+1
			switch p.Topology {
			case "ring":
				linked = linked || i == 0 && j == p.Brokers-1
			case "mesh":
				linked = true
			case "star":
				linked = i == 0
			}
			if linked {
				out = append(out, [2]int{i, j})
			}
		}
	}
	return out
}

// tree reports whether there is one way between any two brokers.
func (p *Plan) tree() bool {
	return !p.Twin && (p.Brokers == 2 || p.Topology == "line" || p.Topology == "star")
}

// ordered reports whether nothing in the plan may break the order of one producer's messages at a
// consumer: one way, one consumer, no replay, nothing given back by consumers or sent twice.
func (p *Plan) ordered() bool {
	givesBack := p.Hop || p.ClientCrash || p.Crashes || p.Stops || p.Sessions || p.Resend
	return p.tree() && !p.Static && p.Consumers == 1 && !p.Replay && !givesBack && !p.Volatile &&
		p.ActiveMQ < 0 && p.InDoubt == bridge.NeverTimeout
}

// strict reports whether nothing may be delivered twice: all brokers are ours, and nobody gives up
// asking.
func (p *Plan) strict() bool { return p.ActiveMQ < 0 }

func nameOf(i int) string { return string(rune('a' + i)) }

func (p *Plan) policies() *policy.Map {
	e := policy.NewEntry()
	e.Bridge.Conditional, e.Bridge.ReplayWhenNoConsumers = true, p.Replay
	e.Bridge.ReplayDelay, e.Bridge.SelectorAware = p.Delay, p.Selector
	e.Memory.LimitBytes = p.Memory
	e.GC = policy.GC{Inactive: p.Unused > 0, After: p.Unused, WithNetworkConsumers: p.UnusedBridged}
	return &policy.Map{Default: e}
}

// build makes the network.
func (p *Plan) build(w *World, plant *Plant) {
	for i := range p.Brokers {
		w.Broker(NodeConfig{Name: nameOf(i), ActiveMQ: i == p.ActiveMQ, Policies: p.policies(),
			MemoryLimit: p.Broker, Spool: p.Spool, PurgePeriod: p.Unused / 2, Plant: plant})
	}
	for _, x := range p.pairs() {
		p.link(w, nameOf(x[0]), nameOf(x[1]), "")
		if p.Twin {
			p.link(w, nameOf(x[0]), nameOf(x[1]), "2")
		}
	}
}

func (p *Plan) link(w *World, a, b, name string) {
	if p.Duplex && w.rnd.IntN(4) > 0 {
		w.Node(a).Connect(p.connector(a, b, name, true))
		return
	}
	w.Node(a).Connect(p.connector(a, b, name, false))
	w.Node(b).Connect(p.connector(b, a, name, false))
}

func (p *Plan) connector(from, to, name string, duplex bool) bridge.Options {
	o := bridge.DefaultOptions(5)
	o.Name = from + to + name
	o.SuppressDuplicateQueueSubscriptions = p.Suppress
	o.URIs = []string{"sim://" + to}
	o.Duplex = duplex
	o.ConduitSubscriptions, o.DecreaseNetworkConsumerPriority = p.Conduit, p.Decrease
	o.ForwardAhead = p.Ahead
	o.MessageTTL, o.ConsumerTTL = p.TTL, p.TTL
	o.PrefetchSize = p.Prefetch
	o.AdvisoryPrefetchSize = 1000
	o.InDoubtTimeout = p.InDoubt
	o.RemoteUserName = bridgeUser
	for i := range p.Queues {
		if p.Static {
			o.StaticallyIncluded = append(o.StaticallyIncluded, p.queue(i))
		}
	}
	return o
}

func (p *Plan) queue(i int) message.Destination {
	return message.Destination{Kind: message.Queue, Name: fmt.Sprintf("Q%d", i)}
}
