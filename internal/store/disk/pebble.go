package disk

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"

	"hopwire/internal/store/disk/patient"
)

// stopWritesAt is at how many tables that lie over each other in level 0 writes wait for
// compactions. Those that such a one has that stays at damage are among them.
const stopWritesAt = 200

// How many memtables may wait for the disk before changes do. A volatile store has no ballast, and
// on a full disk its changes are removals, as what puts is refused: a million take about 100 MiB.
const (
	memTables         = 4
	volatileMemTables = 256
)

// pebbleOptions are the rules of the package comment as pebble knows them.
func (s *Store) pebbleOptions(fs patient.FS) *pebble.Options {
	o := &pebble.Options{
		DisableWAL:                  s.opts.Volatile,
		FS:                          fs,
		FormatMajorVersion:          pebble.FormatTableFormatV6,
		CacheSize:                   s.opts.CacheBytes,
		MaxOpenFiles:                s.opts.MaxOpenFiles,
		MemTableSize:                uint64(s.opts.MemTableBytes),
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       stopWritesAt,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		FlushDelayDeleteRange:       10 * time.Second, // so that deleted messages free the disk
		Logger:                      logger{s},
		EventListener:               s.listener(),
	}
	if s.opts.Volatile {
		o.MemTableStopWritesThreshold = volatileMemTables
	}
	o.Experimental.CompactionScheduler = s.schedule
	o.Local.ReadaheadConfig = objstorageprovider.NewReadaheadConfig()
	o.Local.ReadaheadConfig.Set(objstorageprovider.FadviseSequential,
		objstorageprovider.SysReadahead)
	for i := range o.Levels {
		o.Levels[i].BlockSize = 16 << 10
		// A block that has some hundred bytes ends before what would make it larger than that, so
		// that damage to a large record takes no others.
		o.Levels[i].BlockSizeThreshold = 1
	}
	return o
}

func (s *Store) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			switch {
			case errors.Is(err, pebble.ErrClosed) || errors.Is(err, patient.ErrNoSpare):
			case pebble.IsCorruptionError(err):
				s.schedule.MetDamage()
				s.damaged(err)
			default:
				s.seldom("background work failed and will be tried again", saying(err.Error()))
			}
		},
		// Without this pebble takes a damaged table that a read meets for the end of the process.
		// The read gets the error.
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			s.fs.Suspects.Add(i.Path)
			s.seldom("data is damaged", i)
		},
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
			if s.opts.Volatile {
				return // its tables in memory are small, and who writes to it waits for it
			}
			s.warn("writes wait for the disk to catch up: " + i.Reason)
		},
	}
}

// damaged tells of a table that cannot be compacted.
func (s *Store) damaged(err error) {
	s.seldom("a table is damaged: what is in the damaged part cannot be read, and it takes room until"+
		" the store is repaired; stop the broker when it suits, and run hopwire repair FILE",
		saying(err.Error()))
}

// saying is a text.
type saying string

func (t saying) String() string { return string(t) }

// logger takes what pebble says.
type logger struct{ s *Store }

// Infof implements pebble.Logger.
func (logger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l logger) Errorf(format string, args ...any) {
	l.s.seldom("pebble", saying(fmt.Sprintf(format, args...)))
}

// Fatalf implements pebble.Logger: pebble cannot go on. If this returned, pebble would, and
// confirm writes that it lost; so the calling goroutine ends here and the store with it.
func (l logger) Fatalf(format string, args ...any) {
	l.s.fail(fmt.Errorf(format, args...))
	select {}
}
