package disk

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// When a block does not have its checksum, pebble looks which of its bits may have turned, by
// trying them: 0.1 s for a block of small records, several seconds for a piece of a large one, at
// each read. So a table in which it found damage once is a suspect: its blocks are looked at here
// first, and a damaged one is an error before pebble has it. Those that compactions read are looked
// at in any case.

// suspects are the tables in which damage was found, by the names of their files.
type suspects struct {
	sync.Mutex
	of   map[string]*atomic.Bool // of those that are open, or were
	all  bool                    // all tables are
	stop <-chan struct{}         // lets go the compactions that stay
	tell func(error)             // tells that one stays
	here atomic.Int32            // how many do
}

// stays is how many compactions stay at damage.
func (s *suspects) stays() int { return int(s.here.Load()) }

// stay keeps a compaction at damage for a while, and tells of it now and then; see schedule.
func (s *suspects) stay(what error) {
	defer s.here.Add(-1)
	if s.here.Add(1) > mostStays {
		return
	}
	tick := time.NewTicker(seldomEvery)
	defer tick.Stop()
	for end := time.Now().Add(stayTime); time.Now().Before(end); {
		s.tell(what)
		select {
		case <-tick.C:
		case <-s.stop:
			return
		}
	}
}

// some reports whether damage was found in any table that is there.
func (s *suspects) some() bool {
	s.Lock()
	defer s.Unlock()
	for _, mark := range s.of {
		if mark.Load() {
			return true
		}
	}
	return false
}

// mark gives the mark of a table.
func (s *suspects) mark(path string) *atomic.Bool {
	s.Lock()
	defer s.Unlock()
	name := filepath.Base(path)
	if s.of == nil {
		s.of = map[string]*atomic.Bool{}
	}
	if s.of[name] == nil {
		s.of[name] = &atomic.Bool{}
		s.of[name].Store(s.all)
	}
	return s.of[name]
}

func (s *suspects) forget(path string) {
	s.Lock()
	defer s.Unlock()
	delete(s.of, filepath.Base(path))
}

// tableFile is a table that is read.
type tableFile struct {
	vfs.File
	path     string
	suspects *suspects
	suspect  *atomic.Bool
	compacts bool // it is a compaction that reads
}

// ReadAt implements vfs.File. What pebble reads of a table is blocks, each with its trailer, and
// the footer at the end.
func (f *tableFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if err != nil || !f.compacts && !f.suspect.Load() || sound(b) {
		return n, err
	}
	if info, err := f.Stat(); err == nil && at+int64(n) == info.Size() {
		return n, nil
	}
	err = fmt.Errorf("the block of %d bytes at %d of %s does not have its checksum: %w", len(b), at,
		filepath.Base(f.path), pebble.ErrCorruption)
	if f.compacts {
		f.suspect.Store(true)
		f.suspects.stay(err)
	}
	return n, err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sound reports whether a block has the checksum that its trailer ends with, as LevelDB makes it:
// turned by 15 bits, with a constant added.
func sound(b []byte) bool {
	if len(b) < 5 {
		return true
	}
	n := len(b) - 4
	return binary.LittleEndian.Uint32(b[n:]) == masked(crc32.Checksum(b[:n], castagnoli))
}

func masked(c uint32) uint32 { return (c>>15 | c<<17) + 0xa282ead8 }

func unmasked(c uint32) uint32 {
	c -= 0xa282ead8
	return c>>17 | c<<15
}
