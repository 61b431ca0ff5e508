package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"
)

// epoch is the time of day at which every world begins, in ms since 1970.
const epoch = 1_700_000_000_000

// stallEvents is how many events may happen without time going on before the world takes it for
// a livelock.
const stallEvents = 200_000

// Options say how a world behaves where nothing else is said.
type Options struct {
	Latency    time.Duration // of a command between brokers or to a client; default 1 ms
	Jitter     time.Duration // up to this much is added to each; default none
	DiskDelay  time.Duration // of one commit or read; default 2 ms
	DiskJitter time.Duration // up to this much is added; default none
	TurnEvents int           // a turn ends after so many events; default 1000
	Flying     int           // messages on their way from one end that want no more; 0 is no bound
	// Trace gets one line for each thing that happens; nil is none.
	Trace func(line string)
}

func (o Options) withDefaults() Options {
	if o.Latency == 0 {
		o.Latency = time.Millisecond
	}
	if o.DiskDelay == 0 {
		o.DiskDelay = 2 * time.Millisecond
	}
	if o.TurnEvents == 0 {
		o.TurnEvents = 1000
	}
	return o
}

// World is brokers, clients and what is between them, under one clock. It runs on one goroutine.
type World struct {
	opt    Options
	rnd    *rand.Rand
	now    time.Duration
	order  uint64
	events eventHeap
	stall  int

	nodes  []*Node
	cables []*cable
	// manager is that of the clients' transactions; nil when they have one phase.
	manager *manager
	tap     func(from, to string, cmd any)
	ledger  *Ledger
	notes   []string // what no run may show: refused acknowledgements and the like
}

// New makes an empty world.
func New(seed uint64, o Options) *World {
	w := &World{opt: o.withDefaults(), rnd: rand.New(rand.NewPCG(seed, 0x5ee_d0f_a11))}
	w.ledger = newLedger(w)
	return w
}

// Now is the time since the world began.
func (w *World) Now() time.Duration { return w.now }

// Rand is the world's source of chance.
func (w *World) Rand() *rand.Rand { return w.rnd }

// Ledger is what the world knows of all messages.
func (w *World) Ledger() *Ledger { return w.ledger }

// Notes are the things that happened and should not have, whatever the faults.
func (w *World) Notes() []string { return w.notes }

// Tap shows f every command that crosses between two brokers when it arrives.
func (w *World) Tap(f func(from, to string, cmd any)) { w.tap = f }

func (w *World) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.notes = append(w.notes, line)
	w.trace("NOTE %s", line)
}

func (w *World) trace(format string, args ...any) {
	if w.opt.Trace != nil {
		w.opt.Trace(fmt.Sprintf("%12.6f ", w.now.Seconds()) + fmt.Sprintf(format, args...))
	}
}

// within gives a random time up to d.
func (w *World) within(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.rnd.Int64N(int64(d) + 1))
}

// event is something that will happen.
type event struct {
	at    time.Duration
	order uint64
	f     func()
}

// After lets f happen d from now.
func (w *World) After(d time.Duration, f func()) {
	w.order++
	heap.Push(&w.events, event{w.now + max(0, d), w.order, f})
}

// Run lets the world go on for d.
func (w *World) Run(d time.Duration) {
	end := w.now + d
	for len(w.events) > 0 && w.events[0].at <= end {
		w.step()
	}
	w.now = end
}

func (w *World) step() {
	e := heap.Pop(&w.events).(event)
	if e.at > w.now {
		w.now, w.stall = e.at, 0
	}
	if w.stall++; w.stall > stallEvents {
		panic(fmt.Sprintf("sim: %d events at %v without an end", w.stall, w.now))
	}
	e.f()
}

// Node gives a broker by its name, nil for none.
func (w *World) Node(name string) *Node {
	for _, n := range w.nodes {
		if n.cfg.Name == name {
			return n
		}
	}
	return nil
}

// Nodes gives all brokers in the order of their making.
func (w *World) Nodes() []*Node { return w.nodes }

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}
