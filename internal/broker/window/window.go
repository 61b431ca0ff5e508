// Package window is a consumer's window: what was dispatched to it and not yet acknowledged, how
// much more it may be sent, and what an acknowledgement means.
package window

import (
	"hopwire/internal/message"
)

// Entry is one dispatched copy. Ref is the owner's handle on it.
type Entry[R any] struct {
	Ref         R
	Message     *message.Message
	Destination message.Destination // the concrete one it was dispatched from
	Number      uint64              // of the delivery on its connection

	tx       message.TransactionID // acknowledged in this transaction, not committed
	extended bool                  // counted in the extension
	apart    bool                  // takes none of the window's room
}

// Transaction gives the transaction the entry was acknowledged in, zero for none.
func (e *Entry[R]) Transaction() message.TransactionID { return e.tx }

// Window holds the entries of one subscription in the order of their dispatch.
//
// Invariants: 0 <= extension <= number of entries; room = prefetch + extension - entries, without
// those apart, and a pull window (prefetch 0) has room for what was pulled.
type Window[R any] struct {
	entries   []Entry[R] // entries[start:]
	start     int
	prefetch  int
	extension int
	apart     int  // entries apart
	seen      int  // of them, those that reached the client
	pulled    int  // pulls not yet answered
	extends   bool // usePrefetchExtension
}

// New makes a window for prefetch messages; 0 makes a pull window. extends is ActiveMQ's
// usePrefetchExtension: what reached the client does not count against the prefetch.
func New[R any](prefetch int, extends bool) *Window[R] {
	return &Window[R]{prefetch: max(0, prefetch), extends: extends}
}

// Len is the number of dispatched, unsettled entries.
func (w *Window[R]) Len() int { return len(w.entries) - w.start }

// Prefetch is the current size of the window.
func (w *Window[R]) Prefetch() int { return w.prefetch }

// SetPrefetch changes the size of the window.
func (w *Window[R]) SetPrefetch(n int) { w.prefetch = max(0, n) }

// Pull lets one more message into a pull window.
func (w *Window[R]) Pull() {
	if w.prefetch == 0 {
		w.pulled++
	}
}

// Unpull takes back a pull that timed out; it reports false when it was answered.
func (w *Window[R]) Unpull() bool {
	if w.pulled == 0 {
		return false
	}
	w.pulled--
	return true
}

// Room is how many more messages may be dispatched.
func (w *Window[R]) Room() int {
	if w.prefetch == 0 {
		return w.pulled
	}
	return max(0, w.prefetch+w.extension-(w.Len()-w.apart))
}

// Apart is how many entries apart there are of which the client did not say that they reached it.
func (w *Window[R]) Apart() int { return w.apart - w.seen }

// AddApart records a dispatch that takes none of the window's room, but is in the ranges that the
// client acknowledges.
func (w *Window[R]) AddApart(ref R, m *message.Message, d message.Destination, number uint64) {
	w.Add(ref, m, d, number)
	w.entries[len(w.entries)-1].apart = true
	w.apart++
}

// Add records a dispatch and reports whether there is room for another.
func (w *Window[R]) Add(ref R, m *message.Message, d message.Destination, number uint64) bool {
	if w.start > 0 && len(w.entries) == cap(w.entries) {
		n := copy(w.entries, w.entries[w.start:])
		clear(w.entries[n:])
		w.entries, w.start = w.entries[:n], 0
	}
	w.entries = append(w.entries, Entry[R]{Ref: ref, Message: m, Destination: d,
		Number: number})
	if w.prefetch == 0 && w.pulled > 0 {
		w.pulled--
	}
	return w.Room() > 0
}

// Range is a run of entries that an acknowledgement names: entries [from, to) of the window.
type Range struct{ from, to int }

// Len is the number of entries in the range.
func (r Range) Len() int { return r.to - r.from }

// Find gives the range that an acknowledgement names, by its destination and message ids. The
// error says what does not fit, in ActiveMQ's words.
func (w *Window[R]) Find(a *message.MessageAck) (Range, error) {
	if a.Type == message.IndividualAck {
		i := w.index(a.Destination, a.Last, w.start)
		if i < 0 {
			return Range{}, unmatched(a, "the message was not dispatched to this consumer")
		}
		return Range{i, i + 1}, nil
	}
	last := w.of(a.Destination, a.Last, w.start)
	if last < 0 {
		return Range{}, unmatched(a, "its last message was not dispatched to this consumer")
	}
	if !a.HasFirst || a.Type == message.DeliveredAck { // its first one may be consumed already
		return w.fits(a, Range{w.start, last + 1})
	}
	first := w.of(a.Destination, a.First, w.start)
	if first < 0 {
		return Range{}, unmatched(a, "its first message was not dispatched to this consumer")
	}
	r := Range{first, last + 1}
	if int(a.Count) != w.open(r) {
		r.from = w.counted(a, r)
	}
	if r.from >= r.to {
		return Range{}, unmatched(a, "its last message was not dispatched to this consumer")
	}
	return w.fits(a, r)
}

// fits refuses a range that is not as long as the acknowledgement says. A JMS client that goes on
// while a branch of its is prepared counts the messages of that one, too.
func (w *Window[R]) fits(a *message.MessageAck, r Range) (Range, error) {
	all := !a.Transaction.IsZero() && int(a.Count) == r.to-r.from
	if a.Type == message.StandardAck && int(a.Count) != w.open(r) && !all {
		return Range{}, message.Errorf(message.Protocol,
			"Unmatched acknowledge: expected message count (%d) differs from the %d"+
				" dispatched between %s and %s", a.Count, w.open(r), a.First, a.Last)
	}
	return r, nil
}

