package disk_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"hopwire/internal/store"
	"hopwire/internal/store/disk"
	"hopwire/internal/store/storetest"
)

// world is a disk in memory that loses unsynced bytes in a crash.
type world struct {
	mem   *vfs.MemFS
	s     *disk.Store // the open one
	watch atomic.Pointer[func()]

	volatile bool
}

func newWorld(mem *vfs.MemFS) *world {
	w := &world{mem: mem}
	w.SetFull(false)
	return w
}

const dir = "data/store"

func (w *world) options() disk.Options {
	return disk.Options{Dir: dir, NoWait: true, ReserveBytes: 1 << 20, MemTableBytes: 1 << 20,
		InlineBytes: 1000, PieceBytes: 3000, Poll: time.Millisecond, Volatile: w.volatile,
		FS: errorfs.Wrap(w.mem, errorfs.InjectorFunc(w.point))}
}

// point is asked before each operation on the disk.
func (w *world) point(op errorfs.Op) error {
	if f := w.watch.Load(); f != nil && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
		(*f)()
	}
	return nil
}

func (w *world) Open() (s store.Store, err error) {
	w.s, err = disk.Open(context.Background(), w.options())
	return w.s, err
}

func (w *world) Watch(f func()) { w.watch.Store(&f) }

func (w *world) Crash(r *rand.Rand) storetest.World {
	percent := []int{0, 0, 30, 70, 100}[r.IntN(5)]
	return newWorld(w.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r}))
}

func (w *world) SetFull(full bool) {
	u := vfs.DiskUsage{AvailBytes: 1 << 30, TotalBytes: 1 << 30}
	if full {
		u.AvailBytes = 1<<19 - 1
	}
	w.mem.TestingSetDiskUsage(u)
	for w.s != nil && w.s.Space().Full != full {
		runtime.Gosched()
	}
}

func TestStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func() storetest.World { return newWorld(vfs.NewCrashableMem()) })
}

func TestAVolatileStoreKeepsTheContractWhileItIsOpen(t *testing.T) {
	storetest.RunVolatile(t, func() storetest.World {
		w := newWorld(vfs.NewCrashableMem())
		w.volatile = true
		return w
	})
}
