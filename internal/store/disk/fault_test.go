package disk_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk"
)

// faultyDisk fails what the fault says.
type faultyDisk struct {
	mem   *vfs.MemFS
	fault atomic.Pointer[func(errorfs.Op) error]
	opts  disk.Options
	full  chan string
	room  chan bool
	fatal chan error
}

func newFaultyDisk() *faultyDisk {
	d := &faultyDisk{mem: vfs.NewCrashableMem(), full: make(chan string, 100),
		room: make(chan bool, 100), fatal: make(chan error, 100)}
	d.opts = disk.Options{Dir: dir, NoWait: true, MemTableBytes: 1 << 20, ReserveBytes: 1 << 20,
		Poll:    time.Millisecond,
		OnFull:  func(line string) { d.full <- line },
		OnRoom:  func() { d.room <- true },
		OnFatal: func(err error) { d.fatal <- err },
		FS: errorfs.Wrap(d.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if f := d.fault.Load(); f != nil {
				return (*f)(op)
			}
			return nil
		}))}
	d.free(1 << 30)
	return d
}

func (d *faultyDisk) free(n uint64) {
	d.mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 30})
}

func (d *faultyDisk) set(f func(errorfs.Op) error) { d.fault.Store(&f) }

func (d *faultyDisk) open(t *testing.T) *disk.Store {
	t.Helper()
	s, err := disk.Open(context.Background(), d.opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually waits for what another goroutine does within a millisecond or two.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("did not happen:", what)
		}
	}
}

