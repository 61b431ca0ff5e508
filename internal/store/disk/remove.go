package disk

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// remove writes the tombstones of the messages that an Apply removed from a destination.
func (a *applier) remove(w *work) error {
	d := w.d
	if w.role == log {
		return a.removeBelow(w)
	}
	// The sequences of a subscription have holes: its head may rise far over few references.
	d.gone += len(w.deleted)
	risen := w.head >= d.laid+rangeSize && (w.role != subscription || d.gone >= rangeSize)
	if len(w.deleted) == 0 && !risen {
		return nil
	}
	if err := a.load(w.id, d); err != nil {
		return err
	}
	if risen {
		a.lay(w.id, d, d.laid, w.head)
		d.raise(w.head)
	}
	slices.Sort(w.deleted)
	seqs := slices.Compact(w.deleted)
	first, _ := slices.BinarySearch(seqs, d.laid)
	seqs = seqs[first:]
	for len(seqs) > 0 {
		n := 1
		for n < len(seqs) && seqs[n] == seqs[n-1]+1 {
			n++
		}
		row := seqs[:n]
		seqs = seqs[n:]
		// A range laid now covers the whole row: its own tombstones are not needed.
		if lo, hi := d.removed(row[0], row[n-1]+1); lo < hi {
			a.lay(w.id, d, lo, hi)
			continue
		}
		for _, seq := range row {
			if err := a.removeOne(w, seq); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeBelow removes what a log has below its head, now and then: while it waits it cannot be
// seen, and takes less than the space of rangeSize small, or apartSize large, messages.
func (a *applier) removeBelow(w *work) error {
	d := w.d
	if w.head < d.laid+apartSize {
		return nil
	}
	if err := a.load(w.id, d); err != nil {
		return err
	}
	if w.head < d.laid+rangeSize && !d.bodies.meets(d.laid, w.head) &&
		!d.pieces.meets(d.laid, w.head) {
		return nil
	}
	seqs, few, err := a.below(w)
	if err != nil {
		return err
	}
	if few {
		for _, seq := range seqs {
			if err := a.removeOne(w, seq); err != nil {
				return err
			}
		}
	} else {
		a.lay(w.id, d, d.laid, w.head)
	}
	d.raise(w.head)
	return nil
}

// below gives the messages of a log that are to be removed, if they are few: since one counter
// serves all topics, they may be, and a range tombstone is no cheaper than some of the others.
func (a *applier) below(w *work) (seqs []store.Seq, few bool, err error) {
	for _, seq := range w.logged {
		if seq < w.head {
			seqs = append(seqs, seq)
		}
	}
	it, err := a.s.db.NewIter(&pebble.IterOptions{
		LowerBound: seqKey(nil, kindMessage, w.id, w.d.laid),
		UpperBound: seqKey(nil, kindMessage, w.id, w.head)})
	if err != nil {
		return nil, false, a.s.readError(err)
	}
	for ok := len(seqs) < fewSize && it.First(); ok && len(seqs) < fewSize; ok = it.Next() {
		seqs = append(seqs, seqOf(it.Key()))
	}
	err = it.Close()
	switch {
	case pebble.IsCorruptionError(err): // whatever there is
		return nil, false, nil
	case err != nil:
		return nil, false, a.s.readError(err)
	}
	return seqs, len(seqs) < fewSize, nil
}

// removeOne removes all that is kept of a message.
func (a *applier) removeOne(w *work, seq store.Seq) error {
	d := w.d
	a.key = seqKey(a.key[:0], kindMessage, w.id, seq)
	a.delete(a.key)
	if d.bodies.has(seq) {
		a.key[0] = kindBody
		a.delete(a.key)
	}
	if d.facts.has(seq) {
		a.key[0] = kindFacts
		a.delete(a.key)
	}
	if d.pieces.has(seq) {
		return a.removePieces(w, seq)
	}
	return nil
}

// lay lays a range tombstone over all that is kept of the messages in [lo, hi).
func (a *applier) lay(id store.DestID, d *dest, lo, hi store.Seq) {
	a.key, a.stop = seqKey(a.key[:0], kindMessage, id, lo), seqKey(a.stop[:0], kindMessage, id, hi)
	a.rangeDelete(a.key, a.stop)
	if d.bodies.meets(lo, hi) {
		a.key[0], a.stop[0] = kindBody, kindBody
		a.rangeDelete(a.key, a.stop)
	}
	if d.facts.meets(lo, hi) {
		a.key[0], a.stop[0] = kindFacts, kindFacts
		a.rangeDelete(a.key, a.stop)
	}
	if d.pieces.meets(lo, hi) {
		for _, kind := range []byte{kindCount, kindPiece} {
			a.key[0], a.stop[0] = kind, kind
			a.rangeDelete(a.key, a.stop)
		}
	}
}

// load finds out which messages of a destination, known since the open, may have a body or facts
// of their own. Six seeks, once.
func (a *applier) load(id store.DestID, d *dest) error {
	if d.loaded {
		return nil
	}
	bodies, err := a.s.spanOf(kindBody, id, d.laid)
	if err != nil {
		return err
	}
	facts, err := a.s.spanOf(kindFacts, id, d.laid)
	if err != nil {
		return err
	}
	var pieces span
	if a.mayHavePieces() {
		if pieces, err = a.s.spanOf(kindCount, id, d.laid); err != nil {
			return err
		}
	}
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	d.bodies.join(bodies)
	d.facts.join(facts)
	d.pieces.join(pieces)
	d.loaded = true
	return nil
}

// spanOf gives the span of the sequences, from a first on, that have a record of a kind.
func (s *Store) spanOf(kind byte, id store.DestID, from store.Seq) (p span, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: seqKey(nil, kind, id, from), UpperBound: destKey(nil, kind, id+1)})
	if err != nil {
		return p, s.readError(err)
	}
	if it.First() {
		p.add(seqOf(it.Key()))
	}
	err = it.Error() // which the next step would forget
	if it.Last() {
		p.add(seqOf(it.Key()))
	}
	err = errors.Join(err, it.Close())
	switch {
	case pebble.IsCorruptionError(err):
		return span{from, math.MaxUint64}, nil // any may have one
	case err != nil:
		return p, s.readError(err)
	}
	return p, nil
}

// drop removes a destination with all that it has. Its expirations cannot be named by a range;
// they are found as orphans later.
func (a *applier) drop(id store.DestID) error {
	w := a.of(id)
	w.dropped, w.header, w.deleted = true, false, nil
	a.removed += max(1, w.d.bytes)
	a.s.tidier.live.Add(-w.d.bytes)
	w.d.bytes = 0
	if w.role == prepared {
		return a.dropPrepared(w)
	}
	kinds := []byte{kindMessage, kindBody, kindFacts, kindReceipt, kindMark, kindNumbers}
	if a.mayHavePieces() {
		kinds = append(kinds, kindCount, kindPiece)
	}
	for _, kind := range kinds {
		a.key, a.stop = destKey(a.key[:0], kind, id), destKey(a.stop[:0], kind, id+1)
		a.rangeDelete(a.key, a.stop)
	}
	a.delete(destKey(a.key[:0], kindHeader, id))
	a.dropTerms(w)
	return nil
}

// sweepOrphans removes expirations of destinations that are no more.
func (a *applier) sweepOrphans() {
	a.s.mu.RLock()
	for r := range a.s.orphans {
		a.swept = append(a.swept, r)
	}
	a.s.mu.RUnlock()
	for _, r := range a.swept {
		a.key = expiryKey(a.key[:0], r)
		a.delete(a.key)
	}
}

// receiptsOf gives what is remembered of a peer's receipts, reading it at the first time.
func (a *applier) receiptsOf(w *work, peer message.BrokerID) (*receipts, error) {
	if p := w.d.peers[peer]; p != nil {
		return p, nil
	}
	low, err := a.s.mark(a.s.db, w.id, peer)
	blind := pebble.IsCorruptionError(err)
	if err != nil && !blind {
		return nil, err
	}
	p := &receipts{low: low, next: low}
	it, err := a.s.db.NewIter(receiptBounds(w.id, peer, low))
	if err != nil {
		return nil, a.s.readError(err)
	}
	if it.Last() {
		key := it.Key()
		p.next = binary.BigEndian.Uint64(key[len(key)-8:]) + 1
	}
	err = it.Close()
	p.base = max(1, p.next)
	if p.blind = blind || pebble.IsCorruptionError(err); err != nil && !p.blind {
		return nil, a.s.readError(err)
	}
	if w.d.peers == nil {
		w.d.peers = map[message.BrokerID]*receipts{}
	}
	w.d.peers[peer] = p
	return p, nil
}

func (a *applier) putReceipt(op *store.Op) error {
	w := a.of(op.Dest)
	p, err := a.receiptsOf(w, op.Peer)
	if err != nil {
		return err
	}
	if !p.take(op.Receipt.N) && !p.blind {
		return message.Errorf(message.Internal,
			"store: receipt %d of destination %d and peer %s was put before or dropped",
			op.Receipt.N, op.Dest, op.Peer)
	}
	a.key = receiptKey(a.key[:0], op.Dest, op.Peer, op.Receipt.N)
	a.set(a.key, op.Receipt.Key[:])
	return nil
}

// take reports whether a number may be put, and notes that it is.
func (p *receipts) take(n uint64) bool {
	if _, put := p.put[n]; put || n < p.base {
		return false
	}
	p.next = max(p.next, n+1)
	if n == p.base {
		p.raise(n + 1)
		return true
	}
	if p.put == nil {
		p.put = map[uint64]struct{}{}
	}
	p.put[n] = struct{}{}
	return true
}

// raise lets no number below one come any more.
func (p *receipts) raise(n uint64) {
	if n > p.base+1 {
		maps.DeleteFunc(p.put, func(put uint64, _ struct{}) bool { return put < n })
	}
	for p.base = max(p.base, n); ; p.base++ {
		if _, put := p.put[p.base]; !put {
			return
		}
		delete(p.put, p.base)
	}
}

// noteDrop raises a peer's mark; it is written once for all drops of an Apply.
func (a *applier) noteDrop(op *store.Op) error {
	w := a.of(op.Dest)
	p, err := a.receiptsOf(w, op.Peer)
	if err != nil {
		return err
	}
	low := op.Receipt.N
	if !p.blind {
		low = min(low, p.next)
	}
	if low <= p.low {
		return nil
	}
	p.low = low
	p.raise(low)
	if !slices.Contains(w.drops, op.Peer) {
		w.drops = append(w.drops, op.Peer)
	}
	return nil
}

func (a *applier) dropReceipts(w *work) {
	for _, peer := range w.drops {
		p := w.d.peers[peer]
		a.key = peerKey(a.key[:0], kindMark, w.id, peer)
		a.value = binary.AppendUvarint(a.value[:0], p.low)
		a.set(a.key, a.value)
		if p.low-p.laid >= rangeSize {
			a.key = receiptKey(a.key[:0], w.id, peer, p.laid)
			a.stop = receiptKey(a.stop[:0], w.id, peer, p.low)
			a.rangeDelete(a.key, a.stop)
			p.laid = p.low
		}
	}
}