// counted gives where a range begins whose first message has copies of other destinations, too: at
// the one from which it has as many entries as the acknowledgement says. r is one that has not.
func (w *Window[R]) counted(a *message.MessageAck, r Range) int {
	for i := w.start; i < r.to; i++ {
		if w.entries[i].Message.ID == a.First && int(a.Count) == w.open(Range{i, r.to}) {
			return i
		}
	}
	return r.from
}

// open counts the entries of the range that no transaction holds.
func (w *Window[R]) open(r Range) int {
	n := 0
	for i := r.from; i < r.to; i++ {
		if w.entries[i].tx.IsZero() {
			n++
		}
	}
	return n
}

func unmatched(a *message.MessageAck, why string) error {
	return message.Errorf(message.Protocol,
		"Unmatched acknowledge of %s on %s: %s", a.Last, a.Destination, why)
}

// of finds the entry of a message that an acknowledgement names: of its destination if there is
// one. A range of a consumer of several destinations has the destination of its last message alone.
func (w *Window[R]) of(d message.Destination, id message.MessageID, from int) int {
	if i := w.index(d, id, from); i >= 0 {
		return i
	}
	return w.index(message.Destination{}, id, from)
}

// index finds an entry at or behind from.
func (w *Window[R]) index(d message.Destination, id message.MessageID, from int) int {
	for i := from; i < len(w.entries); i++ {
		e := &w.entries[i]
		if e.Message.ID == id && (d.IsZero() || e.Destination == d) {
			return i
		}
	}
	return -1
}

// MarkDelivered says that everything up to the end of the range reached the client, count of
// them new; they stop counting against the prefetch.
func (w *Window[R]) MarkDelivered(r Range, count int) {
	if !w.extends || w.prefetch == 0 {
		return
	}
	for i := r.to - 1; i >= w.start && count > 0; i-- {
		w.extend(&w.entries[i])
		count--
	}
}

// extend makes the room of an entry that reached the client.
func (w *Window[R]) extend(e *Entry[R]) {
	switch {
	case e.extended:
		return
	case e.apart:
		w.seen++
	default:
		w.extension++
	}
	e.extended = true
}

// contract takes back what extend made.
func (w *Window[R]) contract(e *Entry[R]) {
	switch {
	case !e.extended:
		return
	case e.apart:
		w.seen--
	default:
		w.extension--
	}
	e.extended = false
}

// Take removes the entries of the range that no transaction holds and gives them to f.
func (w *Window[R]) Take(r Range, f func(*Entry[R])) {
	kept := r.from
	for i := r.from; i < r.to; i++ {
		e := w.entries[i]
		if !e.tx.IsZero() {
			w.entries[kept] = e
			kept++
			continue
		}
		w.drop(&e)
		f(&e)
	}
	w.close(kept, r.to)
}

// drop forgets what an entry counted that is removed.
func (w *Window[R]) drop(e *Entry[R]) {
	w.contract(e)
	if e.apart {
		w.apart--
	}
}

// close removes the entries [from, to), which were taken.
func (w *Window[R]) close(from, to int) {
	if from == to {
		return
	}
	if from != w.start {
		n := copy(w.entries[from:], w.entries[to:])
		clear(w.entries[from+n:])
		w.entries = w.entries[:from+n]
		return
	}
	clear(w.entries[from:to])
	w.start = to
	if w.start == len(w.entries) {
		w.entries, w.start = w.entries[:0], 0
	}
}

// Hold marks the open entries of the range as acknowledged in a transaction and gives them to f;
// they stay until Commit or Rollback. As they reached the client they make room meanwhile.
func (w *Window[R]) Hold(r Range, tx message.TransactionID, f func(*Entry[R])) {
	for i := r.from; i < r.to; i++ {
		e := &w.entries[i]
		if !e.tx.IsZero() {
			continue
		}
		e.tx = tx
		f(e)
		if w.extends && w.prefetch > 0 {
			w.extend(e)
		}
	}
}

// Commit removes what the transaction acknowledged and gives it to f.
func (w *Window[R]) Commit(tx message.TransactionID, f func(*Entry[R])) {
	w.Filter(func(e *Entry[R]) bool {
		if e.tx != tx {
			return true
		}
		f(e)
		return false
	})
}

// Rollback makes what the transaction acknowledged open again, and gives it to f; the client still
// has it.
func (w *Window[R]) Rollback(tx message.TransactionID, f func(*Entry[R])) {
	for i := w.start; i < len(w.entries); i++ {
		if e := &w.entries[i]; e.tx == tx {
			e.tx = message.TransactionID{}
			f(e)
			w.contract(e)
		}
	}
}

// Filter keeps the entries for which keep is true, in order, and removes the others.
func (w *Window[R]) Filter(keep func(*Entry[R]) bool) {
	kept := w.start
	for i := w.start; i < len(w.entries); i++ {
		e := &w.entries[i]
		if keep(e) {
			w.entries[kept] = *e
			kept++
		} else {
			w.drop(e)
		}
	}
	w.close(kept, len(w.entries))
}

// Each calls f for every entry in the order of dispatch.
func (w *Window[R]) Each(f func(*Entry[R])) {
	for i := w.start; i < len(w.entries); i++ {
		f(&w.entries[i])
	}
}

// Any reports whether f holds for an entry.
func (w *Window[R]) Any(f func(*Entry[R]) bool) bool {
	for i := w.start; i < len(w.entries); i++ {
		if f(&w.entries[i]) {
			return true
		}
	}
	return false
}
