package sim

import (
	"fmt"
	"strings"
	"time"

	"hopwire/openwire/primitive"
)

// Outcome is what a run showed.
type Outcome struct {
	Plan       Plan
	Violations []string
	Messages   int
	Delivered  int
	Resends    int // deliveries of what had been delivered before
	Spooled    int64
	Virtual    time.Duration
}

// runner is a plan that runs.
type runner struct {
	p       Plan
	w       *World
	check   *checker
	faulty  bool // the time of faults
	workers []*worker
	senders []*sender
	red     []byte // properties
	blue    []byte
}

// worker is an application that consumes.
type worker struct {
	r     *runner
	c     *Client
	queue int
	over  bool
}

// sender is an application that produces.
type sender struct {
	r    *runner
	c    *Client
	home *Node
	left int
	tx   int // sends in the open transaction
}

// Run plays a seed to its end. trace may be nil, plant too.
func Run(p Plan, trace func(string), plant *Plant) *Outcome {
	w := New(p.Seed, Options{Jitter: p.LatencyJitter, DiskJitter: p.DiskJitter,
		TurnEvents: p.TurnEvents, Flying: p.Flying, Trace: trace})
	w.trace("%s", p.String())
	r := &runner{p: p, w: w, faulty: true}
	r.red, _ = primitive.AppendMap(nil, primitive.Map{{Key: "color", Value: "red"}})
	r.blue, _ = primitive.AppendMap(nil, primitive.Map{{Key: "color", Value: "blue"}})
	r.check = newChecker(r)
	p.build(w, plant)
	if p.Branches {
		w.Manage()
	}
	w.Run(2 * time.Second)
	r.startApplications()
	r.startFaults()
	r.check.start()
	w.Run(p.Length)
	r.stopFaults()
	r.drain()
	r.check.end()
	out := &Outcome{Plan: p, Violations: r.check.found, Messages: len(w.ledger.Order),
		Virtual: w.now}
	for _, f := range w.ledger.Order {
		out.Delivered += len(f.Deliveries)
		out.Resends += max(0, len(f.Deliveries)-1)
	}
	for _, n := range w.nodes {
		out.Spooled += n.Spooled()
	}
	return out
}

// anyNode gives a broker by chance.
func (r *runner) anyNode() *Node { return r.w.nodes[r.w.rnd.IntN(len(r.w.nodes))] }

func (r *runner) startApplications() {
	for i := range r.p.Consumers {
		x := &worker{r: r, c: r.w.Client(fmt.Sprintf("C%d", i)), queue: r.w.rnd.IntN(r.p.Queues)}
		r.workers = append(r.workers, x)
		x.c.OnDown(func() { r.w.After(r.w.within(2*time.Second), x.open) })
		r.w.After(r.w.within(r.p.Length/2), x.open)
	}
	for i := range r.p.Producers {
		s := &sender{r: r, c: r.w.Client(fmt.Sprintf("P%d", i)), home: r.anyNode(),
			left: r.p.Messages}
		r.senders = append(r.senders, s)
		r.w.After(r.w.within(time.Second), s.next)
	}
}

// open connects to some broker and consumes for a while.
func (x *worker) open() {
	r := x.r
	if !r.faulty || x.over || x.c.node != nil {
		return
	}
	if !x.c.Connect(r.anyNode()) {
		r.w.After(time.Second, x.open)
		return
	}
	rnd := r.w.rnd
	wants := Wants{From: r.p.queue(x.queue), Prefetch: []int{-1, 1, 5, 100, 1000}[rnd.IntN(5)],
		Mode: AckMode(rnd.IntN(3)), Batch: 1 + rnd.IntN(5), Work: r.w.within(20 * time.Millisecond)}
	if r.p.Sessions && rnd.IntN(2) == 0 {
		wants.Mode = Transacted
	}
	if r.p.Selector && rnd.IntN(2) == 0 {
		wants.Selector = "color='red'"
	}
	x.c.Consume(wants)
	if r.p.Hop {
		r.w.After(r.w.within(3*time.Second)+10*time.Millisecond, x.leave(x.c.conns))
	}
}

// leave ends the connection that has the number, if it is still there, and hops.
func (x *worker) leave(conn int) func() {
	return func() {
		r := x.r
		if !r.faulty || x.c.conns != conn || x.c.node == nil {
			return
		}
		if r.p.ClientCrash && r.w.rnd.IntN(3) == 0 {
			x.c.Crash(r.p.Detect)
		} else {
			x.c.Close()
		}
		r.w.After(r.w.within(500*time.Millisecond), x.open)
	}
}

