package message

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// numbersMost is the largest depth of Numbers.
const numbersMost = 1 << 20

// FallMost is how far below the highest a number may be that is of the same count: more than a
// client can have sent without an answer. What is below that begins a new count.
const FallMost = 1 << 20

// Numbers are the running numbers that one producer used: the highest, and which of those less than
// a depth below it. What is older is not known. A producer whose numbers fall by more than FallMost
// counts anew: it is known by the new numbers and not by those before, and loses no message.
type Numbers struct {
	high int64    // -1 while there is none
	bits []uint64 // bit of number n: n % depth; none above high
}

// NewNumbers makes an empty window of at least depth numbers: the next multiple of 64.
func NewNumbers(depth int) *Numbers {
	return &Numbers{high: -1, bits: make([]uint64, words(depth))}
}

func words(depth int) int { return (min(max(1, depth), numbersMost) + 63) / 64 }

// Depth is how many numbers, up to the highest, are known.
func (w *Numbers) Depth() int { return 64 * len(w.bits) }

func (w *Numbers) depth() int64 { return int64(w.Depth()) }

// Has reports whether a number was used. Of one below the window nobody knows, and it says no.
func (w *Numbers) Has(n int64) bool {
	return n >= 0 && n <= w.high && w.high-n < w.depth() &&
		w.bits[n%w.depth()/64]&(1<<(n%64)) != 0
}

// Add records a number, which is not negative, and reports whether it was there already. What the
// window had of another count goes.
func (w *Numbers) Add(n int64) (was bool) {
	depth := w.depth()
	switch {
	case n > w.high:
		w.raise(n)
	case w.high-n > FallMost:
		clear(w.bits)
		w.high = n
	case w.high-n >= depth:
		return false
	case w.bits[n%depth/64]&(1<<(n%64)) != 0:
		return true
	}
	w.bits[n%depth/64] |= 1 << (n % 64)
	return false
}

// raise makes a number the highest, without recording it.
func (w *Numbers) raise(n int64) {
	from := max(w.high, n-w.depth()) + 1
	for i := from / 64; i <= n/64; i++ {
		w.bits[i%int64(len(w.bits))] &^= within(i, from, n)
	}
	w.high = n
}

// within gives the bits of word i, which holds the numbers from 64i on, that are of [from, to]. The
// word is not outside of it.
func within(i, from, to int64) uint64 {
	all := ^uint64(0)
	if i == from/64 {
		all <<= from % 64
	}
	if i == to/64 {
		all &= ^uint64(0) >> (63 - to%64)
	}
	return all
}

// low is the first number of the window.
func (w *Numbers) low() int64 { return max(0, w.high-w.depth()+1) }

// Join records what another window has, which was used before: of another count, nothing.
func (w *Numbers) Join(o *Numbers) {
	if w.high >= 0 && o.high-w.high > FallMost {
		return
	}
	if o.high > w.high {
		w.raise(o.high)
	}
	from := max(o.low(), w.low())
	for i := from / 64; from <= o.high && i <= o.high/64; i++ {
		w.bits[i%int64(len(w.bits))] |= o.bits[i%int64(len(o.bits))] & within(i, from, o.high)
	}
}

// Fit gives the window itself if it has the depth of NewNumbers(depth), else a new one of it that
// has the same numbers. A nil window has none.
func (w *Numbers) Fit(depth int) *Numbers {
	if w != nil && len(w.bits) == words(depth) {
		return w
	}
	fit := NewNumbers(depth)
	if w != nil {
		fit.Join(w)
	}
	return fit
}

// With gives the window with a number, made if w is nil, and of another depth if that is wanted.
func (w *Numbers) With(n int64, depth int) *Numbers {
	w = w.Fit(depth)
	w.Add(n)
	return w
}

// Clone gives a copy.
func (w *Numbers) Clone() *Numbers { return &Numbers{high: w.high, bits: slices.Clone(w.bits)} }

// run gives how many numbers from n down are all used, or all not, as n is.
func (w *Numbers) run(n int64) (length int64) {
	used, depth, low := w.Has(n), w.depth(), w.low()
	for n-length >= low {
		m := n - length
		word := w.bits[m%depth/64]
		if !used {
			word = ^word
		}
		have := m%64 + 1 // of this word, down to its first bit
		same := min(int64(bits.LeadingZeros64(^(word << (64 - have)))), have, m-low+1)
		length += same
		if same < have {
			break
		}
	}
	return length
}

// Append adds the window's record: depth / 64, the highest number plus one, and how many numbers
// from there down are used, are not, are, and so on to the lowest that is. Three to five bytes are
// enough for a producer all of whose messages came here. One with so many gaps that the lengths
// take more has a zero for them, and its bits.
func (w *Numbers) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(w.bits)))
	b = binary.AppendUvarint(b, uint64(w.high)+1) // of the highest number there is, 1 << 63
	runs := len(b)
	for n, low, used := w.high, w.low(), true; n >= low && w.high >= 0; used = !used {
		length := w.run(n)
		if n -= length; n < low && !used {
			break
		}
		if b = binary.AppendUvarint(b, uint64(length)); len(b)-runs > 8*len(w.bits) {
			b = append(b[:runs], 0)
			for _, word := range w.bits {
				b = binary.LittleEndian.AppendUint64(b, word)
			}
			return b
		}
	}
	return b
}

// ParseNumbers reads what Append wrote; an error is Corrupt.
func ParseNumbers(rec []byte) (*Numbers, error) {
	if w := parseNumbers(rec); w != nil {
		return w, nil
	}
	return nil, Errorf(Corrupt, "the record of a producer's numbers makes no sense")
}

// parseNumbers gives nil for what makes no sense.
func parseNumbers(rec []byte) *Numbers {
	next := func() uint64 {
		n, size := binary.Uvarint(rec)
		if size <= 0 {
			rec = nil
			return math.MaxUint64
		}
		rec = rec[size:]
		return n
	}
	words, above := next(), next()
	if words == 0 || words > numbersMost/64 || above > math.MaxInt64+1 {
		return nil
	}
	w := &Numbers{high: int64(above - 1), bits: make([]uint64, words)}
	if len(rec) > 0 && rec[0] == 0 {
		if rec = rec[1:]; len(rec) != 8*len(w.bits) || w.high < 0 {
			return nil
		}
		for i := range w.bits {
			w.bits[i] = binary.LittleEndian.Uint64(rec[8*i:])
		}
		if !w.Has(w.high) {
			return nil
		}
		return w
	}
	n, low := w.high, w.low()
	if (len(rec) == 0) != (w.high < 0) {
		return nil
	}
	for used := true; len(rec) > 0; used = !used {
		length := next()
		if length == 0 || length > uint64(n-low+1) {
			return nil
		}
		first := n - int64(length) + 1
		for i := first / 64; used && i <= n/64; i++ {
			w.bits[i%int64(len(w.bits))] |= within(i, first, n)
		}
		n = first - 1
	}
	return w
}
