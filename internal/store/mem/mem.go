package mem

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// Store is a store in memory. All its methods may be called from any goroutine.
type Store struct {
	mu     sync.Mutex
	now    *state // all that was applied
	closed bool

	// Only of a store made by NewUnsynced: what is durable, and the batches applied since.
	// now == durable + unsynced.
	durable  *state
	unsynced []*store.Batch

	capacity int64 // bytes; 0 is no limit
	reserve  int64
	fault    func([]*store.Batch) error
	damage   map[store.DestID][]damage // in order
}

// New makes an empty store in which everything applied is durable at once.
func New() *Store { return &Store{now: newState()} }

// NewUnsynced makes an empty store in which batches are durable only after Sync. Batches must not
// be changed before that.
func NewUnsynced() *Store { return &Store{now: newState(), durable: newState()} }

// Unsynced gives the number of batches that were applied and are not durable.
func (s *Store) Unsynced() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unsynced)
}

// Sync makes the first n unsynced batches durable.
func (s *Store) Sync(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.unsynced))
	for _, b := range s.unsynced[:n] {
		_ = s.durable.apply(b) // did not fail when it was applied to now
	}
	s.unsynced = slices.Delete(s.unsynced, 0, n)
}

// CrashClone gives the store that is there after a crash now in which, beside what is durable,
// the first keep unsynced batches survived by luck. The store itself is not touched.
func (s *Store) CrashClone(keep int) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Store{capacity: s.capacity, reserve: s.reserve, damage: maps.Clone(s.damage)}
	if s.durable == nil {
		c.now = s.now.clone()
		c.now.opened()
		return c
	}
	c.now = s.durable.clone()
	for _, b := range s.unsynced[:min(keep, len(s.unsynced))] {
		_ = c.now.apply(b)
	}
	c.now.opened()
	c.durable = c.now.clone()
	return c
}

// SetCapacity limits the store to a number of bytes of messages; 0 is no limit. Within reserve of
// it the store is Full, within half of reserve it refuses puts.
func (s *Store) SetCapacity(capacity, reserve int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capacity, s.reserve = capacity, reserve
}

// SetFault makes Apply ask f first; when f gives an error, Apply fails with it and does nothing.
func (s *Store) SetFault(f func([]*store.Batch) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Apply implements store.Store.
func (s *Store) Apply(batches []*store.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	if s.fault != nil {
		if err := s.fault(batches); err != nil {
			return err
		}
	}
	if s.capacity > 0 && s.capacity-s.now.used < s.reserve/2 {
		for _, b := range batches {
			if b.Puts() {
				return message.Errorf(message.Limit,
					"store: %d of %d bytes used: consume messages or raise the limit",
					s.now.used, s.capacity)
			}
		}
	}
	for _, b := range batches {
		if err := s.now.apply(b); err != nil {
			return err
		}
	}
	if s.durable != nil {
		s.unsynced = append(s.unsynced, batches...)
	}
	return nil
}

func (s *Store) open() error {
	if s.closed {
		return message.Errorf(message.Unavailable, "store: it is closed")
	}
	return nil
}

// Headers implements store.Store.
func (s *Store) Headers() ([]store.Header, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.headers(), s.open()
}

// Meta implements store.Store.
func (s *Store) Meta(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.now.meta[name]), s.open()
}

// Page implements store.Store.
func (s *Store) Page(r store.PageRequest) ([]store.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	return s.page(r), nil
}

// Receipts implements store.Store.
func (s *Store) Receipts(id store.DestID) (out store.Receipts, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.now.dests[id]
	if d == nil {
		return out, s.open()
	}
	for _, peer := range slices.Sorted(maps.Keys(d.receipts)) {
		p := d.receipts[peer].PeerReceipts
		p.List = slices.Clone(p.List)
		out.Peers = append(out.Peers, p)
	}
	for _, producer := range slices.SortedFunc(maps.Keys(d.numbers), message.ProducerID.Compare) {
		out.Producers = append(out.Producers, store.ProducerNumbers{Producer: producer,
			Numbers: d.numbers[producer].Clone()})
	}
	return out, s.open()
}

// Expired implements store.Store.
func (s *Store) Expired(after *store.ExpiredRef, before int64,
	limit int) ([]store.ExpiredRef, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.expired(after, before, limit), s.open()
}

// Space implements store.Store.
func (s *Store) Space() store.Space {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := store.Space{UsedBytes: s.now.used, FreeBytes: -1, ReserveBytes: s.reserve}
	if s.capacity > 0 {
		sp.FreeBytes = max(0, s.capacity-s.now.used)
		sp.Full = sp.FreeBytes < s.reserve
	}
	return sp
}

// Check tells the first destination whose header does not agree with its messages, or whose first
// reference is to a message that is missing, O(number of destinations). The simulation asks it
// after each batch.
func (s *Store) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.now.headers() {
		d := s.now.dests[h.ID]
		l := &d.msgs
		repaired := h.Prepared != nil && h.Prepared.Lost > 0 // its header says what there was
		if !h.IsLog() && !repaired && (int64(l.live) != h.Count || l.bytes != h.Bytes) {
			return message.Errorf(message.Internal,
				"store: header of %s says %d messages and %d bytes, stored are %d and %d",
				h.Destination, h.Count, h.Bytes, l.live, l.bytes)
		}
		if l.live == 0 {
			continue
		}
		e := &l.entries[l.head]
		if e.seq < h.Head {
			return message.Errorf(message.Internal,
				"store: header of %s says head %d, the first message is %d",
				h.Destination, h.Head, e.seq)
		}
		if e.ref != nil && s.now.logged(e.ref.source, e.seq) == nil {
			return d.dangling(h.ID, e)
		}
	}
	return nil
}

// Close implements store.Store. What was stored is gone with the Store; CrashClone before it
// gives a copy to go on with.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
