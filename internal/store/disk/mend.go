package disk

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// What was copied of a damaged store does not fit together: bodies without messages, references to
// what a log has lost, counts. mend makes it so.

// remadeReserve is how far above the last message that is there the sequences of a destination go
// on whose header is made anew.
const remadeReserve = 1 << 20

func (r *repair) mend() error {
	if err := r.remake(); err != nil {
		return err
	}
	if err := r.dropOlder(); err != nil {
		return err
	}
	r.tellKinds()
	ids := slices.SortedFunc(maps.Keys(r.headers), func(a, b store.DestID) int {
		ha, hb := r.headers[a], r.headers[b]
		return cmp.Or(cmp.Compare(turnOf(&ha), turnOf(&hb)), cmp.Compare(a, b))
	})
	for _, id := range ids {
		if err := r.mendDest(r.headers[id]); err != nil {
			return err
		}
	}
	r.tellLost()
	slices.SortFunc(r.told.Destinations, func(a, b RepairedDestination) int {
		return cmp.Or(strings.Compare(nameOf(&a.Header), nameOf(&b.Header)),
			cmp.Compare(a.Header.ID, b.Header.ID))
	})
	return r.dropOrphans()
}

// turnOf orders destinations: what references are to comes first, and last what names messages of
// others.
func turnOf(h *store.Header) int {
	switch roleOf(h) {
	case log:
		return 0
	case prepared:
		return 2
	}
	return 1
}

// dropOlder leaves one destination of each name, the newest: the others were removed before it was
// made.
func (r *repair) dropOlder() error {
	all := store.Older(maps.Values(r.headers))
	for _, older := range slices.Sorted(maps.Keys(all)) {
		h := r.headers[older]
		r.told.Others = append(r.told.Others, fmt.Sprintf("%s was removed and made anew, and its removal"+
			" is lost; messages from before it, left out: %d", nameOf(&h), r.counts[older]))
		r.told.Dropped += r.counts[older]
		if err := r.dropAll(older); err != nil {
			return err
		}
		delete(r.headers, older)
	}
	return nil
}

