package disk

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

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
	if err = passOver(&out, s.peersOf(snap, id, &out)); err != nil {
		return out, err
	}
	for i := range out.Peers {
		if err = passOver(&out, s.receiptsOf(snap, id, &out.Peers[i])); err != nil {
			return out, err
		}
	}
	slices.SortFunc(out.Peers, func(a, b store.PeerReceipts) int {
		return cmp.Compare(a.Peer, b.Peer)
	})
	if err = passOver(&out, s.numbersIn(snap, id, &out)); err != nil {
		return out, err
	}
	if out.Damage != nil {
		out.From = uint64(time.Now().UnixMicro()) // more than were ever given
	}
	return out, nil
}

// passOver notes damage, and gives any other error.
func passOver(out *store.Receipts, err error) error {
	if !pebble.IsCorruptionError(err) {
		return err
	}
	out.Damage = cmp.Or(out.Damage, err)
	return nil
}

// peersOf gives the peers that have receipts or a mark; Next is the mark.
func (s *Store) peersOf(snap *pebble.Snapshot, id store.DestID, out *store.Receipts) error {
	known := map[message.BrokerID]bool{}
	for _, kind := range []byte{kindMark, kindReceipt} {
		it, err := snap.NewIter(&pebble.IterOptions{LowerBound: destKey(nil, kind, id),
			UpperBound: destKey(nil, kind, id+1)})
		if err != nil {
			return s.readError(err)
		}
		note := func() (peer message.BrokerID, ok bool) {
			peer, ok = peerOf(it.Key())
			if ok && !known[peer] {
				known[peer] = true
				out.Peers = append(out.Peers, store.PeerReceipts{Peer: peer})
			}
			return peer, ok
		}
		// Over the rest of a peer's, which may be many and dropped, in one step.
		ok := it.First()
		for ok {
			peer, parsed := note()
			if !parsed {
				err = s.corrupt(fmt.Sprintf("the key %q", it.Key()), errRecord)
				break
			}
			ok = it.SeekGE(pastPeer(kind, id, peer))
		}
		if err == nil && it.Error() != nil {
			err = s.readError(it.Error())
		}
		if pebble.IsCorruptionError(err) { // what is behind it is found from the end
			err = passOver(out, err)
			for ok := it.Last(); ok; {
				peer, parsed := note()
				ok = parsed && it.SeekLT(peerKey(nil, kind, id, peer))
			}
		}
		_ = it.Close() // its error was looked at
		if err != nil {
			return err
		}
	}
	for i := range out.Peers {
		low, err := s.mark(snap, id, out.Peers[i].Peer)
		if err := passOver(out, err); err != nil {
			return err
		}
		out.Peers[i].Next = low
	}
	return nil
}

// receiptsOf reads a peer's receipts from its mark on.
func (s *Store) receiptsOf(snap *pebble.Snapshot, id store.DestID, p *store.PeerReceipts) error {
	it, err := snap.NewIter(receiptBounds(id, p.Peer, p.Next))
	if err != nil {
		return s.readError(err)
	}
	defer it.Close()
	damage, err := s.fromBothEnds(it, func(value []byte) error {
		key := it.Key()
		r := store.Receipt{N: binary.BigEndian.Uint64(key[len(key)-8:])}
		if copy(r.Key[:], value) != receiptValue || len(value) != receiptValue {
			return s.corrupt(fmt.Sprintf("receipt %d of destination %d and peer %s", r.N, id,
				p.Peer), errRecord)
		}
		p.List, p.Next = append(p.List, r), max(p.Next, r.N+1)
		return nil
	})
	if damage != nil {
		slices.SortFunc(p.List, func(a, b store.Receipt) int { return cmp.Compare(a.N, b.N) })
		p.List = slices.Compact(p.List)
		return damage
	}
	return err
}
