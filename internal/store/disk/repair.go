package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/rungroup"
	"hopwire/internal/store"
	"hopwire/internal/store/disk/files"
	"hopwire/internal/store/disk/patient"
)

// Repaired tells what became of a store.
type Repaired struct {
	// Kept is where the tables from before the repair are, with KeptBytes; "" when nothing was
	// damaged, and nothing done.
	Kept         string
	Format       string // what became of the file that tells the format; "" when it is as it was
	KeptBytes    int64
	Destinations []RepairedDestination // those that have, or had, messages; by name
	Others       []string              // what else could not be read
	Dropped      int64                 // messages that were read, and are not there: Others tells why
	Cut          bool                  // writes may be lost, and nothing tells of which
}

// RepairedDestination tells what became of a destination's messages.
type RepairedDestination struct {
	Header store.Header // as it is now
	Copied int64
	Lost   int64 // that could not be read; of a destination that is Made anew, -1: nobody knows
	More   bool  // more may be lost: some of those that were copied may have been consumed before
	Made   bool  // its header could not be read, or is an older one, and was made of its messages
}

// RepairOptions says what is repaired.
type RepairOptions struct {
	Dir   string
	Metas []string // names of small facts that the store may have
	FS    vfs.FS   // nil for the operating system's
}

// Repair copies what can be read of a store in a folder into new tables and puts these in the place
// of the old ones, which stay beside them. Nobody may have the store open. A process that ends
// before it leaves the store as it was, or repaired.
func Repair(ctx context.Context, o RepairOptions) (*Repaired, error) {
	r := &repair{o: Options{Dir: o.Dir, FS: o.FS, NoWait: true}.withDefaults(), ctx: ctx,
		metas: o.Metas, fs: o.FS, failed: make(chan error, 1)}
	if r.fs == nil {
		r.fs = vfs.Default
	}
	if has, err := files.Has(r.fs, o.Dir); err != nil || has == files.Nothing {
		_, no := r.fs.Stat(r.fs.PathJoin(o.Dir, formatName))
		if no = errors.Join(err, no); no != nil {
			return nil, message.Errorf(message.NotFound, "store %s: there is none: %w", o.Dir, no)
		}
	}
	lock, holder, err := r.o.tryLock()
	if errors.Is(err, files.ErrInUse) {
		return nil, message.Errorf(message.Unavailable, "store %s: in use by %s: stop it first", o.Dir,
			cmp.Or(holder, "another process"))
	}
	if err != nil {
		return nil, message.Errorf(message.Unavailable, "store %s: cannot lock it: %w", o.Dir, err)
	}
	// What writes to a disk that failed never comes back, and keeps the lock.
	done := make(chan error, 1)
	g := rungroup.New(context.Background())
	g.Go("store repair", func(context.Context) error {
		done <- errors.Join(r.run(), lock.Close())
		return nil
	})
	select {
	case err = <-done:
	case err = <-r.failed:
	}
	return &r.told, err
}

// repair is one run of Repair.
type repair struct {
	o      Options
	ctx    context.Context
	metas  []string
	fs     vfs.FS
	failed chan error

	seen  *files.Mended // the folder as it can be read
	s     *Store        // reads records
	to    *pebble.DB
	known *files.Known // of to
	b     *pebble.Batch
	told  Repaired

	pattern  *files.Pattern
	tables   []files.Table // the oldest first
	logs     []string
	unlisted bool // tables, and maybe others
	lost     []lostSpan
	tailless []lostTable

	headers map[store.DestID]store.Header
	counts  map[store.DestID]int64 // of messages that were copied
	made    map[store.DestID]bool  // of what their messages say
	stale   map[store.DestID]bool  // a newer header may be lost
	unsure  map[store.DestID]bool  // what is there of messages may be what a lost block had deleted
	under   map[store.DestID]spans // such messages
	hidden  int64                  // those of them that are told as copied
	has     map[byte]bool          // kinds of which there are records
	format  int
}

