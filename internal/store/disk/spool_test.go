package disk_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
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

// spooled is a batch that puts a message, with the header that the spool of a broker has.
func spooled(seq store.Seq, size int) *store.Batch {
	q := message.Destination{Kind: message.Queue, Name: "q"}
	m := &message.Message{Destination: q, Content: make([]byte, size)}
	return &store.Batch{Bytes: m.Size(), Ops: []store.Op{
		{Kind: store.PutMessage, Dest: 1, Seq: seq, Message: m},
		{Kind: store.PutHeader, Dest: 1, Header: &store.Header{ID: 1, Destination: q,
			Reserved: 1<<63 - 1, Count: int64(seq), Bytes: int64(seq) * m.Size()}}}}
}

func pageOf(t *testing.T, s store.Store, want int) {
	t.Helper()
	page, err := s.Page(store.PageRequest{Dest: 1, To: 1 << 40})
	if err != nil || len(page) != want {
		t.Errorf("%d messages are read (%v), want %d", len(page), err, want)
	}
}

// A spool has a folder from the first put on, until it is closed.
func TestASpoolIsThereWhileItIsUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tmp", "b.hopwire")
	there := func(want bool) {
		t.Helper()
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("the folder is there: %v (%v), want %v", err == nil, err, want)
		}
	}
	for range 2 {
		s := disk.NewSpool(disk.Options{Dir: dir})
		if err := s.Clear(); err != nil {
			t.Fatal(err)
		}
		pageOf(t, s, 0)
		del := &store.Batch{Ops: []store.Op{{Kind: store.DeleteMessage, Dest: 1, Seq: 7}}}
		if err := s.Apply([]*store.Batch{del}); err != nil {
			t.Fatal(err)
		}
		there(false)
		for i := range store.Seq(100) {
			if err := s.Apply([]*store.Batch{spooled(i+1, 10_000)}); err != nil {
				t.Fatal(err)
			}
		}
		there(true)
		pageOf(t, s, 100)
		if x := s.Space(); x.Full || x.UsedBytes == 0 || x.FreeBytes <= 0 {
			t.Errorf("its room is %+v", x)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		there(false)
		if err := s.Apply([]*store.Batch{spooled(1, 1)}); message.KindOf(err) != message.Unavailable {
			t.Errorf("a closed spool takes something: %v", err)
		}
	}
}

