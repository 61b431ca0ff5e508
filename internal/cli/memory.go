package cli

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"hopwire"
)

const (
	trimLook = time.Second
	// calmBytes is what may be allocated from one look to the next when little is to be done.
	calmBytes = 2 << 20
	// trimBytes is what must have been allocated since memory was last given back.
	trimBytes = 64 << 20
	// cushionBytes is what may lie as garbage in a small heap: see cushion.
	cushionBytes = 64 << 20
)

// cushion counts as memory in use for the garbage collector alone. Nobody touches it, so there is
// no memory behind it. What is on its way through a busy broker takes a few MiB, and is garbage
// soon: collected each time it has doubled, it was so dozens of times a second, a fifth of all CPU.
// There is none where the environment says how much garbage may lie.
func cushion() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	c := make([]byte, cushionBytes)
	vacate(c) // of memory that was in use before, the runtime makes zeros
	return c
}

// boundHeap has garbage collected more often where the heap would else grow to twice of what the
// brokers' limits allow, if all have one. What the environment says of GOMEMLIMIT counts instead.
func boundHeap(setups []*hopwire.Setup) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	sum := int64(0)
	for _, s := range setups {
		n := s.MemoryBytes()
		if n == 0 {
			return
		}
		sum += n
	}
	debug.SetMemoryLimit(sum + cushionBytes)
}

// trim gives memory back to the system when much was allocated and nothing is any more. Without it
// what large messages took stays resident for minutes: nobody collects garbage while nothing is
// allocated.
func trim(ctx context.Context) error {
	tick := time.NewTicker(trimLook)
	defer tick.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var t trimmer
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if metrics.Read(sample); t.due(sample[0].Value.Uint64()) {
			debug.FreeOSMemory()
		}
	}
}

// trimmer decides when memory is given back.
type trimmer struct{ last, trimmed uint64 }

// due looks at what was allocated since the start of the process.
func (t *trimmer) due(allocated uint64) bool {
	calm := allocated-t.last < calmBytes
	t.last = allocated
	if !calm || allocated-t.trimmed < trimBytes {
		return false
	}
	t.trimmed = allocated
	return true
}
