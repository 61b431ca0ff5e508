package cli

import (
	"io"
	"sync"
	"time"

	"hopwire/client"
	"hopwire/internal/terminal"
)

// silence is how long a command waits for a broker without a word.
const silence = 2 * time.Second

// waits tells on standard error that a command waits for a broker: once when that takes long, and
// again when there is one.
type waits struct {
	out io.Writer

	mu    sync.Mutex
	conn  *client.Conn
	timer *time.Timer // runs while there is no broker
	last  error       // why the last try failed
	told  bool
}

// options have the client tell what happens.
func (w *waits) options() []client.Option {
	return []client.Option{
		client.WithRetryHandler(func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.last = err
		}),
		client.WithStateHandler(func(s client.State, err error) {
			switch s {
			case client.Interrupted:
				w.begin(err)
			case client.Resumed:
				w.end(nil)
			}
		}),
	}
}

// begin begins to wait.
func (w *waits) begin(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.told = why, false
	w.timer = time.AfterFunc(silence, w.tell)
}

func (w *waits) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	w.told = true
	if w.last == nil {
		terminal.Fprintln(w.out, "hopwire: waits for a broker: none has answered yet; is the port an"+
			" OpenWire one?")
		return
	}
	terminal.Fprintf(w.out, "hopwire: waits for a broker; the last try: %v\n", w.last)
}

// end ends the wait; conn is the first connection, nil for another of it.
func (w *waits) end(conn *client.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.halt()
	if conn != nil {
		w.conn = conn
	}
	if w.told && w.conn != nil {
		terminal.Fprintf(w.out, "hopwire: connected to %s\n", w.conn.Addr())
	}
	w.told = false
}

// halt ends the wait without a word.
func (w *waits) halt() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// leave ends the wait for good.
func (w *waits) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.halt()
}
