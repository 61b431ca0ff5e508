package message

import (
	"bytes"
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestNumbersAreKnownWithinTheirWindow holds a window to a plain set, also after its record was
// written and read, and after it was joined to one of another depth: from zero on, and up to the
// highest number that there is.
func TestNumbersAreKnownWithinTheirWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SampledFrom([]int64{0, math.MaxInt64}).Draw(t, "base")
		w, used, high := drawNumbers(t, base)
		rec := w.Append([]byte{7})
		if most := 1 + 2 + 9 + 8*w.Depth()/64 + 1; len(rec) > most {
			t.Fatalf("the record has %d bytes, most is %d", len(rec), most)
		}
		read, err := ParseNumbers(rec[1:])
		if err != nil {
			t.Fatal(err)
		}
		if again := read.Append(nil); !bytes.Equal(again, rec[1:]) || read.Depth() != w.Depth() {
			t.Fatalf("%x was read and written as %x", rec[1:], again)
		}
		joined, more, top := drawNumbers(t, base)
		joined.Join(w)
		top = max(top, high)
		first := int64(0)
		if high > 1000 {
			first = high - 1000
		}
		for i := range int64(2000) {
			n := first + i
			if n < 0 {
				break
			}
			want := used[n] && high-n < int64(w.Depth())
			if w.Has(n) != want || read.Has(n) != want {
				t.Fatalf("Has(%d) is %v, read %v, want %v; high is %d", n, w.Has(n), read.Has(n), want,
					high)
			}
			want = (want || more[n]) && top-n < int64(joined.Depth())
			if joined.Has(n) != want {
				t.Fatalf("joined: Has(%d) is %v, want %v; high is %d", n, !want, want, top)
			}
		}
	})
}

// drawNumbers uses numbers that are near a base, and gives what is known of them.
func drawNumbers(t *rapid.T, base int64) (w *Numbers, used map[int64]bool, high int64) {
	depth := int64(64 * rapid.IntRange(1, 3).Draw(t, "depth"))
	w, used, high = NewNumbers(int(depth)), map[int64]bool{}, -1
	back := rapid.Int64Range(0, 2*depth).Draw(t, "back")
	ahead := rapid.Int64Range(1, 2*depth).Draw(t, "ahead")
	at := base - min(base, rapid.Int64Range(0, 500).Draw(t, "below")) - 1
	for range rapid.IntRange(0, 300).Draw(t, "numbers") {
		step := rapid.Int64Range(-back, ahead).Draw(t, "step")
		n := max(0, max(at, high)+min(step, math.MaxInt64-max(at, high)))
		if got, want := w.Add(n), used[n] && high-n < depth; got != want {
			t.Fatalf("Add(%d) is %v, want %v; high is %d", n, got, want, high)
		}
		high = max(high, n)
		used[n] = true
		maps.DeleteFunc(used, func(m int64, _ bool) bool { return high-m >= depth })
	}
	return w, used, high
}

func TestTheHighestNumberThereIsHasARecord(t *testing.T) {
	w := NewNumbers(64)
	w.Add(3)
	w.Add(math.MaxInt64)
	read, err := ParseNumbers(w.Append(nil))
	if err != nil || !read.Has(math.MaxInt64) || read.Has(3) || read.Has(math.MaxInt64-1) {
		t.Errorf("it is read as %v, %v", read, err)
	}
	w = NewNumbers(128)
	w.Join(read)
	if !w.Has(math.MaxInt64) || w.Has(math.MaxInt64-64) || w.Add(math.MaxInt64-127) {
		t.Errorf("it is joined as %v", w)
	}
}

// One number far beyond the others must not keep those that follow from being known, nor make them
// known that were not used.
func TestNumbersThatFallFarBeginANewCount(t *testing.T) {
	for _, high := range []int64{FallMost + 128, 1 << 62, math.MaxInt64} {
		w := NewNumbers(128)
		w.Add(5)
		w.Add(high)
		before := w.Clone()
		for _, n := range []int64{7, 1, 9} {
			if w.Has(n) || w.Add(n) || !w.Add(n) || !w.Has(n) {
				t.Errorf("behind %d: %d was there, or is not", high, n)
			}
		}
		read, err := ParseNumbers(w.Append(nil))
		if err != nil || !read.Has(1) || !read.Has(7) || !read.Has(9) || read.Has(5) || read.Has(high) {
			t.Errorf("behind %d: it is read as %v, %v", high, read, err)
		}
		if w.Join(before); !w.Has(1) || w.Has(5) || w.Has(high) {
			t.Errorf("joined to what was before it is %v", w)
		}
		if w.Add(high) || !w.Has(high) || w.Has(1) {
			t.Errorf("and back to %d it is %v", high, w)
		}
	}
	w := NewNumbers(64)
	w.Add(FallMost + 8)
	if w.Add(8) || w.Has(8) || !w.Has(FallMost+8) {
		t.Errorf("a resend that is older than the window ends it: %v", w)
	}
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
		"\x01\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x01\x81\x80\x80\x80\x80\x80\x80\x80\x80\x01\x01", "\xff\xff\xff\xff\x0f\x05\x01"} {
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
