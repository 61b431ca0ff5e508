package openwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	// LargeFrame is the size in bytes above which a frame gets memory of its own.
	LargeFrame = 32 << 10

	smallBuffer = 4 << 10
	largeBuffer = 64 << 10 // holds any frame that is not large
	largeStep   = 1 << 20  // first piece of a large frame's memory, at most; its size may be a lie
	largeGrowth = 4        // by which it grows when it is full: what it outgrew is garbage
	calmReads   = 64       // reads that leave the buffer nearly empty before it shrinks
)

// FrameReader cuts a byte stream into frames. Its buffer grows from 4 to 64 KiB with the traffic
// and shrinks again.
type FrameReader struct {
	r     io.Reader
	limit int64
	room  FrameRoom // may be nil
	open  bool      // the hello is done
	begun bool      // a frame was returned

	buf        []byte
	start, end int    // unread bytes of buf
	large      []byte // a large frame so far
	largeSize  int    // its whole size; 0 when none is on the way
	frames     [][]byte
	calm       int
	err        error // of the last read, after its data is used up
}

// NewFrameReader returns a reader that is before the hello: it returns one frame a batch, refuses
// frames above HelloLimit, and recognises peers that speak another protocol.
func NewFrameReader(r io.Reader) *FrameReader {
	return &FrameReader{r: r, limit: HelloLimit, buf: make([]byte, smallBuffer)}
}

// SetLimit ends the time before the hello: frames up to limit bytes, size prefix not counted, are
// read from here on; 0 or less is no limit but that of the 4-byte size.
func (f *FrameReader) SetLimit(limit int64) {
	if limit <= 0 || limit > math.MaxInt32 {
		limit = math.MaxInt32
	}
	f.limit, f.open = limit, true
}

// FrameRoom bounds the memory that large frames take while they are read.
type FrameRoom interface {
	// Take is asked for n more bytes before the memory of a large frame, which is of size bytes in
	// all, is made or grows. It may wait. An error ends the reading.
	Take(n, size int) error
	// Came tells that n bytes of the frame were read.
	Came(n int)
}

// SetRoom has the reader ask for the memory of frames above LargeFrame. What it was given is the
// memory of the first frame of the next batch, and belongs to who takes that, or to nobody any more
// after an error. A large frame that came by one read of 64 KiB with others is not asked for.
func (f *FrameReader) SetRoom(r FrameRoom) { f.room = r }

// ReadBatch waits for a frame and returns it with all others that the same read of the stream
// completed, without their size prefixes. They are valid until the next call; frames longer than
// LargeFrame have their own memory, which the caller may keep. Errors: io.EOF between frames,
// io.ErrUnexpectedEOF inside one, *FrameTooBigError, *StrangerError, *ProtocolError, or the
// stream's own. An error comes only after the frames before it.
func (f *FrameReader) ReadBatch() ([][]byte, error) {
	f.frames = f.frames[:0]
	for {
		err := f.cut()
		if len(f.frames) > 0 {
			f.begun = true
			return f.frames, nil
		}
		if err != nil {
			return nil, err
		}
		if f.err != nil {
			return nil, f.ended()
		}
		if err := f.read(); err != nil {
			return nil, err
		}
	}
}

// cut collects the whole frames that are buffered.
func (f *FrameReader) cut() error {
	if f.largeSize > 0 {
		if len(f.large) < f.largeSize {
			return nil
		}
		f.frames = append(f.frames, f.large)
		f.large, f.largeSize = nil, 0
	}
	for f.end-f.start >= 4 && (f.open || len(f.frames) == 0) {
		size := int64(int32(binary.BigEndian.Uint32(f.buf[f.start:])))
		if err := f.checkSize(size); err != nil {
			return err
		}
		whole := int64(f.end-f.start-4) >= size
		if !whole && size > LargeFrame {
			if len(f.frames) == 0 {
				return f.beginLarge(int(size))
			}
			return nil
		}
		if !whole {
			return nil
		}
		f.start += 4
		frame := f.buf[f.start : f.start+int(size) : f.start+int(size)]
		if size > LargeFrame {
			frame = bytes.Clone(frame)
		}
		f.frames = append(f.frames, frame)
		f.start += int(size)
	}
	return nil
}

func (f *FrameReader) checkSize(size int64) error {
	if size >= 1 && size <= f.limit {
		return nil
	}
	if !f.begun {
		if p := stranger(f.buf[f.start:f.end]); p != "" {
			return &StrangerError{Protocol: p}
		}
		if text := textOf(f.buf[f.start:f.end]); text != "" {
			return &StrangerError{Text: text}
		}
	}
	if size < 1 {
		return &ProtocolError{Reason: fmt.Sprintf("frame of size %d", size)}
	}
	return &FrameTooBigError{Size: size, Limit: f.limit}
}

func (f *FrameReader) beginLarge(size int) error {
	have := f.buf[f.start+4 : f.end]
	first := min(size, max(LargeFrame, len(have)))
	if f.open {
		first = max(grown(size, largeStep), len(have))
	}
	if err := f.take(first, size); err != nil {
		return err
	}
	f.largeSize = size
	f.large = append(make([]byte, 0, first), have...)
	f.start, f.end = 0, 0
	f.came(len(have))
	return nil
}

