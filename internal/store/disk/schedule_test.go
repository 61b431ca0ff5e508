package disk

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// wanting is a database that always wants a compaction and may run one.
type wanting struct{ begun int }

func (*wanting) GetAllowedWithoutPermission() int { return 1 }
func (*wanting) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	return true, pebble.WaitingCompaction{}
}

func (w *wanting) Schedule(pebble.CompactionGrantHandle) bool {
	w.begun++
	return true
}

// A compaction that met damage, and is wanted again at once, is not begun at once; those that stay
// at damage are not counted.
func TestCompactionsPauseAfterDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stays, w := 0, &wanting{}
		s := newSchedule(func() int { return stays })
		s.Register(1, w)
		time.Sleep(time.Second)
		if w.begun != 0 {
			t.Error("one runs before the database is open")
		}
		s.begin()
		time.Sleep(time.Second)
		if w.begun != 1 {
			t.Errorf("%d run", w.begun)
		}
		for range 100 {
			s.metDamage()
			s.Done()
			if ok, _ := s.TrySchedule(); ok {
				t.Fatal("one begins at once")
			}
			for n := w.begun; w.begun == n; {
				time.Sleep(grantEvery)
			}
		}
		if now := time.Now(); now.Sub(s.failed) > 2*pauseMost {
			t.Error("the last pause is longer than", pauseMost)
		}
		w.begun = 0
		stays = 2
		time.Sleep(time.Minute)
		if w.begun != 2 {
			t.Errorf("beside 2 that stay %d more run", w.begun)
		}
		s.Unregister()
	})
}
