package files

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// manifest makes records as a manifest has them.
func manifest(t *testing.T, sizes ...int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := record.NewWriter(&out)
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range sizes {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if _, err := w.WriteRecord(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestOneTurnedBitIsFoundWhereverItIs(t *testing.T) {
	data := manifest(t, 100, 40_000, 1, 3000)
	for at := 0; at < len(data); at += 97 {
		bad := bytes.Clone(data)
		bad[at] ^= 1 << (at % 8)
		if to, whole, err := SoundTo(bytes.NewReader(bad), 0, int64(len(bad))); whole || err != nil ||
			to > int64(at) {
			t.Fatalf("a bit of byte %d: whole up to %d, %v, %v", at, to, whole, err)
		}
		m := mender{data: bad, durable: int64(len(bad))}
		m.turnBits()
		if m.turned != 1 || !bytes.Equal(m.data, data) {
			t.Fatalf("a bit of byte %d: %d were turned back", at, m.turned)
		}
	}
	two := bytes.Clone(data)
	two[50], two[60] = ^two[50], ^two[60]
	if m := (mender{data: two}); !turnsNothing(&m) {
		t.Error("what has more than a bit is made something else")
	}
}

func turnsNothing(m *mender) bool {
	was := bytes.Clone(m.data)
	m.turnBits()
	return m.turned == 0 && bytes.Equal(m.data, was)
}

// Of two notes the later counts, and when it cannot be read the other.
func TestOneOfTwoNotesIsAlwaysWhole(t *testing.T) {
	fs := vfs.NewMem()
	if err := MakeDir(fs, "db"); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKnown(fs, "db", Note{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		k.change(func(n *Note) bool {
			n.current = "MANIFEST-000001"
			n.durable["MANIFEST-000001"], n.durable["000002.log"] = 10*i, 100*i
			return true
		})
	}
	k.last(2, 250)
	read := func(manifest, log int64) {
		t.Helper()
		n, err := readSlots(fs, "db")
		if err != nil || n.durable["MANIFEST-000001"] != manifest || n.durable["000002.log"] != log {
			t.Errorf("%+v, %v; want %d and %d", n, err, manifest, log)
		}
	}
	read(20, 250)
	if _, err := k.f.WriteAt([]byte("?"), knownSlot+30); err != nil { // the third's
		t.Fatal(err)
	}
	read(10, 250)
	if _, err := k.f.WriteAt([]byte("?"), knownLast+5); err != nil {
		t.Fatal(err)
	}
	read(10, 100)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}
