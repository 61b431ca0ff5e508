package transport

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"hopwire/internal/message"
)

// Conn is a socket that counts what passes, for the inactivity monitor, and knows its options.
type Conn struct {
	net.Conn
	opt    Options
	reads  atomic.Uint64
	writes atomic.Uint64
	held   atomic.Int32 // how often it is held

	closing sync.Once
	release func() // gives its place in the listener back; may be nil

	direct direct

	mu    sync.Mutex
	watch *time.Timer
	ended bool
}

// Wrap makes a Conn of any connection; a TCP socket gets its options.
func Wrap(c net.Conn, o Options) *Conn {
	if t, ok := c.(*net.TCPConn); ok {
		// A socket whose options cannot be set still works; a dead one shows at the first read.
		_ = t.SetNoDelay(o.TCPNoDelay)
		_ = t.SetKeepAlive(o.KeepAlive)
		if o.SoLinger >= 0 {
			_ = t.SetLinger(o.SoLinger)
		}
		if o.SocketBufferBytes > 0 {
			_ = t.SetReadBuffer(o.SocketBufferBytes)
			_ = t.SetWriteBuffer(o.SocketBufferBytes)
		}
	}
	conn := &Conn{Conn: c, opt: o}
	conn.direct.init(c)
	return conn
}

// Options are what the socket was made with.
func (c *Conn) Options() Options { return c.opt }

// Remote is the peer's address for messages, as ActiveMQ writes it: "tcp://host:port", or
// "vm://name#1" of one in this process.
func (c *Conn) Remote() string {
	if a := c.RemoteAddr(); a != nil {
		return a.Network() + "://" + a.String()
	}
	return "?"
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if c.opt.SoTimeout > 0 {
		_ = c.SetReadDeadline(time.Now().Add(c.opt.SoTimeout))
	}
	n, err := c.direct.read(c.Conn, p)
	if n > 0 {
		c.reads.Add(1)
	}
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.writes.Add(1)
	}
	return n, err
}

// writeNow writes what can be written without waiting, and gives how much that was.
func (c *Conn) writeNow(p []byte) int {
	n := c.direct.write(p)
	if n > 0 {
		c.writes.Add(1)
	}
	return n
}

// Close implements net.Conn; it may be called more than once.
func (c *Conn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		c.mu.Lock()
		c.ended = true
		if c.watch != nil {
			c.watch.Stop()
		}
		c.mu.Unlock()
		err = c.Conn.Close()
		if c.release != nil {
			c.release()
		}
	})
	return err
}

// CloseWrite tells the peer that nothing more comes, where the connection can say so.
func (c *Conn) CloseWrite() bool {
	t, ok := c.Conn.(interface{ CloseWrite() error })
	return ok && t.CloseWrite() == nil
}

// Hold tells the monitor that nobody reads at present: the peer's silence says nothing, but that of
// its machine to what is written does. Who calls it with true calls it with false later.
func (c *Conn) Hold(on bool) {
	if on {
		c.held.Add(1)
	} else {
		c.held.Add(-1)
	}
}

// checksPerSilence is how often in one time of silence the monitor looks.
const checksPerSilence = 3

// Watch starts the inactivity monitor (OpenWire's, ActiveMQ's maxInactivityDuration): after
// delay, and then three times within each silence, it calls keepAlive when nothing was written
// since it last looked; and silent, once, when nothing was read for a whole silence. Both are
// called on a goroutine of the timer and must not block. A silence of 0 watches nothing. While the
// connection is held, silent is called when the peer's machine acknowledged nothing for that long.
func (c *Conn) Watch(silence, delay time.Duration, keepAlive func(), silent func(error)) {
	if silence <= 0 || !c.opt.InactivityMonitor {
		return
	}
	every := max(silence/checksPerSilence, time.Millisecond)
	w := &watcher{
		c: c, silence: silence, every: every, silent: silent, heard: time.Now(),
		reads: c.reads.Load(), writes: c.writes.Load(),
	}
	if c.opt.SendKeepAlive {
		w.keepAlive = keepAlive
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.watch = time.AfterFunc(max(min(delay, every), time.Millisecond), w.check)
	}
}

type watcher struct {
	c              *Conn
	silence, every time.Duration
	keepAlive      func()
	silent         func(error)
	reads, writes  uint64
	heard          time.Time
}

func (w *watcher) check() {
	now := time.Now()
	switch n := w.c.reads.Load(); {
	case n != w.reads:
		w.reads, w.heard = n, now
	case w.c.held.Load() > 0:
		since, _ := unanswered(w.c.Conn)
		if at := now.Add(-since); at.After(w.heard) {
			w.heard = at
		}
	}
	if now.Sub(w.heard) >= w.silence {
		w.silent(message.Errorf(message.Unavailable,
			"nothing was heard for %v (maxInactivityDuration)", w.silence))
		return
	}
	if n := w.c.writes.Load(); n != w.writes {
		w.writes = n
	} else if w.keepAlive != nil {
		w.writes++ // its own write does not count
		w.keepAlive()
	}
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if !w.c.ended {
		w.c.watch.Reset(w.every)
	}
}

// writePatiently writes all of p and gives up when the peer takes not one byte for the stall
// timeout.
func (c *Conn) writePatiently(p []byte, armed *time.Time) error {
	stall := c.opt.StallTimeout
	for {
		if now := time.Now(); now.Sub(*armed) > stall/8 {
			if err := c.SetWriteDeadline(now.Add(stall)); err != nil {
				return err
			}
			*armed = now
		}
		n, err := c.Write(p)
		p = p[n:]
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case n == 0 && time.Since(*armed) >= stall:
			return message.Errorf(message.Unavailable,
				"the peer took nothing for %v (soWriteTimeout)", stall)
		}
		*armed = time.Time{}
	}
}
