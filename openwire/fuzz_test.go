package openwire

import (
	"bytes"
	"errors"
	"testing"
)

// memoryBound is what decoding n bytes may allocate: a tight array element may be a few bytes
// that become a structure of hundreds.
func memoryBound(n int) uint64 { return 64<<10 + 300*uint64(n) }

func fuzzFormat(mode byte) Format {
	return Format{Version: 1 + int(mode>>3)%MaxVersion, Tight: mode&1 != 0, Cache: mode&2 != 0,
		StackTrace: mode&4 != 0, CacheSize: 128}
}

func fuzzMode(v vector) byte {
	mode := byte(v.Version-1) << 3
	for bit, on := range []bool{v.Tight, v.Cache, v.StackTrace} {
		if on {
			mode |= 1 << bit
		}
	}
	return mode
}

// FuzzDecode holds a decoder to no panic, bounded memory, and results that can be sent: what they
// encode to decodes again and encodes to the same.
func FuzzDecode(f *testing.F) {
	for i, v := range vectorFile {
		if v.Seq == 0 && len(v.Hex) < 4000 && i%7 == 0 {
			f.Add(fuzzMode(v), v.frame()[4:])
		}
	}
	f.Fuzz(func(t *testing.T, mode byte, frame []byte) {
		format := fuzzFormat(mode)
		var x DataStructure
		var err error
		d := NewDecoder(format)
		if n := allocated(func() { x, err = d.Decode(frame) }); n > memoryBound(len(frame)) {
			t.Fatalf("%d bytes took %d bytes of memory", len(frame), n)
		}
		var m Message
		scratch := NewDecoder(format).DecodeMessage(frame, &m)
		var wrong *ProtocolError
		if err != nil {
			if !errors.As(err, &wrong) || scratch == nil {
				t.Fatalf("error %v, into scratch %v", err, scratch)
			}
			return
		}
		if scratch != nil && isMessage(x.TypeID()) {
			t.Fatalf("decodes, but not into scratch: %v", scratch)
		}
		again(t, format, x)
	})
}

func again(t *testing.T, f Format, x DataStructure) {
	out, err := NewEncoder(f).Append(nil, x)
	if _, ok := errors.AsType[*EncodeError](err); ok {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	y, err := NewDecoder(f).Decode(out[4:])
	if err != nil {
		t.Fatalf("own frame %x: %v", out, err)
	}
	if second, err := NewEncoder(f).Append(nil, y); err != nil || !bytes.Equal(out, second) {
		t.Fatalf("not stable, %v\n first %x\nsecond %x", err, out, second)
	}
}

// FuzzHello holds the first frame of an unknown peer to no panic and little memory.
func FuzzHello(f *testing.F) {
	local, err := NewHello(MaxVersion, DefaultHelloOptions())
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range vectorFile {
		if v.Type == "WireFormatInfo" {
			f.Add(v.frame()[4:])
		}
	}
	f.Add([]byte("\x01ActiveMQ\x00\x00\x00\x0c\x01\x00\x00\x00\x04\x7f\xff\xff\xf0"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var hello *WireFormatInfo
		var err error
		if n := allocated(func() { hello, err = DecodeHello(frame) }); n > 64<<10+16*uint64(len(frame)) {
			t.Fatalf("%d bytes took %d bytes of memory", len(frame), n)
		}
		if err != nil {
			return
		}
		format, err := Negotiate(local, hello)
		if err == nil && (format.Version < 1 || format.Version > MaxVersion || format.CacheSize < 1 ||
			format.Inactivity < 0) {
			t.Fatalf("agreed on %+v", format)
		}
	})
}

// FuzzFrameReader holds the cutting of a stream to no panic and to the bytes of the stream.
func FuzzFrameReader(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02ab\x00\x00\x00\x01c"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\x7f\xff\xff\xff"))
	f.Add(framed(LargeFrame+1, 1))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewFrameReader(bytes.NewReader(stream))
		total := 0
		for {
			batch, err := r.ReadBatch()
			if err != nil {
				break
			}
			r.SetLimit(1 << 20)
			for _, frame := range batch {
				if !bytes.Equal(frame, stream[total+4:total+4+len(frame)]) {
					t.Fatal("a frame is not what the stream held")
				}
				total += 4 + len(frame)
			}
		}
	})
}
