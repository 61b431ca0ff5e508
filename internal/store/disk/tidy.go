package disk

import "context"

// tidyParts is the part of what a store takes that must be garbage before it is tidied: a fourth.
const tidyParts = 4

// usedBytes is what the store takes of its limit. Logs that wait to be written over are room.
func (s *Store) usedBytes() int64 {
	m := s.db.Metrics()
	return int64(m.DiskSpaceUsage() - m.WAL.ObsoletePhysicalSize)
}

// garbage is what a store that wrote everything anew would not take, as far as pebble can say.
func (s *Store) garbage() (logs, tables int64) {
	m := s.db.Metrics()
	g := &m.Table.Garbage
	return int64(m.WAL.PhysicalSize), int64(g.PointDeletionsBytesEstimate +
		g.RangeDeletionsBytesEstimate)
}

// tidyWhenAsked makes deleted messages free their room when the limit is near. Pebble does that
// while it writes, and when the limit is reached nothing is written: an empty store would stay
// full.
func (s *Store) tidyWhenAsked(ctx context.Context) error {
	for {
		select {
		case <-s.space.tidy:
		case <-ctx.Done():
			return nil
		}
		used := s.usedBytes()
		logs, tables := s.garbage()
		if tables <= used/tidyParts {
			if logs > 0 {
				s.flush() // what deletes messages is in there, and not known as garbage before
			}
			continue
		}
		err := s.db.Compact(ctx, []byte{0}, []byte{0xff}, false)
		if err != nil && ctx.Err() == nil && !s.hasFailed() {
			s.warn("the room of deleted messages is not free yet: " + err.Error())
		}
	}
}
