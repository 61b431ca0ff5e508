package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

func (s *Store) readError(err error) error {
	if message.KindOf(err) == message.Corrupt {
		return err
	}
	kind := message.Unavailable
	if pebble.IsCorruptionError(err) {
		kind = message.Corrupt
	}
	return message.Errorf(kind, "store %s: cannot read: %w", s.opts.Dir, oneLine{err})
}

// oneLine is an error of pebble's, whose text may have many.
type oneLine struct{ err error }

func (e oneLine) Error() string { return oneLined(e.err.Error()) }
func (e oneLine) Unwrap() error { return e.err }

func oneLined(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *Store) corrupt(what string, err error) error {
	return message.Errorf(message.Corrupt, "store %s: the record of %s is damaged: %w",
		s.opts.Dir, what, err)
}

// loadHeaders is all that is read at start.
func (s *Store) loadHeaders() error {
	headers, err := s.headers()
	if message.KindOf(err) == message.Corrupt {
		return message.Errorf(message.Corrupt, "%w; nobody can tell what queues and subscriptions there"+
			" are: hopwire repair FILE"+
			" makes a store of what can be read, or put a copy of the folder from before the damage in its"+
			" place", err)
	}
	for _, h := range headers {
		d := &dest{header: true, role: roleOf(&h), head: h.Head, reserved: h.Reserved,
			terms: termsOf(&h)}
		s.tidier.live.Add(d.weigh(&h))
		if d.role != log { // of which nobody knows how far it was removed
			d.laid = h.Head
		}
		s.dests[h.ID] = d
	}
	return err
}

// Headers implements store.Store.
func (s *Store) Headers() ([]store.Header, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	return s.headers()
}

func (s *Store) headers() (out []store.Header, err error) {
	snap := s.db.NewSnapshot()
	defer snap.Close()
	it, err := snap.NewIter(&pebble.IterOptions{
		LowerBound: []byte{kindHeader}, UpperBound: []byte{kindHeader + 1}})
	if err != nil {
		return nil, s.readError(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		if len(key) != destKeySize {
			return nil, s.corrupt(fmt.Sprintf("the key %q", key), errRecord)
		}
		id := store.DestID(binary.BigEndian.Uint64(key[1:]))
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, s.readError(err)
		}
		h, err := decodeHeader(id, value)
		if err != nil {
			return nil, s.corrupt(fmt.Sprintf("destination %d", id), err)
		}
		if err := s.joinTerms(snap, &h); err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	if err := it.Error(); err != nil {
		return nil, s.readError(err)
	}
	return out, nil
}

// Meta implements store.Store.
func (s *Store) Meta(name string) ([]byte, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	return s.get(s.db, metaKey(name))
}

// get gives a copy of a value, nil when there is none.
func (s *Store) get(from pebble.Reader, key []byte) ([]byte, error) {
	value, done, err := from.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.readError(err)
	}
	defer done.Close()
	return append(make([]byte, 0, len(value)), value...), nil
}

// Page implements store.Store. It never looks below the destination's head, where tombstones lie.
func (s *Store) Page(r store.PageRequest) ([]store.Stored, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	s.mu.RLock()
	d := s.dests[r.Dest]
	var head store.Seq
	var facts, isLog bool
	if d != nil {
		head, isLog = d.head, d.role == log
		facts = !d.loaded || d.facts.meets(r.From, r.To)
	}
	s.mu.RUnlock()
	r.From = max(r.From, head)
	if d == nil || r.From >= r.To {
		return nil, nil
	}
	snap := s.db.NewSnapshot()
	defer snap.Close()
	p := &pager{s: s, snap: snap, r: r}
	if isLog {
		if err := p.raiseFrom(); err != nil {
			return nil, err
		}
	}
	if err := p.open(facts); err != nil {
		return nil, err
	}
	out, err := p.read()
	if err == nil && p.senseless > 0 {
		err = p.findExpirations(out)
	}
	return out, errors.Join(err, p.close())
}

// pager reads one page from a snapshot, so that what belongs together is there together.
type pager struct {
	s     *Store
	snap  *pebble.Snapshot
	r     store.PageRequest
	msgs  *pebble.Iterator
	facts *pebble.Iterator // nil when there are none, or no more
	logs  []logIter        // of a subscription
	key   []byte           // scratch

	senseless int  // messages whose records make no sense
	uncounted bool // facts are damaged: who had what is not known
}

func (p *pager) open(facts bool) (err error) {
	if p.msgs, err = p.iter(kindMessage, p.r.From); err != nil || !facts {
		return err
	}
	if p.facts, err = p.iter(kindFacts, p.r.From); err != nil {
		return errors.Join(err, p.msgs.Close())
	}
	if !p.facts.First() {
		return p.endFacts()
	}
	return nil
}

// endFacts is called when there are no more facts, or they cannot be read.
func (p *pager) endFacts() error {
	err := p.facts.Close()
	p.facts = nil
	if pebble.IsCorruptionError(err) {
		p.uncounted, err = true, nil
	}
	return err
}

func (p *pager) iter(kind byte, from store.Seq) (*pebble.Iterator, error) {
	it, err := p.snap.NewIter(&pebble.IterOptions{
		LowerBound: seqKey(nil, kind, p.r.Dest, from),
		UpperBound: seqKey(nil, kind, p.r.Dest, p.r.To)})
	if err != nil {
		return nil, p.s.readError(err)
	}
	return it, nil
}