func (r *repair) run() (err error) {
	if err := files.Settle(r.fs, r.o.Dir); err != nil {
		return r.error(err)
	}
	if r.format, r.told.Format, err = mendFormat(r.fs, r.o.Dir); err != nil {
		return err
	}
	mended, told, err := files.Mend(r.fs, r.path(files.DB))
	if err != nil {
		return r.error(err)
	}
	r.seen, r.told.Others = mended, told
	r.told.Cut = mended.Cut
	r.s = &Store{opts: r.o, failed: make(chan struct{})}
	if damaged, err := r.find(); err != nil || !damaged {
		return err
	}
	return r.replace()
}

// replace does what is left once it is known what can be read of the old tables.
func (r *repair) replace() (err error) {
	if line := files.Foreign(r.fs, r.o.Dir); line != "" {
		return message.Errorf(message.Limit, "store %s: %s", r.o.Dir, line)
	}
	if err := r.isInPlace(); err != nil {
		return err
	}
	if err := r.hasRoom(); err != nil {
		return err
	}
	if err := files.Make(r.fs, r.o.Dir); err != nil {
		return r.error(err)
	}
	if r.to, err = r.openNew(); err != nil {
		return err
	}
	r.b = r.to.NewBatch()
	if err = r.copy(); err == nil {
		err = r.mend()
	}
	if err == nil {
		err = r.write(0)
	}
	if err == nil {
		err = r.to.Flush()
	}
	if err = errors.Join(err, r.to.Close(), r.known.Close()); err != nil {
		return r.error(errors.Join(err, r.fs.RemoveAll(r.path(files.New))))
	}
	kept := r.free(files.Damaged + time.Now().Format("20060102-150405"))
	if err := files.Swap(r.fs, r.o.Dir, kept); err != nil {
		return r.error(err)
	}
	r.told.Kept = r.path(kept)
	return nil
}