// next sends something and plans the next.
func (s *sender) next() {
	r := s.r
	if s.left == 0 || !r.faulty {
		s.finish()
		return
	}
	if s.c.node == nil {
		s.tx = 0
		if !s.connect() {
			r.w.After(500*time.Millisecond, s.next)
			return
		}
	}
	rnd := r.w.rnd
	for range 1 + rnd.IntN(8) {
		if s.left > 0 {
			s.left--
			s.send()
		}
	}
	gap := r.p.Length / time.Duration(r.p.Messages) * 3
	r.w.After(r.w.within(gap), s.next)
}

// connect opens the connection, or opens it again and sends what was not confirmed.
func (s *sender) connect() bool {
	if s.r.p.Resend {
		return s.c.Reconnect(s.home)
	}
	return s.c.Connect(s.home)
}

func (s *sender) send() {
	r := s.r
	rnd := r.w.rnd
	m := Mail{To: r.p.queue(rnd.IntN(r.p.Queues)), Body: make([]byte, rnd.IntN(200)),
		Volatile: r.p.Volatile && rnd.IntN(3) == 0, Properties: r.red}
	if rnd.IntN(2) == 0 {
		m.Properties = r.blue
	}
	if rnd.IntN(8) == 0 {
		m.Type = "Advisory" // a word like any other, to clients
	}
	if r.p.Groups && rnd.IntN(4) > 0 {
		m.Group, m.Number = nameOf(rnd.IntN(3)), []int32{0, 0, 0, 1, -1}[rnd.IntN(5)]
	}
	if r.p.Sessions && s.tx == 0 && rnd.IntN(5) == 0 {
		s.c.Begin()
		s.tx = 1 + rnd.IntN(4)
	}
	s.c.Send(m, func(error) {})
	if s.tx > 0 {
		if s.tx--; s.tx == 0 {
			if rnd.IntN(4) == 0 {
				s.c.Rollback()
			} else {
				s.c.Commit(func(error) {})
			}
		}
	}
}

func (s *sender) finish() {
	if s.tx > 0 {
		s.tx = 0
		s.c.Commit(func(error) {})
	}
}

// stopFaults makes the world whole again.
func (r *runner) stopFaults() {
	r.faulty = false
	r.w.trace("the faults are over")
	for _, c := range r.w.cables {
		if !strings.HasPrefix(c.a, "client ") && !strings.HasPrefix(c.b, "client ") {
			r.w.Heal(c.a, c.b)
		}
	}
	for _, n := range r.w.nodes {
		for _, x := range n.disks() {
			x.slow, x.spoilt = 0, 0
		}
		n.Capacity(0, 0)
		n.SpoolCapacity(0, 0)
		n.Lock(false)
		n.Start()
	}
	for _, s := range r.senders {
		s.finish()
	}
}

// Bounds of the drain.
const (
	drainStep = 5 * time.Second
	drainMost = 15 * time.Minute
)

// takeAll opens a consumer that stays, as soon as the broker is up.
func (r *runner) takeAll(n *Node, q int) {
	c := r.w.Client(fmt.Sprintf("D%s%d", n.cfg.Name, q))
	open := func() bool {
		if !c.Connect(n) {
			return false
		}
		c.Consume(Wants{From: r.p.queue(q), Prefetch: 100})
		return true
	}
	var retry func()
	retry = func() {
		if !open() {
			r.w.After(time.Second, retry)
		}
	}
	c.OnDown(retry)
	retry()
}

// drain gives the applications of the end everything that is left.
func (r *runner) drain() {
	r.w.Run(time.Second)
	for _, x := range r.workers {
		x.over = true
		x.c.Close()
	}
	r.w.Run(time.Second)
	r.check.settled = true
	at := r.w.nodes
	if r.p.OneConsumer {
		i := r.w.rnd.IntN(len(at))
		at = at[i : i+1]
	}
	for _, n := range at {
		for q := range r.p.Queues {
			r.takeAll(n, q)
		}
	}
	for waited := time.Duration(0); waited < drainMost && r.check.left() != ""; {
		r.w.Run(drainStep)
		waited += drainStep
	}
	r.w.Run(time.Second)
}
