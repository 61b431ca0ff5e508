package disk

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"runtime"
	"strings"
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
	stop <-chan struct{}         // ends the compactions that stay
	tell func(error)             // tells that one stays
	here atomic.Int32            // how many do
	free chan struct{}           // closed to let those go that stay
	seen func()                  // called when one begins to stay; may be nil

	stuck atomic.Int32  // how many of those that stay never end
	hangs chan struct{} // closed when the first does
}

// errLetGo ends a compaction that stayed at damage. To pebble it is one that gave way to something
// else: what it was at may be compacted at once.
var errLetGo = fmt.Errorf("it gave way: %w", pebble.ErrCancelledCompaction)

func newSuspects(stop <-chan struct{}, tell func(error)) *suspects {
	return &suspects{stop: stop, tell: tell, free: make(chan struct{}), hangs: make(chan struct{})}
}

// letGo ends the stays that there are, but none that begins later.
func (s *suspects) letGo() {
	s.Lock()
	defer s.Unlock()
	close(s.free)
	s.free = make(chan struct{})
}

// whenStays has f called when a compaction begins to stay; nil ends that.
func (s *suspects) whenStays(f func()) {
	s.Lock()
	defer s.Unlock()
	s.seen = f
}

// stays is how many compactions stay at damage.
func (s *suspects) stays() int { return int(s.here.Load()) }

// stay keeps a compaction at damage for a while, and tells of it now and then; see schedule. It
// gives the error that the compaction is to end with.
func (s *suspects) stay(what error) error {
	s.Lock()
	free, seen := s.free, s.seen
	s.Unlock()
	if wouldPanic() {
		s.hang(what, seen)
	}
	defer s.here.Add(-1)
	if s.here.Add(1) > mostStays {
		return what
	}
	if seen != nil {
		seen()
	}
	tick := time.NewTicker(seldomEvery)
	defer tick.Stop()
	for end := time.Now().Add(stayTime); time.Now().Before(end); {
		s.tell(what)
		select {
		case <-tick.C:
		case <-free:
			return errLetGo
		case <-s.stop:
			return what
		}
	}
	return what
}

// hang keeps a compaction at damage until the process ends.
func (s *suspects) hang(what error, seen func()) {
	s.here.Add(1)
	if s.stuck.Add(1) == 1 && s.hangs != nil {
		close(s.hangs)
	}
	if seen != nil {
		seen()
	}
	for tick := time.Tick(seldomEvery); ; <-tick {
		s.tell(what)
	}
}

// wouldPanic reports whether pebble answers an error of the read that calls it with a panic, which
// ends the process. A compaction does so behind a key whose SingleDelete has nothing below it. The
// store writes none, but older programs and repairs do.
func wouldPanic() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if strings.HasSuffix(frame.Function, ".skipDueToSingleDeleteElision") {
			return true
		}
	}
	return false
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
	if err != nil && f.compacts && wouldPanic() {
		n, err = f.insist(b, at)
	}
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
		err = f.suspects.stay(err)
	}
	return n, err
}

// insist reads for a compaction that must not get an error.
func (f *tableFile) insist(b []byte, at int64) (n int, err error) {
	for range insists {
		time.Sleep(time.Second)
		if n, err = f.File.ReadAt(b, at); err == nil {
			return n, nil
		}
	}
	f.suspects.hang(err, nil)
	return n, err
}

// insists is how many times a read is tried again, a second apart.
const insists = 10

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