// free gives a name that nothing has: this one, if it can be.
func (r *repair) free(name string) string {
	for n, free := 2, name; ; n++ {
		if _, err := r.fs.Stat(r.path(free)); files.Missing(err) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

func (r *repair) path(name string) string { return r.fs.PathJoin(r.o.Dir, name) }

func (r *repair) error(err error) error {
	if r.ctx.Err() != nil || message.KindOf(err) == message.Corrupt {
		return err
	}
	return message.Errorf(message.Unavailable, "store %s: cannot repair it: %w", r.o.Dir, oneLine{err})
}

// openOld opens the old tables; nil when nothing tells which these are.
func (r *repair) openOld() (*pebble.DB, error) {
	if r.seen.ListCut {
		return nil, nil
	}
	open := func() (*pebble.DB, error) {
		return r.open(files.DB, r.seen, func(o *pebble.Options) {
			o.ReadOnly, o.ErrorIfNotExists = true, true
		})
	}
	db, err := open()
	if err != nil && r.seen.ShowSizes(err) { // those tables are looked at as all are
		r.told.Others = append(r.told.Others, oneLined(err.Error()))
		db, err = open()
	}
	if err != nil && files.IsDamage(err) {
		r.told.Cut = r.told.Cut || files.LacksTable(err)
		r.told.Others = append(r.told.Others, oneLined(err.Error()))
		return nil, nil
	}
	if err != nil {
		return nil, r.error(err)
	}
	return db, nil
}

// openNew makes new tables.
func (r *repair) openNew() (*pebble.DB, error) {
	db, err := r.open(files.New, r.fs, func(o *pebble.Options) { o.DisableWAL = true })
	if err != nil {
		return nil, r.error(err)
	}
	return db, nil
}

func (r *repair) open(name string, fs vfs.FS, change func(*pebble.Options)) (*pebble.DB, error) {
	s := &Store{opts: r.o, failed: make(chan struct{}),
		schedule: patient.NewSchedule(func() int { return 0 })}
	s.opts.OnFatal = r.broken
	s.opts.MemTableBytes = defaultMemTable
	s.fs = patient.Hasty(fs, r.broken)
	po := s.pebbleOptions(s.fs)
	if change(po); !po.ReadOnly {
		err := files.MakeDir(s.fs, r.path(name))
		if err == nil {
			r.known, err = files.OpenKnown(s.fs, r.path(name), files.Note{})
		}
		if err != nil {
			return nil, err
		}
		s.fs.Known = r.known
		po.FS = s.fs
	}
	db, err := pebble.Open(r.path(name), po)
	if err == nil {
		s.schedule.Begin()
	}
	return db, err
}

// broken ends the repair.
func (r *repair) broken(err error) {
	select {
	case r.failed <- r.error(err):
	default: // it was told
	}
}

// roomBeside is what must be free beside the copy.
const roomBeside = 64 << 20

// hasRoom refuses what the disk may be too small for.
func (r *repair) hasRoom() error {
	names, err := r.fs.List(r.path(files.DB))
	if err != nil {
		return r.error(err)
	}
	need := int64(roomBeside)
	for _, name := range names {
		info, err := r.fs.Stat(r.fs.PathJoin(r.path(files.DB), name))
		if err != nil {
			continue // it was removed meanwhile, or cannot be read either
		}
		r.told.KeptBytes += info.Size()
		if strings.HasSuffix(name, tableSuffix) || strings.HasSuffix(name, ".log") {
			need += info.Size()
		}
	}
	usage, err := r.fs.GetDiskUsage(r.o.Dir)
	if err != nil {
		return r.error(err)
	}
	if free := int64(min(usage.AvailBytes, 1<<62)); free < need {
		return message.Errorf(message.Limit, "store %s: a repair may need %d MiB beside it and %d MiB"+
			" are free; free some space, or move the folder to a larger disk", r.o.Dir, need>>20, free>>20)
	}
	return nil
}

// isInPlace refuses tables that lie elsewhere, by a link: the new ones would not be where these
// are, and may have no room there.
func (r *repair) isInPlace() error {
	to, err := os.Readlink(r.path(files.DB))
	if r.o.FS != nil || err != nil {
		return nil //nolint:nilerr // it is no link
	}
	return message.Errorf(message.Limit, "store %s: %s is a link to %s, and the repaired store would"+
		" lie beside the link, not there: move all of the store's folder to that disk, %s in it, and"+
		" link that folder, or put the tables in the place of the link", r.o.Dir, files.DB, to, files.DB)
}

// put writes a record to the new tables.
func (r *repair) put(key, value []byte) error {
	return errors.Join(r.b.Set(key, value, nil), r.write(batchBytes))
}

// batchBytes is how much is written at once.
const batchBytes = 1 << 20

// write writes what was put when it is more than so many bytes.
func (r *repair) write(most int) error {
	if r.b.Len() < most {
		return nil
	}
	if err := errors.Join(r.b.Commit(pebble.NoSync), r.b.Close(), r.ctx.Err()); err != nil {
		return err
	}
	r.b = r.to.NewBatch()
	return nil
}

// tellKinds tells what may be lost of records that are not told of one by one.
func (r *repair) tellKinds() {
	if r.told.Cut {
		r.told.Others = append(r.told.Others, "acknowledgements may be lost: what was consumed last may"+
			" come again")
	}
	for _, x := range []struct {
		kinds []byte
		what  string
	}{
		{[]byte{kindReceipt, kindMark}, "receipts of what peers forwarded may be lost: what is sent" +
			" again may be there twice"},
		{[]byte{kindNumbers}, "numbers of producers may be lost: what is sent again may be there twice"},
		{[]byte{kindFacts}, "redelivery counts may be lost: those of some messages begin anew"},
		{[]byte{kindHeader, kindTerms}, "destinations without messages may be lost: queues and topics" +
			" are made anew by who uses them, but durable subscriptions get nothing until their" +
			" clients are there again"},
		{[]byte{kindHeader}, "prepared transactions may be lost: their transaction managers are told" +
			" that there is none"},
	} {
		if r.lostOf(x.kinds...) {
			r.told.Others = append(r.told.Others, x.what)
		}
	}
}

// tell notes what became of a destination.
func (r *repair) tell(d RepairedDestination) {
	r.told.Destinations = append(r.told.Destinations, d)
}

// nameOf names a destination for people.
func nameOf(h *store.Header) string {
	switch {
	case h.Prepared != nil:
		return "transaction " + h.Prepared.ID.String()
	case h.Subscription != nil:
		return fmt.Sprintf("durable subscription %s of %s", h.Subscription.Name, h.Subscription.ClientID)
	}
	return h.Destination.String()
}

// Name names the destination for people.
func (d *RepairedDestination) Name() string { return nameOf(&d.Header) }
