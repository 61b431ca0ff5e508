package queue

import "sort"

// entry is a copy in a lane; a dead entry has none.
type entry struct {
	key  uint64
	copy *Copy
}

// lane holds copies in ascending order of their keys: append at the end is O(1), removal leaves a
// hole, and holes are closed when they are the majority.
type lane struct {
	entries []entry // entries[start:] are in use; entries[start] is alive
	start   int
	live    int
}

func (l *lane) len() int { return l.live }

// find gives the index of the first entry, dead or alive, whose key is at least key.
func (l *lane) find(key uint64) int {
	e := l.entries
	if l.start == len(e) || e[l.start].key >= key {
		return l.start
	}
	if last := len(e) - 1; e[last].key < key {
		return len(e)
	}
	return l.start + sort.Search(len(e)-l.start, func(i int) bool {
		return e[l.start+i].key >= key
	})
}

// next gives the first copy whose key is at least key.
func (l *lane) next(key uint64) *Copy {
	for i := l.find(key); i < len(l.entries); i++ {
		if c := l.entries[i].copy; c != nil {
			return c
		}
	}
	return nil
}

// get gives the copy with exactly that key.
func (l *lane) get(key uint64) *Copy {
	i := l.find(key)
	if i < len(l.entries) && l.entries[i].key == key {
		return l.entries[i].copy
	}
	return nil
}

// add puts a copy in its place by key; at the end it costs nothing.
func (l *lane) add(key uint64, c *Copy) {
	l.live++
	i := l.find(key)
	if i < len(l.entries) && l.entries[i].key == key {
		l.entries[i].copy = c
		return
	}
	if i == l.start && l.start > 0 {
		l.start--
		l.entries[l.start] = entry{key, c}
		return
	}
	l.entries = append(l.entries, entry{})
	copy(l.entries[i+1:], l.entries[i:])
	l.entries[i] = entry{key, c}
}

// remove takes out the copy with that key.
func (l *lane) remove(key uint64) {
	i := l.find(key)
	if i == len(l.entries) || l.entries[i].key != key || l.entries[i].copy == nil {
		return
	}
	l.entries[i].copy = nil
	l.live--
	for l.start < len(l.entries) && l.entries[l.start].copy == nil {
		l.start++
	}
	if l.start == len(l.entries) {
		l.entries, l.start = l.entries[:0], 0
		return
	}
	if dead := len(l.entries) - l.live; dead > l.live+64 {
		l.compact()
	}
}

func (l *lane) compact() {
	kept := l.entries[:0]
	for _, e := range l.entries[l.start:] {
		if e.copy != nil {
			kept = append(kept, e)
		}
	}
	clear(l.entries[len(kept):])
	l.entries, l.start = kept, 0
}

// each calls f for every copy with key at least from, in order, until f returns false.
func (l *lane) each(from uint64, f func(*Copy) bool) {
	for i := l.find(from); i < len(l.entries); i++ {
		if c := l.entries[i].copy; c != nil && !f(c) {
			return
		}
	}
}
