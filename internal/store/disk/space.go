package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ballastName is a file that takes space only to give it back when there is none.
const ballastName = "ballast"

// space watches how much room there is. It is the patience of the store's patientFS.
type space struct {
	fs      vfs.FS
	dir     string
	opts    *Options
	reserve int64
	fail    func(error)
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

func newSpace(files vfs.FS, o *Options, fail func(error)) *space {
	s := &space{fs: files, dir: o.Dir, opts: o, fail: fail, stop: make(chan struct{}),
		tidy: make(chan struct{})}
	usage, err := files.GetDiskUsage(o.Dir)
	s.reserve = o.ReserveBytes
	if s.reserve == 0 && err == nil {
		s.reserve = min(64<<20, int64(usage.TotalBytes/8))
	}
	s.reserve = max(0, s.reserve)
	if _, err := files.Stat(files.PathJoin(s.dir, ballastName)); err == nil {
		s.ballast = s.reserve / 4 // of the last run
	}
	s.look()
	return s
}

// halt lets go what waits for space.
func (s *space) halt() { s.halted.Do(func() { close(s.stop) }) }

// Capacity is the size in bytes of the disk that a folder is, or will be, on; 0 when nobody knows.
func Capacity(dir string) int64 {
	for {
		usage, err := vfs.Default.GetDiskUsage(dir)
		if err == nil {
			return int64(min(usage.TotalBytes, 1<<62))
		}
		up := filepath.Dir(dir)
		if up == dir || !errors.Is(err, fs.ErrNotExist) {
			return 0
		}
		dir = up
	}
}

// look asks the file system for the free space, and gives it.
func (s *space) look() int64 {
	free := int64(-1)
	if usage, err := s.fs.GetDiskUsage(s.dir); err == nil {
		free = int64(min(usage.AvailBytes, 1<<62))
	}
	s.free.Store(free)
	return free
}

// needs is the free space below which the store is full.
func (s *space) needs() int64 { return s.reserve + s.logs.Load() }

// full reports whether the free space is known and below a limit.
func full(free, limit int64) bool { return free >= 0 && free < limit }

// refuses reports whether a put of so many bytes is refused now.
func (s *space) refuses(size int64) bool {
	return full(s.look(), s.reserve/2+s.logs.Load()+2*size)
}

// spare implements patience.
func (s *space) spare() bool { return !full(s.look(), s.reserve/4) }

// watch keeps the figures fresh until stop is closed.
// It has the logs emptied while they are what is too much.
func (s *space) watch(used, logs func() int64, flush func(), damaged func() bool) {
	tick := time.NewTicker(s.opts.Poll)
	defer tick.Stop()
	for {
		s.used.Store(used())
		s.logs.Store(logs())
		free, need := s.look(), s.needs()
		switch {
		case free > 2*need:
			s.load()
		case full(free, need) && need > s.reserve+s.reserve/8:
			flush()
		}
		if s.tight() || damaged() {
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

// tight reports whether the limit is near.
func (s *space) tight() bool {
	limit := s.opts.LimitBytes
	return limit > 0 && s.used.Load() > limit/4*3
}

// load makes the ballast, a quarter of the reserve, when it is not there. To fail is no harm.
func (s *space) load() {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.reserve / 4
	if s.ballast > 0 || size == 0 || s.waiting > 0 || s.opts.Volatile {
		return
	}
	name := s.fs.PathJoin(s.dir, ballastName)
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
func (s *space) release() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ballast == 0 {
		return false
	}
	s.ballast = 0
	return s.fs.Remove(s.fs.PathJoin(s.dir, ballastName)) == nil
}

// begin implements patience.
func (s *space) begin() {
	s.mu.Lock()
	s.waiting++
	first := s.waiting == 1
	s.mu.Unlock()
	if first && s.opts.OnFull != nil {
		s.opts.OnFull(fmt.Sprintf("store %s: the disk is full, everything waits: free some space",
			s.dir))
	}
}

// end implements patience.
func (s *space) end() {
	s.mu.Lock()
	s.waiting--
	last := s.waiting == 0
	s.mu.Unlock()
	if last && s.opts.OnRoom != nil {
		s.opts.OnRoom()
	}
}

// pause implements patience.
func (s *space) pause() bool {
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

// errHalted is of what waited for space when the store was closed, or its opening ended. What was
// confirmed is in the logs.
var errHalted = errors.New("it waited for space on the disk, and is closed")

// broken implements patience. Whoever calls it keeps what it holds: nothing more of it happens.
func (s *space) broken(err error) {
	select {
	case <-s.stop:
		if noSpace(err) {
			err = errHalted
		}
	default:
	}
	s.fail(err)
	select {}
}
