package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// link is one proxied connection: two sockets and a pump for each direction.
type link struct {
	near, far *net.TCPConn
	holes     bool          // bytes were swallowed; guarded by the proxy's lock
	gone      chan struct{} // closed by reset
	once      sync.Once
}

// reset ends both sockets with a reset instead of an orderly end.
func (l *link) reset() { l.end(nil) }

// end is reset, but lets what was written to one socket arrive first.
func (l *link) end(after *net.TCPConn) {
	l.once.Do(func() {
		close(l.gone)
		for _, c := range []*net.TCPConn{l.near, l.far} {
			if c != after {
				_ = c.SetLinger(0) // fails only on a socket that is gone
			}
			c.Close()
		}
	})
}

// chunk is some bytes and when they may go on; no bytes are the sender's orderly end.
type chunk struct {
	bytes []byte
	due   time.Time
}

// chunks is how many chunks may wait in a pump; each has at most chunkBytes.
const (
	chunks     = 64
	chunkBytes = 16 << 10
)

func (p *Proxy) accept() {
	defer p.wg.Done()
	for {
		near, err := p.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the connection was gone before it was taken
		}
		p.wg.Add(1)
		go p.connect(near.(*net.TCPConn))
	}
}

// connect makes the way to the target and starts the pumps.
func (p *Proxy) connect(near *net.TCPConn) {
	defer p.wg.Done()
	far, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil {
		near.Close()
		return
	}
	l := &link{near: near, far: far.(*net.TCPConn), gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		l.reset()
		return
	default:
	}
	if p.faults.refuse {
		l.reset()
		return
	}
	p.links[l] = true
	p.count++
	p.wg.Add(1)
	go p.serve(l)
}

// serve runs both pumps of a link to their end.
func (p *Proxy) serve(l *link) {
	defer p.wg.Done()
	var pumps sync.WaitGroup
	for _, way := range []struct {
		d        Direction
		from, to *net.TCPConn
	}{{Up, l.near, l.far}, {Down, l.far, l.near}} {
		queue := make(chan chunk, chunks)
		pumps.Go(func() { p.take(l, way.d, way.from, queue) })
		pumps.Go(func() { p.give(l, way.d, way.to, queue) })
	}
	pumps.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
	l.reset()
}

// take reads until the sender ends or the link is reset.
func (p *Proxy) take(l *link, d Direction, from *net.TCPConn, queue chan<- chunk) {
	defer close(queue)
	for {
		buffer := make([]byte, chunkBytes)
		n, err := from.Read(buffer)
		if n > 0 {
			if due, keep := p.look(l, d); keep {
				select {
				case queue <- chunk{buffer[:n], due}:
				case <-l.gone:
					return
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			l.reset()
			return
		}
	}
}

// look says when bytes read now may go on, and whether they may at all.
func (p *Proxy) look(l *link, d Direction) (due time.Time, keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults.swallow&d != 0 {
		l.holes = true
		return time.Time{}, false
	}
	return time.Now().Add(p.faults.delay), true
}

// give writes what was taken, when it may go.
func (p *Proxy) give(l *link, d Direction, to *net.TCPConn, queue <-chan chunk) {
	for c := range queue {
		if !p.await(l, d, c.due) {
			return
		}
		n, cut := p.spend(d, len(c.bytes))
		if _, err := to.Write(c.bytes[:n]); err != nil {
			l.reset()
			return
		}
		if cut {
			l.end(to)
			p.Break()
			return
		}
	}
	if p.await(l, d, time.Time{}) {
		_ = to.CloseWrite() // the link may have been reset by now
	}
}

// await waits until the time has come and the direction is not stalled; false if the link is gone.
func (p *Proxy) await(l *link, d Direction, due time.Time) bool {
	if pause := time.Until(due); pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.gone:
			return false
		}
	}
	for {
		p.mu.Lock()
		stalled, changed := p.faults.stall&d != 0, p.changed
		p.mu.Unlock()
		if !stalled {
			return true
		}
		select {
		case <-changed:
		case <-l.gone:
			return false
		}
	}
}

// spend counts n bytes, or as many of them as may go before a cut, and says whether that is now.
func (p *Proxy) spend(d Direction, n int) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cut := false
	if budget := &p.faults.budget[d.pump()]; *budget >= 0 {
		if int64(n) >= *budget {
			n, cut = int(*budget), true
			p.faults.refuse = true
		}
		*budget -= int64(n)
	}
	p.passed[d.pump()] += int64(n)
	return n, cut
}
