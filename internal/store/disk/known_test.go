package disk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"hopwire/internal/store/disk"
)

// reusing uses files again as the system does, by a rename: MemFS does it in one step, in which
// nobody may clone it.
type reusing struct {
	vfs.FS
	reused atomic.Int64
}

// ReuseForWrite implements vfs.FS.
func (fs *reusing) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	fs.reused.Add(1)
	if err := fs.Rename(old, name); err != nil {
		return nil, err
	}
	return fs.OpenReadWrite(name, c)
}

// A process that is killed, or a machine that loses its power, at any write leaves files that are
// as it was noted: with logs that are used again, new manifests, and a start that is cut off, too.
func TestNoCrashLooksLikeDamage(t *testing.T) {
	mem, l := roomy(vfs.NewCrashableMem()), newLoader(nil)
	for range 2 { // a new store, and a start with logs
		mem = crashEverywhere(t, mem, l)
	}
}

// crashEverywhere runs a store for a while, opens it as each of its writes may leave it, twice, and
// gives it as it is while it runs.
func crashEverywhere(t *testing.T, mem *vfs.MemFS, l *loader) (killed *vfs.MemFS) {
	t.Helper()
	type crash struct {
		mem *vfs.MemFS
		op  string
	}
	var mu sync.Mutex
	var crashes []crash
	random := rand.New(rand.NewPCG(1, 1))
	at := func(op string, percents ...int) {
		mu.Lock()
		defer mu.Unlock()
		for _, percent := range percents {
			crashes = append(crashes, crash{mem.CrashClone(vfs.CrashCloneCfg{
				UnsyncedDataPercent: percent, RNG: random}), op})
		}
	}
	fs := &reusing{FS: errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && !strings.HasSuffix(op.Path, ".sst") {
			percents := []int{0, 50, 100}
			if op.Kind == errorfs.OpOpenDir { // of a few new names any may be there
				percents = append(percents, 50, 50, 50, 50, 50)
			}
			at(fmt.Sprint(op.Kind, " ", op.Path), percents...)
		}
		return nil
	}))}
	s, err := disk.Open(context.Background(), crashOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	l.s = s
	for range 5 {
		for range 3 {
			err = errors.Join(err, l.put(40))
		}
		if err = errors.Join(err, disk.Flush(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.put(10); err != nil {
		t.Fatal(err)
	}
	killed = roomy(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: random}))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if fs.reused.Load() == 0 {
		t.Error("no log was used again")
	}
	t.Log(len(crashes), "crashes")
	step := 1
	if testing.Short() {
		step = 16
	}
	for i := 0; i < len(crashes); i += step {
		if err := opensTwice(crashes[i].mem); err != nil {
			t.Fatalf("crash %d, at %s: %v", i, crashes[i].op, err)
		}
	}
	return killed
}

func crashOptions(fs vfs.FS) disk.Options {
	return disk.Options{Dir: dir, NoWait: true, ReserveBytes: 1 << 20, MemTableBytes: 1 << 20,
		Poll: time.Hour, FS: fs}
}

// opensTwice opens a store that a crash left, and once more.
func opensTwice(mem *vfs.MemFS) error {
	for range 2 {
		s, err := disk.Open(context.Background(), crashOptions(roomy(mem)))
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
