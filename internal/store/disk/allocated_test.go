//go:build !race && !invariants

// With race or invariants pebble checks itself, and for that copies what it reads, at random.

package disk

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// TestALargeBodyTakesLittleMoreThanOnceInTheStore bounds what is allocated for a body beside it:
// the batch and pebble's log, each once, nothing of its size for tables, and once what is read.
func TestALargeBodyTakesLittleMoreThanOnceInTheStore(t *testing.T) {
	const size = 64 << 20
	s, err := Open(context.Background(), Options{Dir: t.TempDir(), NoWait: true, ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	m := &message.Message{Content: make([]byte, size)}
	for i := range m.Content {
		m.Content[i] = byte(rand.IntN(256))
	}
	allocated := func(what string, most float64, f func() error) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := f(); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		got := float64(after.TotalAlloc-before.TotalAlloc) / size
		t.Logf("%s: %.2f times its size", what, got)
		if got > most {
			t.Errorf("%s a body allocates %.2f times its size, want %.2f at most", what, got, most)
		}
	}
	put := &store.Batch{Bytes: m.Size(), Ops: []store.Op{queueHeader(2),
		{Kind: store.PutMessage, Dest: 1, Seq: 1, Message: m}}}
	allocated("putting", 2.3, func() error { return s.Apply([]*store.Batch{put}) })
	allocated("flushing", 0.9, s.db.Flush)
	allocated("reading", 2.2, func() error {
		page, err := s.Page(store.PageRequest{Dest: 1, From: 1, To: 2})
		if err == nil && (len(page) != 1 || !bytes.Equal(page[0].Message.Content, m.Content)) {
			t.Error("it is read as another")
		}
		return err
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
