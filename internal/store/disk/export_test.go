package disk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/store"
	"hopwire/internal/store/disk/files"
)

// SetRaw writes a record behind the store's back.
func SetRaw(s *Store, kind byte, id store.DestID, seq store.Seq, value []byte) error {
	return s.db.Set(seqKey(nil, kind, id, seq), value, pebble.Sync)
}

// SetHeader writes a header, or what is to be taken for one.
func SetHeader(s *Store, id store.DestID, value []byte) error {
	return s.db.Set(destKey(nil, kindHeader, id), value, pebble.Sync)
}

// Snap takes a snapshot, as reads do.
func Snap(s *Store) interface{ Close() error } { return s.db.NewSnapshot() }

// Flush writes what is in memory to tables.
func Flush(s *Store) error { return s.db.Flush() }

// Settle brings all into the lowest level.
func Settle(s *Store) error {
	return errors.Join(s.db.Flush(), s.db.Compact(context.Background(), []byte{0}, []byte{255}, false))
}

// Hold has no compaction begin any more.
func Hold(s *Store) { s.schedule.Hold(true) }

// Heap gives how many compactions failed, and how many tables a read may look into.
func Heap(s *Store) (fails int64, amp int) {
	m := s.db.Metrics()
	return s.schedule.Failures(), m.ReadAmp()
}

// Levels tells what the levels hold.
func Levels(s *Store) string { return s.db.Metrics().String() }

// Chunks gives how much of a log or manifest is chunks of its own, before what a log that was used
// again has of its last use.
func Chunks(b []byte) (at int) {
	num := uint32(0)
	if b[6] >= 5 { // a log's
		num = binary.LittleEndian.Uint32(b[7:])
	}
	to, _, _ := files.SoundTo(bytes.NewReader(b), num, int64(len(b))) // memory gives no errors
	return int(to)
}

// Stays gives how many compactions stay at damage.
func Stays(s *Store) int { return s.fs.Suspects.Stays() }

// Canceled gives how many compactions were let go.
func Canceled(s *Store) int64 { return s.db.Metrics().Compact.CancelledCount }
