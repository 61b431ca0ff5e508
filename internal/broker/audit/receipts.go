// Package audit recognises messages that were here before: receipts of what peers forwarded, kept
// durably, and the running numbers of local producers, kept in memory.
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
}

type receipt struct {
	peer  message.BrokerID
	n     uint64
	state State
	gone  message.BrokerID // where our copy was forwarded to; "" while it is here or consumed
	been  int              // how often our copy had been there before
}

// log is one peer's receipts in the order of their numbers: keys[start:], the first being number
// first.
type log struct {
	keys  []message.ReceiptKey
	start int
	first uint64
	next  uint64
	limit int
}

// NewReceipts makes an empty table.
func NewReceipts() *Receipts {
	return &Receipts{
		known: map[message.ReceiptKey]*receipt{},
		peers: map[message.BrokerID]*log{},
	}
}

// Loaded reports whether the peer's receipts are in the table.
func (r *Receipts) Loaded(peer message.BrokerID) bool { return r.peers[peer] != nil }

// Open makes room for a peer; at most limit of its receipts are kept. next is the number that its
// next receipt gets at least.
func (r *Receipts) Open(peer message.BrokerID, limit int, next uint64) {
	if r.peers[peer] == nil {
		r.peers[peer] = &log{limit: max(1, limit), first: next, next: next}
	}
}

// Raise lets at least limit receipts of the peer be kept from here on.
func (r *Receipts) Raise(peer message.BrokerID, limit int) {
	l := r.peers[peer]
	l.limit = max(l.limit, limit)
}

// Restore adds a durable receipt, in ascending order of n.
func (r *Receipts) Restore(peer message.BrokerID, n uint64, key message.ReceiptKey) {
	l := r.peers[peer]
	if len(l.keys) == l.start {
		l.first = n
	}
	for l.next < n && len(l.keys) > l.start {
		l.keys = append(l.keys, message.ReceiptKey{})
		l.next++
	}
	l.keys = append(l.keys, key)
	l.next = n + 1
	r.known[key] = &receipt{peer: peer, n: n, state: Durable}
}

// Look tells what is known of a key, whichever peer brought it.
func (r *Receipts) Look(key message.ReceiptKey) State {
	if e := r.known[key]; e != nil {
		return e.state
	}
	return Unknown
}

// Claim records an arrival that Look did not know and gives its number.
func (r *Receipts) Claim(peer message.BrokerID, key message.ReceiptKey, s State) (n uint64) {
	l := r.peers[peer]
	n = l.next
	l.next++
	l.keys = append(l.keys, key)
	r.known[key] = &receipt{peer: peer, n: n, state: s}
	return n
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

// Release forgets a claim whose arrival was refused after all.
func (r *Receipts) Release(key message.ReceiptKey) { delete(r.known, key) }

// Prune drops what is beyond the peer's limit and gives the number below which its receipts may
// be deleted; ok is false when there is nothing to drop. It drops in runs, so that one deletion
// serves many.
func (r *Receipts) Prune(peer message.BrokerID) (below uint64, ok bool) {
	l := r.peers[peer]
	n := len(l.keys) - l.start
	if n < l.limit+l.limit/4+64 {
		return 0, false
	}
	return r.PruneBelow(peer, l.first+uint64(n-l.limit))
}

// PruneBelow drops the peer's receipts with a number below the given one.
func (r *Receipts) PruneBelow(peer message.BrokerID, below uint64) (uint64, bool) {
	l := r.peers[peer]
	dropped := false
	for l.start < len(l.keys) && l.first < below {
		key := l.keys[l.start]
		if e := r.known[key]; e != nil && e.peer == peer && e.n == l.first {
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

// Len is the number of receipts in the table.
func (r *Receipts) Len() int { return len(r.known) }