// What a killed broker left is removed; what somebody uses is not.
func TestASpoolClearsWhatIsLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "b.hopwire")
	if err := os.MkdirAll(filepath.Join(dir, "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"db/000002.sst", "spool", "lock"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("left"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, b := disk.NewSpool(disk.Options{Dir: dir}), disk.NewSpool(disk.Options{Dir: dir})
	if err := a.Clear(); err != nil {
		t.Fatal(err)
	}
	if err := a.Apply([]*store.Batch{spooled(1, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := b.Clear(); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("another's spool is cleared: %v", err)
	}
	if err := b.Apply([]*store.Batch{spooled(1, 1)}); message.KindOf(err) != message.Limit {
		t.Errorf("two use one folder: %v", err)
	}
	pageOf(t, a, 1)
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

// What is in the folder and no spool's stays, and nothing is spooled there.
func TestASpoolTouchesNothingThatIsNotItsOwn(t *testing.T) {
	for _, c := range []struct {
		files []string
		says  string
	}{
		{[]string{"db/000002.sst", "lock"}, "it has db and no file spool, so that nothing tells that a" +
			" broker spooled there: remove what is in it if nobody needs that, or name another" +
			" tmpDataDirectory"},
		{[]string{"a/file", "lock"}, "it has a and no file spool"},
		{[]string{"db/000002.sst", "spool", "lock", "mine"},
			"no spool made mine in it: move that away, or name another tmpDataDirectory"},
		{[]string{"ballast", "db/000002.sst", "format", "lock"}, "it is a store"},
		{[]string{"db/000002.sst", "format", "lock", "spool"}, "it is a store"},
	} {
		dir := filepath.Join(t.TempDir(), "b.hopwire")
		for _, name := range c.files {
			name = filepath.Join(dir, name)
			err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
				os.WriteFile(name, []byte(name), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		}
		s := disk.NewSpool(disk.Options{Dir: dir})
		err := s.Clear()
		if message.KindOf(err) != message.Unavailable || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v is cleared: %v", c.files, err)
		}
		err = s.Apply([]*store.Batch{spooled(1, 1)})
		if message.KindOf(err) != message.Limit && message.KindOf(err) != message.Unavailable {
			t.Errorf("%v is spooled to: %v", c.files, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, name := range c.files {
			name = filepath.Join(dir, name)
			if text, err := os.ReadFile(name); err != nil || string(text) != name {
				t.Errorf("of %v %s is %q, %v", c.files, name, text, err)
			}
		}
	}
}

// A spool's folder may be a mount of its own: what the file system has in it is left, and it cannot
// be removed itself.
func TestASpoolMayHaveAMountOfItsOwn(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string // in the folder before
		left  []string
	}{
		{"empty", nil, nil},
		{"new", []string{"lost+found/1"}, []string{"lost+found"}},
		{"of a killed broker", []string{"db/000002.sst", "lock", "spool"}, nil},
		{"both", []string{"db/2.sst", "lock", "lost+found/1", "spool"}, []string{"lost+found"}},
	} {
		dir := filepath.Join(t.TempDir(), "b.hopwire")
		for _, name := range append(c.files, "") {
			name = filepath.Join(dir, name)
			err := os.MkdirAll(filepath.Dir(name), 0o700)
			if name == dir {
				err = os.MkdirAll(dir, 0o700)
			} else if err == nil {
				err = os.WriteFile(name, nil, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s := disk.NewSpool(disk.Options{Dir: dir, FS: errorfs.Wrap(vfs.Default,
			errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind == errorfs.OpRemove && op.Path == dir {
					return syscall.EBUSY
				}
				return nil
			}))})
		for _, do := range []func() error{s.Clear,
			func() error { return s.Apply([]*store.Batch{spooled(1, 1)}) }, s.Close} {
			if err := do(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		var left []string
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if err != nil || !slices.Equal(left, c.left) {
			t.Errorf("%s: left are %v, %v", c.name, left, err)
		}
	}
}

// A file that somebody puts into a spool's folder outlives it.
func TestASpoolsEndLeavesWhatIsNotItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "b.hopwire")
	s := disk.NewSpool(disk.Options{Dir: dir})
	if err := s.Apply([]*store.Batch{spooled(1, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil {
		t.Error("it does not tell that the folder stays")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "mine" {
		t.Errorf("left are %v, %v", left, err)
	}
}

// It leaves much more of its disk free than a store does, also before it is made, and what it
// refuses it takes when there is room.
func TestASpoolLeavesRoom(t *testing.T) {
	fs := vfs.NewMem()
	usage := func(free uint64) {
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free, TotalBytes: 100 << 30})
	}
	var warned []string
	s := disk.NewSpool(disk.Options{Dir: "spool", FS: fs,
		OnWarning: func(line string) { warned = append(warned, line) }})
	usage(200 << 20)
	for range 3 {
		if err := s.Apply([]*store.Batch{spooled(1, 1)}); message.KindOf(err) != message.Limit {
			t.Errorf("it is made without room: %v", err)
		}
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "bytes free") {
		t.Errorf("warned of %q", warned)
	}
	usage(1 << 30)
	if err := s.Apply([]*store.Batch{spooled(1, 1)}); err != nil {
		t.Error(err)
	}
	usage(150 << 20)
	if err := s.Apply([]*store.Batch{spooled(2, 1)}); message.KindOf(err) != message.Limit {
		t.Errorf("it takes more without room: %v", err)
	}
	pageOf(t, s, 1)
	if x := s.Space(); x.ReserveBytes < 256<<20 {
		t.Errorf("it leaves %d bytes", x.ReserveBytes)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if names, err := fs.List(""); err != nil || len(names) != 0 {
		t.Errorf("%v are left, %v", names, err)
	}
}

// A write that fails ends the spool, as it does a store; what fills is waited for.
func TestAFailingDiskEndsASpool(t *testing.T) {
	mem := vfs.NewMem()
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40})
	var broken atomic.Bool
	fatal := make(chan error, 1)
	s := disk.NewSpool(disk.Options{Dir: "spool", OnFatal: func(err error) { fatal <- err },
		FS: errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if broken.Load() && op.Kind == errorfs.OpFileWrite {
				return syscall.EIO
			}
			return nil
		}))})
	if err := s.Apply([]*store.Batch{spooled(1, 1)}); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	var err error
	for i := store.Seq(2); err == nil && i < 10_000; i++ { // its memory is written now and then
		err = s.Apply([]*store.Batch{spooled(i, 10_000)})
	}
	if message.KindOf(err) != message.Unavailable {
		t.Errorf("it fails with %v", err)
	}
	if err := <-fatal; !errors.Is(err, syscall.EIO) {
		t.Errorf("it ends with %v", err)
	}
	if err := s.Close(); err == nil {
		t.Error("it is closed as if nothing was wrong")
	}
}

// What is being made while the broker stops is not left.
func TestASpoolThatIsBeingMadeIsRemoved(t *testing.T) {
	mem := vfs.NewMem()
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40})
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := disk.NewSpool(disk.Options{Dir: "spool",
		FS: errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpCreate {
				once.Do(func() {
					close(begun)
					<-goOn
				})
			}
			return nil
		}))})
	put := make(chan error)
	go func() { put <- s.Apply([]*store.Batch{spooled(1, 1)}) }()
	<-begun
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for message.KindOf(errorOf(s)) != message.Unavailable { // Close has begun
		runtime.Gosched()
	}
	close(goOn)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if names, err := mem.List(""); err != nil || len(names) != 0 {
		t.Errorf("%v are left, %v", names, err)
	}
	if err := <-put; message.KindOf(err) != message.Unavailable {
		t.Errorf("it is put with %v", err)
	}
}

