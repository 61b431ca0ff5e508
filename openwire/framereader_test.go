package openwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

func framed(size int, fill byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(size))
	return append(b, bytes.Repeat([]byte{fill}, size)...)
}

// pieces gives the reader exactly what each read asked for, a piece a read.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	return n, nil
}

func openReader(r io.Reader) *FrameReader {
	f := NewFrameReader(r)
	f.SetLimit(0)
	return f
}

func TestABatchIsWhatOneReadCompleted(t *testing.T) {
	three := bytes.Join([][]byte{framed(5, 1), framed(6, 2), framed(7, 3)[:8]}, nil)
	f := openReader(&pieces{three, framed(7, 3)[8:], framed(8, 4)})
	for i, want := range [][]int{{5, 6}, {7}, {8}} {
		batch, err := f.ReadBatch()
		var got []int
		for _, b := range batch {
			got = append(got, len(b))
		}
		diff(t, "batch", got, want)
		if err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := f.ReadBatch(); !errors.Is(err, io.EOF) {
		t.Errorf("end: %v", err)
	}
}

func TestFramesOfAnySizeComeThroughAnyCutOfTheStream(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var stream []byte
	var sizes []int
	for i := range 400 {
		size := 1 + random.IntN(2000)
		if i%40 == 7 {
			size = 1 + random.IntN(300<<10)
		}
		if i == 100 {
			size = 3 << 20
		}
		if i%40 == 9 {
			size = LargeFrame + i%3 - 1
		}
		sizes = append(sizes, size)
		stream = append(stream, framed(size, byte(i))...)
	}
	for name, r := range map[string]io.Reader{
		"whole": bytes.NewReader(stream), "halves": iotest.HalfReader(bytes.NewReader(stream)),
		"error with data": iotest.DataErrReader(bytes.NewReader(stream)),
		"random":          randomCuts(stream, random),
	} {
		f := openReader(r)
		n := 0
		var kept [][]byte
		for {
			batch, err := f.ReadBatch()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: frame %d: %v", name, n, err)
			}
			for _, b := range batch {
				if len(b) != sizes[n] || b[0] != byte(n) || b[len(b)-1] != byte(n) {
					t.Fatalf("%s: frame %d has %d bytes, want %d", name, n, len(b), sizes[n])
				}
				if len(b) > LargeFrame {
					kept = append(kept, b)
				}
				n++
			}
		}
		if n != len(sizes) {
			t.Errorf("%s: %d frames, want %d", name, n, len(sizes))
		}
		for _, b := range kept {
			if !bytes.Equal(b, bytes.Repeat(b[:1], len(b))) {
				t.Errorf("%s: a large frame changed after later reads", name)
			}
		}
		if len(f.buf) > largeBuffer {
			t.Errorf("%s: buffer of %d bytes", name, len(f.buf))
		}
	}
}

func randomCuts(stream []byte, random *rand.Rand) io.Reader {
	var p pieces
	for len(stream) > 0 {
		n := min(1+random.IntN(100000), len(stream))
		p = append(p, stream[:n])
		stream = stream[n:]
	}
	return &p
}

func TestABufferShrinksWhenTrafficIsCalm(t *testing.T) {
	p := pieces{bytes.Repeat(framed(1000, 1), 1000)}
	for range 1000 {
		p = append(p, framed(10, 1))
	}
	f := openReader(&p)
	grown := 0
	for {
		if _, err := f.ReadBatch(); err != nil {
			break
		}
		grown = max(grown, len(f.buf))
	}
	if grown != largeBuffer || len(f.buf) != smallBuffer {
		t.Errorf("buffer grew to %d and ended at %d", grown, len(f.buf))
	}
}

func TestOnlyOneFrameABatchBeforeTheHelloIsDone(t *testing.T) {
	f := NewFrameReader(bytes.NewReader(append(framed(5, 1), framed(HelloLimit+1, 2)...)))
	batch, err := f.ReadBatch()
	if len(batch) != 1 || err != nil {
		t.Fatalf("%d frames, %v", len(batch), err)
	}
	f.SetLimit(1 << 20)
	batch, err = f.ReadBatch()
	if err != nil || len(batch[0]) != HelloLimit+1 {
		t.Errorf("after the hello: %v", err)
	}
}

func TestSizesAboveTheLimitAreRefusedBeforeMemoryIsTaken(t *testing.T) {
	for _, c := range []struct {
		head  string
		limit int64 // 0: before the hello
		want  error
	}{
		{"\x00\x01\x00\x01", 0, &FrameTooBigError{Size: 65537, Limit: 65536}},
		{"\x7f\xff\xff\xff", 100 << 20, &FrameTooBigError{Size: 1<<31 - 1, Limit: 100 << 20}},
		{"\xff\xff\xff\xff", 100, &ProtocolError{Reason: "frame of size -1"}},
		{"\x00\x00\x00\x00", 100, &ProtocolError{Reason: "frame of size 0"}},
	} {
		f := NewFrameReader(bytes.NewReader([]byte(c.head + "xxxx")))
		if c.limit > 0 {
			f.SetLimit(c.limit)
		}
		var err error
		grown := allocated(func() { _, err = f.ReadBatch() })
		if errorText(err) != c.want.Error() || grown > 64<<10 {
			t.Errorf("%q: %v, %d bytes; want %v", c.head, err, grown, c.want)
		}
	}
	f := openReader(bytes.NewReader([]byte("\x06\x40\x00\x00x"))) // 100 MiB claimed, 1 byte sent
	if grown := allocated(func() { _, _ = f.ReadBatch() }); grown > 2<<20 {
		t.Errorf("a claimed size took %d bytes", grown)
	}
}

func TestStrangersOnThePortAreNamed(t *testing.T) {
	for start, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n":                       "HTTP on the OpenWire port",
		"OPTIONS * HTTP/1.1\r\n":                       "HTTP on the OpenWire port",
		"CONNECT a:1 HTTP/1.1\r\n":                     "HTTP on the OpenWire port",
		"CONNECT\naccept-version:1.2\n\n\x00":          "STOMP on the OpenWire port",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03": "TLS on a plain port",
		"AMQP\x00\x01\x00\x00":                         "AMQP on the OpenWire port",
		"\x10\x1a\x00\x04MQTT\x04\x02\x00\x3c":         "MQTT on the OpenWire port",
		"\x15\x03\x03\x00\x02\x02\x46":                 "TLS on a plain port",
		"HTTP/1.1 400 Busy\r\nDate: x\r\n":             `text ("HTTP/1.1 400 Busy") on the OpenWire port`,
		"<!DOCTYPE html>\n<html>":                      `text ("<!DOCTYPE html>") on the OpenWire port`,
		"\r\n\r\nlogin:":                               `text ("login:") on the OpenWire port`,
		"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n": `text ("SSH-2.0-OpenSSH_9.2p1 Debian-2+d") ` +
			"on the OpenWire port",
	} {
		_, err := NewFrameReader(bytes.NewReader([]byte(start))).ReadBatch()
		var s *StrangerError
		if !errors.As(err, &s) || err.Error() != want {
			t.Errorf("%q: %v, want %s", start, err, want)
		}
	}
}

func TestAStreamThatEndsInsideAFrameSaysSo(t *testing.T) {
	for name, b := range map[string][]byte{
		"in the size": {0, 0}, "in a frame": framed(10, 1)[:9],
		"in a large frame": framed(100000, 1)[:90000],
	} {
		_, err := openReader(bytes.NewReader(b)).ReadBatch()
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
