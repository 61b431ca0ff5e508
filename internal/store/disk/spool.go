package disk

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"hopwire/internal/message"
	"hopwire/internal/store"
	"hopwire/internal/store/disk/files"
	"hopwire/internal/store/disk/patient"
)

// What a spool takes of memory, and what it leaves free of its disk: more than four times what a
// store does on the same one, so that a full spool is no full store.
const (
	spoolMemTable = 4 << 20
	spoolCache    = 8 << 20
	spoolReserve  = 320 << 20
)

// markName is the file that makes a folder a spool's: what has none, or has what no spool makes, is
// somebody else's.
const markName = "spool"

// lostFound belongs to the file system, in a spool's folder that is a mount of its own.
const lostFound = "lost+found"

// Spool is a volatile store whose folder is there from the first put to Close. A put into a folder
// that cannot be made, or that has no room for a store, is refused as one for which there is no
// room.
type Spool struct {
	opts Options

	mu     sync.RWMutex
	s      *Store // nil before the first put
	closed bool
	told   string // the last trouble that was told

	making chan struct{} // has room for one who makes the folder
}

// NewSpool makes a spool. Of the options Volatile and those that are about memory and waiting are
// its own; the default of ReserveBytes is 320 MiB, or a quarter of the file system if that is less.
func NewSpool(o Options) *Spool {
	o.Volatile, o.NoWait = true, true
	o.MemTableBytes, o.CacheBytes = spoolMemTable, spoolCache
	return &Spool{opts: o, making: make(chan struct{}, 1)}
}

func (p *Spool) fs() vfs.FS {
	if p.opts.FS != nil {
		return p.opts.FS
	}
	return vfs.Default
}

