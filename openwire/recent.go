package openwire

import "slices"

// recent keeps the last few structures of one type, so that a connection which names the same
// ids again and again gets the same pointers again.
type recent[T comparable] struct {
	last [8]*T
	next uint8
}

// share returns an equal structure seen before, or a copy of x that it keeps.
func (r *recent[T]) share(x *T) *T {
	for _, p := range r.last {
		if p == nil {
			break
		}
		if *p == *x {
			return p
		}
	}
	p := new(T)
	*p = *x
	r.last[r.next&7] = p
	r.next++
	return p
}

// internBytes is the longest string worth a slot.
const internBytes = 128

// stringTable holds strings by a hash of their bytes, one a slot.
type stringTable [64]string

// slot is where a string of these bytes lives or would live; nil when it is too long.
func (t *stringTable) slot(raw []byte) *string {
	n := len(raw)
	if n > internBytes {
		return nil
	}
	h := uint(n) + 7*uint(raw[n-1])
	if n >= 4 {
		h += 31*uint(raw[n-2]) + 131*uint(raw[n-3]) + 17*uint(raw[n/2])
	}
	return &t[h%uint(len(t))]
}

// pathTable keeps the last few broker paths.
type pathTable struct {
	last [4][]*BrokerId
	next uint8
}

func (t *pathTable) share(path []*BrokerId) []*BrokerId {
	for _, p := range t.last {
		if slices.Equal(p, path) {
			return p
		}
	}
	p := make([]*BrokerId, len(path)) // exact: an append by its user copies it
	copy(p, path)
	t.last[t.next&3] = p
	t.next++
	return p
}
