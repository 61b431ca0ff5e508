package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"hopwire/internal/message"
	"hopwire/openwire"
)

// vector is one frame of the codec's golden data.
type vector struct {
	Case       string
	Seq        int
	Version    int
	Tight      bool
	Cache      bool
	StackTrace bool
	CacheSize  int
	Hex        string
}

func (v vector) format() openwire.Format {
	return openwire.Format{
		Version: v.Version, Tight: v.Tight, Cache: v.Cache,
		CacheSize: v.CacheSize, StackTrace: v.StackTrace,
	}
}

func (v vector) frame(t testing.TB) []byte {
	b, err := hex.DecodeString(v.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (v vector) String() string {
	return fmt.Sprintf("%s seq %d v%d tight=%v cache=%v", v.Case, v.Seq, v.Version, v.Tight,
		v.Cache)
}

func vectors(t testing.TB, each func(vector)) {
	t.Helper()
	f, err := os.Open("../../openwire/testdata/vectors.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		each(v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestEveryMessageLeavesAsItCameByteForByte(t *testing.T) {
	var d *Decoder
	var e *Encoder
	messages, nulls := 0, 0
	vectors(t, func(v vector) {
		if v.Seq == 0 {
			d, e = NewDecoder(v.format()), NewEncoder(v.format())
		}
		frame := v.frame(t)
		if ty := frame[4]; ty < openwire.TypeMessage || ty > openwire.TypeBlobMessage {
			// Others keep the caches of the sequence in step.
			x, err := d.d.Decode(frame[4:])
			if err == nil {
				_, err = e.e.Append(nil, x)
			}
			if err != nil {
				t.Fatalf("%s: %v", v, err)
			}
			return
		}
		messages++
		buffer := bytes.Clone(frame[4:])
		c, err := d.Decode(buffer)
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		clear(buffer) // the message owns its bytes
		out, err := e.Append(nil, c)
		if err == nil && emptyUserName(c) {
			nulls++ // the body of an advisory, a command with a "" that becomes null
			return
		}
		if err != nil || !bytes.Equal(out, frame) {
			t.Errorf("%s: %v\n got %x\nwant %x\n  as %+v", v, err, out, frame, c)
		}
	})
	if messages != 1164 || nulls != 24 {
		t.Errorf("%d messages, %d of them with a nested empty string; want 1164 and 24", messages,
			nulls)
	}
}

func emptyUserName(c message.Command) bool {
	info, ok := c.(*message.Message).Data.(*message.ConnectionInfo)
	return ok && info.UserName == "" && info.Password != ""
}

// TestCommandsComeBackAsTheyWere holds the translation of commands to the codec's data: a command
// that went to package message and back has the same fields, but for strings that are empty where
// they were null, or the reverse.
func TestCommandsComeBackAsTheyWere(t *testing.T) {
	seen := map[byte]int{}
	vectors(t, func(v vector) {
		ty := v.frame(t)[4]
		if v.Case != "full" || v.Cache || ty > openwire.TypeBrokerSubscriptionInfo {
			return
		}
		frame := v.frame(t)
		c, err := NewDecoder(v.format()).Decode(frame[4:])
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		if _, unknown := c.(*message.Unknown); unknown {
			return
		}
		seen[ty]++
		out, err := NewEncoder(v.format()).Append(nil, c)
		if err != nil {
			t.Fatalf("%s: type %d: %v", v, ty, err)
		}
		if !bytes.Equal(out, frame) && !partial[ty] {
			t.Errorf("%s: %s\n got %x\nwant %x", v, openwire.TypeName(ty), out, frame)
		}
	})
	for ty := openwire.TypeBrokerInfo; ty <= openwire.TypeIntegerResponse; ty++ {
		if seen[ty] == 0 && openwire.TypeName(ty) != "" {
			t.Errorf("no %s was tried", openwire.TypeName(ty))
		}
	}
}

// partial are the types of which something is not kept, since nobody asks for it: the broker
// sequence of ids in acks and pulls, and what is no transaction in an array.
var partial = map[byte]bool{
	openwire.TypeMessageAck: true, openwire.TypeMessagePull: true,
	openwire.TypeDataArrayResponse: true,
}
