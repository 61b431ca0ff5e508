package queue

import "time"

// reader is somebody for whom pages are read: a slot, or the host.
type reader struct{ last uint64 } // the number of the last page that was read for it

// wish is a page that a reader waits for.
type wish struct {
	by   *reader
	from uint64
}

// want notes that a reader waits for the page which begins with a stored copy that is not in
// memory. Dispatch asks for one at its end, if none is on its way: of several the one whose reader
// had its last page longest ago, so that nobody's search keeps others from what they want. It
// reports whether the page was noted.
func (q *Queue) want(by *reader, from uint64) bool {
	if q.reading || q.unread[from] {
		return false
	}
	if q.wanted.by == nil || by.last < q.wanted.by.last {
		q.wanted = wish{by, from}
	}
	return true
}

// Want asks for the page that begins with a stored copy which is not in memory, whoever is ready.
// When another one is on its way, or this one could not be read just now, nothing is asked.
func (q *Queue) Want(seq uint64) {
	if q.gaps.has(seq) && q.want(&q.reader, seq) {
		q.wake()
	}
}

// read asks the host for the page that is wanted.
func (q *Queue) read() {
	w := q.wanted
	q.wanted = wish{}
	if w.by == nil || q.reading || !q.gaps.has(w.from) {
		return
	}
	q.pages++
	w.by.last = q.pages
	for _, s := range q.slots {
		if s.pos[main] == w.from {
			s.reader.last = q.pages
		}
	}
	g, _ := q.gaps.next(w.from)
	q.reading, q.page = true, g.from
	q.host.ReadPage(q, g.from, g.to)
}

// LoadFailed answers ReadPage when the page could not be read: the queue asks again after a second
// at the earliest, and again runs then, for others that want a page. Meanwhile who waits there
// waits; other pages are read.
func (q *Queue) LoadFailed(again func()) {
	from := q.page
	if q.unread == nil {
		q.unread = map[uint64]bool{}
	}
	q.reading, q.unread[from] = false, true
	q.forgetErased()
	q.wake()
	q.env.After(time.Second, func() {
		delete(q.unread, from)
		q.healNext()
		q.wake()
		again()
	})
}

// Undecided reports whether a ready slot gets a copy later, with no change from outside: there is
// something that it has not looked at and that can be read, or Known is waited for. The end of a
// Dispatch decides.
func (q *Queue) Undecided(s *Slot) bool {
	switch {
	case !s.ready:
		return false
	case q.unknown:
		return true
	case len(s.again) > 0 && !q.unread[s.again[0].key]:
		return true
	}
	at := s.position(main)
	if g, ok := q.gaps.next(at); ok {
		return !q.unread[g.from]
	}
	return q.lanes[returned].next(s.position(returned)) != nil || q.lanes[main].next(at) != nil
}
