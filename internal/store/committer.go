package store

import (
	"context"
	"slices"
	"sync"

	"hopwire/internal/message"
	"hopwire/internal/rungroup"
)

// Limits of one Apply: batches are merged until one of them is reached.
const (
	applyBatches = 1000
	applyBytes   = 8 << 20
)

// Committer stands between a broker's loop and its Store: it takes batches and reads from the
// loop without ever holding it, merges the batches of many turns into one sync, and answers
// through post. One goroutine commits, another reads.
//
// The answers to commits come in the order of the commits. A batch that the store has no room for
// is answered with an error of kind Limit and is not there; whoever handed it over decides what to
// do, and has all that was handed over behind it back as well. A read sees every batch that was
// committed before the read was asked for and not refused, and its answer comes after theirs.
// Nothing is answered with success that is not durable.
//
// All methods may be called from any goroutine.
type Committer struct {
	// OnFatal is called once, through post, with the error after which nothing is acknowledged any
	// more. It may be nil, and is set before the first use.
	OnFatal func(error)

	store Store
	post  func(func()) bool
	run   *rungroup.Group

	mu       sync.Mutex
	changed  sync.Cond // any of the fields below
	started  bool
	running  int   // goroutines
	closing  bool  // nothing more is taken
	stopped  bool  // goroutines are to end, whatever waits
	refusing bool  // a refusal was posted and not heard: nothing is applied meanwhile
	fatal    error // nothing is applied any more
	commits  []commit
	reads    []read
	handed   uint64 // batches ever handed over
	applied  uint64 // of these, applied; handed - applied == len(commits) + those in Apply
}

type commit struct {
	batch *Batch
	done  func(error)
}

type read struct {
	after uint64        // waits until so many batches are applied
	do    func() func() // reads, and gives what is to be posted
	fail  func(error)
}

// NewCommitter makes a committer. post hands a function to the loop; it reports false when the
// loop has ended.
func NewCommitter(s Store, post func(func()) bool) *Committer {
	c := &Committer{store: s, post: post,
		run: rungroup.New(context.Background())} // Close ends it
	c.changed.L = &c.mu
	return c
}

// Commit hands a batch over; done runs when it is durable, or with a Limit error when it was
// refused. The batch must not be changed before that. After Close, done gets an Unavailable error;
// after a fatal error it is never called.
func (c *Committer) Commit(b *Batch, done func(error)) {
	if !c.hand(commit{b, done}) {
		c.post(func() { done(errClosed()) })
	}
}

// hand reports false when nothing more is taken.
func (c *Committer) hand(w commit) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || c.fatal != nil {
		return c.fatal != nil
	}
	c.start()
	c.handed++
	c.commits = append(c.commits, w)
	c.changed.Broadcast()
	return true
}

// Page reads a page.
func (c *Committer) Page(r PageRequest, done func([]Stored, error)) {
	ask(c, done, func() ([]Stored, error) { return c.store.Page(r) })
}

// Receipts reads the receipts of a destination.
func (c *Committer) Receipts(dest DestID, done func(Receipts, error)) {
	ask(c, done, func() (Receipts, error) { return c.store.Receipts(dest) })
}

// Expired reads what expired before a time (ms since the epoch), behind after if that is not nil.
func (c *Committer) Expired(after *ExpiredRef, before int64, limit int,
	done func([]ExpiredRef, error)) {
	ask(c, done, func() ([]ExpiredRef, error) { return c.store.Expired(after, before, limit) })
}

// Space tells what room the store has.
func (c *Committer) Space() Space { return c.store.Space() }

// Close takes nothing more and waits until everything handed over is durable and answered. When
// ctx ends first, or after a fatal error, it gives up and tells how many batches were not written.
// The store stays open.
func (c *Committer) Close(ctx context.Context) error {
	defer context.AfterFunc(ctx, c.wake)()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	c.changed.Broadcast()
	for c.running > 0 && ctx.Err() == nil {
		c.changed.Wait()
	}
	if !c.stopped {
		c.stopped = true
		c.changed.Broadcast()
	}
	if n := c.handed - c.applied; n > 0 {
		cause := c.fatal
		if cause == nil {
			cause = context.Cause(ctx)
		}
		return message.Errorf(message.Unavailable, "store: %d batches were not written: %w", n, cause)
	}
	return nil
}

// wake makes what waits look again.
func (c *Committer) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

func errClosed() error { return message.Errorf(message.Unavailable, "store: the broker stops") }

// ask queues a read whose answer goes to done.
func ask[T any](c *Committer, done func(T, error), do func() (T, error)) {
	fail := func(err error) {
		var none T
		c.post(func() { done(none, err) })
	}
	r := read{fail: fail, do: func() func() {
		v, err := do()
		return func() { done(v, err) }
	}}
	if !c.handRead(r) {
		fail(errClosed())
	}
}

