package disk

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

const (
	minTime = math.MinInt64
	maxTime = math.MaxInt64
)

// applier turns batches into one pebble batch. It lives as long as the store and keeps its
// scratch space between calls.
type applier struct {
	s      *Store
	b      *pebble.Batch
	work   map[store.DestID]*work
	order  []*work // the values of work, as they came
	put    []*work // to which the current batch put messages or references
	refs   bool    // the current batch put references
	format int     // what is put needs it

	removed int64 // about the size of what is deleted
	swept   []store.ExpiredRef
	cuts    []cut

	remembered remembered
	key        []byte
	stop       []byte
	value      []byte
	head       []byte
}

// work is what one Apply does to one destination.
type work struct {
	id       store.DestID
	d        *dest
	head     store.Seq // as d's, changed by the headers put
	reserved store.Seq
	header   bool
	role     role
	terms    *terms
	dropped  bool
	deleted  []store.Seq
	logged   []store.Seq          // of a log: what this Apply put
	pieces   map[store.Seq]uint64 // how many pieces the bodies have that this Apply put in some
	putLo    store.Seq            // the current batch put sequences in [putLo, putHi)
	putHi    store.Seq
	drops    []message.BrokerID                      // peers of which receipts were dropped
	numbers  map[message.ProducerID]*message.Numbers // nil: there are none
	numbered []message.ProducerID                    // whose numbers changed
}

// Apply implements store.Store.
func (s *Store) Apply(batches []*store.Batch) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	s.putting.Lock()
	defer s.putting.Unlock()
	size, puts := int64(0), slices.ContainsFunc(batches, (*store.Batch).Puts)
	for _, b := range batches {
		size += b.Bytes
	}
	if puts && s.opts.Volatile {
		if err := s.inWriter(func() error { return s.keepPace(size) }); err != nil {
			return err
		}
	}
	if puts && s.space.Refuses(size) {
		return message.Errorf(message.Limit,
			"store %s: %d bytes are free and %d have to stay so: no room for %d more, which are written"+
				" twice; consume messages or free the disk",
			s.opts.Dir, s.space.Free(), s.space.Needs(), size)
	}
	a := &s.apply
	b := s.db.NewBatchWithSize(batchSize(batches))
	a.b, a.work = b, map[store.DestID]*work{}
	a.order, a.put, a.swept, a.format = a.order[:0], a.put[:0], a.swept[:0], formatFirst
	a.cuts = a.cuts[:0]
	a.removed = 0
	err := a.add(batches)
	if err == nil {
		s.space.Wrote(int64(b.Len()))
		s.applying.Store(true)
		err = s.inWriter(func() error {
			if err := s.raiseFormat(a.format); err != nil {
				return err
			}
			return s.db.Apply(b, s.durably())
		})
		if s.hasFailed() {
			return s.failure // and the batch is left to pebble, which may still be at it
		}
		s.applying.Store(false)
	}
	if err == nil {
		a.publish()
		a.rememberNumbers()
	}
	_ = b.Close() // only gives memory back
	return err
}

// keepPace has what puts to a volatile store wait while the disk is behind: pebble lets so many
// memtables wait that removals go on.
func (s *Store) keepPace(size int64) error {
	most := memTables * uint64(s.opts.MemTableBytes)
	for s.db.Metrics().MemTable.Size >= most && !s.space.Refuses(size) {
		select {
		case <-s.failed:
			return s.failure
		case <-time.After(paceLook):
		}
	}
	return nil
}

// paceLook is how long is between two looks whether the disk goes on.
const paceLook = 5 * time.Millisecond

// durably is how batches are written.
func (s *Store) durably() *pebble.WriteOptions {
	if s.opts.Volatile {
		return pebble.NoSync
	}
	return pebble.Sync
}

// batchSize is about the size of the pebble batch, so that large messages are not copied again and
// again while it grows.
func batchSize(batches []*store.Batch) int {
	size := int64(0)
	for _, b := range batches {
		size += b.Bytes + b.Bytes>>opShare + int64(len(b.Ops))*opSize
	}
	return int(min(size, mostBatch))
}

