package mem

import (
	"slices"
	"sort"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// entry is one message or reference; with neither it is the place of a removed one.
type entry struct {
	seq        store.Seq
	redelivery int32
	lasts      bool // as store.Op's
	msg        *message.Message
	ref        *reference
}

// reference is what a subscription keeps of a message. It is not changed.
type reference struct {
	source     store.DestID
	expiration int64
	size       int64 // of the message
}

func (e *entry) live() bool { return e.msg != nil || e.ref != nil }

func (e *entry) size() int64 {
	switch {
	case e.msg != nil:
		return e.msg.Size()
	case e.ref != nil:
		return e.ref.size
	}
	return 0
}

// list holds the messages of a destination in ascending sequence. Messages come mostly at the end
// and go mostly at the front; both are O(1), the rest is a binary search.
//
// Invariant: live == number of live entries; entries[head:] begins with one.
type list struct {
	entries []entry
	head    int
	live    int
	bytes   int64 // sum of the sizes of the live entries
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

// get gives the live entry of a sequence, or nil.
func (l *list) get(seq store.Seq) *entry {
	i := l.find(seq)
	if i == len(l.entries) || l.entries[i].seq != seq || !l.entries[i].live() {
		return nil
	}
	return &l.entries[i]
}

// put adds an entry; false means that its key was written before.
func (l *list) put(e entry) bool {
	seq := e.seq
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
	l.bytes += e.size()
	return true
}

// remove takes an entry out and gives it; what is not there gives one that is not live.
func (l *list) remove(seq store.Seq) entry {
	e := l.get(seq)
	if e == nil {
		return entry{}
	}
	was := *e
	e.msg, e.ref = nil, nil
	l.live--
	l.bytes -= was.size()
	l.trim()
	return was
}

// raise takes out everything below a sequence and gives the sum of the sizes.
func (l *list) raise(to store.Seq) (bytes int64) {
	for i := l.head; i < len(l.entries) && l.entries[i].seq < to; i++ {
		e := &l.entries[i]
		if e.live() {
			bytes += e.size()
			l.live--
		}
		e.msg, e.ref = nil, nil
	}
	l.bytes -= bytes
	l.trim()
	return bytes
}

// trim restores the invariant after entries were taken out.
func (l *list) trim() {
	for l.head < len(l.entries) && !l.entries[l.head].live() {
		l.head++
	}
	if gone := len(l.entries) - l.live; gone > 32 && gone > l.live {
		l.compact()
	}
}

// compact drops the places of removed entries.
func (l *list) compact() {
	kept := l.entries[:0]
	for _, e := range l.entries[l.head:] {
		if e.live() {
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
