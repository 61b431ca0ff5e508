package transport

import (
	"sync"
	"time"
)

const (
	// flushBytes is how much is collected at most before it is written.
	flushBytes = 128 << 10
	// keptBytes is the largest buffer that is used again by other connections.
	keptBytes = 256 << 10
)

var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, 16<<10)} }}

type buffer struct{ b []byte }

// Writer is the writing side of a connection: one goroutine, in Run, that writes what Fill gives
// whenever it is woken. Idle it holds no memory.
type Writer struct {
	conn *Conn
	wake chan struct{}
	fill func(b []byte, limit int) (full []byte, more bool, err error)

	apart []piece // of what fill gives; its own while it runs

	mu    sync.Mutex // held while anything is filled or written
	armed time.Time  // when the write deadline was set
	begun bool       // Run has come; what it writes first is in rest
	rest  []byte     // to be written before anything else
	more  []piece    // of rest
	err   error      // fill's, to be told after rest
}

// ApartBytes is the size from which something should be given to Apart.
const ApartBytes = flushBytes

// piece is written behind so many bytes of what fill gave.
type piece struct {
	at int
	b  []byte
}

// Apart is for fill: where it has come to at bytes of its answer, b is written before what follows,
// from where it is. Nobody may change b any more.
func (w *Writer) Apart(at int, b []byte) { w.apart = append(w.apart, piece{at, b}) }

// NewWriter makes a writer. fill appends what waits to b, about limit bytes at most, and tells
// whether something is left; it runs on one goroutine at a time, the writer's or one that calls
// Flush. An empty answer without more ends a round.
func NewWriter(c *Conn, fill func(b []byte, limit int) ([]byte, bool, error)) *Writer {
	return &Writer{conn: c, wake: make(chan struct{}, 1), fill: fill}
}

// Wake makes the writer ask for what waits. It may be called from any goroutine.
func (w *Writer) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Flush writes what waits on the caller's goroutine, as far as the socket takes it without
// waiting, and wakes the writer for the rest. It never blocks. Where little waits and little else
// is to be done it saves the wake-up, which costs more than the write.
func (w *Writer) Flush() {
	if !w.conn.direct.able() || !w.mu.TryLock() {
		w.Wake() // the writer is at it, and may have looked before this came
		return
	}
	defer w.mu.Unlock()
	if !w.begun || len(w.rest) > 0 || w.err != nil {
		w.Wake()
		return
	}
	buf := buffers.Get().(*buffer)
	defer buf.release()
	var more bool
	buf.b, more, w.err = w.fill(buf.b[:0], flushBytes)
	if len(w.apart) > 0 { // large: it is the writer's
		w.more, w.apart = w.apart, nil
		w.rest, buf.b = buf.b, nil
		w.Wake()
		return
	}
	n := w.conn.writeNow(buf.b)
	if n < len(buf.b) && cap(buf.b) > keptBytes {
		w.rest, buf.b = buf.b[n:], nil // large: it is not copied, and not used again anyway
	} else {
		w.rest = append(w.rest, buf.b[n:]...)
	}
	if more || len(w.rest) > 0 || w.err != nil {
		w.Wake()
	}
}

// Run writes until done is closed or something fails. first is written before anything else.
func (w *Writer) Run(done <-chan struct{}, first []byte) error {
	w.mu.Lock()
	w.begun, w.rest = true, first
	w.mu.Unlock()
	for {
		if err := w.round(); err != nil {
			return err
		}
		select {
		case <-w.wake:
		case <-done:
			return nil
		}
	}
}

// round writes all that waits.
func (w *Writer) round() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		if err := w.writeAll(w.rest, w.more); err != nil {
			return err
		}
		w.rest, w.more = nil, nil
	}
	if w.err != nil {
		return w.err
	}
	buf := buffers.Get().(*buffer)
	defer buf.release()
	for more := true; more; {
		var ferr error
		buf.b, more, ferr = w.fill(buf.b[:0], flushBytes)
		err := w.writeAll(buf.b, w.apart)
		clear(w.apart)
		w.apart = w.apart[:0]
		if err != nil {
			return err
		}
		if ferr != nil {
			return ferr
		}
	}
	return nil
}

// writeAll writes b with pieces in it.
func (w *Writer) writeAll(b []byte, pieces []piece) error {
	done := 0
	for _, p := range pieces {
		if err := w.write(b[done:p.at]); err != nil {
			return err
		}
		if err := w.write(p.b); err != nil {
			return err
		}
		done = p.at
	}
	return w.write(b[done:])
}

func (w *Writer) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return w.conn.writePatiently(b, &w.armed)
}

func (b *buffer) release() {
	if b.b != nil && cap(b.b) <= keptBytes {
		b.b = b.b[:0]
		buffers.Put(b)
	}
}
