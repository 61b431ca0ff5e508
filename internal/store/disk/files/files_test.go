package files

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
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
		m := mender{data: bad, durable: extent{size: int64(len(bad))}}
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

// Of two notes the later counts, and when it was cut off the other. What was durable and cannot be
// read is damage.
func TestANoteThatWasCutOffIsNoDamage(t *testing.T) {
	fs := vfs.NewMem()
	if err := MakeDir(fs, "db"); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKnown(fs, "db", Note{})
	if err != nil {
		t.Fatal(err)
	}
	var lasts [][]byte // as each turn leaves it
	for i := range int64(3) {
		k.change(func(n *Note) bool {
			n.current = "MANIFEST-000001"
			n.durable["MANIFEST-000001"] = extent{10 * i, uint32(i), true}
			n.durable["000002.log"] = extent{100 * i, 7, true}
			return true
		})
		k.keepLast(2, extent{50 + 100*i, 8, true})
		lasts = append(lasts, k.last.append(nil))
	}
	read := func(manifest, log int64, sum uint32, want string) {
		t.Helper()
		n, why, err := readSlots(fs, "db")
		x := n.durable["000002.log"]
		if err != nil || why != want || n.durable["MANIFEST-000001"].size != manifest ||
			x.size != log || x.sum != sum {
			t.Errorf("%+v, %q, %v; want %d and %d", n, why, err, manifest, log)
		}
	}
	write := func(at int64, b []byte) {
		t.Helper()
		if _, err := k.f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
	}
	read(20, 250, 8, "")
	write(knownSlot+30, []byte("?")) // the third's
	read(0, 0, 0, "is damaged")
	write(knownLast, lasts[1])
	read(10, 150, 8, "")
	write(knownLast+5, []byte("?"))
	read(0, 0, 0, "is damaged")
	write(knownLast, make([]byte, lastSize))
	read(10, 100, 7, "")
	write(30, []byte("?"))
	read(0, 0, 0, "is damaged")
	write(0, make([]byte, knownLast))
	read(0, 0, 0, "has no note")
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// What an older program noted is a note: without checksums, and without a turn.
func TestANoteOfAnOlderProgramIsRead(t *testing.T) {
	fs := vfs.NewMem()
	if err := MakeDir(fs, "db"); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKnown(fs, "db", Note{})
	if err != nil {
		t.Fatal(err)
	}
	k.change(func(n *Note) bool {
		n.current = "MANIFEST-000001"
		n.durable["MANIFEST-000001"], n.durable["000002.log"] = extent{size: 10}, extent{size: 100}
		return true
	})
	last := (&lastNote{num: 2, extent: extent{size: 250}}).append(nil)[:lastOlder]
	binary.BigEndian.PutUint32(last, crc32.Checksum(last[4:], castagnoli))
	last = append(last, make([]byte, lastSize-lastOlder)...)
	if _, err := k.f.WriteAt(last, knownLast); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	n, why, err := readSlots(fs, "db")
	if err != nil || why != "" || n.durable["MANIFEST-000001"] != (extent{size: 10}) ||
		n.durable["000002.log"] != (extent{size: 250}) {
		t.Errorf("%+v, %q, %v", n, why, err)
	}
}
