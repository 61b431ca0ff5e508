package sim

import (
	"math"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/mem"
)

// Disk is a broker's disk: what a crash leaves of it is there at the next start.
type Disk struct {
	w      *World
	store  *mem.Store
	slow   time.Duration // is added to each operation
	spoilt int           // percentage of reads that fail
	// frees says that nobody sends in what consumes: that is durable although others wait for room.
	frees bool
}

func newDisk(w *World) *Disk { return &Disk{w: w, store: mem.NewUnsynced()} }

// crash loses what was not synced, but for a prefix by luck.
func (d *Disk) crash() {
	keep := d.w.rnd.IntN(d.store.Unsynced() + 1)
	d.store = d.store.CrashClone(keep)
}

// storage is a life's way to its disk: one operation after the other, answered on the loop. It does
// what store.Committer does, without goroutines.
type storage struct {
	env     *env
	disk    *Disk
	work    []func()
	busy    bool
	handed  int // batches
	durable int
	watch   []watch
	refused bool // for lack of room, and nothing that puts was taken since
}

// watch runs f when so many batches are durable.
type watch struct {
	durable int // or never
	f       func()
}

// never is a number of batches for what a refused batch holds up: nobody knows which one has it.
const never = math.MaxInt

func (s *storage) delay() time.Duration {
	w := s.env.w
	return w.opt.DiskDelay + w.within(w.opt.DiskJitter) + s.disk.slow
}

func (s *storage) do(f func()) {
	s.work = append(s.work, f)
	s.next()
}

func (s *storage) next() {
	if s.busy || len(s.work) == 0 {
		return
	}
	s.busy = true
	f := s.work[0]
	s.work = s.work[1:]
	f()
}

// later goes on after d unless the broker died meanwhile.
func (s *storage) later(d time.Duration, f func()) {
	s.env.w.After(d, func() {
		if !s.env.dead {
			f()
		}
	})
}

func (s *storage) finish(answer func()) {
	s.busy = false
	s.env.post(answer)
	s.next()
}

// Commit implements broker.Storage. Writing takes half of the time and syncing the rest, so that
// a crash finds batches that are written and not safe.
func (s *storage) Commit(b *store.Batch, done func(error)) {
	s.handed++
	s.do(func() {
		half := s.delay() / 2
		s.later(half, func() { s.write(b, half, done) })
	})
}

func (s *storage) write(b *store.Batch, sync time.Duration, done func(error)) {
	err := s.disk.store.Apply([]*store.Batch{b})
	switch {
	case err != nil && message.KindOf(err) == message.Limit:
		s.refused = true
		s.durable++
		for i := range s.watch {
			s.watch[i].durable = s.afterRefusal()
		}
		s.finish(func() { done(err) })
		return
	case err != nil:
		s.env.w.note("%s: the store refused a batch: %v", s.env.node.cfg.Name, err)
		s.finish(func() { done(err) })
		return
	}
	if err := s.disk.store.Check(); err != nil {
		s.env.w.note("%s: %v", s.env.node.cfg.Name, err)
	}
	s.later(sync, func() {
		s.disk.store.Sync(1)
		s.durable++
		if s.refused && b.Puts() {
			s.refused = false
			for i := range s.watch {
				s.watch[i].durable = s.handed + 1
			}
		}
		s.finish(func() {
			s.tell()
			done(nil)
		})
	})
}

// afterRefusal is the batch that has what a refused one was to have.
func (s *storage) afterRefusal() int {
	if s.disk.frees {
		return s.handed + 1
	}
	return never
}

// whenDurable runs f when everything is durable that the core has decided until now.
func (s *storage) whenDurable(f func()) {
	n := s.handed + 1
	if s.refused {
		n = s.afterRefusal()
	}
	s.watch = append(s.watch, watch{n, f})
}

func (s *storage) tell() {
	for len(s.watch) > 0 && s.watch[0].durable <= s.durable {
		f := s.watch[0].f
		s.watch = s.watch[1:]
		f()
	}
}

// idle tells, at the end of a turn in which nothing was handed over, that nothing more will be.
func (s *storage) idle() {
	if s.handed == s.durable && !s.refused {
		for _, x := range s.watch {
			x.f()
		}
		s.watch = nil
	}
}

func read[T any](s *storage, do func() (T, error), done func(T, error)) {
	s.do(func() {
		s.later(s.delay(), func() {
			v, err := do()
			if d := s.disk; d.spoilt > 0 && d.w.rnd.IntN(100) < d.spoilt {
				var none T
				v, err = none, message.Errorf(message.Unavailable, "the disk cannot be read")
			}
			s.finish(func() { done(v, err) })
		})
	})
}

// Page implements broker.Storage.
func (s *storage) Page(r store.PageRequest, done func([]store.Stored, error)) {
	read(s, func() ([]store.Stored, error) { return s.disk.store.Page(r) }, done)
}

// Receipts implements broker.Storage.
func (s *storage) Receipts(dest store.DestID, done func(store.Receipts, error)) {
	read(s, func() (store.Receipts, error) { return s.disk.store.Receipts(dest) }, done)
}

// Expired implements broker.Storage.
func (s *storage) Expired(after *store.ExpiredRef, before int64, limit int,
	done func([]store.ExpiredRef, error)) {
	read(s, func() ([]store.ExpiredRef, error) {
		return s.disk.store.Expired(after, before, limit)
	}, done)
}

// Space implements broker.Storage.
func (s *storage) Space() store.Space { return s.disk.store.Space() }
