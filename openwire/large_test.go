package openwire

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
)

// TestALargeFrameTakesLittleMoreMemoryThanItsSize: its memory grows with what came of it.
func TestALargeFrameTakesLittleMoreMemoryThanItsSize(t *testing.T) {
	const size = 10 << 20
	stream := append(binary.BigEndian.AppendUint32(nil, size), make([]byte, size)...)
	f := NewFrameReader(bytes.NewReader(stream))
	f.SetLimit(size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	frames, err := f.ReadBatch()
	runtime.ReadMemStats(&after)
	if err != nil || len(frames) != 1 || len(frames[0]) != size {
		t.Fatalf("%d frames, %v", len(frames), err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > size/10*17 {
		t.Errorf("a frame of %d bytes took %d", size, n)
	}
}
