package patient

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// wanting is a database that always wants a compaction and may run one.
type wanting struct{ begun atomic.Int64 }

func (*wanting) GetAllowedWithoutPermission() int { return 1 }
func (*wanting) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	return true, pebble.WaitingCompaction{}
}

func (w *wanting) Schedule(pebble.CompactionGrantHandle) bool {
	w.begun.Add(1)
	return true
}

// A compaction that met damage, and is wanted again at once, is not begun at once; those that stay
// at damage are not counted.
func TestCompactionsPauseAfterDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stays atomic.Int64
		w := &wanting{}
		s := NewSchedule(func() int { return int(stays.Load()) })
		s.Register(1, w)
		s.grant()
		if w.begun.Load() != 0 {
			t.Error("one runs before the database is open")
		}
		s.Begin()
		synctest.Wait()
		if n := w.begun.Load(); n != 1 {
			t.Errorf("%d run", n)
		}
		for range 100 {
			s.MetDamage()
			s.Done()
			if ok, _ := s.TrySchedule(); ok {
				t.Fatal("one begins at once")
			}
			for n := w.begun.Load(); w.begun.Load() == n; {
				time.Sleep(grantEvery)
			}
		}
		if now := time.Now(); now.Sub(s.failed) > 2*pauseMost {
			t.Error("the last pause is longer than", pauseMost)
		}
		w.begun.Store(0)
		stays.Store(2)
		s.grant()
		if n := w.begun.Load(); n != 2 {
			t.Errorf("beside 2 that stay %d more run", n)
		}
		s.Unregister()
	})
}