// Clear removes what a broker left that did not come to Close. It fails when somebody uses it, and
// touches nothing in a folder that is no spool's.
func (p *Spool) Clear() error {
	if _, err := p.fs().Stat(p.opts.Dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := p.whose(); err != nil {
		return err
	}
	return p.wipe()
}

// wipe removes a spool that nobody uses.
func (p *Spool) wipe() error {
	dir := p.opts.Dir
	lock, holder, err := p.opts.tryLock()
	if errors.Is(err, files.ErrInUse) {
		return message.Errorf(message.Unavailable, "spool %s: in use by %s", dir, holder)
	}
	if err == nil {
		err = errors.Join(p.remove(), lock.Close())
	}
	if err != nil {
		return message.Errorf(message.Unavailable, "spool %s: what a broker left there cannot be"+
			" removed: %w", dir, err)
	}
	return nil
}

// whose looks whether the folder is a spool's, or nobody's yet.
func (p *Spool) whose() error {
	names, err := p.fs().List(p.opts.Dir)
	if err != nil {
		return message.Errorf(message.Unavailable, "spool %s: %w", p.opts.Dir, err)
	}
	what := ""
	marked := slices.Contains(names, markName)
	slices.Sort(names)
	for _, name := range names {
		switch {
		case name == formatName:
			return p.errForeign("it is a store: name another tmpDataDirectory")
		case what != "", name == files.LockName, name == lostFound,
			marked && (name == markName || name == files.DB):
		case marked:
			what = "no spool made " + name + " in it: move that away"
		default:
			what = "it has " + name + " and no file " + markName + ", so that nothing tells that a broker" +
				" spooled there: remove what is in it if nobody needs that"
		}
	}
	if what != "" {
		return p.errForeign(what + ", or name another tmpDataDirectory")
	}
	return nil
}

func (p *Spool) errForeign(what string) error {
	return message.Errorf(message.Unavailable, "spool %s: nothing there is touched, as %s",
		p.opts.Dir, what)
}

// remove removes the folder and what a spool makes in it, the mark last. A folder that is a mount
// of its own stays.
func (p *Spool) remove() error {
	fs, dir := p.fs(), p.opts.Dir
	for _, name := range []string{files.DB, files.LockName, markName} {
		if err := fs.RemoveAll(fs.PathJoin(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	err := fs.Remove(dir)
	if err == nil {
		return nil
	}
	names, no := fs.List(dir)
	if no == nil && !slices.ContainsFunc(names, func(name string) bool { return name != lostFound }) {
		return nil
	}
	return err
}

// mark makes the folder a spool's.
func (p *Spool) mark() error {
	if err := p.whose(); err != nil {
		return err
	}
	f, err := p.fs().Create(p.fs().PathJoin(p.opts.Dir, markName), vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte("wiped by the broker that spools here, whenever it starts or stops\n"))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return message.Errorf(message.Limit, "spool %s: cannot mark the folder: %w", p.opts.Dir, err)
	}
	return nil
}

// Apply implements store.Store.
func (p *Spool) Apply(batches []*store.Batch) error {
	s, err := p.open(batches)
	if s == nil || err != nil {
		return err
	}
	return s.Apply(batches)
}

// open gives the store, made if something is put; nil without an error is none.
func (p *Spool) open(batches []*store.Batch) (*Store, error) {
	if s, err := p.opened(); s != nil || err != nil {
		return s, err
	}
	puts := false
	for _, b := range batches {
		puts = puts || b.Puts()
	}
	if !puts {
		return nil, nil
	}
	p.making <- struct{}{}
	defer func() { <-p.making }()
	if s, err := p.opened(); s != nil || err != nil {
		return s, err
	}
	s, err := p.make()
	if err != nil {
		p.tell(err.Error())
		return nil, message.Errorf(message.Limit, "%w", err)
	}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.s = s
	}
	p.mu.Unlock()
	if closed {
		return nil, errors.Join(p.errClosed(), s.Close(), p.Clear())
	}
	return s, nil
}

func (p *Spool) make() (*Store, error) {
	o := p.opts
	if err := files.MakeDir(p.fs(), o.Dir); err != nil {
		return nil, message.Errorf(message.Limit, "spool %s: cannot make the folder: %w", o.Dir, err)
	}
	usage, err := p.fs().GetDiskUsage(o.Dir)
	if err == nil {
		if o.ReserveBytes == 0 {
			o.ReserveBytes = min(spoolReserve, int64(usage.TotalBytes/4))
		}
		if free := int64(min(usage.AvailBytes, 1<<62)); patient.Full(free, o.ReserveBytes) {
			return nil, message.Errorf(message.Limit, "spool %s: %d bytes free, which is less than the %d"+
				" that are kept", o.Dir, free, o.ReserveBytes)
		}
	}
	if err := p.clean(); err != nil {
		return nil, err
	}
	if err := p.mark(); err != nil {
		return nil, err
	}
	return Open(context.Background(), o)
}

// clean removes what a store left of which the open failed.
func (p *Spool) clean() error {
	db := p.fs().PathJoin(p.opts.Dir, files.DB)
	if _, err := p.fs().Stat(db); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := p.Clear(); err != nil {
		return err
	}
	return files.MakeDir(p.fs(), p.opts.Dir)
}

// tell warns of trouble, unless that was told last.
func (p *Spool) tell(line string) {
	if p.told != line && p.opts.OnWarning != nil {
		p.opts.OnWarning(line)
	}
	p.told = line
}

func (p *Spool) errClosed() error {
	return message.Errorf(message.Unavailable, "spool %s: it is closed", p.opts.Dir)
}

func (p *Spool) opened() (*Store, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return nil, p.errClosed()
	}
	return p.s, nil
}

// Headers implements store.Store.
func (p *Spool) Headers() (out []store.Header, err error) {
	s, err := p.opened()
	if s != nil {
		return s.Headers()
	}
	return nil, err
}

// Meta implements store.Store.
func (p *Spool) Meta(name string) ([]byte, error) {
	s, err := p.opened()
	if s != nil {
		return s.Meta(name)
	}
	return nil, err
}

// Page implements store.Store.
func (p *Spool) Page(r store.PageRequest) ([]store.Stored, error) {
	s, err := p.opened()
	if s != nil {
		return s.Page(r)
	}
	return nil, err
}

// Receipts implements store.Store.
func (p *Spool) Receipts(dest store.DestID) (store.Receipts, error) {
	s, err := p.opened()
	if s != nil {
		return s.Receipts(dest)
	}
	return store.Receipts{}, err
}

// Expired implements store.Store.
func (p *Spool) Expired(after *store.ExpiredRef, before int64,
	limit int) ([]store.ExpiredRef, error) {
	s, err := p.opened()
	if s != nil {
		return s.Expired(after, before, limit)
	}
	return nil, err
}

// Space implements store.Store. Before the first put it knows of no limit.
func (p *Spool) Space() store.Space {
	if s, err := p.opened(); s != nil && err == nil {
		return s.Space()
	}
	return store.Space{FreeBytes: -1}
}

// Close implements store.Store: what was spooled is gone, and the folder.
func (p *Spool) Close() error {
	p.mu.Lock()
	was := p.closed
	p.closed = true
	p.mu.Unlock()
	if was {
		return nil
	}
	select {
	case p.making <- struct{}{}: // from now on nobody makes it
	case <-time.After(lateTime):
		return message.Errorf(message.Unavailable, "spool %s: the disk does not answer within %s",
			p.opts.Dir, lateTime)
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.s == nil {
		return nil
	}
	if err := p.s.Close(); err != nil {
		return err
	}
	if _, err := p.fs().Stat(p.opts.Dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return p.wipe()
}