func (p *pager) close() (err error) {
	if p.msgs != nil {
		err = p.msgs.Close()
	}
	if p.facts != nil {
		err = errors.Join(err, p.facts.Close())
	}
	for _, l := range p.logs {
		err = errors.Join(err, l.Close())
	}
	if err != nil {
		return p.s.readError(err)
	}
	return nil
}

func (p *pager) read() (out []store.Stored, err error) {
	var size int64
	from, ok := p.r.From, p.msgs.First()
	for {
		st := store.Stored{Seq: from}
		switch {
		case ok:
			st.Seq = seqOf(p.msgs.Key())
			if err = p.take(&st); err == nil && st.Message != nil {
				size += st.Message.Size()
			}
		case pebble.IsCorruptionError(p.msgs.Error()):
			err = p.skip(&st)
		default:
			return out, nil // what else the iterator has to tell it tells when it is closed
		}
		if err != nil {
			return nil, err
		}
		out = append(out, st)
		from = st.Next()
		if p.r.Count > 0 && len(out) >= p.r.Count || p.r.Bytes > 0 && size >= p.r.Bytes ||
			from >= p.r.To {
			return out, nil
		}
		if ok {
			ok = p.msgs.Next()
		} else {
			ok = p.msgs.First()
		}
	}
}

// take reads what the iterator of messages is at.
func (p *pager) take(st *store.Stored) error {
	value, err := p.msgs.ValueAndErr()
	if err == nil {
		st.Damage, err = p.fill(st, value)
	}
	switch {
	case err == nil && st.Damage == nil:
		return nil
	case pebble.IsCorruptionError(err):
		st.Damage = p.s.readError(err)
	case err != nil:
		return p.s.readError(err)
	}
	st.Message, st.Redelivery = nil, 0
	if pebble.IsCorruptionError(st.Damage) {
		st.To = st.Seq + 1 // the record is there, in a block that may be read once more
	} else {
		p.senseless++
	}
	return nil
}

// fill reads the message and its facts. Damage is of this message alone; after an error nothing can
// be read.
func (p *pager) fill(st *store.Stored, value []byte) (damage, err error) {
	if isReference(value) {
		st.Message, damage, err = p.resolve(st.Seq, value)
	} else {
		st.Message, damage, err = p.message(p.r.Dest, st.Seq, value)
	}
	if damage != nil || err != nil {
		return damage, err
	}
	st.Redelivery, err = p.redelivery(st.Seq)
	switch {
	case errors.Is(err, errRecord):
		return p.damaged(p.r.Dest, st.Seq, err), nil
	case err != nil:
		return nil, p.s.readError(err)
	case p.uncounted:
		st.Redelivery = 1
	}
	return nil, nil
}

func (p *pager) damaged(id store.DestID, seq store.Seq, err error) error {
	return p.s.corrupt(fmt.Sprintf("message %d of destination %d", seq, id), err)
}

// message reads a message from its record.
func (p *pager) message(id store.DestID, seq store.Seq, rec []byte) (m *message.Message,
	damage, err error) {
	m, damage = decodeMessage(rec, func(want uint64) (body []byte, missing error) {
		if want > 0 {
			body, err = p.pieces(id, seq, want)
		} else {
			body, err = p.s.get(p.snap, seqKey(nil, kindBody, id, seq))
		}
		if body == nil {
			missing = errNoBody
		}
		return body, missing
	})
	switch {
	case message.KindOf(err) == message.Corrupt: // of the block that has this body
		return nil, p.damaged(id, seq, err), nil
	case err != nil:
		return nil, nil, err
	case damage != nil:
		return nil, p.damaged(id, seq, damage), nil
	}
	return m, nil, nil
}

var errNoBody = errors.New("its body is missing")

// redelivery gives the count of a message; it is asked in ascending order.
func (p *pager) redelivery(seq store.Seq) (int32, error) {
	for p.facts != nil {
		switch at := seqOf(p.facts.Key()); {
		case at > seq:
			return 0, nil
		case at == seq:
			value, err := p.facts.ValueAndErr()
			if err != nil && pebble.IsCorruptionError(err) {
				return 0, p.endFacts()
			}
			if err != nil {
				return 0, err
			}
			n, err := uvarintValue(value)
			if err == nil && n > math.MaxUint32 {
				err = errRecord
			}
			return int32(uint32(n)), err
		}
		if !p.facts.Next() {
			return 0, p.endFacts()
		}
	}
	return 0, nil
}

// receiptBounds are those of the receipts of a peer from low on.
func receiptBounds(id store.DestID, peer message.BrokerID, low uint64) *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: receiptKey(nil, id, peer, low),
		UpperBound: pastPeer(kindReceipt, id, peer)}
}

// mark gives the number below which a peer's receipts are dropped.
func (s *Store) mark(from pebble.Reader, id store.DestID, peer message.BrokerID) (uint64, error) {
	value, err := s.get(from, peerKey(nil, kindMark, id, peer))
	if err != nil || value == nil {
		return 0, err
	}
	low, err := uvarintValue(value)
	if err != nil {
		return 0, s.corrupt(fmt.Sprintf("the receipts of destination %d and peer %s", id, peer), err)
	}
	return low, nil
}
