// Package audit recognises messages that were here before: receipts of what peers forwarded, kept
// durably, and the running numbers of local producers, kept durably of those that would send again.
package audit

import "hopwire/internal/message"

// State is what a receipt table knows of an arrival.
type State uint8

// The states of an arrival.
const (
	Unknown State = iota
	Claimed       // taken; its batch is not durable yet
	Durable
)

// Receipts are the arrivals of one destination: each key with the peer that brought it. Only the
// last of each peer are kept.
type Receipts struct {
	known map[message.ReceiptKey]*receipt
	peers map[message.BrokerID]*log
	first uint64 // of a peer that the store knew nothing of
}

type receipt struct {
	of    *series
	n     uint64
	state State
	gone  message.BrokerID // where our copy was forwarded to; "" while it is here or consumed
	been  int              // how often our copy had been there before
	let   int64            // the broker sequence with which it was let in last; of topics
}

// log is one peer's receipts. What the store keeps and what is only in memory have numbers of their
// own: a number that was in the store is never given again, also when nothing is left there.
type log struct {
	stored, memory series
	limit          int // of each
}

// series is receipts in the order of their numbers: keys[start:], the first being number first.
type series struct {
	keys  []message.ReceiptKey
	start int
	first uint64
	next  uint64
}

// NewReceipts makes an empty table.
func NewReceipts() *Receipts {
	return &Receipts{
		known: map[message.ReceiptKey]*receipt{},
		peers: map[message.BrokerID]*log{},
		first: 1,
	}
}

// From has the receipts of all peers in the store begin with a number: it cannot be read what there
// was. What can be read is remembered.
func (r *Receipts) From(n uint64) { r.first = n }

// of gives the receipts of a peer; one that the store knew nothing of begins with number 1,
// or with From.
func (r *Receipts) of(peer message.BrokerID) *log {
	l := r.peers[peer]
	if l == nil {
		l = &log{stored: series{first: r.first, next: r.first}, limit: 1}
		r.peers[peer] = l
	}
	return l
}

// Raise lets at least limit receipts of the peer be kept from here on, and as many again that are
// in memory only.
func (r *Receipts) Raise(peer message.BrokerID, limit int) {
	l := r.of(peer)
	l.limit = max(l.limit, limit)
}

// Restore adds a receipt of the store, in ascending order of n.
func (r *Receipts) Restore(peer message.BrokerID, n uint64, key message.ReceiptKey) {
	r.leap(r.of(peer), n)
	l := &r.of(peer).stored
	if len(l.keys) == l.start {
		l.first, l.next = n, n
	}
	for l.next < n {
		l.keys = append(l.keys, message.ReceiptKey{})
		l.next++
	}
	r.add(l, key, Durable)
}

// Continue says that the peer's next receipt in the store gets at least this number.
func (r *Receipts) Continue(peer message.BrokerID, next uint64) {
	r.leap(r.of(peer), next)
	l := &r.of(peer).stored
	if len(l.keys) == l.start {
		l.first, l.next = max(l.first, next), max(l.next, next)
	}
	for l.next < next {
		l.keys = append(l.keys, message.ReceiptKey{})
		l.next++
	}
}

// mostHole is how many numbers in a row may be missing among the receipts of a peer.
const mostHole = 1 << 16

// leap goes on with a number that is far from the last one, since it could not be read once what
// there was: what is before it is remembered, and goes from the store when that is next pruned.
func (r *Receipts) leap(l *log, n uint64) {
	s := &l.stored
	if len(s.keys) == s.start || n < s.next || n-s.next < mostHole {
		return
	}
	for _, key := range s.keys[s.start:] {
		if e := r.known[key]; e != nil && e.of == s {
			r.add(&l.memory, key, e.state)
		}
	}
	*s = series{first: n, next: n}
}

func (r *Receipts) add(l *series, key message.ReceiptKey, s State) (n uint64) {
	n = l.next
	l.next++
	l.keys = append(l.keys, key)
	r.known[key] = &receipt{of: l, n: n, state: s}
	return n
}

