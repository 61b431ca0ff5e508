package patient

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ballastName is a file that takes space only to give it back when there is none.
const ballastName = "ballast"

// Options are those of a store that are about its room: see disk.Options.
type Options struct {
	Dir          string
	ReserveBytes int64
	LimitBytes   int64
	Volatile     bool
	Poll         time.Duration
	OnFull       func(line string)
	OnRoom       func()
	Fail         func(error) // called with what the store cannot go on after
}

// Space watches how much room there is. It is the patience of the store's FS.
type Space struct {
	fs      vfs.FS
	opts    Options
	reserve int64
	stop    chan struct{} // closed by halt
	halted  sync.Once
	used    atomic.Int64 // bytes that the store takes: as looked at last, and what was written since
	free    atomic.Int64 // -1 when nobody knows
	// logs is the size of the write-ahead logs: as it was looked at last, and what was written
	// since. What is in them is written once more before they can be removed, by a flush or a start,
	// so as much must stay free.
	logs atomic.Int64
	tidy chan struct{} // it is to be looked whether garbage can make room

	mu      sync.Mutex
	ballast int64 // bytes of the ballast file, 0 when there is none
	waiting int   // operations that wait
}

// NewSpace looks at the disk that a folder is on.
func NewSpace(files vfs.FS, o Options) *Space {
	s := &Space{fs: files, opts: o, stop: make(chan struct{}),
		tidy: make(chan struct{})}
	usage, err := files.GetDiskUsage(o.Dir)
	s.reserve = o.ReserveBytes
	if s.reserve == 0 && err == nil {
		s.reserve = min(64<<20, int64(usage.TotalBytes/8))
	}
	s.reserve = max(0, s.reserve)
	if _, err := files.Stat(files.PathJoin(s.opts.Dir, ballastName)); err == nil {
		s.ballast = s.reserve / 4 // of the last run
	}
	s.look()
	return s
}

// Halt lets go what waits for space.
func (s *Space) Halt() { s.halted.Do(func() { close(s.stop) }) }

// look asks the file system for the free space, and gives it.
func (s *Space) look() int64 {
	free := int64(-1)
	if usage, err := s.fs.GetDiskUsage(s.opts.Dir); err == nil {
		free = int64(min(usage.AvailBytes, 1<<62))
	}
	s.free.Store(free)
	return free
}

// Halted is closed when nothing is to wait any more.
func (s *Space) Halted() <-chan struct{} { return s.stop }

// Tidy tells when it is to be looked whether garbage can make room.
func (s *Space) Tidy() <-chan struct{} { return s.tidy }

// Free is the free space as it was looked at last, -1 when nobody knows.
func (s *Space) Free() int64 { return s.free.Load() }

// Used is how much the store takes.
func (s *Space) Used() int64 { return s.used.Load() }

// Wrote adds what was written to the logs since they were looked at.
func (s *Space) Wrote(n int64) {
	s.logs.Add(n)
	s.used.Add(n)
}

// Needs is the free space below which the store is full.
func (s *Space) Needs() int64 { return s.reserve + s.logs.Load() }

// Full reports whether the free space is known and below a limit.
func Full(free, limit int64) bool { return free >= 0 && free < limit }

// Refuses reports whether a put of so many bytes is refused now.
func (s *Space) Refuses(size int64) bool {
	return Full(s.look(), s.reserve/2+s.logs.Load()+2*size)
}

// spare implements patience.
func (s *Space) spare() bool { return !Full(s.look(), s.reserve/4) }

// Watch keeps the figures fresh until stop is closed.
// It has the logs emptied while they are what is too much.
func (s *Space) Watch(used, logs func() int64, flush func(), damaged func() bool) {
	tick := time.NewTicker(s.opts.Poll)
	defer tick.Stop()
	for {
		s.used.Store(used())
		s.logs.Store(logs())
		free, need := s.look(), s.Needs()
		switch {
		case free > 2*need:
			s.load()
		case Full(free, need) && need > s.reserve+s.reserve/8:
			flush()
		}
		if s.Tight() || damaged() {
			select {
			case s.tidy <- struct{}{}:
			default: // it is being done
			}
		}
		select {
		case <-tick.C:
		case <-s.stop:
			return
		}
	}
}

// Tight reports whether the limit is near.
func (s *Space) Tight() bool {
	limit := s.opts.LimitBytes
	return limit > 0 && s.used.Load() > limit/4*3
}

// load makes the ballast, a quarter of the reserve, when it is not there. To fail is no harm.
func (s *Space) load() {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.reserve / 4
	if s.ballast > 0 || size == 0 || s.waiting > 0 || s.opts.Volatile {
		return
	}
	name := s.fs.PathJoin(s.opts.Dir, ballastName)
	f, err := s.fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return
	}
	defer f.Close()
	if err := f.Preallocate(0, size); err != nil {
		_ = s.fs.Remove(name)
		return
	}
	s.ballast = size
}

// release gives the ballast's space back; false means that there was none.
func (s *Space) release() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ballast == 0 {
		return false
	}
	s.ballast = 0
	return s.fs.Remove(s.fs.PathJoin(s.opts.Dir, ballastName)) == nil
}

// begin implements patience.
func (s *Space) begin() {
	s.mu.Lock()
	s.waiting++
	first := s.waiting == 1
	s.mu.Unlock()
	if first && s.opts.OnFull != nil {
		s.opts.OnFull(fmt.Sprintf("store %s: the disk is full, everything waits: free some space",
			s.opts.Dir))
	}
}

// end implements patience.
func (s *Space) end() {
	s.mu.Lock()
	s.waiting--
	last := s.waiting == 0
	s.mu.Unlock()
	if last && s.opts.OnRoom != nil {
		s.opts.OnRoom()
	}
}

// pause implements patience.
func (s *Space) pause() bool {
	if s.release() {
		return true
	}
	t := time.NewTimer(s.opts.Poll)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.stop:
		return false
	}
}

// ErrHalted is of what waited for space when the store was closed, or its opening ended. What was
// confirmed is in the logs.
var ErrHalted = errors.New("it waited for space on the disk, and is closed")

// broken implements patience. Whoever calls it keeps what it holds: nothing more of it happens.
func (s *Space) broken(err error) {
	select {
	case <-s.stop:
		if noSpace(err) {
			err = ErrHalted
		}
	default:
	}
	s.opts.Fail(err)
	select {}
}
