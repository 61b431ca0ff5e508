package mem

import (
	"slices"
	"sort"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// entry is one message; a nil msg is the place of a removed one.
type entry struct {
	seq        store.Seq
	redelivery int32
	msg        *message.Message
}

// list holds the messages of a destination in ascending sequence. Messages come mostly at the end
// and go mostly at the front; both are O(1), the rest is a binary search.
//
// Invariant: live == number of entries with a message; entries[head:] begins with one.
type list struct {
	entries []entry
	head    int
	live    int
	bytes   int64 // sum of the sizes of the live messages
}

// find gives the index of the first entry at or above seq.
func (l *list) find(seq store.Seq) int {
	n := len(l.entries) - l.head
	if n == 0 || seq <= l.entries[l.head].seq {
		return l.head
	}
	// Sequences are nearly dense: the guess is right unless something was put out of order.
	if d := seq - l.entries[l.head].seq; d < store.Seq(n) && l.entries[l.head+int(d)].seq == seq {
		return l.head + int(d)
	}
	return l.head + sort.Search(n, func(i int) bool { return l.entries[l.head+i].seq >= seq })
}

// get gives the entry of a stored message, or nil.
func (l *list) get(seq store.Seq) *entry {
	i := l.find(seq)
	if i == len(l.entries) || l.entries[i].seq != seq || l.entries[i].msg == nil {
		return nil
	}
	return &l.entries[i]
}

// put adds a message; false means that its key was written before.
func (l *list) put(seq store.Seq, m *message.Message) bool {
	e := entry{seq: seq, msg: m}
	if n := len(l.entries); n == 0 || l.entries[n-1].seq < seq {
		l.entries = append(l.entries, e)
	} else {
		i := l.find(seq)
		if i < len(l.entries) && l.entries[i].seq == seq {
			return false
		}
		l.entries = slices.Insert(l.entries, i, e)
	}
	l.live++
	l.bytes += m.Size()
	return true
}

// remove takes a message out and gives it, nil when it is not there.
func (l *list) remove(seq store.Seq) *message.Message {
	e := l.get(seq)
	if e == nil {
		return nil
	}
	m := e.msg
	e.msg = nil
	l.live--
	l.bytes -= m.Size()
	for l.head < len(l.entries) && l.entries[l.head].msg == nil {
		l.head++
	}
	if gone := len(l.entries) - l.live; gone > 32 && gone > l.live {
		l.compact()
	}
	return m
}

// compact drops the places of removed messages.
func (l *list) compact() {
	kept := l.entries[:0]
	for _, e := range l.entries[l.head:] {
		if e.msg != nil {
			kept = append(kept, e)
		}
	}
	clear(l.entries[len(kept):])
	l.entries, l.head = kept, 0
}

func (l *list) clone() list {
	c := *l
	c.entries = slices.Clone(l.entries[l.head:])
	c.head = 0
	return c
}