// Look tells what is known of a key, whichever peer brought it.
func (r *Receipts) Look(key message.ReceiptKey) State {
	if e := r.known[key]; e != nil {
		return e.state
	}
	return Unknown
}

// Claim records an arrival that Look did not know, for the store, and gives its number there.
func (r *Receipts) Claim(peer message.BrokerID, key message.ReceiptKey) (n uint64) {
	return r.add(&r.of(peer).stored, key, Claimed)
}

// Remember records an arrival that is kept in memory only: it is as durable as it will be.
func (r *Receipts) Remember(peer message.BrokerID, key message.ReceiptKey) {
	r.add(&r.of(peer).memory, key, Durable)
}

// LetIn says with which broker sequence an arrival was let in, now or again.
func (r *Receipts) LetIn(key message.ReceiptKey, sequence int64) {
	if e := r.known[key]; e != nil {
		e.let = sequence
	}
}

// LastIn gives the broker sequence that LetIn said last, 0 for none.
func (r *Receipts) LastIn(key message.ReceiptKey) int64 {
	if e := r.known[key]; e != nil {
		return e.let
	}
	return 0
}

// Confirm says that the claim of a key is durable.
func (r *Receipts) Confirm(key message.ReceiptKey) {
	if e := r.known[key]; e != nil {
		e.state = Durable
	}
}

// Forwarded says that the copy of an arrival went on to a peer, where it had been so many times
// before; peer "" says that it came back.
func (r *Receipts) Forwarded(key message.ReceiptKey, to message.BrokerID, been int) {
	if e := r.known[key]; e != nil {
		e.gone, e.been = to, been
	}
}

// Outlived reports whether an arrival that is known has to be taken all the same: it was more often
// than our copy at the broker that ours was forwarded to. That broker had this one first and
// suppresses ours, so this may be the last there is. Forks like this exist only after a doubt was
// given up, or when a peer that cannot be asked sent again.
func (r *Receipts) Outlived(key message.ReceiptKey, path []message.BrokerID) bool {
	e := r.known[key]
	return e != nil && e.gone != "" && message.Visits(path, e.gone) > e.been
}

// WentBack reports whether our copy of an arrival was forwarded to a peer it had never been at.
// When that peer asks about a copy of its own, it suppressed ours in its favour, or will: its own
// is what is left.
func (r *Receipts) WentBack(key message.ReceiptKey, to message.BrokerID) bool {
	e := r.known[key]
	return e != nil && e.gone == to && e.been == 0
}

// Prune drops what is beyond the peer's limit and gives the number below which its receipts may
// be deleted from the store; ok is false when there is nothing to delete. It drops in runs, so that
// one deletion serves many.
func (r *Receipts) Prune(peer message.BrokerID) (below uint64, ok bool) {
	l := r.of(peer)
	if over, at := l.memory.over(l.limit); over {
		r.prune(&l.memory, at)
	}
	if over, at := l.stored.over(l.limit); over {
		return r.prune(&l.stored, at)
	}
	return 0, false
}

// over reports whether there are enough beyond limit, and the number of the first to keep.
func (l *series) over(limit int) (bool, uint64) {
	n := len(l.keys) - l.start
	return n >= limit+limit/4+64, l.first + uint64(max(0, n-limit))
}

func (r *Receipts) prune(l *series, below uint64) (uint64, bool) {
	dropped := false
	for l.start < len(l.keys) && l.first < below {
		key := l.keys[l.start]
		if e := r.known[key]; e != nil && e.of == l && e.n == l.first {
			if e.state != Durable {
				break // its batch is on the way: not yet
			}
			delete(r.known, key)
		}
		l.start++
		l.first++
		dropped = true
	}
	if l.start > len(l.keys)/2 {
		n := copy(l.keys, l.keys[l.start:])
		l.keys, l.start = l.keys[:n], 0
	}
	return l.first, dropped
}

// Of reports whether there are receipts of a peer.
func (r *Receipts) Of(peer message.BrokerID) bool {
	l := r.peers[peer]
	return l != nil && len(l.stored.keys)-l.stored.start+len(l.memory.keys)-l.memory.start > 0
}

// Len is the number of receipts in the table.
func (r *Receipts) Len() int { return len(r.known) }
