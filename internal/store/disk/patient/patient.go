package patient

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/store/disk/files"
)

// patience is what an FS asks when an operation failed.
type patience interface {
	// begin is called when an operation first meets a full disk, end when it is over.
	begin()
	end()
	// pause waits; false means that the operation is to fail.
	pause() bool
	// spare reports whether there is room for what can as well be written later.
	spare() bool
	// broken is called with an error after which the disk cannot be trusted. It never returns.
	broken(error)
}

// FS is a file system under pebble that waits for space instead of failing, and that does
// not come back from any other failure to change the disk. Pebble meets such errors with Fatalf or
// a panic, and some not at all.
type FS struct {
	vfs.FS
	p        patience
	Suspects *Suspects
	Known    *files.Known // nil where nothing is noted
	volatile bool         // nothing is synced
}

// New makes one over fs. Of a volatile one nothing is synced.
func New(fs vfs.FS, p patience, s *Suspects, volatile bool) FS {
	return FS{FS: fs, p: p, Suspects: s, volatile: volatile}
}

// Unwrap implements vfs.FS.
func (fs FS) Unwrap() vfs.FS { return fs.FS }

func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// again runs op until it does not fail for lack of space.
func (fs FS) again(op func() error) error {
	err := op()
	if !noSpace(err) {
		return err
	}
	fs.p.begin()
	for noSpace(err) {
		if !fs.p.pause() {
			fs.p.broken(err)
		}
		err = op()
	}
	fs.p.end()
	return err
}

// must runs op until it does not fail for lack of space; it fails only for what is there. What is
// not there has been taken away, with its folder perhaps: pebble would try again forever.
func (fs FS) must(op func() error) error {
	err := fs.again(op)
	if err != nil && !errors.Is(err, os.ErrExist) {
		fs.p.broken(err)
	}
	return err
}

func (fs FS) file(open func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := fs.must(func() (err error) {
		f, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &patientFile{f, fs}, nil
}

// Open implements vfs.FS. Tables are opened to be read from begin to end by compactions alone:
// the options of the store have other reads not do so.
func (fs FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, opts...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return &tableFile{f, name, fs.Suspects, fs.Suspects.mark(name),
		slices.Contains(opts, vfs.SequentialReadsOption)}, nil
}

// compaction is pebble's category of files that can be given up and made again later.
const compaction vfs.DiskWriteCategory = "pebble-compaction"

// Create implements vfs.FS.
func (fs FS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if c == compaction {
		f, err := fs.file(func() (vfs.File, error) { return fs.FS.Create(name, c) })
		if err != nil {
			return nil, err
		}
		return &modestFile{f, fs}, nil
	}
	if err := fs.Known.Creates(fs, name); err != nil {
		return nil, err
	}
	f, err := fs.file(func() (vfs.File, error) { return fs.FS.Create(name, c) })
	if err != nil {
		return nil, err
	}
	return fs.Known.Opened(fs, name, f)
}

// OpenReadWrite implements vfs.FS.
func (fs FS) OpenReadWrite(name string, c vfs.DiskWriteCategory,
	opts ...vfs.OpenOption) (vfs.File, error) {
	return fs.file(func() (vfs.File, error) { return fs.FS.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (fs FS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	renamed := false // by an earlier try, which then could not open it
	fs.Known.Gone(old)
	f, err := fs.file(func() (vfs.File, error) {
		if renamed {
			return fs.FS.OpenReadWrite(name, c)
		}
		f, err := fs.FS.ReuseForWrite(old, name, c)
		if err != nil {
			_, gone := fs.Stat(old)
			renamed = os.IsNotExist(gone)
		}
		return f, err
	})
	if err != nil {
		return nil, err
	}
	return fs.Known.Opened(fs, name, f)
}

// OpenDir implements vfs.FS: a directory is opened to be synced.
func (fs FS) OpenDir(name string) (vfs.File, error) {
	return fs.file(func() (vfs.File, error) { return fs.FS.OpenDir(name) })
}

// Link implements vfs.FS.
func (fs FS) Link(old, name string) error {
	return fs.must(func() error { return fs.FS.Link(old, name) })
}

// Rename implements vfs.FS.
func (fs FS) Rename(old, name string) error {
	return fs.must(func() error { return fs.FS.Rename(old, name) })
}

// Remove implements vfs.FS. What cannot be removed does no harm.
func (fs FS) Remove(name string) error {
	fs.Suspects.forget(name)
	fs.Known.Gone(name)
	return fs.again(func() error { return fs.FS.Remove(name) })
}

// MkdirAll implements vfs.FS.
func (fs FS) MkdirAll(dir string, perm os.FileMode) error {
	return fs.must(func() error { return fs.FS.MkdirAll(dir, perm) })
}

// Lock implements vfs.FS.
func (fs FS) Lock(name string) (l io.Closer, err error) {
	err = fs.again(func() error {
		l, err = fs.FS.Lock(name)
		return err
	})
	return l, err
}

// modestFile is the output of a compaction. It takes nothing of the last reserve: a compaction that
// waited there, with half its output on the disk, would wait for space that only the writes behind
// it can make. It fails instead, after a pause that gives the others their turn, and is tried again
// by pebble.
type modestFile struct {
	vfs.File
	fs FS
}

// Write implements vfs.File.
func (f *modestFile) Write(b []byte) (int, error) {
	if f.fs.p.spare() {
		return f.File.Write(b)
	}
	f.fs.p.pause()
	return 0, ErrNoSpare
}

// ErrNoSpare ends a compaction.
var ErrNoSpare = errors.New("the disk is too full to compact now")

// patientFile is a file of an FS.
type patientFile struct {
	vfs.File
	fs FS
}

// Write implements vfs.File. What was written before space ran out is not written again.
func (f *patientFile) Write(b []byte) (n int, err error) {
	err = f.fs.must(func() error {
		k, err := f.File.Write(b[n:])
		n += k
		return err
	})
	return n, err
}

// WriteAt implements vfs.File.
func (f *patientFile) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.fs.must(func() error {
		k, err := f.File.WriteAt(b[n:], at+int64(n))
		n += k
		return err
	})
	return n, err
}

// Preallocate implements vfs.File. It is a wish: where it fails, the writes will tell.
func (f *patientFile) Preallocate(at, length int64) error {
	_ = f.File.Preallocate(at, length)
	return nil
}

// Sync implements vfs.File. A failed sync is never tried again, not even for lack of space: the
// system may have dropped what it could not write, and a second one would lie.
func (f *patientFile) Sync() error {
	if f.fs.volatile {
		return nil
	}
	return f.failed(f.File.Sync())
}

// SyncData implements vfs.File.
func (f *patientFile) SyncData() error {
	if f.fs.volatile {
		return nil
	}
	return f.failed(f.File.SyncData())
}

// SyncTo implements vfs.File.
func (f *patientFile) SyncTo(length int64) (bool, error) {
	if f.fs.volatile {
		return false, nil
	}
	full, err := f.File.SyncTo(length)
	return full, f.failed(err)
}

func (f *patientFile) failed(err error) error {
	if err != nil {
		f.fs.p.broken(err)
	}
	return err
}
