package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hopwire/internal/rungroup"
	"hopwire/openwire"
)

// roomBytes is how much may wait to be written before callers have to wait.
const roomBytes = 1 << 20

// errQuiet is the end of a link on which nothing was heard for too long.
var errQuiet = errors.New("nothing received for longer than wireFormat.maxInactivityDuration")

// link is one TCP connection after its hellos. Reading belongs to one goroutine.
type link struct {
	addr   string
	conn   net.Conn
	format openwire.Format
	own    bool // the peer is a Hopwire broker
	frames *openwire.FrameReader
	dec    *openwire.Decoder
	batch  [][]byte // frames read and not decoded yet

	heard  atomic.Int64 // Unix nanoseconds of the last byte received
	sent   atomic.Bool  // something was written since the last look of the monitor
	kick   chan struct{}
	closed chan struct{}
	once   sync.Once
	tasks  *rungroup.Group // the writer and the monitor

	mu    sync.Mutex // guards what follows; nothing else is locked under it
	enc   *openwire.Encoder
	buf   []byte        // to be written
	busy  bool          // a write is under way
	room  chan struct{} // closed when buf has become small; nil if nobody waits
	idle  chan struct{} // closed when all is written; nil if nobody waits
	cause error         // why the link was closed
}

// Read notes when bytes arrive, for the monitor; the frame reader reads through it.
func (l *link) Read(p []byte) (int, error) {
	n, err := l.conn.Read(p)
	if n > 0 {
		l.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// start runs the writer and, if silence is to be noticed, the monitor.
func (l *link) start(monitor bool) {
	l.tasks.Go("write", func(context.Context) error { return l.write() })
	if monitor && l.format.Inactivity > 0 {
		l.tasks.Go("watch", func(context.Context) error { return l.watch() })
	}
}

// end closes the link and waits until nothing of it runs.
func (l *link) end(cause error) {
	l.close(cause)
	_ = l.tasks.Wait() // what ended them is the link's cause
}

// close ends the link; the first cause counts.
func (l *link) close(cause error) {
	l.once.Do(func() {
		l.mu.Lock()
		l.cause = cause
		wakeAll(&l.room)
		wakeAll(&l.idle)
		l.mu.Unlock()
		close(l.closed)
		l.conn.Close()
		l.tasks.Stop()
	})
}

// why is the cause of the end, or the error that a read ended with.
func (l *link) why(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return l.cause
	}
	return err
}

func wakeAll(waiters *chan struct{}) {
	if *waiters != nil {
		close(*waiters)
		*waiters = nil
	}
}

// add encodes a command to be written. On a dead link it does nothing: the command shares the
// fate of what was written just before. An error means that this command cannot be sent.
func (l *link) add(cmd openwire.Command) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deadLocked() {
		return nil
	}
	buf, err := l.enc.Append(l.buf, cmd)
	if err != nil {
		return err
	}
	l.buf = buf
	signal(l.kick)
	return nil
}

// hasRoom tells whether little enough waits to be written.
func (l *link) hasRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.roomLocked()
}

func (l *link) roomLocked() bool { return l.deadLocked() || len(l.buf) < roomBytes }

// deadLocked tells whether the link was closed.
func (l *link) deadLocked() bool { return l.cause != nil }

// waitRoom waits until hasRoom may have become true.
func (l *link) waitRoom(ctx context.Context) error {
	l.mu.Lock()
	if l.roomLocked() {
		l.mu.Unlock()
		return nil
	}
	if l.room == nil {
		l.room = make(chan struct{})
	}
	room := l.room
	l.mu.Unlock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush waits until all that was added is written.
func (l *link) flush(ctx context.Context) error {
	l.mu.Lock()
	if l.deadLocked() || len(l.buf) == 0 && !l.busy {
		l.mu.Unlock()
		return nil
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write is the goroutine that writes what waits, all of it at once.
func (l *link) write() error {
	var spare []byte
	for {
		select {
		case <-l.kick:
		case <-l.closed:
			return nil
		}
		l.mu.Lock()
		out := l.buf
		l.buf, spare = spare[:0], nil
		l.busy = true
		wakeAll(&l.room)
		l.mu.Unlock()
		if len(out) > 0 {
			l.sent.Store(true)
			if _, err := l.conn.Write(out); err != nil {
				l.close(err)
				return nil
			}
		}
		l.mu.Lock()
		l.busy = false
		if len(l.buf) == 0 {
			wakeAll(&l.idle)
		}
		l.mu.Unlock()
		if cap(out) <= 2*roomBytes {
			spare = out
		}
	}
}

// watch is the goroutine that keeps the peer from finding us silent and closes the link when the
// peer is.
func (l *link) watch() error {
	quiet := l.format.Inactivity
	first := time.NewTimer(l.format.InitialDelay)
	defer first.Stop()
	select {
	case <-first.C:
	case <-l.closed:
		return nil
	}
	tick := time.NewTicker(max(quiet/3, time.Millisecond))
	defer tick.Stop()
	for {
		if !l.sent.Swap(false) {
			if err := l.add(&openwire.KeepAliveInfo{}); err != nil {
				l.close(err)
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-l.closed:
			return nil
		}
		if time.Since(time.Unix(0, l.heard.Load())) > quiet {
			l.close(fmt.Errorf("%w (%v)", errQuiet, quiet))
			return nil
		}
	}
}

// next decodes the next command, waiting for it.
func (l *link) next() (openwire.DataStructure, error) {
	for len(l.batch) == 0 {
		batch, err := l.frames.ReadBatch()
		if len(batch) == 0 && err != nil {
			return nil, err
		}
		l.batch = batch
	}
	frame := l.batch[0]
	l.batch = l.batch[1:]
	return l.dec.Decode(frame)
}

// signal wakes the one who waits on a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
