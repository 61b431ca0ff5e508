package disk

import (
	"encoding/binary"
	"slices"

	"hopwire/internal/store"
)

// The header record of a prepared branch is preparedVersion, its id, Time, Count, Bytes, and the
// number of acknowledged messages with, for each, its destination, sequence, expiration, size and
// redelivery count. Head is 1, and Reserved Count+1. One of destination 0, which there is not, has
// as its sequence how many of the Count messages a repair lost.
func appendPrepared(b []byte, h *store.Header) []byte {
	p := h.Prepared
	b = appendTransaction(append(b, preparedVersion), p.ID)
	b = binary.AppendVarint(b, p.Time)
	b = binary.AppendUvarint(b, uint64(h.Count))
	b = binary.AppendVarint(b, h.Bytes)
	acks := p.Acks
	if p.Lost > 0 {
		acks = append(slices.Clip(acks), store.AckRef{Seq: store.Seq(p.Lost)})
	}
	b = binary.AppendUvarint(b, uint64(len(acks)))
	for _, a := range acks {
		b = binary.AppendUvarint(b, uint64(a.Dest))
		b = binary.AppendUvarint(b, uint64(a.Seq))
		b = binary.AppendVarint(b, a.Expiration)
		b = binary.AppendVarint(b, a.Size)
		b = binary.AppendVarint(b, int64(a.Redelivery))
	}
	return b
}

func decodePrepared(id store.DestID, rec []byte) (store.Header, error) {
	r := reader{s: string(rec[1:])}
	p := &store.Prepared{ID: r.transaction(), Time: r.varint()}
	h := store.Header{ID: id, Prepared: p, Head: 1, Count: int64(r.uvarint()), Bytes: r.varint()}
	h.Reserved = store.Seq(h.Count) + 1
	for range r.count() {
		a := store.AckRef{Dest: store.DestID(r.uvarint()), Seq: store.Seq(r.uvarint()),
			Expiration: r.varint(), Size: r.varint(), Redelivery: r.int32()}
		if a.Dest == 0 {
			p.Lost = int64(a.Seq)
			continue
		}
		p.Acks = append(p.Acks, a)
	}
	if err := r.end(); err != nil {
		return store.Header{}, err
	}
	return h, nil
}

// dropPrepared removes a branch: few messages one by one, as each read goes through all range
// tombstones of the memtable.
func (a *applier) dropPrepared(w *work) error {
	if err := a.load(w.id, w.d); err != nil {
		return err
	}
	if w.reserved <= fewSize {
		for seq := store.Seq(1); seq < w.reserved; seq++ {
			if err := a.removeOne(w, seq); err != nil {
				return err
			}
		}
	} else {
		a.lay(w.id, w.d, 1, w.reserved)
	}
	a.delete(destKey(a.key[:0], kindHeader, w.id))
	return nil
}