// handRead reports false when nothing more is taken.
func (c *Committer) handRead(r read) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.start()
	r.after = c.handed
	c.reads = append(c.reads, r)
	c.changed.Broadcast()
	return true
}

// start starts the goroutines at the first use; c.mu is held.
func (c *Committer) start() {
	if !c.started {
		c.started = true
		c.begin("store commit", c.commitAll)
		c.begin("store read", c.readAll)
	}
}

// begin starts a goroutine; c.mu is held.
func (c *Committer) begin(name string, f func()) {
	c.running++
	c.run.Go(name, func(context.Context) error {
		f()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		c.changed.Broadcast()
		return nil
	})
}

// commitAll is the committing goroutine.
func (c *Committer) commitAll() {
	var batches []*Batch
	for {
		work := c.take()
		if len(work) == 0 {
			return
		}
		batches = batches[:0]
		for _, w := range work {
			batches = append(batches, w.batch)
		}
		n, err := c.apply(batches)
		if n > 0 {
			c.answer(work[:n])
		}
		switch {
		case err == nil:
		case message.KindOf(err) == message.Limit:
			c.refuse(work[n:], err)
		default:
			c.fail(err)
			return
		}
	}
}

// take waits for work and takes what goes into one Apply; none means that all is done.
func (c *Committer) take() []commit {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (len(c.commits) == 0 && !c.closing || c.refusing) && !c.stopped {
		c.changed.Wait()
	}
	if c.stopped {
		return nil
	}
	n, bytes := 0, int64(0)
	for n < len(c.commits) && n < applyBatches && (n == 0 || bytes < applyBytes) {
		bytes += c.commits[n].batch.Bytes
		n++
	}
	work := c.commits[:n:n]
	c.commits = c.commits[n:]
	if len(c.commits) == 0 {
		c.commits = nil
	}
	return work
}

// apply applies the batches and gives how many were. When there is no room for all, what comes
// before the first that puts is applied alone; it may make room.
func (c *Committer) apply(batches []*Batch) (n int, err error) {
	for n < len(batches) {
		err := c.store.Apply(batches[n:])
		if err == nil {
			return len(batches), nil
		}
		first := n
		for first < len(batches) && !batches[first].Puts() {
			first++
		}
		if message.KindOf(err) != message.Limit || first == n || first == len(batches) {
			return n, err
		}
		if err := c.store.Apply(batches[n:first]); err != nil {
			return n, err
		}
		n = first
	}
	return n, nil
}

// refuse gives back batches that there is no room for, and everything handed over before the caller
// heard of it: what follows may build on them.
func (c *Committer) refuse(work []commit, err error) {
	c.mu.Lock()
	c.refusing = true
	c.mu.Unlock()
	if !c.post(func() {
		c.mu.Lock()
		work = append(slices.Clip(work), c.commits...)
		c.commits, c.refusing = nil, false
		c.settle(len(work))
		c.mu.Unlock()
		for _, w := range work {
			w.done(err)
		}
	}) {
		c.mu.Lock()
		c.refusing = false
		c.mu.Unlock()
	}
}

// settle takes answered commits off the books; c.mu is held.
func (c *Committer) settle(n int) {
	c.applied += uint64(n)
	c.changed.Broadcast()
}

// answer posts the answers to applied commits and lets the reads behind them go.
func (c *Committer) answer(work []commit) {
	c.post(func() {
		for _, w := range work {
			w.done(nil)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(len(work))
}

func (c *Committer) fail(err error) {
	c.mu.Lock()
	c.fatal = err
	c.commits = nil
	c.changed.Broadcast()
	c.mu.Unlock()
	if c.OnFatal != nil {
		c.post(func() { c.OnFatal(err) })
	}
}

// readAll is the reading goroutine.
func (c *Committer) readAll() {
	for {
		r, err := c.nextRead()
		switch {
		case r.do == nil:
			return
		case err != nil:
			r.fail(err)
		default:
			c.post(r.do())
		}
	}
}

// nextRead waits for a read and for the batches before it. A read without do says that all is
// done; an error, that the batches will never be applied.
func (c *Committer) nextRead() (read, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.reads) == 0 {
		if c.closing {
			return read{}, nil
		}
		c.changed.Wait()
	}
	r := c.reads[0]
	c.reads[0] = read{}
	c.reads = c.reads[1:]
	for c.applied < r.after {
		if c.fatal != nil {
			return r, message.Errorf(message.Unavailable, "store: it failed before: %w", c.fatal)
		}
		if c.stopped {
			return r, errClosed()
		}
		c.changed.Wait()
	}
	return r, nil
}
