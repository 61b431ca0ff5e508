package load

import (
	"math/bits"
	"time"
)

// hist is a histogram of microseconds with 16 steps for each power of two, so that a quantile is at
// most a sixteenth off.
type hist struct {
	steps [64 * 16]int64
	n     int64
	most  int64
}

func (h *hist) add(d time.Duration) {
	us := max(0, d.Microseconds())
	i := int(us)
	if us >= 16 {
		e := bits.Len64(uint64(us)) - 1
		i = (e-3)*16 + int(us>>(e-4)&15)
	}
	h.steps[i]++
	h.n++
	h.most = max(h.most, us)
}

func (h *hist) merge(o *hist) {
	for i, n := range o.steps {
		h.steps[i] += n
	}
	h.n += o.n
	h.most = max(h.most, o.most)
}

// quantile is the duration that a share q of all does not exceed; 0 of an empty histogram.
func (h *hist) quantile(q float64) time.Duration {
	want, seen := int64(q*float64(h.n)+0.999), int64(0)
	for i, n := range h.steps {
		if seen += n; h.n > 0 && seen >= want {
			us := int64(i)
			if i >= 16 {
				e := i/16 + 3
				us = 1<<e + int64(i%16)<<(e-4)
			}
			return time.Duration(us) * time.Microsecond
		}
	}
	return 0
}
