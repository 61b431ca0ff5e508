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
}

// NewWriter makes a writer. fill appends what waits to b, about limit bytes at most, and tells
// whether something is left; it runs on the writer's goroutine. An empty answer without more ends
// a round.
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

// Run writes until done is closed or something fails. first is written before anything else.
func (w *Writer) Run(done <-chan struct{}, first []byte) error {
	var armed time.Time
	if len(first) > 0 {
		if err := w.conn.writePatiently(first, &armed); err != nil {
			return err
		}
	}
	for {
		select {
		case <-w.wake:
		case <-done:
			return nil
		}
		if err := w.round(&armed); err != nil {
			return err
		}
	}
}

// round writes all that waits.
func (w *Writer) round(armed *time.Time) error {
	buf := buffers.Get().(*buffer)
	defer func() {
		if cap(buf.b) <= keptBytes {
			buf.b = buf.b[:0]
			buffers.Put(buf)
		}
	}()
	for more := true; more; {
		var ferr error
		buf.b, more, ferr = w.fill(buf.b[:0], flushBytes)
		if len(buf.b) > 0 {
			if err := w.conn.writePatiently(buf.b, armed); err != nil {
				return err
			}
		}
		if ferr != nil {
			return ferr
		}
	}
	return nil
}
