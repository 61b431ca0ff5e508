package disk

import "context"

// tidyParts is the part of what a store takes that must be garbage before it is tidied: a fourth.
const tidyParts = 4

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
// full.
func (s *Store) tidyWhenAsked(ctx context.Context) error {
	for {
		select {
		case <-s.space.tidy:
		case <-ctx.Done():
			return nil
		}
		if s.garbage() <= s.usedBytes()/tidyParts {
			if s.logBytes() > 0 {
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