func errorOf(s *disk.Spool) error {
	_, err := s.Headers()
	return err
}

// A disk that does not answer keeps nobody from closing a spool.
func TestADiskThatHangsKeepsNoSpool(t *testing.T) {
	mem := vfs.NewMem()
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40})
	again := make(chan struct{})
	var hangs atomic.Bool
	s := disk.NewSpool(disk.Options{Dir: "spool",
		FS: errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if hangs.Load() && op.Kind == errorfs.OpCreate {
				<-again
			}
			return nil
		}))})
	if err := s.Apply([]*store.Batch{spooled(1, 1)}); err != nil {
		t.Fatal(err)
	}
	hangs.Store(true)
	waits := make(chan error)
	var at atomic.Int64
	go func() {
		for i := store.Seq(2); i < 10_000; i++ { // until its memory is to be written
			if err := s.Apply([]*store.Batch{spooled(i, 10_000)}); err != nil {
				waits <- err
				return
			}
			at.Store(int64(i))
		}
	}()
	last := int64(0)
	for now := int64(1); now != last; last, now = now, at.Load() {
		select {
		case err := <-waits:
			t.Fatal(err)
		case <-time.After(300 * time.Millisecond):
		}
	}
	begun := time.Now()
	err := s.Close()
	if took := time.Since(begun); took > 10*time.Second || message.KindOf(err) != message.Unavailable {
		t.Errorf("after %s: %v", took, err)
	}
	close(again)
	if err := <-waits; err == nil {
		t.Error("a closed spool takes more")
	}
}

// Nothing of a volatile store is synced, and nothing is logged.
func TestAVolatileStoreSyncsNothing(t *testing.T) {
	mem := vfs.NewMem()
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40})
	var opened atomic.Bool
	var written, logged, synced atomic.Int64
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if opened.Load() {
				synced.Add(1)
			}
		case errorfs.OpFileWrite:
			if written.Add(1); strings.HasSuffix(op.Path, ".log") && opened.Load() {
				logged.Add(1)
			}
		}
		return nil
	}))
	s, err := disk.Open(context.Background(), disk.Options{Dir: "v", FS: fs, Volatile: true,
		MemTableBytes: 1 << 20, NoWait: true})
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(true)
	for i := range store.Seq(500) {
		if err := s.Apply([]*store.Batch{spooled(i+1, 10_000)}); err != nil {
			t.Fatal(err)
		}
	}
	pageOf(t, s, 500)
	if written.Load() == 0 || logged.Load() != 0 || synced.Load() != 0 {
		t.Errorf("%d writes, %d of logs, %d syncs", written.Load(), logged.Load(), synced.Load())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := disk.Open(context.Background(), disk.Options{Dir: "v", FS: fs, Volatile: true,
		NoWait: true}); err == nil {
		t.Error("what is left of a volatile store is opened", s.Close())
	}
}

// A full disk, whoever filled it, keeps nobody from reading and removing what is spooled.
func TestASpoolIsEmptiedOnAFullDisk(t *testing.T) {
	notShort(t)
	const count, each = 500_000, 10
	mem := vfs.NewMem()
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40})
	var full atomic.Bool
	s := disk.NewSpool(disk.Options{Dir: "spool",
		FS: errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if full.Load() && writes(op) {
				return syscall.ENOSPC
			}
			return nil
		}))})
	q := message.Destination{Kind: message.Queue, Name: "q"}
	apply := func(kind store.OpKind, from, left store.Seq) {
		t.Helper()
		b := &store.Batch{}
		for seq := from; seq < from+each; seq++ {
			op := store.Op{Kind: kind, Dest: 1, Seq: seq}
			if kind == store.PutMessage {
				op.Message = &message.Message{Destination: q}
			}
			b.Ops = append(b.Ops, op)
		}
		b.Ops = append(b.Ops, store.Op{Kind: store.PutHeader, Dest: 1, Header: &store.Header{ID: 1,
			Destination: q, Reserved: 1<<63 - 1, Count: int64(left)}})
		done := make(chan error, 1)
		go func() { done <- s.Apply([]*store.Batch{b}) }()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			full.Store(false)
			t.Fatalf("it takes no changes from %d on", from)
		}
	}
	for seq := store.Seq(1); seq < count; seq += each {
		apply(store.PutMessage, seq, seq)
	}
	full.Store(true)
	for seq := store.Seq(1); seq < count; seq += each {
		page, err := s.Page(store.PageRequest{Dest: 1, From: seq, To: 1 << 40, Count: 1})
		if err != nil || len(page) != 1 || page[0].Seq != seq {
			t.Fatalf("%d is not read: %v, %v", seq, page, err)
		}
		apply(store.DeleteMessage, seq, count-seq)
	}
	pageOf(t, s, 0)
	full.Store(false)
	_ = s.Close() // what waited may not know yet that there is room
}
