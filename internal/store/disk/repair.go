package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	Cut          bool                  // writes may be lost, and nothing tells of which
}

// RepairedDestination tells what became of a destination's messages.
type RepairedDestination struct {
	Header store.Header // as it is now
	Copied int64
	Lost   int64 // that could not be read; of a destination that is Made anew, -1: nobody knows
	Made   bool  // its header could not be read, and was made of its messages
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

	old   *salvage
	seen  *files.Mended // the folder as it can be read
	to    *pebble.DB
	known *files.Known // of to
	b     *pebble.Batch
	told  Repaired

	pattern  *files.Pattern
	tailless []lostTable

	counts map[store.DestID]int64 // of messages that were copied
	made   map[store.DestID]bool
	format int

	dropped bool // destinations whose removal was lost
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
	from, err := r.open(files.DB, true)
	if err != nil {
		return err
	}
	damaged, err := r.lookAtTables(from)
	if len(r.tailless) > 0 && err == nil {
		if err := from.Close(); err != nil {
			return r.error(err)
		}
		if from, err = r.open(files.DB, true); err != nil {
			return err
		}
	}
	s := &Store{opts: r.o, db: from, failed: make(chan struct{})}
	r.old = &salvage{s: s, ended: r.ctx.Err, asks: mostAsks,
		beneath: func(lo, hi []byte) (map[string][]byte, error) { return r.beneath(from, lo, hi) }}
	if err == nil && !damaged && len(r.told.Others) == 0 {
		damaged, err = r.old.hasTwins()
	}
	if err != nil || !damaged && len(r.told.Others) == 0 {
		return errors.Join(err, from.Close())
	}
	return errors.Join(r.replace(), from.Close())
}

// replace does what is left once the old tables are open, of which some are damaged.
func (r *repair) replace() (err error) {
	if err := r.hasRoom(); err != nil {
		return err
	}
	if r.to, err = r.open(files.New, false); err != nil {
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
	kept := files.Damaged + time.Now().Format("20060102-150405")
	if err := files.Swap(r.fs, r.o.Dir, kept); err != nil {
		return r.error(err)
	}
	r.told.Kept = r.path(kept)
	return nil
}

var lastKey = []byte{0xff}

func (r *repair) path(name string) string { return r.fs.PathJoin(r.o.Dir, name) }

func (r *repair) error(err error) error {
	if r.ctx.Err() != nil || message.KindOf(err) == message.Corrupt {
		return err
	}
	return message.Errorf(message.Unavailable, "store %s: cannot repair it: %w", r.o.Dir, oneLine{err})
}

// open opens the old tables, or new ones.
func (r *repair) open(name string, old bool) (*pebble.DB, error) {
	s := &Store{opts: r.o, failed: make(chan struct{}),
		schedule: patient.NewSchedule(func() int { return 0 })}
	s.opts.OnFatal = r.broken
	s.opts.MemTableBytes = defaultMemTable
	fs := r.fs
	if old {
		fs = r.seen
	}
	s.fs = patient.Hasty(fs, r.broken)
	po := s.pebbleOptions(s.fs)
	if po.ReadOnly = old; old {
		po.ErrorIfNotExists = true
	} else {
		po.DisableWAL = true
	}
	if !old {
		err := files.MakeDir(s.fs, r.path(name))
		if err == nil {
			r.known, err = files.OpenKnown(s.fs, r.path(name), files.Note{})
		}
		if err != nil {
			return nil, r.error(err)
		}
		s.fs.Known = r.known
		po.FS = s.fs
	}
	db, err := pebble.Open(r.path(name), po)
	switch {
	case err != nil && (!old || !files.IsDamage(err)):
		return nil, r.error(err)
	case err != nil:
		return nil, message.Errorf(message.Corrupt, "store %s: what tells of its tables is damaged, or a"+
			" table is missing, and nothing can be copied: put a copy of the folder from before the damage"+
			" in its place: %s", r.o.Dir, strings.Join(append(r.told.Others, oneLined(err.Error())), "; "))
	}
	s.schedule.Begin()
	return db, nil
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
	m := r.old.s.db.Metrics()
	need := m.Total().TablesSize + int64(m.WAL.Size) + roomBeside
	r.told.KeptBytes = int64(m.DiskSpaceUsage())
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

// copy copies all that can be read but headers and terms, which mend writes.
func (r *repair) copy() error {
	if err := r.old.readHeaders(); err != nil {
		return err
	}
	r.counts = map[store.DestID]int64{}
	take := func(key, value []byte) error {
		if key[0] == kindMessage && len(key) == seqKeySize {
			r.counts[destOf(key)]++
		}
		return r.put(key, value)
	}
	for _, part := range [][2][]byte{{{0}, {kindHeader}}, {{kindHeader + 1}, {kindTerms}},
		{{kindTerms + 1}, lastKey}} {
		if err := r.old.each(part[0], part[1], take); err != nil {
			return err
		}
	}
	for _, name := range r.metas {
		key := metaKey(name)
		if !r.old.lost(key) {
			continue
		}
		value, err := r.old.s.get(r.old.s.db, key)
		if message.KindOf(err) == message.Corrupt {
			r.told.Others = append(r.told.Others, "the fact "+name+" could not be read")
			continue
		}
		if err == nil && value != nil {
			err = r.put(key, value)
		}
		if err != nil {
			return err
		}
	}
	return r.write(1)
}

// tellKinds tells what may be lost of records that are not told of one by one.
func (r *repair) tellKinds() {
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
	} {
		if r.lostOf(x.kinds...) {
			r.told.Others = append(r.told.Others, x.what)
		}
	}
}

// tell notes what became of a destination.
func (r *repair) tell(d RepairedDestination) {
	at, _ := slices.BinarySearchFunc(r.told.Destinations, d, func(a, b RepairedDestination) int {
		return cmp.Or(strings.Compare(nameOf(&a.Header), nameOf(&b.Header)),
			cmp.Compare(a.Header.ID, b.Header.ID))
	})
	r.told.Destinations = slices.Insert(r.told.Destinations, at, d)
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
