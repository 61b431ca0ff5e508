package openwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"
)

// TestALargeFrameTakesLittleMoreMemoryThanItsSize: its memory grows with what came of it, in steps
// that end at its size.
func TestALargeFrameTakesLittleMoreMemoryThanItsSize(t *testing.T) {
	for _, size := range []int{10 << 20, 17 << 20, 66 << 20} {
		stream := append(binary.BigEndian.AppendUint32(nil, uint32(size)), make([]byte, size)...)
		f := NewFrameReader(bytes.NewReader(stream))
		f.SetLimit(int64(size))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		frames, err := f.ReadBatch()
		runtime.ReadMemStats(&after)
		if err != nil || len(frames) != 1 || len(frames[0]) != size {
			t.Fatalf("%d frames, %v", len(frames), err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(size)/100*135 {
			t.Errorf("a frame of %d bytes took %d", size, n)
		}
	}
}

// roomCount is a FrameRoom that says no above a limit.
type roomCount struct{ taken, came, limit, size int }

func (r *roomCount) Take(n, size int) error {
	r.size = size
	if r.taken+n > r.limit {
		return io.ErrShortBuffer
	}
	r.taken += n
	return nil
}

func (r *roomCount) Came(n int) { r.came += n }

func TestMemoryOfALargeFrameIsAskedForAsItsBytesArrive(t *testing.T) {
	const size = 40 << 20
	stream := append(binary.BigEndian.AppendUint32(nil, size), make([]byte, size)...)
	for _, c := range []struct{ sent, most int }{
		{4, 0}, {5, 1 << 20}, {1 << 20, 4 << 20}, {4 << 20, 16 << 20}, {size + 4, size},
	} {
		r := &roomCount{limit: size}
		f := NewFrameReader(bytes.NewReader(stream[:c.sent]))
		f.SetLimit(size)
		f.SetRoom(r)
		frames, err := f.ReadBatch()
		if whole := c.sent == len(stream); whole != (err == nil) || whole && len(frames) != 1 ||
			r.taken > max(c.most, 1<<20) || r.came != c.sent-4 || r.taken > 0 && r.size != size {
			t.Errorf("of %d bytes: %d taken for a frame of %d, %d came, %v", c.sent, r.taken, r.size,
				r.came, err)
		}
	}
	f := NewFrameReader(bytes.NewReader(stream))
	f.SetLimit(size)
	f.SetRoom(&roomCount{limit: size / 2})
	if _, err := f.ReadBatch(); !errors.Is(err, io.ErrShortBuffer) {
		t.Errorf("without room: %v", err)
	}
}

// TestWhatIsAppendedApartIsTheSameFrame puts the cuts in again.
func TestWhatIsAppendedApartIsTheSameFrame(t *testing.T) {
	for _, f := range benchFormats {
		whole, apart := NewEncoder(f.f), NewEncoder(f.f)
		for i, size := range []int{300_000, 0, 999, 1000, 1001, 5} {
			x := sampleDispatch()
			x.Message.Content = bytes.Repeat([]byte{byte(i + 1)}, size)
			x.Message.MarshalledProperties = bytes.Repeat([]byte{0xee}, size/2)
			want, err := whole.Append([]byte("before"), x)
			if err != nil {
				t.Fatal(err)
			}
			got, cuts, err := apart.AppendApart([]byte("before"), x, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(got); n > 4000 {
				t.Errorf("%s: %d bytes were copied", f.name, n)
			}
			var joined []byte
			at := 0
			for _, c := range cuts {
				joined = append(append(joined, got[at:c.At]...), c.Bytes...)
				at = c.At
			}
			if joined = append(joined, got[at:]...); !bytes.Equal(joined, want) {
				t.Errorf("%s, %d bytes: another frame, of %d bytes and not %d", f.name, size,
					len(joined), len(want))
			}
		}
	}
}

func TestALimitCountsWhatIsApart(t *testing.T) {
	e := NewEncoder(Format{Version: MaxVersion, MaxFrameSize: 10_000})
	x := sampleDispatch()
	x.Message.Content = make([]byte, 10_000)
	out, cuts, err := e.AppendApart([]byte("kept"), x, 100)
	var big *FrameTooBigError
	if !errors.As(err, &big) || string(out) != "kept" || cuts != nil {
		t.Errorf("%q, %d cuts, %v", out, len(cuts), err)
	}
}