// grown is what the memory of a large frame grows to, most at the most: in steps that end at its
// size, so that what it outgrows is a third of that.
func grown(size, most int) int {
	for size > most {
		size = (size + largeGrowth - 1) / largeGrowth
	}
	return size
}

func (f *FrameReader) take(n, size int) error {
	if f.room == nil {
		return nil
	}
	return f.room.Take(n, size)
}

func (f *FrameReader) came(n int) {
	if f.room != nil {
		f.room.Came(n)
	}
}

// read reads once, into the large frame or the buffer. Its error is not the stream's.
func (f *FrameReader) read() error {
	if f.largeSize > 0 {
		return f.readLarge()
	}
	f.fit()
	n, err := f.r.Read(f.buf[f.end:])
	f.end += n
	f.err = err
	if f.end == len(f.buf) || f.end > len(f.buf)/4 {
		f.calm = 0
	} else {
		f.calm++
	}
	return nil
}

func (f *FrameReader) readLarge() error {
	if len(f.large) == cap(f.large) {
		to := grown(f.largeSize, largeGrowth*cap(f.large))
		if err := f.take(to-cap(f.large), f.largeSize); err != nil {
			return err
		}
		more := make([]byte, len(f.large), to)
		copy(more, f.large)
		f.large = more
	}
	n, err := f.r.Read(f.large[len(f.large):min(cap(f.large), f.largeSize)])
	f.large = f.large[:len(f.large)+n]
	f.err = err
	f.came(n)
	return nil
}

// fit moves what is left to the front, into a buffer whose size follows the traffic.
func (f *FrameReader) fit() {
	left := f.end - f.start
	size := len(f.buf)
	switch {
	case f.end == size && size < largeBuffer:
		size *= 2
	case f.calm >= calmReads && size > smallBuffer && left <= size/4:
		size, f.calm = size/2, 0
	}
	to := f.buf
	if size != len(f.buf) {
		to = make([]byte, size)
	}
	copy(to, f.buf[f.start:f.end])
	f.buf, f.start, f.end = to, 0, left
}

func (f *FrameReader) ended() error {
	if errors.Is(f.err, io.EOF) && (f.end > f.start || f.largeSize > 0) {
		return io.ErrUnexpectedEOF
	}
	return f.err
}

// stranger names the protocol that b is the beginning of, "" when it is none of the usual ones.
func stranger(b []byte) string {
	if len(b) >= 2 && (b[0] == 0x16 || b[0] == 0x15) && b[1] == 3 { // a hello, or an alert
		return "TLS"
	}
	if b[0] == 0x10 && (bytes.Contains(b[:min(len(b), 12)], []byte("MQTT")) ||
		bytes.Contains(b[:min(len(b), 12)], []byte("MQIsdp"))) {
		return "MQTT"
	}
	for _, s := range strangers {
		if bytes.HasPrefix(b, []byte(s.start)) {
			return s.protocol
		}
	}
	return ""
}

// textShown is how much of a text a message shows, in bytes.
const textShown = 32

// textOf returns the first line of what begins with four characters of text, "" when b does not.
func textOf(b []byte) string {
	line := b[:min(len(b), textShown)]
	for i, c := range line {
		if c < ' ' || c > '~' {
			if i < 4 && c != '\n' && c != '\r' && c != '\t' {
				return ""
			}
			if i >= 4 {
				line = line[:i]
				break
			}
		}
	}
	return string(bytes.TrimSpace(line))
}

// strangers are how other protocols begin; as a size, each is far above HelloLimit.
var strangers = []struct{ start, protocol string }{
	{"CONNECT\n", "STOMP"}, {"CONNECT\r", "STOMP"}, {"STOM", "STOMP"}, {"AMQP", "AMQP"},
	{"GET ", "HTTP"}, {"POST", "HTTP"}, {"PUT ", "HTTP"}, {"HEAD", "HTTP"}, {"OPTI", "HTTP"},
	{"DELE", "HTTP"}, {"CONN", "HTTP"}, {"TRAC", "HTTP"}, {"PATC", "HTTP"}, {"PRI ", "HTTP"},
}

// skipHead is how many bytes of a frame Skip gives.
const skipHead = 8 << 10

// Skip reads over the frame that ReadBatch refused with a *FrameTooBigError, without keeping it,
// and returns its first bytes, at most 8 KiB, size prefix not counted. ReadBatch goes on behind it.
func (f *FrameReader) Skip() (head []byte, err error) {
	left := int64(int32(binary.BigEndian.Uint32(f.buf[f.start:])))
	f.start += 4
	head = make([]byte, 0, min(left, skipHead))
	for left > 0 {
		if f.start == f.end {
			if f.err != nil {
				return nil, io.ErrUnexpectedEOF
			}
			f.start = 0
			f.end, f.err = f.r.Read(f.buf)
			continue
		}
		piece := f.buf[f.start:min(int64(f.end), int64(f.start)+left)]
		head = append(head, piece[:min(len(piece), cap(head)-len(head))]...)
		f.start += len(piece)
		left -= int64(len(piece))
	}
	return head, nil
}
