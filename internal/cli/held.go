package cli

import (
	"io"
	"sync"
	"time"
)

// heldFor is how long a log waits at most for what start prints of its brokers.
const heldFor = time.Second

// held keeps a log back until release, so that on a terminal it does not stand within what start
// prints of its brokers.
type held struct {
	out io.Writer

	mu   sync.Mutex
	kept []byte
	open bool
}

func hold(out io.Writer) *held {
	h := &held{out: out}
	time.AfterFunc(heldFor, h.release) // a store may take long to open
	return h
}

// Write keeps a line, or writes it once the log is released.
func (h *held) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open {
		return h.out.Write(p)
	}
	h.kept = append(h.kept, p...)
	return len(p), nil
}

// release writes what was kept; from then on nothing is.
func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open && len(h.kept) > 0 {
		_, _ = h.out.Write(h.kept) // a log that cannot be written has nobody to tell
	}
	h.open, h.kept = true, nil
}
