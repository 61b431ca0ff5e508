package disk_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// small is a store in memory with one damaged block, and how many of its messages can be read.
func small(t *testing.T) (mem *vfs.MemFS, readable int) {
	t.Helper()
	f := newFolder(t)
	f.apply(append(puts(1, 1, 301, 1, nil), header(1, message.Queue, 301, 300)))
	f.damage(500)
	got, _ := f.all(1, 301)
	f.close()
	mem = vfs.NewCrashableMem()
	if ok, err := vfs.Clone(vfs.Default, mem, f.dir, dir, vfs.CloneSync); err != nil || !ok {
		t.Fatal(ok, err)
	}
	for _, above := range []string{"", "data"} {
		d, err := mem.OpenDir(above)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return roomy(mem), len(got)
}

func roomy(mem *vfs.MemFS) *vfs.MemFS {
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 30, TotalBytes: 1 << 30})
	return mem
}

// looked opens a store and gives how many messages can be read, by its header too, and what lies in
// its folder.
func looked(t *testing.T, fs vfs.FS) (read int, count int64, names string) {
	t.Helper()
	s, err := disk.Open(context.Background(), disk.Options{Dir: dir, NoWait: true, FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	headers, err := s.Headers()
	if err != nil || len(headers) != 1 {
		t.Fatal(headers, err)
	}
	got, _ := (&folder{t: t, s: s}).all(1, 301)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(got), headers[0].Count, strings.Join(list, " ")
}

// A machine that loses its power at any moment of a repair has the store as it was, or repaired,
// and nothing of what was not ended.
func TestARepairThatIsKilledLeavesAWholeStore(t *testing.T) {
	mem, readable := small(t)
	var clones []*vfs.MemFS
	ops := 0
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 1))
	o := disk.RepairOptions{Dir: dir, FS: errorfs.Wrap(mem, errorfs.InjectorFunc(
		func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			ops++
			if op.Kind != errorfs.OpRename && op.Kind != errorfs.OpOpenDir && ops%10 > 0 {
				return nil
			}
			for _, percent := range []int{0, 100} {
				clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{
					UnsyncedDataPercent: percent, RNG: random}))
			}
			return nil
		}))}
	if r, err := disk.Repair(t.Context(), o); err != nil || r.Kept == "" {
		t.Fatal(r, err)
	}
	clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{}))
	was, is := 0, 0
	for i, mem := range clones {
		read, count, names := looked(t, roomy(mem))
		if read != readable || strings.Contains(names, "db.new") || strings.Contains(names, "ready") {
			t.Fatalf("of %d, at %d: %d of %d are read; there is %s", len(clones), i, read, readable, names)
		}
		switch {
		case count == int64(readable) && strings.Contains(names, "db.damaged-"):
			is++
		case count == 300:
			was++
		default:
			t.Fatalf("of %d, at %d: the header has %d; there is %s", len(clones), i, count, names)
		}
	}
	if is < 3 || was < 3 || ops < 20 {
		t.Errorf("in %d moments it was repaired %d times, and %d times not", ops, is, was)
	}
}

// A repair that fails at a step of the swap says so, and leaves a whole store that can be repaired.
func TestARepairThatFailsLeavesAWholeStore(t *testing.T) {
	base, readable := small(t)
	clone := func(mem *vfs.MemFS) *vfs.MemFS {
		return roomy(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100,
			RNG: rand.New(rand.NewPCG(1, 1))}))
	}
	for _, kind := range []errorfs.OpKind{errorfs.OpRename, errorfs.OpOpenDir} {
		for step := range 20 {
			mem := clone(base)
			n := 0
			o := disk.RepairOptions{Dir: dir, FS: errorfs.Wrap(mem, errorfs.InjectorFunc(
				func(op errorfs.Op) error {
					if op.Kind != kind || strings.Contains(op.Path, "db.new/") {
						return nil
					}
					if n++; n-1 == step {
						return errors.New("injected")
					}
					return nil
				}))}
			_, err := disk.Repair(t.Context(), o)
			if n <= step {
				if err != nil || step < 3 {
					t.Fatal(kind, step, n, err)
				}
				break
			}
			if err == nil || message.KindOf(err) != message.Unavailable {
				t.Fatalf("%v %d of %d: %v", kind, step, n, err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Error("more than a line:", err)
			}
			mem = clone(mem) // the process ended: nobody has the lock
			if read, count, names := looked(t, mem); read != readable ||
				count != 300 && count != int64(readable) {
				t.Fatalf("%v %d: %d read, %d counted; there is %s", kind, step, read, count, names)
			}
			o.FS = mem
			if _, err := disk.Repair(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if read, count, _ := looked(t, mem); read != readable || count != int64(readable) {
				t.Fatalf("%v %d: after a second try %d read, %d counted", kind, step, read, count)
			}
		}
	}
}

// What the disk has no room for is refused, and nothing is done; so is a store that is in use.
func TestARepairRefusesWhatItCannotDo(t *testing.T) {
	mem, _ := small(t)
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 20, TotalBytes: 1 << 30})
	o := disk.RepairOptions{Dir: dir, FS: mem}
	before, _ := mem.List(dir)
	_, err := disk.Repair(t.Context(), o)
	if message.KindOf(err) != message.Limit || !strings.Contains(err.Error(), "MiB are free") {
		t.Error("without room:", err)
	}
	if after, _ := mem.List(dir); len(after) != len(before) {
		t.Error("without room there is", after, "where there was", before)
	}
	f := newFolder(t)
	f.apply([]store.Op{header(1, message.Queue, 10, 0)})
	_, err = disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir})
	if message.KindOf(err) != message.Unavailable || !strings.Contains(err.Error(), "stop it first") {
		t.Error("in use:", err)
	}
	f.close()
	if r, err := disk.Repair(t.Context(), disk.RepairOptions{Dir: f.dir}); err != nil || r.Kept != "" {
		t.Error("undamaged:", r, err)
	}
	_, err = disk.Repair(t.Context(), disk.RepairOptions{Dir: t.TempDir()})
	if message.KindOf(err) != message.NotFound {
		t.Error("none:", err)
	}
}