// opSize is about what the keys and small values of an operation take; a part of 2^opShare of the
// bytes is room for the keys of pieces. mostBatch is the largest batch that memory is made for at
// once.
const (
	opSize    = 200
	opShare   = 12
	mostBatch = 1 << 30
)

// add fills the pebble batch.
func (a *applier) add(batches []*store.Batch) error {
	a.sweepOrphans()
	for _, b := range batches {
		a.setRoles(b)
		for i := range b.Ops {
			if err := a.op(&b.Ops[i]); err != nil {
				return err
			}
		}
		if err := a.checkPuts(b); err != nil {
			return err
		}
	}
	if err := a.cutExpirations(); err != nil {
		return err
	}
	for _, w := range a.order {
		if w.dropped {
			continue
		}
		if err := a.remove(w); err != nil {
			return err
		}
		a.dropReceipts(w)
		a.writeNumbers(w)
	}
	return nil
}

// setRoles learns what the destinations are of which a batch puts the first header: the header may
// come last.
func (a *applier) setRoles(b *store.Batch) {
	for i := range b.Ops {
		op := &b.Ops[i]
		if op.Kind != store.PutHeader {
			continue
		}
		if w := a.of(op.Header.ID); !w.header {
			w.role = roleOf(op.Header)
		}
	}
}

// of gives the work on a destination, which is made known to readers: when they find its records
// they must find it, too.
func (a *applier) of(id store.DestID) *work {
	w := a.work[id]
	if w == nil {
		a.s.mu.Lock()
		d := a.s.dests[id]
		if d == nil {
			d = &dest{loaded: true}
			a.s.dests[id] = d
		}
		a.s.mu.Unlock()
		w = &work{id: id, d: d, head: d.head, reserved: d.reserved, header: d.header,
			role: d.role, terms: d.terms}
		a.work[id] = w
		a.order = append(a.order, w)
	}
	return w
}

func (a *applier) op(op *store.Op) error {
	switch op.Kind {
	case store.Nothing:
	case store.PutHeader:
		return a.putHeader(op.Header)
	case store.DropDestination:
		return a.drop(op.Dest)
	case store.PutMessage:
		a.putMessage(op)
		return a.checkNew(op)
	case store.PutReference:
		a.putReference(op)
		return a.checkNew(op)
	case store.DeleteMessage:
		return a.deleteMessage(op)
	case store.SetRedelivery:
		w := a.of(op.Dest)
		a.s.notePut(op.Dest, op.Seq)
		a.s.mu.Lock()
		w.d.facts.add(op.Seq)
		a.s.mu.Unlock()
		a.key = seqKey(a.key[:0], kindFacts, op.Dest, op.Seq)
		a.value = binary.AppendUvarint(a.value[:0], uint64(uint32(op.Count)))
		a.set(a.key, a.value)
	case store.PutReceipt:
		return a.putReceipt(op)
	case store.DropReceipts:
		return a.noteDrop(op)
	case store.PutNumber:
		return a.putNumber(op)
	case store.DropNumbers:
		a.dropNumbers(op)
	case store.DeleteRange:
		return a.deleteRange(op)
	case store.PutMeta:
		if op.Value == nil {
			a.delete(metaKey(op.Name))
		} else {
			a.set(metaKey(op.Name), op.Value)
		}
	default:
		return message.Errorf(message.Internal, "store: unknown operation %d", op.Kind)
	}
	return nil
}

// set, delete and the others cannot fail on a batch that is not indexed.
func (a *applier) set(key, value []byte)         { _ = a.b.Set(key, value, nil) }
func (a *applier) delete(key []byte)             { _ = a.b.Delete(key, nil) }
func (a *applier) rangeDelete(start, end []byte) { _ = a.b.DeleteRange(start, end, nil) }

// needs notes that what is put needs a format.
func (a *applier) needs(format int) { a.format = max(a.format, format) }

func (a *applier) putHeader(h *store.Header) error {
	w := a.of(h.ID)
	if err := a.putTerms(w, h); err != nil {
		return err
	}
	if w.header && (w.role == prepared || h.Prepared != nil) {
		return message.Errorf(message.Internal,
			"store: destination %d has a header beside that of a branch", h.ID)
	}
	w.header, w.head, w.reserved = true, h.Head, h.Reserved
	a.s.tidier.live.Add(w.d.weigh(h))
	switch {
	case w.role == prepared:
		a.needs(formatThird)
	case w.role == subscription || h.DeliveredBelow > 0:
		a.needs(formatSecond)
	}
	a.key = destKey(a.key[:0], kindHeader, h.ID)
	a.value = appendHeader(a.value[:0], h)
	a.set(a.key, a.value)
	return nil
}

