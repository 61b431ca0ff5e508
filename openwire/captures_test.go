package openwire

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// captured is one frame of a recorded conversation.
type captured struct {
	Conn   int
	Dir    string
	Type   string
	Fields any
	Hex    string
}

// TestCapturedConversationsDecodeAndEncodeByteForByte negotiates each recorded connection from
// its own hellos and then follows both directions, each with its own object cache.
func TestCapturedConversationsDecodeAndEncodeByteForByte(t *testing.T) {
	files, err := filepath.Glob("testdata/captures/*.jsonl")
	if err != nil || len(files) != 21 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	frames := 0
	for _, name := range files {
		frames += followCapture(t, name)
	}
	if frames != 640 {
		t.Errorf("%d negotiated frames, want 640", frames)
	}
}

type direction struct {
	e *Encoder
	d *Decoder
}

func followCapture(t *testing.T, name string) (frames int) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<22)
	hellos := map[int]map[string]*WireFormatInfo{}
	formats := map[int]Format{}
	ways := map[string]*direction{}
	for n := 1; lines.Scan(); n++ {
		var c captured
		decodeJSON(lines.Bytes(), &c)
		where := fmt.Sprintf("%s:%d", filepath.Base(name), n)
		switch c.Type {
		case "EOF":
			continue
		case "WireFormatInfo":
			frame := unhex(c.Hex)
			w, err := DecodeHello(frame[4:])
			if err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			if out, err := w.AppendFrame(nil); err != nil || !bytes.Equal(out, frame) {
				t.Fatalf("%s: hello encoded to %x, %v", where, out, err)
			}
			if hellos[c.Conn] == nil {
				hellos[c.Conn] = map[string]*WireFormatInfo{}
			}
			hellos[c.Conn][c.Dir] = w
			continue
		}
		key := fmt.Sprint(c.Conn, c.Dir)
		if ways[key] == nil {
			if formats[c.Conn].Version == 0 {
				formats[c.Conn], err = Negotiate(hellos[c.Conn]["S2C"], hellos[c.Conn]["C2S"])
				if err != nil {
					t.Fatalf("%s: %v", where, err)
				}
			}
			f := formats[c.Conn]
			ways[key] = &direction{NewEncoder(f), NewDecoder(f)}
		}
		followFrame(t, where, ways[key], c, formats[c.Conn].Version)
		frames++
	}
	return frames
}

func followFrame(t *testing.T, where string, way *direction, c captured, version int) {
	t.Helper()
	frame := unhex(c.Hex)
	x, err := way.d.Decode(frame[4:])
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	diff(t, where, fieldsOf(x, version), normal(c.Fields))
	if out, err := way.e.Append(nil, x); err != nil || !bytes.Equal(out, frame) {
		t.Fatalf("%s: encoded, %v\n got %x\nwant %x", where, err, out, frame)
	}
}