func writes(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

// TestPutsLeaveRoomForTheLogs fills a disk between two looks at it: what is in the logs must fit a
// second time, or neither a flush nor a start finds room.
func TestPutsLeaveRoomForTheLogs(t *testing.T) {
	d := newFaultyDisk()
	d.opts.Poll, d.opts.MemTableBytes = time.Hour, 64<<20
	const room = 10 << 20
	d.free(room)
	s := d.open(t)
	l := newLoader(s)
	var logs int64
	for {
		err := l.put(100)
		if message.KindOf(err) == message.Limit {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		logs += 100 << 10
		if logs > room {
			t.Fatal("puts are never refused")
		}
		d.free(uint64(room - logs))
	}
	if free := room - logs; free < logs || free > 2*logs {
		t.Errorf("puts are refused with %d bytes free and %d in the logs", free, logs)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNoSpaceMakesWritesWaitAndGivesTheBallastBack(t *testing.T) {
	d := newFaultyDisk()
	s := d.open(t)
	l := newLoader(s)
	ballast := func() bool { _, err := d.mem.Stat(dir + "/ballast"); return err == nil }
	eventually(t, "a ballast file is made", ballast)
	if err := l.put(10); err != nil {
		t.Fatal(err)
	}
	var noSpace atomic.Bool
	noSpace.Store(true)
	var room atomic.Int64 // so many writes have space
	d.set(func(op errorfs.Op) error {
		if noSpace.Load() && writes(op) && op.Kind != errorfs.OpRemove &&
			op.Kind != errorfs.OpFileSync && op.Kind != errorfs.OpFileSyncData && room.Add(-1) < 0 {
			return syscall.ENOSPC
		}
		return nil
	})
	done := make(chan error)
	go func() {
		var err error
		for range 30 { // 3 MiB: the log, then flushes, compactions and the manifest
			err = errors.Join(err, l.put(100))
		}
		done <- err
	}()
	if line := <-d.full; !strings.Contains(line, dir) || !strings.Contains(line, "free some space") {
		t.Errorf("the line for people is %q", line)
	}
	eventually(t, "the ballast is given back", func() bool { return !ballast() })
	for range 20 { // fewer than the writes of the log
		room.Store(1)
		select {
		case err := <-done:
			t.Fatalf("Apply went on without space: %v", err)
		case err := <-d.fatal:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	noSpace.Store(false)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-d.room
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = d.open(t)
	h, err := s.Headers()
	if err != nil || h[0].Count != 3010 {
		t.Errorf("after the wait there are %v, %v; want 3010 messages", h, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFailedWriteOrSyncEndsTheStore(t *testing.T) {
	for _, c := range []struct {
		name string
		kind errorfs.OpKind
		err  error
	}{
		{"sync of the log", errorfs.OpFileSync, syscall.EIO},
		{"data sync of the log", errorfs.OpFileSyncData, syscall.EIO},
		{"sync without space", errorfs.OpFileSyncData, syscall.ENOSPC},
		{"write", errorfs.OpFileWrite, syscall.EIO},
		{"write to a disk that became read-only", errorfs.OpFileWrite, syscall.EROFS},
	} {
		d := newFaultyDisk()
		s := d.open(t)
		l := newLoader(s)
		if err := l.put(10); err != nil {
			t.Fatal(err)
		}
		d.set(func(op errorfs.Op) error {
			if op.Kind == c.kind {
				return c.err
			}
			return nil
		})
		var err error
		for n := 0; err == nil && n < 100; n++ { // what is synced by no log is met by a flush
			err = l.put(100)
		}
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: Apply gives %v, want %v and the folder", c.name, err, c.err)
			continue
		}
		if err := <-d.fatal; !errors.Is(err, c.err) {
			t.Errorf("%s: fatal is %v, want %v", c.name, err, c.err)
		}
		d.set(func(errorfs.Op) error { return nil })
		if err := l.put(1); err == nil {
			t.Errorf("%s: an Apply was confirmed after the failure", c.name)
		}
		if err := s.Close(); err == nil {
			t.Errorf("%s: Close hides the failure", c.name)
		}
		if len(d.fatal) > 0 {
			t.Errorf("%s: the failure was told twice", c.name)
		}
		d.opts.FS = d.mem.CrashClone(vfs.CrashCloneCfg{})
		s = d.open(t)
		if h, err := s.Headers(); err != nil || h[0].Count < 10 {
			t.Errorf("%s: after it there are %v, %v", c.name, h, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCloseDoesNotWaitForSpace(t *testing.T) {
	d := newFaultyDisk()
	s := d.open(t)
	d.set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	done := make(chan error)
	go func() { done <- newLoader(s).put(1) }()
	<-d.full
	if err := s.Close(); err == nil {
		t.Error("Close says that all is well")
	}
	if err := <-done; err == nil {
		t.Error("Apply was confirmed")
	}
}

// What only waits for space at the end is in the logs: nothing is lost, and nothing failed.
func TestACloseOnAFullDiskLeavesItsTablesToTheNextStart(t *testing.T) {
	d := newFaultyDisk()
	s := d.open(t)
	if err := newLoader(s).put(10); err != nil {
		t.Fatal(err)
	}
	none := func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	}
	d.set(none)
	go func() { _ = disk.Flush(s) }()
	<-d.full
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	d.opts.FS = d.mem.CrashClone(vfs.CrashCloneCfg{}) // its lock stays
	mem := roomy(d.opts.FS.(*vfs.MemFS))
	d.opts.FS = mem
	s = d.open(t)
	if h, err := s.Headers(); err != nil || h[0].Count != 10 {
		t.Errorf("%v, %v", h, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if len(d.fatal) > 0 {
		t.Error(<-d.fatal)
	}
}

// An open that waits for space ends with its context.
func TestAnOpenThatWaitsForSpaceCanBeEnded(t *testing.T) {
	d := newFaultyDisk()
	d.set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "/db/") {
			return syscall.ENOSPC
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := disk.Open(ctx, d.opts)
		done <- err
	}()
	<-d.full
	cancel()
	if err := <-done; message.KindOf(err) != message.Unavailable ||
		!strings.Contains(err.Error(), "waited for space") {
		t.Error(err)
	}
	if len(d.fatal) > 0 {
		t.Error(<-d.fatal)
	}
}

func TestBelowTheReserveItIsFullBelowHalfOfItPutsAreRefused(t *testing.T) {
	d := newFaultyDisk()
	s := d.open(t)
	l := newLoader(s)
	space := func(want bool) {
		t.Helper()
		eventually(t, "Space sees it", func() bool { return s.Space().Full == want })
	}
	if err := l.put(10); err != nil {
		t.Fatal(err)
	}
	space(false)
	d.free(1<<20 - 1)
	space(true)
	if err := l.put(1); err != nil {
		t.Errorf("a put that was under way: %v", err)
	}
	d.free(1<<19 - 1)
	if err := l.put(1); message.KindOf(err) != message.Limit {
		t.Errorf("a put below half the reserve: %v, want a Limit error", err)
	}
	p, err := l.page(5)
	if err == nil {
		err = l.remove(p)
	}
	if err != nil {
		t.Errorf("a removal below half the reserve: %v", err)
	}
	d.free(1 << 30)
	space(false)
	if sp := s.Space(); sp.FreeBytes != 1<<30 || sp.ReserveBytes < 1<<20 || sp.UsedBytes == 0 {
		t.Errorf("Space() = %+v", sp)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDefaultReserveIsAnEighthButAtMost64MiB(t *testing.T) {
	for total, want := range map[uint64]int64{64 << 20: 8 << 20, 1 << 40: 64 << 20} {
		d := newFaultyDisk()
		d.opts.ReserveBytes = 0
		d.mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: total, TotalBytes: total})
		s := d.open(t)
		if got := s.Space().ReserveBytes; got < want || got > want+1<<20 {
			t.Errorf("of %d bytes %d are reserved, want %d", total, got, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADamagedRecordIsNamedAndTheOthersAreRead(t *testing.T) {
	const apart = 1 << 0 // the flag of a message whose body has a record of its own
	for _, c := range []struct {
		name string
		kind byte
		rec  []byte
		want string
	}{
		{"message", 'm', []byte{1, 2, 3}, "its bytes make no sense"},
		{"empty", 'm', []byte{}, "its bytes make no sense"},
		{"other version", 'm', []byte{9, 2, 3}, "its version is 9, this program knows 1"},
		{"reference", 'm', []byte{2}, "its bytes make no sense"},
		{"without its body", 'm', append([]byte{1, apart, 6}, make([]byte, 6+2)...),
			"its body is missing"},
		{"redelivery count", 'd', []byte{1, 2, 3}, "its bytes make no sense"},
	} {
		d := newFaultyDisk()
		s := d.open(t)
		l := newLoader(s)
		if err := l.put(5); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = d.open(t) // it knows of no facts
		l.s = s
		if err := disk.SetRaw(s, c.kind, 1, 3, c.rec); err != nil {
			t.Fatal(err)
		}
		want := "store data/store: the record of message 3 of destination 1 is damaged: " + c.want
		p, err := l.page(5)
		if err != nil || len(p) != 5 {
			t.Fatalf("%s: a page of %d messages, %v", c.name, len(p), err)
		}
		for _, st := range p {
			bad := st.Seq == 3
			if bad != (st.Message == nil) || bad != (st.Damage != nil) ||
				bad && (message.KindOf(st.Damage) != message.Corrupt || st.Damage.Error() != want) {
				t.Errorf("%s: message %d is %v, damage %v; want of 3 %s", c.name, st.Seq, st.Message,
					st.Damage, want)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What the system cannot read is no damage: nobody knows what is there, and the next read may tell.
func TestAReadThatFailsIsNoDamage(t *testing.T) {
	d := newFaultyDisk()
	s := d.open(t)
	l := newLoader(s)
	if err := l.put(100); err != nil {
		t.Fatal(err)
	}
	if err := disk.Flush(s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = d.open(t)
	l.s = s
	d.set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, ".sst") {
			return syscall.EIO
		}
		return nil
	})
	if p, err := l.page(100); message.KindOf(err) != message.Unavailable {
		t.Errorf("a page of %d messages, %v; want an Unavailable error", len(p), err)
	}
	d.set(func(errorfs.Op) error { return nil })
	if p, err := l.page(100); err != nil || len(p) == 0 || p[0].Damage != nil {
		t.Errorf("a page of %d messages when the disk can be read, %v", len(p), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

var _ store.Store = (*disk.Store)(nil)