func (a *applier) putMessage(op *store.Op) {
	w, m := a.of(op.Dest), op.Message
	a.notePut(w, op.Seq)
	if w.role == log {
		a.needs(formatSecond)
		w.logged = append(w.logged, op.Seq)
	}
	size := len(m.Properties) + len(m.Content)
	inline, where := 0, uint64(0)
	switch {
	case size > a.s.opts.PieceBytes:
		where = flagPieces
		a.putPieces(w, op, size)
	case size > a.s.opts.InlineBytes:
		where = flagBodyApart
		w.d.bodies.add(op.Seq)
		body := a.b.SetDeferred(seqKeySize, size)
		seqKey(body.Key[:0], kindBody, op.Dest, op.Seq)
		copy(body.Value[copy(body.Value, m.Properties):], m.Content)
		_ = body.Finish()
	default:
		inline = size
	}
	a.value, a.head = appendRecord(a.value[:0], a.head, m, where)
	rec := a.b.SetDeferred(seqKeySize, len(a.value)+inline)
	seqKey(rec.Key[:0], kindMessage, op.Dest, op.Seq)
	n := copy(rec.Value, a.value)
	if where == 0 {
		n += copy(rec.Value[n:], m.Properties)
		copy(rec.Value[n:], m.Content)
	}
	_ = rec.Finish()
	if w.role != log && w.role != prepared && !op.Lasts {
		a.putExpiration(op, m.Expiration)
	}
}

func (a *applier) putReference(op *store.Op) {
	a.notePut(a.of(op.Dest), op.Seq)
	a.refs = true
	a.needs(formatSecond)
	a.key = seqKey(a.key[:0], kindMessage, op.Dest, op.Seq)
	a.value = appendReference(a.value[:0], op.Source)
	a.set(a.key, a.value)
	a.putExpiration(op, op.Expiration)
}

func (a *applier) notePut(w *work, seq store.Seq) {
	a.s.notePut(w.id, seq)
	if w.putLo == w.putHi {
		w.putLo, w.putHi = seq, seq+1
		a.put = append(a.put, w)
	}
	w.putLo, w.putHi = min(w.putLo, seq), max(w.putHi, seq+1)
}

func (a *applier) putExpiration(op *store.Op, t int64) {
	if t == 0 {
		return
	}
	a.s.mu.Lock()
	a.s.expLow = min(a.s.expLow, t)
	a.s.putLow = min(a.s.putLow, t)
	a.s.mu.Unlock()
	a.key = expiryKey(a.key[:0], store.ExpiredRef{Dest: op.Dest, Seq: op.Seq, Expiration: t})
	a.set(a.key, nil)
}

func (a *applier) deleteMessage(op *store.Op) error {
	w := a.of(op.Dest)
	if w.role == log || w.role == prepared {
		return message.Errorf(message.Internal,
			"store: message %d of the log or branch %d is deleted alone", op.Seq, op.Dest)
	}
	w.deleted = append(w.deleted, op.Seq)
	a.removed += max(1, w.d.mean)
	if op.Expiration != 0 {
		a.key = expiryKey(a.key[:0],
			store.ExpiredRef{Dest: op.Dest, Seq: op.Seq, Expiration: op.Expiration})
		a.delete(a.key)
	}
	return nil
}

// publish makes what was committed known to the readers.
func (a *applier) publish() {
	s := a.s
	s.tidier.removed.Add(a.removed) // a flush that begins from now on has it
	s.tidier.gone.Add(a.removed)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range a.order {
		w.d.head, w.d.reserved, w.d.header, w.d.role = w.head, w.reserved, w.header, w.role
		w.d.terms = w.terms
		if w.dropped {
			delete(s.dests, w.id)
		}
	}
	for _, r := range a.swept {
		delete(s.orphans, r)
	}
}
