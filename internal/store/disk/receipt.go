package disk

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// Receipts implements store.Store. A peer all of whose receipts were dropped has its mark left.
func (s *Store) Receipts(id store.DestID) (out store.Receipts, err error) {
	if err := s.begin(); err != nil {
		return out, err
	}
	defer s.end()
	snap := s.db.NewSnapshot()
	defer snap.Close()
	peers, err := s.peersOf(snap, id)
	if err != nil {
		return out, err
	}
	for i := range peers {
		if err := s.receiptsOf(snap, id, &peers[i]); err != nil {
			return out, err
		}
	}
	slices.SortFunc(peers, func(a, b store.PeerReceipts) int { return cmp.Compare(a.Peer, b.Peer) })
	producers, err := s.numbersIn(snap, id)
	return store.Receipts{Peers: peers, Producers: producers}, err
}

// peersOf gives the peers that have receipts or a mark; Next is the mark.
func (s *Store) peersOf(snap *pebble.Snapshot, id store.DestID) (out []store.PeerReceipts,
	err error) {
	known := map[message.BrokerID]bool{}
	for _, kind := range []byte{kindMark, kindReceipt} {
		it, err := snap.NewIter(&pebble.IterOptions{LowerBound: destKey(nil, kind, id),
			UpperBound: destKey(nil, kind, id+1)})
		if err != nil {
			return nil, s.readError(err)
		}
		for ok := it.First(); ok; {
			peer, parsed := peerOf(it.Key())
			if !parsed {
				err = s.corrupt(fmt.Sprintf("the key %q", it.Key()), errRecord)
				break
			}
			if !known[peer] {
				known[peer] = true
				out = append(out, store.PeerReceipts{Peer: peer})
			}
			// Over the rest of this peer's, which may be many and dropped, in one step.
			ok = it.SeekGE(pastPeer(kind, id, peer))
		}
		if err == nil && it.Error() != nil {
			err = s.readError(it.Error())
		}
		_ = it.Close() // its error was looked at
		if err != nil {
			return nil, err
		}
	}
	for i := range out {
		if out[i].Next, err = s.mark(snap, id, out[i].Peer); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// receiptsOf reads a peer's receipts from its mark on.
func (s *Store) receiptsOf(snap *pebble.Snapshot, id store.DestID, p *store.PeerReceipts) error {
	it, err := snap.NewIter(receiptBounds(id, p.Peer, p.Next))
	if err != nil {
		return s.readError(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		value, err := it.ValueAndErr()
		if err != nil {
			return s.readError(err)
		}
		r := store.Receipt{N: binary.BigEndian.Uint64(key[len(key)-8:])}
		if copy(r.Key[:], value) != receiptValue || len(value) != receiptValue {
			return s.corrupt(fmt.Sprintf("receipt %d of destination %d and peer %s", r.N, id,
				p.Peer), errRecord)
		}
		p.List, p.Next = append(p.List, r), r.N+1
	}
	if err := it.Error(); err != nil {
		return s.readError(err)
	}
	return nil
}
