package files

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// twice is a table with two records of each key: the newer ones begin with "n", the older ones, of
// which the values are in blocks of their own, with "o".
func twice(t *testing.T, count int) (data []byte, at Table) {
	t.Helper()
	fs := vfs.NewMem()
	o := &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatTableFormatV6}
	o.EnsureDefaults()
	for i := range o.Levels {
		o.Levels[i].BlockSize = 4 << 10
	}
	db, err := pebble.Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	var snap *pebble.Snapshot
	for _, age := range []string{"o", "n"} {
		for i := range count {
			if err := db.Set(fmt.Appendf(nil, "k%05d", i), valueOf(age, i), nil); err != nil {
				t.Fatal(err)
			}
		}
		if snap == nil {
			snap = db.NewSnapshot()
		}
	}
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
	levels, err := db.SSTables()
	if err != nil || len(levels[0]) != 1 {
		t.Fatal(levels, err)
	}
	x := levels[0][0]
	at = Table{Path: "t", Lo: x.Smallest.UserKey, Hi: x.Largest.UserKey,
		Newest: uint64(x.LargestSeqNum)}
	if data, err = Read(fs, fs.PathJoin("db", x.BackingSSTNum.String()+".sst")); err != nil {
		t.Fatal(err)
	}
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return data, at
}

// valueOf is a value that is not compressed away.
func valueOf(age string, i int) []byte {
	b, random := []byte(age), rand.New(rand.NewPCG(uint64(i), uint64(age[0])))
	for range 20 + i%50 {
		b = append(b, byte(random.IntN(256)))
	}
	return b
}

func layoutOf(t *testing.T, p *Pattern, data []byte) (l *sstable.Layout, first, last [][]byte) {
	t.Helper()
	r, err := sstable.NewMemReader(data, p.options.MakeReaderOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if l, err = r.Layout(); err != nil {
		t.Fatal(err)
	}
	for _, h := range l.Data {
		b, done, err := readBlock(t.Context(), r, h.Handle)
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := p.keysOf(b)
		done()
		first, last = append(first, lo), append(last, hi)
	}
	return l, first, last
}

// mergedOf gives what Merge makes of one table with a tail.
func mergedOf(t *testing.T, p *Pattern, at Table, data, tail []byte) map[string]string {
	t.Helper()
	return mergedIn(t, vfs.NewMem(), p, at, append(bytes.Clone(data), tail...))
}

func mergedIn(t *testing.T, fs vfs.FS, p *Pattern, at Table, data []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	f, err := fs.Create(at.Path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(bytes.Clone(data)); err != nil { // which may be spoiled
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	err = p.Merge(t.Context(), fs, []Table{at}, nil, func(key, value []byte, _ uint64) error {
		out[string(key)] = string(value)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Where the newest record of a key is in a damaged block and an older one behind it is not, the
// older one is given, with its value, and the key is among those of which a newer record may be
// lost. All else is as it was.
func TestAnOlderRecordIsGivenForOneThatIsLost(t *testing.T) {
	const count = 2000
	p, err := NewPattern(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, at := twice(t, count)
	all := mergedOf(t, p, at, data, nil)
	for i := range count {
		if key := fmt.Sprintf("k%05d", i); all[key] != string(valueOf("n", i)) {
			t.Fatalf("%s is %.9q", key, all[key])
		}
	}
	l, first, last := layoutOf(t, p, data)
	older := 0
	for n, h := range l.Data {
		want := maps.Clone(all)
		maps.DeleteFunc(want, func(key, _ string) bool {
			return key >= string(first[n]) && key <= string(last[n])
		})
		if n > 0 && bytes.Equal(last[n-1], first[n]) {
			want[string(first[n])] = all[string(first[n])]
		}
		split := n+1 < len(first) && bytes.Equal(first[n+1], last[n])
		if split {
			var i int
			if _, err := fmt.Sscanf(string(last[n]), "k%d", &i); err != nil {
				t.Fatal(err)
			}
			want[string(last[n])] = string(valueOf("o", i))
			older++
		}
		bad := bytes.Clone(data)
		bad[h.Offset+h.Length/2] ^= 0x55
		tail, lost, err := p.Without(t.Context(), vfs.NewMemFile(bad), at.Lo, at.Hi)
		if err != nil || len(lost) != 1 {
			t.Fatal(lost, err)
		}
		if got := mergedOf(t, p, at, bad, tail); !maps.Equal(got, want) {
			t.Errorf("block %d: %d keys, want %d; the last of the block is %.9q, want %.9q", n, len(got),
				len(want), got[string(last[n])], want[string(last[n])])
		}
		if behind := bytes.Compare(lost[0].Hi, last[n]) > 0; split && !behind {
			t.Errorf("block %d: what may have been lost ends at %q, before %q", n, lost[0].Hi, last[n])
		}
		if !split || older > 1 {
			continue // to find blocks takes long
		}
		isMended(t, p, at, bad, l, want, string(last[n]))
	}
	if older < 3 {
		t.Errorf("of %d blocks %d end between two records of a key", len(l.Data), older)
	}
}

// isMended damages what leads to the blocks as well: they are found. Where nothing can tell any
// more where older values are, nobody has that of the key.
func isMended(t *testing.T, p *Pattern, at Table, bad []byte, l *sstable.Layout,
	want map[string]string, key string) {
	t.Helper()
	for _, offset := range []uint64{uint64(len(bad)) - 1, l.MetaIndex.Offset + 1} {
		bad[offset] ^= 0x55
		mended, err := p.Mend(t.Context(), bad, at.Hi)
		if err != nil {
			t.Fatal(err)
		}
		if offset == l.MetaIndex.Offset+1 {
			delete(want, key)
		}
		if got := mergedOf(t, p, at, bad, mended.Bytes); !maps.Equal(got, want) {
			t.Errorf("before %q, and at %d: %d keys, want %d", key, offset, len(got), len(want))
		}
	}
}

// Damage where the values of older records are takes nothing else, and where the disk cannot read
// them they are not looked at for nothing.
func TestDamageToOlderValuesKeepsNobodyFromTheOthers(t *testing.T) {
	p, err := NewPattern(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, at := twice(t, 2000)
	all := mergedOf(t, p, at, data, nil)
	l, first, last := layoutOf(t, p, data)
	n := 0
	for n+1 < len(first) && !bytes.Equal(first[n+1], last[n]) {
		n++
	}
	for i, h := range append(l.ValueBlock, l.ValueIndex) {
		bad := bytes.Clone(data)
		bad[h.Offset+h.Length/2] ^= 0x55
		if got := mergedOf(t, p, at, bad, nil); !maps.Equal(got, all) {
			t.Errorf("at %d: %d keys, want %d", h.Offset, len(got), len(all))
		}
		unread := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileReadAt && uint64(op.Offset) == h.Offset {
				return syscall.EIO
			}
			return nil
		}))
		if got := mergedIn(t, unread, p, at, data); !maps.Equal(got, all) {
			t.Errorf("at %d, unread: %d keys, want %d", h.Offset, len(got), len(all))
		}
		if i > 0 && h != l.ValueIndex {
			continue // to find blocks takes long
		}
		bad[l.Data[n].Offset+100] ^= 0x55 // of a key an older record is left
		found, err := p.Mend(t.Context(), bad, at.Hi)
		if err != nil {
			t.Fatal(err)
		}
		if got := mergedOf(t, p, at, bad, found.Bytes); len(got) < len(all)*9/10 {
			t.Errorf("at %d: %d keys of %d", h.Offset, len(got), len(all))
		}
	}
}
