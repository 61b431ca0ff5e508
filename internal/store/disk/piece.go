package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// Pebble holds a value several times in memory while it writes and reads tables: a body that is one
// value of 100 MiB takes 400 MiB more. In pieces it takes some of them. Pieces of a body are of one
// size but for a few bytes: a small one would share a block with the first of the next message, and
// damage to it would take both.

// putPieces puts properties and body of a message in pieces of PieceBytes at most, and their
// number.
func (a *applier) putPieces(w *work, op *store.Op, size int) {
	a.needs(formatFifth)
	w.d.pieces.add(op.Seq)
	most := a.s.opts.PieceBytes
	count := (size + most - 1) / most
	most = (size + count - 1) / count
	n := uint64(0)
	props, content := op.Message.Properties, op.Message.Content
	for left := size; left > 0; n++ {
		rec := a.b.SetDeferred(pieceKeySize, min(left, most))
		pieceKey(rec.Key[:0], op.Dest, op.Seq, n)
		of := copy(rec.Value, props)
		more := copy(rec.Value[of:], content)
		props, content = props[of:], content[more:]
		_ = rec.Finish()
		left -= of + more
	}
	if w.pieces == nil {
		w.pieces = map[store.Seq]uint64{}
	}
	w.pieces[op.Seq] = n
	a.key = seqKey(a.key[:0], kindCount, op.Dest, op.Seq)
	a.value = binary.AppendUvarint(a.value[:0], n)
	a.set(a.key, a.value)
}

// mayHavePieces reports whether any body of the folder was ever put in pieces.
func (a *applier) mayHavePieces() bool { return max(a.s.format, a.format) >= formatFifth }

// removePieces removes the pieces that a message may have.
func (a *applier) removePieces(w *work, seq store.Seq) error {
	n, here := w.pieces[seq]
	if !here {
		var err error
		switch n, err = a.s.countPieces(w.id, seq); {
		case message.KindOf(err) == message.Corrupt: // whatever there is
			for _, kind := range []byte{kindPiece, kindCount} {
				a.key, a.stop = seqKey(a.key[:0], kind, w.id, seq), seqKey(a.stop[:0], kind, w.id, seq+1)
				a.rangeDelete(a.key, a.stop)
			}
			return nil
		case err != nil || n == 0:
			return err
		}
	}
	for i := range n {
		a.key = pieceKey(a.key[:0], w.id, seq, i)
		a.delete(a.key)
	}
	a.key = seqKey(a.key[:0], kindCount, w.id, seq)
	a.delete(a.key)
	return nil
}

// countPieces gives how many pieces a message has, 0 for one that has none.
func (s *Store) countPieces(id store.DestID, seq store.Seq) (uint64, error) {
	rec, err := s.get(s.db, seqKey(nil, kindCount, id, seq))
	if err != nil || rec == nil {
		return 0, err
	}
	n, ok := pieceCount(rec)
	if !ok {
		return 0, s.corrupt(fmt.Sprintf("the pieces of message %d of destination %d", seq, id),
			errRecord)
	}
	return n, nil
}

func pieceCount(rec []byte) (n uint64, ok bool) {
	n, err := uvarintValue(rec)
	return n, err == nil && n > 0 && n <= math.MaxUint32
}

// pieces reads properties and body of a message that has them in pieces, nil when they are not all
// there. The last piece is read first: what the message's record says of the size may be damage.
func (p *pager) pieces(id store.DestID, seq store.Seq, want uint64) ([]byte, error) {
	rec, err := p.s.get(p.snap, seqKey(nil, kindCount, id, seq))
	if err != nil || rec == nil {
		return nil, err
	}
	n, ok := pieceCount(rec)
	if !ok {
		return nil, nil
	}
	last, err := p.s.get(p.snap, pieceKey(nil, id, seq, n-1))
	if err != nil || last == nil {
		return nil, err
	}
	var body []byte
	for i := range n - 1 {
		value, done, err := p.snap.Get(pieceKey(nil, id, seq, i))
		if errors.Is(err, pebble.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, p.s.readError(err)
		}
		// All but the last are of one size.
		if body == nil && want-uint64(len(value)) <= n*uint64(len(value)) {
			body = make([]byte, 0, want)
		}
		body = append(body, value...)
		if err := done.Close(); err != nil {
			return nil, p.s.readError(err)
		}
	}
	return append(body, last...), nil
}
