package disk

import (
	"bytes"
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/store"
)

// A compaction that stays at damage has the tables that it is at, all that lie over each other with
// the damaged one, and keeps from being removed what was replaced since it began. So beside damage
// what was deleted frees little, when it was deleted one by one. What frees it is this: stays are
// let go, for a moment nothing is compacted, and over each table in which nobody has anything
// a range tombstone is laid. Pebble drops what lies wholly under one without reading it, damaged or
// not, unless it is being compacted.

// messageKinds are the kinds whose keys name a message.
const messageKinds = string(kindBody) + string(kindCount) + string(kindFacts) +
	string(kindMessage) + string(kindPiece)

const (
	// besideLooks is how many looks are between two times that tables are dropped.
	besideLooks = 10
	// letGoTime and dropTime bound how long nothing is compacted.
	letGoTime = 10 * time.Second
	dropTime  = 5 * time.Second
)

// besides decides when to drop tables beside damage. It belongs to tidyWhenAsked.
type besides struct {
	since int   // looks since the last time
	pause int   // looks to the next one
	gone  int64 // the tidier's at the last time
}

// tidyBeside is one look at a store with damaged tables.
func (s *Store) tidyBeside(ctx context.Context) {
	t, m := &s.tidier.beside, s.db.Metrics()
	used, zombies := s.usedBytes(), int64(m.Table.ZombieSize)
	live, gone := s.tidier.live.Load(), s.tidier.gone.Load()
	waste := max(used-s.logBytes()-live, zombies)
	switch {
	case gone-t.gone > used/tidyParts:
		t.pause = min(t.pause, besideLooks)
	case live == 0: // it may be the first time that all is deleted
		t.pause = min(t.pause, tidyLooks)
	}
	t.since++
	if waste <= max(used/tidyParts, s.opts.MemTableBytes) || t.since <= t.pause {
		return
	}
	freed := s.dropCovered(ctx) + zombies - int64(s.db.Metrics().Table.ZombieSize)
	t.since, t.gone = 0, gone
	if t.pause = min(2*t.pause+besideLooks, 64*tidyLooks); freed > used/10 {
		t.pause = besideLooks
	}
}

// dropCovered drops the tables in which nobody has anything, and gives their size.
func (s *Store) dropCovered(ctx context.Context) (size int64) {
	s.schedule.Hold(true)
	defer s.schedule.Hold(false)
	until(ctx, letGoTime, func() bool {
		s.fs.Suspects.LetGo() // those, too, that come to it now
		return s.schedule.Runs() == 0
	})

	s.putting.Lock()
	s.puts = map[store.DestID]span{}
	snap := s.db.NewSnapshot()
	s.putting.Unlock()
	tables := s.covered(ctx, snap)
	_ = snap.Close() // nothing was written
	s.putting.Lock()
	laid, err := s.layOver(ctx, tables)
	s.puts = nil
	s.putting.Unlock()
	if err != nil || !laid {
		return 0 // the next Apply tells of a failure
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return 0
	}
	select {
	case <-flushed:
	case <-ctx.Done():
		return 0
	}
	before := s.tableBytes()
	until(ctx, dropTime, func() bool { return !s.have(tables) })
	return before - s.tableBytes()
}

// until waits until done reports true, or for a time.
func until(ctx context.Context, most time.Duration, done func() bool) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// coveredRange is what tables lie in whose records are all deleted.
type coveredRange struct {
	level    int
	from, to []byte // the first key, and one that is behind the last
	tables   map[uint64]bool
}

// covered finds the tables below level 0, each with records of messages of one kind alone, of which
// a snapshot has none.
func (s *Store) covered(ctx context.Context, snap *pebble.Snapshot) (out []coveredRange) {
	levels, err := s.db.SSTables()
	if err != nil {
		return nil
	}
	for level := 1; level < len(levels); level++ {
		for _, table := range levels[level] {
			from, last := table.Smallest.UserKey, table.Largest.UserKey
			if ctx.Err() != nil || len(from) == 0 || len(last) == 0 || from[0] != last[0] ||
				!bytes.Contains([]byte(messageKinds), from[:1]) {
				continue
			}
			to, id := append(bytes.Clone(last), 0), uint64(table.FileNum)
			if n := len(out) - 1; n >= 0 && out[n].level == level && out[n].from[0] == from[0] &&
				s.hasNone(snap, out[n].to, to) {
				out[n].to, out[n].tables[id] = to, true
				continue
			}
			if s.hasNone(snap, from, to) {
				out = append(out, coveredRange{level, from, to, map[uint64]bool{id: true}})
			}
		}
	}
	return out
}

// hasNone reports whether it is sure that a snapshot has nothing in a range.
func (s *Store) hasNone(snap *pebble.Snapshot, from, to []byte) bool {
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return false
	}
	some := it.First()
	return it.Close() == nil && !some
}

// layOver lays range tombstones over what has nothing, unless something was put there meanwhile.
// s.putting is held.
func (s *Store) layOver(ctx context.Context, ranges []coveredRange) (some bool, err error) {
	b := s.db.NewBatch()
	for _, r := range ranges {
		if !s.wasPut(r.from, r.to) {
			_ = b.DeleteRange(r.from, r.to, nil) // cannot fail on a batch that is not indexed
		}
	}
	if b.Empty() {
		return false, b.Close()
	}
	done := make(chan error, 1)
	select {
	case s.jobs <- func() { done <- s.db.Apply(b, pebble.NoSync) }:
	case <-s.failed:
		return false, s.failure
	case <-ctx.Done(): // Close has the goroutine that writes wait for this one
		return false, ctx.Err()
	}
	select {
	case err = <-done:
	case <-s.failed:
		err = s.failure
	}
	return err == nil, err
}

// wasPut reports whether something may have been put in a range since s.puts is kept.
func (s *Store) wasPut(from, to []byte) bool {
	for id, p := range s.puts {
		if bytes.Compare(seqKey(nil, from[0], id, p.lo), to) < 0 &&
			bytes.Compare(seqKey(nil, from[0], id, p.hi), from) >= 0 {
			return true
		}
	}
	return false
}

// notePut notes, while s.puts is kept, that Apply is to put something at a sequence.
func (s *Store) notePut(id store.DestID, seq store.Seq) {
	if s.puts != nil {
		p := s.puts[id]
		p.add(seq)
		s.puts[id] = p
	}
}

// have reports whether one of the tables is there.
func (s *Store) have(ranges []coveredRange) bool {
	levels, _ := s.db.SSTables()
	for level, tables := range levels {
		for _, table := range tables {
			for _, r := range ranges {
				if r.level == level && r.tables[uint64(table.FileNum)] {
					return true
				}
			}
		}
	}
	return false
}

// tableBytes is the size of the tables that are read.
func (s *Store) tableBytes() int64 { return s.db.Metrics().Total().TablesSize }
