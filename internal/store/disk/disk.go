package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/rungroup"
	"hopwire/internal/store"
	"hopwire/internal/store/disk/files"
	"hopwire/internal/store/disk/patient"
)

// Store is a store in a folder. Apply is for one goroutine, the reads for any.
type Store struct {
	opts     Options
	lock     io.Closer
	fs       patient.FS // below pebble
	db       *pebble.DB
	space    *patient.Space
	schedule *patient.Schedule
	jobs     chan func()        // to the goroutine that writes; see inWriter
	run      *rungroup.Group    // the writing goroutine, and the one of Close
	watch    *rungroup.Group    // those that watch space and tidy
	still    context.CancelFunc // ends them
	tidier   tidier
	apply    applier     // belongs to Apply, as format does
	applying atomic.Bool // a batch is being written, or was when the store failed

	format int // of the folder

	warned   warnings
	failOnce sync.Once
	failed   chan struct{} // closed after failure is set
	failure  error

	closing sync.Once
	use     sync.RWMutex // held for reading while db is used, for writing by Close
	closed  bool

	putting sync.Mutex            // held during one Apply
	puts    map[store.DestID]span // where Apply put messages; nil when nobody asks

	looking sync.Mutex // held during one Expired
	mu      sync.RWMutex
	dests   map[store.DestID]*dest
	expLow  int64 // no stored message expires before it, as far as was looked
	putLow  int64 // the earliest expiration put since the last look began
	orphans map[store.ExpiredRef]bool
}

// Open opens the store in a folder, and makes it when there is none. It waits for the folder as
// Options says; ctx ends that.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	fs := o.FS
	if fs == nil {
		fs = vfs.Default
	}
	background, still := context.WithCancel(context.Background())
	s := &Store{opts: o, still: still, jobs: make(chan func()), failed: make(chan struct{}),
		dests: map[store.DestID]*dest{}, orphans: map[store.ExpiredRef]bool{}, expLow: minTime,
		putLow: maxTime, run: rungroup.New(context.Background()),
		watch: rungroup.New(background)} // Close ends what runs in them
	s.apply.s = s
	if err := files.MakeDir(fs, o.Dir); err != nil {
		return nil, message.Errorf(message.Unavailable, "store %s: cannot make the folder: %w",
			o.Dir, err)
	}
	var err error
	if s.lock, err = o.acquire(ctx); err != nil {
		return nil, err
	}
	if err = s.open(ctx, fs); err != nil {
		s.unlockUnlessFailed()
		return nil, err
	}
	return s, nil
}

// open does what is left once the folder is ours.
func (s *Store) open(ctx context.Context, fs vfs.FS) error {
	dir := fs.PathJoin(s.opts.Dir, files.DB)
	noted, err := s.found(fs, dir)
	if err != nil {
		return err
	}
	s.opts.fit(fs)
	s.space = patient.NewSpace(fs, s.opts.space(s.fail))
	s.fs = patient.New(fs, s.space, patient.NewSuspects(s.space.Halted(), s.damaged), s.opts.Volatile)
	opened := context.AfterFunc(ctx, s.space.Halt)
	s.schedule = patient.NewSchedule(s.fs.Suspects.Stays)
	s.run.Go("store write", s.writeAll)
	err = s.inWriter(func() (err error) {
		if err = files.MakeDir(s.fs, dir); err == nil && !s.opts.Volatile {
			s.fs.Known, err = files.OpenKnown(s.fs, dir, noted)
		}
		if err == nil {
			s.db, err = pebble.Open(dir, s.pebbleOptions(s.fs))
		}
		if err != nil {
			return s.openError(err)
		}
		if err = s.checkTables(ctx, fs, dir); err != nil {
			return err
		}
		s.schedule.Begin()
		return nil
	})
	if err == nil {
		err = s.loadHeaders()
	}
	if !opened() && err == nil {
		err = message.Errorf(message.Unavailable, "store %s: %w", s.opts.Dir, context.Cause(ctx))
	}
	if err != nil {
		s.space.Halt()
		s.still()
		switch {
		case s.db != nil:
			_, _ = s.shut(nil) // what keeps it from ending is told by err, or nobody waits for it
		case s.fs.Known != nil && !s.hasFailed():
			close(s.jobs)
			_ = s.fs.Known.Close()
		default:
			close(s.jobs)
		}
		return err
	}
	for _, line := range []string{files.Left(fs, s.opts.Dir), files.Foreign(fs, s.opts.Dir)} {
		if line != "" {
			s.warn(line)
		}
	}
	s.watch.Go("store space", func(context.Context) error {
		s.space.Watch(s.usedBytes, s.logBytes, s.flush, s.fs.Suspects.Some)
		return nil
	})
	s.watch.Go("store tidy", s.tidyWhenAsked)
	return nil
}

