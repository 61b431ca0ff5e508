package broker

import (
	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// hearer is who a topic's messages wait for: a consumer, or a bridge's subscription.
type hearer struct {
	of any
	*backlog
}

// listeners gives those of a topic, none of a queue.
func (d *destination) listeners() (list []hearer) {
	if d.queue != nil {
		return nil
	}
	for _, s := range d.consumers {
		list = append(list, hearer{s, &s.backlog})
	}
	for _, n := range d.nets {
		list = append(list, hearer{n, &n.backlog})
	}
	return list
}

// listeners explains what waits for those of a topic, one after another: in slices, of at least one
// of them. A message that is asked for is looked for in the spool, too. Then it answers.
func (e *explainer) listeners(todo []hearer) {
	for looked := 0; len(todo) > 0 && !e.named.gone; todo = todo[1:] {
		if looked > explainSlice {
			e.b.env.Soon(func() { e.listeners(todo) })
			return
		}
		l := todo[0]
		looked += l.len() - int(l.records)
		e.inMemory(l)
		n := l.recordsOf[e.named.name].count
		switch {
		case n == 0 || e.id != nil && e.foundFor == l.of:
		case e.id == nil:
			e.waits(l).Count += n
			e.spooled += n
		default:
			s := &spoolLook{e: e, l: l, dest: l.dest, next: l.first, to: l.end,
				then: func() { e.listeners(todo[1:]) }}
			s.page()
			return
		}
	}
	if e.named.gone {
		e.done(nil)
		return
	}
	e.answer()
}

// waits gives the row of what waits for one.
func (e *explainer) waits(l hearer) *ExplainRow {
	e.found = true
	if s, ok := l.of.(*consumer); ok {
		row := e.row(message.WindowFull, who(s))
		row.Address = s.conn.remote.Address
		return row
	}
	n := l.of.(*netSub)
	reason := message.RemoteWindowFull
	if v := n.Gate(e.now); v.Outcome == message.Refuse {
		reason = v.Reason
	}
	return e.row(reason, who(n))
}

// inMemory counts what waits in memory for one: all of the topic, or the message asked for.
func (e *explainer) inMemory(l hearer) {
	var row *ExplainRow
	l.each(func(it backlogItem) {
		if it.dest != e.named || e.id != nil && it.m.ID != *e.id {
			return
		}
		if row == nil {
			row = e.waits(l)
			row.Oldest.add(e.oldestOf(it.m)) // they are in the order of their arrival
		}
		row.Count++
		e.foundFor = l.of
	})
}

func (e *explainer) oldestOf(m *message.Message) Oldest {
	return Oldest{ID: m.ID, Age: e.now - e.b.arrivedBefore(m)}
}

// spoolLook looks for the message asked for among what waits in the spool for one: page by page, as
// in the store. What comes to memory meanwhile is in no page that is read then, and is looked at
// behind the last one.
type spoolLook struct {
	e        *explainer
	l        hearer
	dest     *destination // of the records
	next, to store.Seq
	missed   bool // something was read back meanwhile
	then     func()
}

func (s *spoolLook) page() {
	if s.dest.gone { // with who it was for
		s.then()
		return
	}
	if s.next < s.l.first {
		s.next, s.missed = s.l.first, true
	}
	if s.next >= s.to {
		s.end()
		return
	}
	s.e.b.journal.storage.Page(store.PageRequest{Dest: s.dest.id, From: s.next, To: s.to,
		Count: queue.PageCopies, Bytes: queue.PageBytes}, func(page []store.Stored, err error) {
		switch {
		case s.dest.gone:
			s.then()
		case err != nil:
			s.e.blind += s.l.recordsOf[s.e.named.name].count
			s.end()
		case s.found(page):
			s.then()
		default:
			s.page()
		}
	})
}

// found looks at a page, and reports whether the message is in it and still in the spool.
func (s *spoolLook) found(page []store.Stored) bool {
	e := s.e
	if len(page) == 0 {
		s.next = s.to
	}
	for i := range page {
		x := &page[i]
		s.next = x.Next()
		switch {
		case x.Seq < s.l.first:
			s.missed = true
		case x.To > 0 || x.Message == nil:
			e.blind++ // at least
		case x.Message.ID == *e.id && x.Message.Destination == e.named.name:
			row := e.waits(s.l)
			row.Count++
			row.Oldest.add(e.oldestOf(x.Message))
			e.spooled++
			return true
		}
	}
	return false
}

func (s *spoolLook) end() {
	if s.missed || s.next < s.l.first {
		s.e.inMemory(s.l)
	}
	s.then()
}
