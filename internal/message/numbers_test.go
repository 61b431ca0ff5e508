package message

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestNumbersAreKnownWithinTheirWindow holds a window to a plain set, also after its record was
// written and read.
func TestNumbersAreKnownWithinTheirWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := int64(64 * rapid.IntRange(1, 3).Draw(t, "depth"))
		w := NewNumbers(int(depth))
		used := map[int64]bool{}
		high := int64(-1)
		back := rapid.Int64Range(0, 2*depth).Draw(t, "back")
		ahead := rapid.Int64Range(1, 2*depth).Draw(t, "ahead")
		for range rapid.IntRange(0, 600).Draw(t, "numbers") {
			n := max(0, high+rapid.Int64Range(-back, ahead).Draw(t, "step"))
			if got, want := w.Add(n), used[n] && high-n < depth; got != want {
				t.Fatalf("Add(%d) is %v, want %v; high is %d", n, got, want, high)
			}
			used[n] = used[n] || high-n < depth
			high = max(high, n)
		}
		rec := w.Append([]byte{7})
		if most := 1 + 2 + 9 + 8*int(depth/64) + 1; len(rec) > most {
			t.Fatalf("the record has %d bytes, most is %d", len(rec), most)
		}
		read, err := ParseNumbers(rec[1:])
		if err != nil {
			t.Fatal(err)
		}
		joined := NewNumbers(int(depth))
		joined.Add(max(0, high-3))
		joined.Join(w)
		for n := int64(0); n <= high+2; n++ {
			want := used[n] && high-n < depth
			if w.Has(n) != want || read.Has(n) != want {
				t.Fatalf("Has(%d) is %v, read %v, want %v; high is %d", n, w.Has(n), read.Has(n), want,
					high)
			}
			if n != max(0, high-3) && joined.Has(n) != want {
				t.Fatalf("joined: Has(%d) is %v; high is %d", n, joined.Has(n), high)
			}
		}
		if again := read.Append(nil); !bytes.Equal(again, rec[1:]) || read.Depth() != int(depth) {
			t.Fatalf("%x was read and written as %x", rec[1:], again)
		}
	})
}

func TestTheUsualNumbersTakeFewBytes(t *testing.T) {
	w := NewNumbers(2048)
	for n := range int64(1_000_000) {
		w.Add(n + 1)
	}
	if rec := w.Append(nil); len(rec) > 6 {
		t.Errorf("%d bytes: %x", len(rec), rec)
	}
}

func TestADamagedRecordOfNumbersIsRefused(t *testing.T) {
	for _, rec := range []string{"", "\x01", "\x00\x01\x01", "\x01\x00\x01", "\x01\x05",
		"\x01\x05\x06", "\x01\x05\x01\x00", "\x01\x05\x00\x00",
		"\x01\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\x0f\x05\x01"} {
		if w, err := ParseNumbers([]byte(rec)); KindOf(err) != Corrupt {
			t.Errorf("%x is read as %v, %v", rec, w, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		w, err := ParseNumbers(rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "record"))
		if err == nil {
			w.Add(5)
			_ = w.Append(nil)
		}
	})
}
