package patient

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/store/disk/files"
)

// When a block does not have its checksum, pebble looks which of its bits may have turned, by
// trying them: 0.1 s for a block of small records, several seconds for a piece of a large one, at
// each read. So a table in which it found damage once is a suspect: its blocks are looked at here
// first, and a damaged one is an error before pebble has it. Those that compactions read are looked
// at in any case.

// Suspects are the tables in which damage was found, by the names of their files.
type Suspects struct {
	sync.Mutex
	of   map[string]*atomic.Bool // of those that are open, or were
	all  bool                    // all tables are
	stop <-chan struct{}         // ends the compactions that stay
	tell func(error)             // tells that one stays
	here atomic.Int32            // how many do
	free chan struct{}           // closed to let those go that stay
	seen func()                  // called when one begins to stay; may be nil
}

// errLetGo ends a compaction that stayed at damage. To pebble it is one that gave way to something
// else: what it was at may be compacted at once.
var errLetGo = fmt.Errorf("it gave way: %w", pebble.ErrCancelledCompaction)

// NewSuspects makes them; stop ends the compactions that stay, and tell is called while one does.
func NewSuspects(stop <-chan struct{}, tell func(error)) *Suspects {
	return &Suspects{stop: stop, tell: tell, free: make(chan struct{})}
}

// LetGo ends the stays that there are, but none that begins later.
func (s *Suspects) LetGo() {
	s.Lock()
	defer s.Unlock()
	close(s.free)
	s.free = make(chan struct{})
}

// WhenStays has f called when a compaction begins to stay; nil ends that.
func (s *Suspects) WhenStays(f func()) {
	s.Lock()
	defer s.Unlock()
	s.seen = f
}

// Stays is how many compactions stay at damage.
func (s *Suspects) Stays() int { return int(s.here.Load()) }

// stay keeps a compaction at damage for a while, and tells of it now and then; see Schedule. It
// gives the error that the compaction is to end with.
func (s *Suspects) stay(what error) error {
	s.Lock()
	free, seen := s.free, s.seen
	s.Unlock()
	defer s.here.Add(-1)
	if s.here.Add(1) > mostStays {
		return what
	}
	if seen != nil {
		seen()
	}
	tick := time.NewTicker(tellEvery)
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

// Some reports whether damage was found in any table that is there.
func (s *Suspects) Some() bool {
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
func (s *Suspects) mark(path string) *atomic.Bool {
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

// Add notes that damage was found in a table.
func (s *Suspects) Add(path string) { s.mark(path).Store(true) }

func (s *Suspects) forget(path string) {
	s.Lock()
	defer s.Unlock()
	delete(s.of, filepath.Base(path))
}

// tableFile is a table that is read.
type tableFile struct {
	vfs.File
	path     string
	suspects *Suspects
	suspect  *atomic.Bool
	compacts bool // it is a compaction that reads
}

// ReadAt implements vfs.File.
func (f *tableFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if err != nil || !f.compacts && !f.suspect.Load() {
		return n, err
	}
	err = files.Check(f.File, f.path, b[:n], at)
	if err != nil && f.compacts {
		f.suspect.Store(true)
		err = f.suspects.stay(err)
	}
	return n, err
}
