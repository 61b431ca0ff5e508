// Package proxy is a TCP proxy on loopback that breaks connections in the ways networks do: cut,
// cut in the middle of a frame, stalled in one direction, swallowing what is sent, slow.
//
//	p := proxy.Start(t, b.Addr())
//	… connect to p.Addr() instead of b.Addr() …
//	p.Stall(proxy.Down)
//	p.Heal()
//
// Faults hold for the connections that are open and those that come. A proxy and all its goroutines
// end with the test.
package proxy

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Direction is which way bytes go; directions may be combined.
type Direction int

// Up is from the one who connected to the target, Down is back.
const (
	Up   Direction = 1
	Down Direction = 2
	Both           = Up | Down
)

// Proxy forwards connections to one target.
type Proxy struct {
	target string
	listen net.Listener
	closed chan struct{}
	wg     sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a fault changes
	faults  faults
	links   map[*link]bool
	passed  [2]int64 // bytes forwarded, by pump
	count   int      // connections made through to the target
}

// faults are what is wrong at present.
type faults struct {
	refuse  bool
	stall   Direction
	swallow Direction
	delay   time.Duration
	budget  [2]int64 // bytes until a cut, by pump; -1 for none
}

var healthy = faults{budget: [2]int64{-1, -1}}

// Start opens a proxy to target, which is host:port on loopback, on a free port.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		target: target, listen: l, closed: make(chan struct{}), changed: make(chan struct{}),
		faults: healthy, links: map[*link]bool{},
	}
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(p.Close)
	return p
}

// Addr is where the proxy listens, as host:port.
func (p *Proxy) Addr() string { return p.listen.Addr().String() }

// URL is where the proxy listens, as ActiveMQ writes it.
func (p *Proxy) URL() string { return "tcp://" + p.Addr() }

// Break resets every open connection; new ones get through.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breakAll()
}

// Cut resets every open connection and each new one, until Heal.
func (p *Proxy) Cut() {
	p.set(func(f *faults) { f.refuse = true })
	p.Break()
}

// CutAfterBytes forwards n more bytes in a direction, over all connections, and then does what Cut
// does. It can tear a frame anywhere. The direction is Up or Down.
func (p *Proxy) CutAfterBytes(d Direction, n int64) {
	p.set(func(f *faults) { f.budget[d.pump()] = n })
}

// Stall forwards nothing in a direction, and after some buffering takes nothing from its sender, as
// a receiver that hangs. Heal lets all that waits through.
func (p *Proxy) Stall(d Direction) { p.set(func(f *faults) { f.stall |= d }) }

// Swallow takes and drops what is sent in a direction, as a path that lost its far end does. Heal
// resets the connections that have holes.
func (p *Proxy) Swallow(d Direction) { p.set(func(f *faults) { f.swallow |= d }) }

// Delay has every byte arrive so much later; the rate stays.
func (p *Proxy) Delay(d time.Duration) { p.set(func(f *faults) { f.delay = d }) }

// Heal ends all faults.
func (p *Proxy) Heal() {
	p.set(func(f *faults) { *f = healthy })
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.holes {
			l.reset()
		}
	}
}

// Passed is how many bytes were forwarded Up or Down since the start.
func (p *Proxy) Passed(d Direction) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed[d.pump()]
}

// Connections is how many connections were made through the proxy since the start.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Close ends the proxy and waits for its goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	select {
	case <-p.closed:
	default:
		close(p.closed)
		p.listen.Close()
		p.breakAll()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *Proxy) set(change func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.faults)
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) breakAll() {
	for l := range p.links {
		l.reset()
	}
}

// pump is the index of a single direction.
func (d Direction) pump() int {
	if d == Up {
		return 0
	}
	return 1
}