// remake makes headers for destinations whose own cannot be read, of what their messages say: of
// queues, of topics' logs, and of subscriptions of which the terms can be read.
func (r *repair) remake() error {
	r.made = map[store.DestID]bool{}
	ids := slices.Collect(maps.Keys(r.counts))
	err := r.eachNew([]byte{kindTerms}, []byte{kindTerms + 1}, func(key, _ []byte) error {
		if id := destOf(key); r.counts[id] == 0 {
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(ids, func(a, b store.DestID) int { // what has no messages is after their logs
		return cmp.Or(cmp.Compare(min(1, r.counts[b]), min(1, r.counts[a])), cmp.Compare(a, b))
	})
	for _, id := range ids {
		if _, known := r.headers[id]; known {
			continue
		}
		h, err := r.remadeHeader(id)
		if err != nil {
			return err
		}
		if h == nil && r.counts[id] == 0 {
			continue // it had terms that make no sense
		}
		if h == nil {
			what, err := r.unnamed(id)
			if err != nil {
				return err
			}
			r.told.Others = append(r.told.Others, fmt.Sprintf("of %s, messages could not be copied: %d",
				what, r.counts[id]))
			r.told.Dropped += r.counts[id]
			if err := r.dropAll(id); err != nil {
				return err
			}
			continue
		}
		r.headers[id], r.made[id] = *h, true
	}
	return nil
}

func (r *repair) remadeHeader(id store.DestID) (h *store.Header, err error) {
	h = &store.Header{ID: id}
	terms, err := r.get(destKey(nil, kindTerms, id))
	if err != nil {
		return nil, err
	}
	if t, err := decodeTerms(terms); err == nil {
		h.Destination, h.Subscription = t.destination, &t.subscription
	}
	named := h.Subscription != nil
	err = r.eachMessage(id, func(seq store.Seq, rec []byte) error {
		if h.Head == 0 {
			h.Head = seq
		}
		h.Reserved = seq + remadeReserve
		if named || isReference(rec) {
			return nil
		}
		m, _, _, _, _, senseless := decodeFront(rec)
		switch {
		case senseless != nil: // another tells
		case !m.Transaction.IsZero():
			return errUnnamed // a prepared branch's
		default:
			h.Destination, named = m.Destination, m.Destination.Name != ""
		}
		return nil //nolint:nilerr // as above
	})
	if errors.Is(err, errUnnamed) || err == nil && !named {
		return nil, nil
	}
	h.DeliveredBelow = h.Reserved
	if h.Reserved == 0 { // it has no messages: the next is the next of a log
		h.Reserved = 1
		for _, l := range r.headers {
			if l.IsLog() {
				h.Reserved = max(h.Reserved, l.Reserved)
			}
		}
	}
	if h.IsLog() || h.Subscription != nil {
		h.Head = 1
	}
	return h, err
}

var errUnnamed = errors.New("nothing names it")

// unnamed tells what is known of a destination that nothing names.
func (r *repair) unnamed(id store.DestID) (what string, err error) {
	what = "a destination that nothing names, or a prepared transaction"
	err = r.eachMessage(id, func(_ store.Seq, rec []byte) error {
		if !isReference(rec) {
			return nil
		}
		what = "a durable subscription that nothing names"
		source, err := decodeReference(rec)
		if err != nil {
			return nil //nolint:nilerr // another tells
		}
		if h, known := r.headers[source]; known {
			what = "a durable subscription of " + h.Destination.String() + " that nothing names"
		}
		return nil
	})
	return what, err
}

// eachMessage gives the message records of a destination in the new tables.
func (r *repair) eachMessage(id store.DestID, f func(seq store.Seq, rec []byte) error) error {
	return r.eachNew(destKey(nil, kindMessage, id), destKey(nil, kindMessage, id+1),
		func(key, rec []byte) error { return f(seqOf(key), rec) })
}

func (r *repair) eachNew(lo, hi []byte, f func(key, value []byte) error) error {
	it, err := r.to.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = errors.Join(r.ctx.Err(), f(it.Key(), value))
		}
	}
	return errors.Join(err, it.Close())
}

// dropAll removes all records of a destination.
func (r *repair) dropAll(id store.DestID) error {
	for _, kind := range kinds {
		if kind == kindMeta || kind == kindExpiry {
			continue
		}
		if err := r.b.DeleteRange(destKey(nil, kind, id), destKey(nil, kind, id+1), nil); err != nil {
			return err
		}
	}
	return r.write(1)
}

// dropOrphans removes what is left of messages that were lost.
func (r *repair) dropOrphans() error {
	if err := r.write(1); err != nil { // what was removed
		return err
	}
	for _, kind := range []byte{kindBody, kindCount, kindFacts, kindPiece, kindExpiry} {
		last, there := []byte(nil), false
		err := r.eachNew([]byte{kind}, []byte{kind + 1}, func(key, _ []byte) error {
			of := append([]byte{kindMessage}, key[1:]...)
			if kind == kindExpiry {
				of = append([]byte{kindMessage}, key[9:]...)
			}
			of = of[:min(len(of), seqKeySize)]
			if !bytes.Equal(of, last) {
				value, err := r.get(of)
				if err != nil {
					return err
				}
				last, there = of, value != nil
			}
			if there {
				return nil
			}
			return r.b.Delete(bytes.Clone(key), nil)
		})
		if err != nil {
			return err
		}
	}
	return r.write(1)
}

func (r *repair) get(key []byte) ([]byte, error) { return r.s.get(r.to, key) }

// mendDest makes a destination whole, and writes its header.
func (r *repair) mendDest(h store.Header) error {
	d := RepairedDestination{Header: h, Made: r.made[h.ID] || r.stale[h.ID], More: r.unsure[h.ID]}
	role := roleOf(&h)
	if err := r.recount(&d, role); err != nil {
		return err
	}
	if r.stale[h.ID] { // it may be an older one
		d.Header.Reserved += remadeReserve
		d.Header.DeliveredBelow = d.Header.Reserved
	}
	if role == prepared { // its header is written once, so there is no older one
		d.Made = false
	}
	if d.Lost = max(0, h.Count-d.Copied); d.Made {
		d.Lost = -1
	}
	if role != log && (d.Lost != 0 || d.Copied > 0) {
		r.tell(d)
	}
	if h.Subscription != nil {
		if err := r.put(destKey(nil, kindTerms, h.ID), appendTerms(nil, termsOf(&h))); err != nil {
			return err
		}
	}
	if role == prepared {
		d.Header = h // which tells what was sent, and not what is there
		if err := r.dropAcks(&d.Header); err != nil {
			return err
		}
		if d.Header.Prepared.Lost = d.Lost; d.Lost > 0 {
			r.told.Others = append(r.told.Others, fmt.Sprintf("%s cannot be committed any more, as messages"+
				" that it sent are lost: %d; roll it back", nameOf(&h), d.Lost))
		}
	}
	return r.put(destKey(nil, kindHeader, h.ID), appendHeader(nil, &d.Header))
}

// dropAcks has a branch name no message that is not there: the end of the branch would take it off
// the queue's count a second time, and the last message of the queue would be none.
func (r *repair) dropAcks(h *store.Header) error {
	if err := r.write(1); err != nil { // what was removed
		return err
	}
	p := *h.Prepared
	p.Acks = nil
	for _, a := range h.Prepared.Acks {
		there, err := r.get(seqKey(nil, kindMessage, a.Dest, a.Seq))
		if err != nil {
			return err
		}
		if there != nil {
			p.Acks = append(p.Acks, a)
		}
	}
	if n := len(h.Prepared.Acks) - len(p.Acks); n > 0 {
		r.told.Others = append(r.told.Others, fmt.Sprintf("%s will end without what it had"+
			" acknowledged and could not be read; such messages: %d", nameOf(h), n))
	}
	h.Prepared = &p
	return nil
}

// recount goes through the messages of a destination, removes those that are not whole, and counts
// the others.
func (r *repair) recount(d *RepairedDestination, role role) error {
	h := &d.Header
	h.Count, h.Bytes, d.Copied = 0, 0, 0
	err := r.eachMessage(h.ID, func(seq store.Seq, rec []byte) error {
		if seq >= h.Reserved { // of a header that was lost
			h.Reserved = seq + remadeReserve
			h.DeliveredBelow = h.Reserved
		}
		id, of := h.ID, rec
		if isReference(rec) {
			source, err := decodeReference(rec)
			if err == nil {
				id = source
				of, err = r.get(seqKey(nil, kindMessage, source, seq))
			}
			if err != nil {
				return err
			}
			if of == nil || seq < r.headers[source].Head { // below it nobody finds anything
				return r.remove(h.ID, seq, 0)
			}
		}
		m, _, props, content, _, err := decodeFront(of)
		if err != nil { // whoever reads it will tell
			m = &message.Message{}
		}
		size := props + content
		if id == h.ID && err == nil {
			whole, err := r.hasBody(id, seq, of, size)
			if err != nil {
				return err
			}
			if !whole {
				return r.remove(id, seq, m.Expiration)
			}
		}
		h.Count, h.Bytes, d.Copied = h.Count+1, h.Bytes+m.Size()+int64(size), d.Copied+1
		if role != log && (r.under[h.ID].has(seq) || r.under[id].has(seq)) {
			r.hidden++
		}
		key := expiryKey(nil, store.ExpiredRef{Expiration: m.Expiration, Dest: h.ID, Seq: seq})
		if m.Expiration == 0 || role == log || role == prepared {
			return nil
		}
		if there, err := r.get(key); err != nil || there != nil {
			return err // it is put once
		}
		return r.put(key, nil)
	})
	return errors.Join(err, r.write(1))
}

// remove removes a message, or reference, and what it has: dropOrphans the rest.
func (r *repair) remove(id store.DestID, seq store.Seq, expiration int64) error {
	var err error
	for _, kind := range []byte{kindMessage, kindBody, kindCount} {
		err = errors.Join(err, r.b.Delete(seqKey(nil, kind, id, seq), nil))
	}
	err = errors.Join(err, r.b.Delete(seqKey(nil, kindFacts, id, seq), nil),
		r.b.DeleteRange(seqKey(nil, kindPiece, id, seq), seqKey(nil, kindPiece, id, seq+1), nil))
	if ref := (store.ExpiredRef{Expiration: expiration, Dest: id, Seq: seq}); expiration != 0 {
		err = errors.Join(err, r.b.Delete(expiryKey(nil, ref), nil))
	}
	return errors.Join(err, r.write(batchBytes))
}

// hasBody reports whether properties and body of a message are there.
func (r *repair) hasBody(id store.DestID, seq store.Seq, rec []byte, size uint64) (bool, error) {
	flags, _ := binary.Uvarint(rec[1:])
	switch {
	case flags&flagBodyApart != 0:
		body, err := r.get(seqKey(nil, kindBody, id, seq))
		return uint64(len(body)) == size, err
	case flags&flagPieces != 0:
		value, err := r.get(seqKey(nil, kindCount, id, seq))
		if err != nil || value == nil {
			return false, err
		}
		n, _ := pieceCount(value)
		for i := range n {
			piece, err := r.get(pieceKey(nil, id, seq, i))
			if err != nil || piece == nil {
				return false, err
			}
			size -= uint64(len(piece))
		}
		return size == 0, nil
	}
	return true, nil
}
