package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store/disk/patient"
)

// Options says where a store lives and how it behaves. The functions may be nil; they are called
// from any goroutine and must return soon.
type Options struct {
	Dir string // the folder; it is made when missing

	// NoWait makes Open fail with an Unavailable error when the folder is in use. Otherwise Open
	// waits until it is free or its context ends, and calls OnWait once with a line that names
	// the holder.
	NoWait bool
	OnWait func(line string)

	// ReserveBytes is the free space of the file system below which the store is Full. Default
	// 64 MiB or an eighth of the file system, whichever is smaller; negative is none. Removals and
	// what was on its way live on it: it must hold several memtables.
	ReserveBytes int64

	// Volatile makes a store that lasts as long as it is open: nothing is logged or synced, and what
	// Apply wrote is there for reads alone. Open wants a folder without a store then; RemoveAll ends
	// what is left of one.
	Volatile bool

	// LimitBytes is how much the store is to take at most, 0 when nothing is said. Who puts more is
	// not refused; near it, what deleted messages took is freed at once.
	LimitBytes int64

	// OnFull is called when not one more byte can be written, so that all writes wait, OnRoom
	// when they go on. Being below the reserve is not told here but by Space.
	OnFull func(line string)
	OnRoom func()

	// OnFatal is called once, with an error after which nothing can be made durable any more: a
	// failed write or sync. The process is to end; Apply and Close only give the error.
	OnFatal func(error)

	// OnWarning is called with one line about trouble that does not end the store.
	OnWarning func(line string)

	// MemTableBytes is 1 MiB to 64 MiB; the disk holds 5 to 7 times that. Default 16 MiB, or the
	// 64th part of a smaller file system.
	MemTableBytes int64
	CacheBytes    int64         // of decompressed blocks, default 32 MiB
	MaxOpenFiles  int           // of tables, about; default 1000
	InlineBytes   int           // larger bodies get a record of their own; default 4096
	PieceBytes    int           // still larger ones get one for each so many bytes; default 192 KiB
	Poll          time.Duration // how often space, and a lock, is looked at; default 500 ms

	// FS is where files are, nil for the operating system's. Tests put their own here; the
	// folder's lock is then the one of FS.
	FS vfs.FS
}

const (
	defaultMemTable = 16 << 20
	// defaultPiece makes blocks of tables whose memory pebble uses again: those below 256 KiB.
	defaultPiece = 192 << 10
)

// fit makes the default memtable smaller on a small file system: its logs are on it.
func (o *Options) fit(fs vfs.FS) {
	if o.MemTableBytes != defaultMemTable {
		return
	}
	if usage, err := fs.GetDiskUsage(o.Dir); err == nil {
		part := int64(min(usage.TotalBytes/64, defaultMemTable))
		o.MemTableBytes = max(1<<20, part)
	}
}

func (o Options) withDefaults() Options {
	if o.MemTableBytes == 0 {
		o.MemTableBytes = defaultMemTable
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 32 << 20
	}
	if o.InlineBytes == 0 {
		o.InlineBytes = 4096
	}
	if o.PieceBytes == 0 {
		o.PieceBytes = defaultPiece
	}
	if o.Poll == 0 {
		o.Poll = 500 * time.Millisecond
	}
	return o
}

// space gives what is about the store's room.
func (o *Options) space(fail func(error)) patient.Options {
	return patient.Options{Dir: o.Dir, ReserveBytes: o.ReserveBytes, LimitBytes: o.LimitBytes,
		Volatile: o.Volatile, Poll: o.Poll, OnFull: o.OnFull, OnRoom: o.OnRoom, Fail: fail}
}

// Validate names the first field that makes no sense.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case o.Dir == "":
		return message.Errorf(message.IllegalState, "store: Dir is empty: name a folder")
	case o.MemTableBytes < 1<<20 || o.MemTableBytes > 64<<20:
		return message.Errorf(message.IllegalState,
			"store: MemTableBytes is %d: use 1 MiB to 64 MiB", o.MemTableBytes)
	case o.CacheBytes < 0 || o.InlineBytes < 0 || o.PieceBytes < 0 || o.Poll < 0:
		return message.Errorf(message.IllegalState,
			"store: CacheBytes, InlineBytes, PieceBytes and Poll must not be negative")
	}
	return nil
}

// Capacity is the size in bytes of the disk that a folder is, or will be, on; 0 when nobody knows.
func Capacity(dir string) int64 { return int64(min(diskOf(dir).TotalBytes, 1<<62)) }

// Free is how many bytes of it are free; 0 when there are none, or nobody knows.
func Free(dir string) int64 { return int64(min(diskOf(dir).AvailBytes, 1<<62)) }

func diskOf(dir string) vfs.DiskUsage {
	for {
		usage, err := vfs.Default.GetDiskUsage(dir)
		if err == nil {
			return usage
		}
		up := filepath.Dir(dir)
		if up == dir || !errors.Is(err, fs.ErrNotExist) {
			return vfs.DiskUsage{}
		}
		dir = up
	}
}