// found looks at what is in the folder.
func (s *Store) found(fs vfs.FS, db string) (noted files.Note, err error) {
	if s.opts.Volatile {
		if _, err := fs.Stat(db); err == nil {
			return noted, message.Errorf(message.Internal, "store %s: %s is there already", s.opts.Dir,
				files.DB)
		}
		s.format = formatNewest // no program opens it again
		return noted, nil
	}
	if err = files.Settle(fs, s.opts.Dir); err != nil {
		return noted, message.Errorf(message.Unavailable, "store %s: cannot end a repair: %w",
			s.opts.Dir, err)
	}
	if s.format, err = checkFormat(fs, s.opts.Dir); err != nil {
		return noted, err
	}
	return s.look(fs, db)
}

// writeAll is the goroutine in which pebble writes. When pebble gives up it never returns (see
// logger.Fatalf), so nobody may wait for it without looking at failed.
func (s *Store) writeAll(context.Context) error {
	for f := range s.jobs {
		f()
	}
	return nil
}

// inWriter runs f in the writing goroutine and gives its error, or the store's failure.
func (s *Store) inWriter(f func() error) error {
	done := make(chan error, 1)
	select {
	case s.jobs <- func() { done <- f() }:
	case <-s.failed:
		return s.failure
	}
	select {
	case err := <-done:
		if s.hasFailed() { // whatever it thinks
			return s.failure
		}
		return err
	case <-s.failed:
		return s.failure
	}
}

// fail ends the store: from now on nothing is confirmed.
func (s *Store) fail(err error) {
	s.failOnce.Do(func() {
		if errors.Is(err, patient.ErrHalted) { // nobody has to end it
			s.failure = message.Errorf(message.Unavailable, "store %s: %w", s.opts.Dir, err)
			close(s.failed)
			return
		}
		s.failure = message.Errorf(message.Unavailable,
			"store %s: %s, nothing can be stored: %w", s.opts.Dir, howFailed(err), err)
		close(s.failed)
		if s.opts.OnFatal != nil {
			s.opts.OnFatal(s.failure)
		}
	})
}

func (s *Store) warn(line string) {
	if s.opts.OnWarning != nil {
		s.opts.OnWarning(fmt.Sprintf("store %s: %s", s.opts.Dir, line))
	}
}

// seldomEvery is how often seldom warns of the same.
const seldomEvery = 30 * time.Second

// seldom warns of what pebble does again and again, as long as something is damaged: of each kind
// once in a while, and how often it was since.
func (s *Store) seldom(kind string, what fmt.Stringer) {
	s.warned.Lock()
	w := s.warned.of[kind]
	if w == nil {
		w = &lastWarning{}
		if s.warned.of == nil {
			s.warned.of = map[string]*lastWarning{}
		}
		s.warned.of[kind] = w
	}
	w.since++
	tell := w.at.IsZero() || time.Since(w.at) >= seldomEvery
	since := w.since
	if tell {
		w.at, w.since = time.Now(), 0
	}
	s.warned.Unlock()
	switch {
	case tell && since > 1:
		s.warn(fmt.Sprintf("%s: %s (%d times since the last such line)", kind, oneLined(what.String()),
			since))
	case tell:
		s.warn(kind + ": " + oneLined(what.String()))
	}
}

