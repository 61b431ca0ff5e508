package disk

import (
	"context"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/rungroup"
)

// A compaction that meets damage fails, and pebble picks the same one again at once: a table of
// level 0 it never passes over, one of another level for five minutes. So a compaction that comes
// to a damaged block stays there for a long time (suspects.stay): the tables that it is at are
// taken then, pebble compacts what else there is, and what is written behind the damage is
// compacted by itself. What fails otherwise makes the next one wait. When much of what the tables
// take is garbage they are let go for a while (covered.go).

const (
	// stayTime is how long a compaction stays at damage. All tables that are there when it begins are
	// kept until it ends, and those that it reads lie over each other.
	stayTime = 24 * time.Hour
	// mostStays bounds how many do at a time.
	mostStays = 64
	// pauseLeast and pauseMost are how long nothing is compacted after a compaction met damage: twice
	// as long for each that did so within failsForget.
	pauseLeast  = 100 * time.Millisecond
	pauseMost   = 10 * time.Second
	failsForget = time.Minute
)

// schedule grants compactions as pebble's own scheduler does, to as many as pebble says; those that
// stay at damage do not count, and after damage there is a pause.
type schedule struct {
	stays func() int // how many compactions stay at damage

	db      pebble.DBForCompaction
	ticking *rungroup.Group
	poke    chan struct{}

	granting sync.Mutex // held while the database is asked what it wants
	mu       sync.Mutex
	running  int
	opened   bool // pebble's Open, which waits for compactions, is over
	over     bool
	held     bool // nothing begins
	fails    int
	all      int64 // of them
	failed   time.Time
	until    time.Time // nothing begins before
}

// grantEvery is how often it is looked whether more may run.
const grantEvery = 100 * time.Millisecond

func newSchedule(stays func() int) *schedule {
	return &schedule{stays: stays, poke: make(chan struct{}, 1),
		ticking: rungroup.New(context.Background())} // Unregister ends what runs in it
}

// metDamage begins a pause.
func (s *schedule) metDamage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.failed) > failsForget {
		s.fails = 0
	}
	s.failed = now
	s.until = now.Add(min(pauseLeast<<s.fails, pauseMost))
	s.fails = min(s.fails+1, 10)
	s.all++
}

// begin lets compactions begin, when the database is open.
func (s *schedule) begin() {
	s.mu.Lock()
	s.opened = true
	s.mu.Unlock()
	s.UpdateGetAllowedWithoutPermission()
}

// hold keeps compactions from beginning until it is called with false.
func (s *schedule) hold(held bool) {
	s.mu.Lock()
	s.held = held
	s.mu.Unlock()
	s.UpdateGetAllowedWithoutPermission()
}

// runs is how many run, those among them that stay.
func (s *schedule) runs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// failures is how many compactions met damage.
func (s *schedule) failures() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Register implements pebble.CompactionScheduler.
func (s *schedule) Register(_ int, db pebble.DBForCompaction) {
	s.db = db
	s.ticking.Go("store compactions", func(ctx context.Context) error {
		tick := time.NewTicker(grantEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-s.poke:
			case <-ctx.Done():
				return nil
			}
			s.grant()
		}
	})
}

// Unregister implements pebble.CompactionScheduler.
func (s *schedule) Unregister() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.ticking.Stop()
	_ = s.ticking.Wait() // gives no errors
	s.granting.Lock()    // what another goroutine grants ends first
	defer s.granting.Unlock()
}

// TrySchedule implements pebble.CompactionScheduler.
func (s *schedule) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mayRun() {
		return false, nil
	}
	s.running++
	return true, s
}

// mayRun reports whether one more compaction may run now. s.mu is held.
func (s *schedule) mayRun() bool {
	return s.opened && !s.over && !s.held && time.Now().After(s.until) &&
		s.running < s.db.GetAllowedWithoutPermission()+s.stays()
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler.
func (s *schedule) UpdateGetAllowedWithoutPermission() {
	select {
	case s.poke <- struct{}{}:
	default: // it will be looked
	}
}

// grant starts what waits and may run.
func (s *schedule) grant() {
	s.granting.Lock()
	defer s.granting.Unlock()
	for {
		s.mu.Lock()
		may := s.mayRun()
		s.mu.Unlock()
		if !may {
			return
		}
		if waits, _ := s.db.GetWaitingCompaction(); !waits || !s.db.Schedule(s) {
			return
		}
		s.mu.Lock()
		s.running++
		s.mu.Unlock()
	}
}

// Started implements pebble.CompactionGrantHandle.
func (s *schedule) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (s *schedule) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (s *schedule) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle.
func (s *schedule) Done() {
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	s.grant()
}
