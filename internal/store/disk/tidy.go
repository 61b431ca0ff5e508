package disk

import (
	"context"
	"sync/atomic"
)

// tidyParts is the part of what a store takes that must be garbage before it is tidied: a fourth.
const tidyParts = 4

// tidyLooks is how many looks a flush waits at most, or one that nobody hopes for much from.
const tidyLooks = 120

// tidier decides when what was deleted is worth work. All but the first three belongs to
// tidyWhenAsked.
type tidier struct {
	removed atomic.Int64 // about the size of what was deleted since the last flush, as Apply sees it
	gone    atomic.Int64 // the same since the start
	live    atomic.Int64 // the size of all messages, of each subscription too, by the headers

	idle  int   // looks since the last flush
	wait  int   // looks that the next one waits, as the last ones freed little
	hoped int64 // what the last flush was to make known as garbage; 0 when that was looked at
	had   int64 // garbage before it
	left  int64 // what the last compaction left of the garbage, or what came meanwhile
	since int   // looks since then
	pause int   // looks that one waits which pebble does not ask for, as the last freed little

	beside besides
}

// judge looks at what came of the last flush: messages that came and went since the one before are
// in no table and free nothing.
func (t *tidier) judge(garbage int64) {
	if t.hoped == 0 {
		return
	}
	if garbage-t.had >= t.hoped/tidyParts {
		t.wait = 0
	} else {
		t.wait = min(2*t.wait+1, tidyLooks)
	}
	t.hoped = 0
}

// usedBytes is what the store takes of its limit. Logs that wait to be written over are room.
func (s *Store) usedBytes() int64 {
	m := s.db.Metrics()
	return int64(m.DiskSpaceUsage() - m.WAL.ObsoletePhysicalSize)
}

// garbage is how much smaller the tables were if they were written anew, as far as pebble can say.
func (s *Store) garbage() int64 {
	g := s.db.Metrics().Table.Garbage
	return int64(g.PointDeletionsBytesEstimate + g.RangeDeletionsBytesEstimate)
}

// tidyWhenAsked makes deleted messages free their room when the limit is near. Pebble does that
// while it writes, and when the limit is reached nothing is written: an empty store would stay
// full. Beside damage it does so without a limit, too.
func (s *Store) tidyWhenAsked(ctx context.Context) error {
	for {
		select {
		case <-s.space.Tidy():
		case <-ctx.Done():
			return nil
		}
		if s.fs.Suspects.Some() {
			s.tidyBeside(ctx)
		}
		if s.space.Tight() {
			s.tidyUp(ctx)
		}
	}
}

// tidyUp is one look. It compacts when there is much garbage, and flushes when there may be in what
// was deleted since the last flush: pebble does not know of that before.
func (s *Store) tidyUp(ctx context.Context) {
	t, used, garbage := &s.tidier, s.usedBytes(), s.garbage()
	t.idle++
	t.judge(garbage)
	if t.since++; t.since >= tidyLooks {
		t.left = 0
	}
	// What pebble says is a guess; what is more than all messages together is none.
	logs := s.logBytes()
	if s.opts.Volatile {
		logs = 0 // they are not in used
	}
	sure := used-logs-t.live.Load() > used/tidyParts && t.since > t.pause
	if s.fs.Suspects.Some() {
		sure, garbage = false, 0 // a compaction of all would stay there
	}
	if sure || garbage-t.left > used/tidyParts {
		s.compactAll(ctx)
		t.left, t.since = s.garbage(), 0
		if t.pause = min(2*t.pause+tidyLooks, 64*tidyLooks); s.usedBytes() < used/10*9 {
			t.pause = tidyLooks
		}
		return
	}
	removed := t.removed.Load()
	hopes := garbage+removed > used/tidyParts && t.idle > t.wait
	if removed == 0 || !hopes && t.idle < tidyLooks || s.logBytes() == 0 {
		return
	}
	t.removed.Add(-removed)
	t.hoped, t.had, t.idle = removed, garbage, 0
	t.pause = min(t.pause, tidyLooks)
	s.flush()
}

// compactAll compacts everything, and does not wait for what stays at damage.
func (s *Store) compactAll(ctx context.Context) {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	s.fs.Suspects.WhenStays(stop)
	defer s.fs.Suspects.WhenStays(nil)
	err := s.db.Compact(waiting, []byte{0}, []byte{0xff}, false)
	if err != nil && waiting.Err() == nil && !s.hasFailed() {
		s.warn("the room of deleted messages is not free yet: " + err.Error())
	}
}
