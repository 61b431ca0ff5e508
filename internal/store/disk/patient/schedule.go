package patient

import (
	"context"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"hopwire/internal/rungroup"
)

// A compaction that meets damage fails, and pebble picks the same one again at once: a table of
// level 0 it never passes over, one of another level for five minutes. So a compaction that comes
// to a damaged block stays there for a long time (Suspects.stay): the tables that it is at are
// taken then, pebble compacts what else there is, and what is written behind the damage is
// compacted by itself. What fails otherwise makes the next one wait. When much of what the tables
// take is garbage they are let go for a while (Suspects.LetGo).

const (
	// stayTime is how long a compaction stays at damage. All tables that are there when it begins are
	// kept until it ends, and those that it reads lie over each other.
	stayTime = 24 * time.Hour
	// tellEvery is how often it is told that one stays.
	tellEvery = 30 * time.Second
	// mostStays bounds how many do at a time.
	mostStays = 64
	// pauseLeast and pauseMost are how long nothing is compacted after a compaction met damage: twice
	// as long for each that did so within failsForget.
	pauseLeast  = 100 * time.Millisecond
	pauseMost   = 10 * time.Second
	failsForget = time.Minute
)

// Schedule grants compactions as pebble's own scheduler does, to as many as pebble says; those that
// stay at damage do not count, and after damage there is a pause.
type Schedule struct {
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

// NewSchedule makes one; stays tells how many compactions stay at damage.
func NewSchedule(stays func() int) *Schedule {
	return &Schedule{stays: stays, poke: make(chan struct{}, 1),
		ticking: rungroup.New(context.Background())} // Unregister ends what runs in it
}

// MetDamage begins a pause.
func (s *Schedule) MetDamage() {
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

// Begin lets compactions begin, when the database is open.
func (s *Schedule) Begin() {
	s.mu.Lock()
	s.opened = true
	s.mu.Unlock()
	s.UpdateGetAllowedWithoutPermission()
}

// Hold keeps compactions from beginning until it is called with false.
func (s *Schedule) Hold(held bool) {
	s.mu.Lock()
	s.held = held
	s.mu.Unlock()
	s.UpdateGetAllowedWithoutPermission()
}

// Runs is how many run, those among them that stay.
func (s *Schedule) Runs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// Failures is how many compactions met damage.
func (s *Schedule) Failures() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Register implements pebble.CompactionScheduler.
func (s *Schedule) Register(_ int, db pebble.DBForCompaction) {
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
func (s *Schedule) Unregister() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.ticking.Stop()
	_ = s.ticking.Wait() // gives no errors
	s.granting.Lock()    // what another goroutine grants ends first
	defer s.granting.Unlock()
}

// TrySchedule implements pebble.CompactionScheduler.
func (s *Schedule) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mayRun() {
		return false, nil
	}
	s.running++
	return true, s
}

// mayRun reports whether one more compaction may run now. s.mu is held.
func (s *Schedule) mayRun() bool {
	return s.opened && !s.over && !s.held && time.Now().After(s.until) &&
		s.running < s.db.GetAllowedWithoutPermission()+s.stays()
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler.
func (s *Schedule) UpdateGetAllowedWithoutPermission() {
	select {
	case s.poke <- struct{}{}:
	default: // it will be looked
	}
}

// grant starts what waits and may run.
func (s *Schedule) grant() {
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
func (s *Schedule) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (s *Schedule) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (s *Schedule) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle.
func (s *Schedule) Done() {
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	s.grant()
}
