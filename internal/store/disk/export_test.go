package disk

import (
	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/store"
)

// SetRaw writes a record behind the store's back.
func SetRaw(s *Store, kind byte, id store.DestID, seq store.Seq, value []byte) error {
	return s.db.Set(seqKey(nil, kind, id, seq), value, pebble.Sync)
}

// Flush writes what is in memory to tables.
func Flush(s *Store) error { return s.db.Flush() }
