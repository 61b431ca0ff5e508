package openwire

import (
	"hash/maphash"
	"slices"
)

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

// internBytes is the longest string worth keeping.
const internBytes = 128

// seed makes the places of strings in the table unknown to peers.
var seed = maphash.MakeSeed()

// stringTable keeps ASCII strings by a hash of their bytes, eight at each place: the dozen names of
// a message must not push each other out, wherever the hash puts them.
type stringTable [8][8]string

func (t *stringTable) place(raw []byte) *[8]string {
	return &t[maphash.Bytes(seed, raw)%uint64(len(t))]
}

// find moves what it finds one forward, so that what is used often stays.
func (t *stringTable) find(raw []byte) (s string, ok bool) {
	p := t.place(raw)
	for i := range p {
		if p[i] != string(raw) {
			continue
		}
		s = p[i]
		if i > 0 {
			p[i-1], p[i] = s, p[i-1]
		}
		return s, true
	}
	return "", false
}

// keep stores s, whose bytes are raw, in place of the last one.
func (t *stringTable) keep(raw []byte, s string) {
	p := t.place(raw)
	copy(p[1:], p[:])
	p[0] = s
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