// warnings are those of seldom, by their kind.
type warnings struct {
	sync.Mutex
	of map[string]*lastWarning
}

type lastWarning struct {
	at    time.Time
	since int
}

// begin says that db is going to be used; end must follow unless it gives an error.
func (s *Store) begin() error {
	s.use.RLock()
	if s.closed {
		s.use.RUnlock()
		return message.Errorf(message.Unavailable, "store %s: it is closed", s.opts.Dir)
	}
	return nil
}

func (s *Store) end() { s.use.RUnlock() }

// Close implements store.Store. After a failure the folder stays locked until the process ends,
// since nobody knows what pebble still does to it.
func (s *Store) Close() (err error) {
	s.closing.Do(func() { err = s.close() })
	return err
}

func (s *Store) close() error {
	s.space.Halt()
	s.still()
	idle := make(chan struct{})
	s.run.Go("store close", func(context.Context) error {
		s.use.Lock()
		s.closed = true
		s.use.Unlock()
		close(idle)
		return nil
	})
	late := s.late()
	select {
	case <-idle:
	case <-s.failed: // a read may wait forever for what pebble holds
		return s.left()
	case <-late:
		return s.errLate()
	}
	inTime, err := s.shut(late)
	switch {
	case !inTime:
		return s.errLate()
	case s.hasFailed():
		return s.left()
	}
	return errors.Join(err, s.run.Wait(), s.lock.Close())
}

// shut closes pebble, unless that is late: then it is left, as after a failure.
func (s *Store) shut(late <-chan time.Time) (inTime bool, err error) {
	ended := make(chan error, 1)
	s.run.Go("store end", func(context.Context) error {
		ended <- s.inWriter(func() error {
			return errors.Join(s.watch.Wait(), s.db.Close(), s.fs.Known.Close())
		})
		return nil
	})
	select {
	case err = <-ended:
	case <-late:
		return false, nil
	}
	if !s.hasFailed() {
		close(s.jobs)
	}
	return true, err
}

// late tells when the end of a volatile store is not waited for any more: nobody needs what it has.
func (s *Store) late() <-chan time.Time {
	if !s.opts.Volatile {
		return nil
	}
	return time.After(lateTime)
}

// lateTime is how long the end of a volatile store is waited for.
const lateTime = 3 * time.Second

func (s *Store) errLate() error {
	return message.Errorf(message.Unavailable, "store %s: the disk does not answer within %s: it is"+
		" left", s.opts.Dir, lateTime)
}

// left gives the outcome of a Close that cannot end what pebble does. Where that only waits for
// space nothing is lost: the logs have it, and the next open goes on.
func (s *Store) left() error {
	if errors.Is(s.failure, patient.ErrHalted) && !s.applying.Load() && !s.opts.Volatile {
		s.warn("the disk is full: the next start writes what the logs have into tables")
		return nil
	}
	return s.failure
}

func (s *Store) hasFailed() bool {
	select {
	case <-s.failed:
		return true
	default:
		return false
	}
}

// unlockUnlessFailed lets go of the folder, unless pebble may still be at it.
func (s *Store) unlockUnlessFailed() {
	if !s.hasFailed() {
		_ = s.lock.Close()
	}
}

// Space implements store.Store.
func (s *Store) Space() store.Space {
	free, need := s.space.Free(), s.space.Needs()
	return store.Space{UsedBytes: s.space.Used(), FreeBytes: free, ReserveBytes: need,
		Full: patient.Full(free, need)}
}

// flush begins to empty the logs. Only a closed store fails it.
func (s *Store) flush() { _, _ = s.db.AsyncFlush() }

// logBytes is the size of pebble's write-ahead logs; of a volatile store, which has none, what is
// in memory in their place.
func (s *Store) logBytes() int64 {
	if s.opts.Volatile {
		return int64(s.db.Metrics().MemTable.Size)
	}
	return int64(s.db.Metrics().WAL.PhysicalSize)
}
