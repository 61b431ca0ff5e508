package disk

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/store"
)

// Expired implements store.Store. It starts where the last look found the first expiration, not
// at the tombstones before it.
func (s *Store) Expired(after *store.ExpiredRef, before int64,
	limit int) ([]store.ExpiredRef, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	if limit <= 0 {
		return nil, nil
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	if after != nil {
		from := append(expiryKey(nil, *after), 0)
		out, _, err := s.expired(from, before, limit)
		return out, err
	}
	s.mu.Lock()
	low := s.expLow
	s.putLow = maxTime
	s.mu.Unlock()
	if low >= before {
		return nil, nil
	}
	out, first, err := s.expired(expiryKey(nil, store.ExpiredRef{Expiration: low}), before, limit)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.expLow = min(first, s.putLow)
	s.mu.Unlock()
	return out, nil
}

// expired gives what is at or above the key, and the first time there, before when there is none.
func (s *Store) expired(from []byte, before int64, limit int) (out []store.ExpiredRef,
	first int64, err error) {
	first = before
	to := expiryKey(nil, store.ExpiredRef{Expiration: before})
	if bytes.Compare(from, to) >= 0 {
		return nil, first, nil
	}
	for {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
		if err != nil {
			return nil, first, s.readError(err)
		}
		at := timeOf(from)
		for ok := it.First(); ok && len(out) < limit; ok = it.Next() {
			r, parsed := parseExpiry(it.Key())
			if !parsed {
				_ = it.Close() // nothing was written
				return nil, first, s.corrupt(fmt.Sprintf("the key %q", it.Key()), errRecord)
			}
			at, first = r.Expiration, min(first, r.Expiration)
			if s.hasDest(r) {
				out = append(out, r)
			}
		}
		err = it.Close()
		switch {
		case err == nil:
			return out, first, nil
		case !pebble.IsCorruptionError(err):
			return nil, first, s.readError(err)
		}
		first = min(first, at) // so that the next look finds what can be read by then
		if at, err = s.expirationBehind(at, before); err != nil || at == before {
			return out, first, err
		}
		from = expiryKey(nil, store.ExpiredRef{Expiration: at})
	}
}

// expirationBehind gives the first time behind damage in the expirations of a time.
func (s *Store) expirationBehind(at, before int64) (int64, error) {
	turn := func(t int64) uint64 { return uint64(t) ^ 1<<63 } // keeps the order
	to, err := behind(turn(at), turn(before), func(t uint64) (bool, error) {
		it, err := s.db.NewIter(&pebble.IterOptions{
			LowerBound: expiryKey(nil, store.ExpiredRef{Expiration: int64(t ^ 1<<63)}),
			UpperBound: expiryKey(nil, store.ExpiredRef{Expiration: before})})
		if err != nil {
			return false, s.readError(err)
		}
		return s.readable(it)
	})
	return int64(to ^ 1<<63), err
}

// timeOf gives the time of a key that begins as one made by expiryKey.
func timeOf(key []byte) int64 { return int64(binary.BigEndian.Uint64(key[1:]) ^ 1<<63) }

// findExpirations looks for the expirations of the messages of a page that cannot be read. It goes
// through those of all destinations: damage is rare.
func (p *pager) findExpirations(page []store.Stored) error {
	p.s.mu.RLock()
	low := p.s.expLow
	p.s.mu.RUnlock()
	return p.s.eachExpiration(p.snap, low, func(r store.ExpiredRef) {
		if r.Dest != p.r.Dest {
			return
		}
		i, found := slices.BinarySearchFunc(page, r.Seq, func(st store.Stored, seq store.Seq) int {
			return cmp.Compare(st.Seq, seq)
		})
		if found && page[i].Damage != nil {
			page[i].Expiration = r.Expiration
		}
	})
}

// mostOrphans bounds what one Apply has to sweep.
const mostOrphans = 10_000

// hasDest reports whether the destination of an expiration is there. One that is not was dropped,
// and its expiration will be, too.
func (s *Store) hasDest(r store.ExpiredRef) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dests[r.Dest] != nil {
		return true
	}
	if len(s.orphans) < mostOrphans {
		s.orphans[r] = true
	}
	return false
}
