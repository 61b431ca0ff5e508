package broker

import (
	"fmt"
	"math"
	"time"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// SpoolStorage is the spool as the broker's loop sees it: a second store, which is empty at start.
// What Storage reads has what is spooled beside what is stored, as of store.Overlay.
type SpoolStorage interface {
	Commit(b *store.Batch, done func(error))
	Space() store.Space
}

// spool keeps messages that are not stored on the disk while memory is short: copies of queues, and
// what waits for slow consumers of topics (backlog.go). They leave memory then as durable copies
// do, and are read back by pages. It is a journal beside
// the core's: what ends is collected, and what is to be written is chosen when a batch is made, of
// which one is on its way at a time. Nothing of it needs to be one with what goes to the store, as
// it ends with the broker.
//
//	not spooled -> on its way (Copy.Put) -> spooled (Copy.Spooled), in memory or in a gap
//
// A copy that ends on its way is deleted when its record is there. A batch that there is no room
// for changes nothing: its copies stay in memory, of which some are chosen again in a while, and
// what it was to delete goes with the next one. Meanwhile memory stays full, and sends wait. They
// look each second whether something can be spooled by now.
type spool struct {
	b       *Broker
	storage SpoolStorage // nil: there is none

	// target is how much memory messages take before some are spooled, next what they take before
	// it is looked for some again; 0 is no bound, and at once.
	target, next int64
	wanted       []*destination // whose own limit is near
	backlogs     []*backlog     // that may have something to spool

	now   []spoolOp // collects
	waits []func()  // for now to be durable
	reads []func()  // for now to be handed over

	batch *spoolBatch // on its way
	wait  time.Duration
	shut  bool // a batch was refused, and it is not time to try again
	ended bool // the spool takes nothing any more

	count, bytes int64 // of records
	total        int64 // copies ever spooled
}

// spoolRecords are what the spool has of a destination, as of the last batch handed over.
type spoolRecords struct {
	count, bytes int64
	headed       bool  // its header was handed over
	touched      bool  // its header goes into the next batch
	wanted       bool  // in spool.wanted
	next         int64 // what it takes of memory before it is looked for some again
}

// spoolOp is the end of n records.
type spoolOp struct {
	store.Op
	dest    *destination
	n, size int64
}

// spoolPut is what a copy's Put is while it is on its way to the spool.
type spoolPut struct {
	dest *destination
	of   *backlog // whose copy it is; nil: a queue's
	copy *queue.Copy
	size int64
	over bool // the copy ended meanwhile
}

// expiration is when a search is to find the record of the copy; 0 is never. What waits for a
// consumer of topics is looked at when its turn comes, so that no search is told of it again and
// again.
func (p *spoolPut) expiration() int64 {
	if p.of != nil {
		return 0
	}
	return p.copy.Message.Expiration
}

type spoolBatch struct {
	ops   []spoolOp
	puts  []*spoolPut
	size  int64 // of puts
	waits []func()
}

const (
	// spoolPercent of the memory limit is where copies begin to be spooled.
	spoolPercent = 70
	// spoolSlack is the part of a limit by which more is spooled than need be, so that it need not be
	// at once again.
	spoolSlack = 16
	// spoolParts is the part of a limit that the first page of a queue with consumers may take, or
	// those of all queues.
	spoolParts = 4
	// spoolBytes of messages go into one batch.
	spoolBytes = 4 << 20
	// spoolReserved is above all sequences of the spool.
	spoolReserved = math.MaxInt64
)

func newSpool(b *Broker) spool {
	s := spool{b: b}
	if b.opt.Persistent {
		s.storage = b.opt.Spool
	}
	s.target = b.opt.MemoryLimitBytes / 100 * spoolPercent
	return s
}

// takes reports whether messages of the destination that are not stored may be spooled: those of
// temporary queues never are, as with ActiveMQ.
func (s *spool) takes(d *destination) bool {
	kind := d.policy.Cursors.Queue
	switch {
	case s.storage == nil || d.name.Kind == message.TempQueue:
		return false
	case d.queue == nil:
		kind = d.policy.Cursors.Subscriber
	case d.sub != nil:
		kind = d.policy.Cursors.Durable
	}
	return kind != policy.CursorVM
}

// mark is what a destination may take of memory before some of it is spooled; 0 is no bound.
func (d *destination) mark() int64 {
	limit, percent := d.policy.Memory.LimitBytes, int64(d.policy.Memory.CursorHighWaterPercent)
	return limit/100*percent + limit%100*percent/100
}

// added looks whether a queue that got something is near its limit. A topic holds its producers at
// its own limit, as with ActiveMQ.
func (s *spool) added(d *destination) {
	if d.queue == nil || d.policy.Memory.LimitBytes == 0 || d.spooled.wanted || !s.takes(d) {
		return
	}
	if used := d.usage.Used(); used < d.mark() {
		d.spooled.next = 0
	} else if used >= d.spooled.next {
		d.spooled.wanted = true
		s.wanted = append(s.wanted, d)
	}
}

// list notes that a backlog may have something to spool.
func (s *spool) list(q *backlog) {
	if q.place == 0 {
		s.backlogs = append(s.backlogs, q)
		q.place = len(s.backlogs)
	}
}

// unlist takes a backlog out that has nothing to spool.
func (s *spool) unlist(q *backlog) {
	if q.place == 0 {
		return
	}
	last := len(s.backlogs) - 1
	s.backlogs[q.place-1] = s.backlogs[last]
	s.backlogs[q.place-1].place = q.place
	s.backlogs[last] = nil
	s.backlogs = s.backlogs[:last]
	q.place = 0
}

// again has it looked for something to spool, though the last look found too little.
func (s *spool) again() {
	if s.storage == nil {
		return
	}
	s.next = 0
	for _, d := range s.b.parked {
		d.spooled.next = 0
		s.added(d)
	}
}

// spoolWait is how long a send that is to fail without room waits for what is on its way to the
// spool, and for more of it.
const spoolWait = time.Second

// helps reports whether the spool makes room for a destination, unless it is full.
func (s *spool) helps(d *destination) bool {
	limit := d.usage.Limit()
	return s.takes(d) && (d.queue != nil || limit == 0 || d.usage.Used() < limit ||
		!d.policy.Memory.ProducerFlowControl)
}

// makesRoom reports whether copies are on their way to the spool, so that there is room soon.
func (s *spool) makesRoom(d *destination) bool {
	return s.helps(d) && !s.full() &&
		(s.batch != nil && len(s.batch.puts) > 0 || s.next == 0 && d.spooled.next == 0)
}

// full reports whether nothing can be spooled now.
func (s *spool) full() bool {
	if s.shut || s.ended {
		return true
	}
	space := s.storage.Space()
	under := int64(0)
	if s.batch != nil {
		under = s.batch.size
	}
	limit := s.b.opt.TempLimitBytes
	return space.Full || limit > 0 && space.UsedBytes+under >= limit ||
		space.FreeBytes >= 0 && space.FreeBytes-2*under < space.ReserveBytes
}

// remove deletes the record of a copy that ends, if there is one.
func (s *spool) remove(d *destination, c *queue.Copy) {
	if p, ok := c.Put.(*spoolPut); ok {
		p.over = true
		return
	}
	if c.Spooled {
		c.Spooled = false
		s.delete(d, store.Seq(c.Seq), c.Message.Expiration, c.Message.Size())
	}
}

func (s *spool) delete(d *destination, seq store.Seq, expiration, size int64) {
	s.collect(d, store.Op{Kind: store.DeleteMessage, Dest: d.id, Seq: seq, Expiration: expiration}, 1,
		size)
}

func (s *spool) collect(d *destination, x store.Op, n, size int64) {
	if !d.gone {
		s.now = append(s.now, spoolOp{x, d, n, size})
	}
}

// lose deletes the record of a message that cannot be read.
func (s *spool) lose(d *destination, x *store.Stored) {
	s.delete(d, x.Seq, x.Expiration, d.spooled.mean())
}

// deleteRange deletes what is in a range, whatever that is; n messages go with it, or others.
func (s *spool) deleteRange(d *destination, from, to uint64) {
	if d.spooled.headed {
		s.collect(d, store.Op{Kind: store.DeleteRange, Dest: d.id, Seq: store.Seq(from),
			To: store.Seq(to)}, 0, 0)
	}
}

// writeOff takes messages off the books that are not there.
func (s *spool) writeOff(d *destination, n int64) {
	if n > 0 {
		s.collect(d, store.Op{Kind: store.Nothing}, n, n*d.spooled.mean())
	}
}

// mean is about the size of a message.
func (r *spoolRecords) mean() int64 { return r.bytes / max(1, r.count) }

// drop ends what there is of a destination that is removed.
func (s *spool) drop(d *destination) {
	if d.spooled.headed {
		s.now = append(s.now, spoolOp{Op: store.Op{Kind: store.DropDestination, Dest: d.id}, dest: d})
	}
}

// whenDurable runs f when everything collected so far is done.
func (s *spool) whenDurable(f func()) {
	if len(s.now) == 0 && s.batch == nil {
		f()
		return
	}
	s.waits = append(s.waits, f)
}

// whenHandedOver runs f when a read sees everything collected so far.
func (s *spool) whenHandedOver(f func()) {
	if len(s.now) == 0 {
		f()
		return
	}
	s.reads = append(s.reads, f)
}

// whenErased runs f when the record of a copy that was taken from the store, or the spool, and
// ended is there no more: a read in between would find it again, in a gap that is as it was.
func (b *Broker) whenErased(spooled bool, f func()) {
	if spooled {
		b.spool.whenDurable(f)
	} else {
		b.journal.whenDurable(f)
	}
}

// flush hands over what was collected, with copies that are to leave memory, unless a batch is on
// its way.
func (s *spool) flush() {
	if s.storage == nil || s.batch != nil {
		return
	}
	puts, size := s.choose()
	if len(puts)+len(s.now) == 0 {
		s.rest()
		return
	}
	if s.ended {
		s.now = nil
		s.rest()
		return
	}
	x := &spoolBatch{ops: s.now, puts: puts, size: size, waits: s.waits}
	s.now, s.waits = nil, nil
	s.batch = x
	s.storage.Commit(&store.Batch{Ops: s.write(x), Bytes: size}, func(err error) {
		s.batch = nil
		switch {
		case err == nil:
			s.committed(x)
		case message.KindOf(err) == message.Limit:
			s.refused(x, err)
		default:
			s.fail(err)
		}
	})
	s.handedOver()
}

// rest answers who waits, as nothing is on its way.
func (s *spool) rest() {
	s.handedOver()
	for len(s.waits) > 0 && len(s.now) == 0 {
		f := s.waits[0]
		s.waits = s.waits[1:]
		f()
	}
}

func (s *spool) handedOver() {
	reads := s.reads
	s.reads = nil
	for _, f := range reads {
		f()
	}
}

// write gives the changes of a batch. Headers come with each: by them the spool knows what it has.
func (s *spool) write(x *spoolBatch) []store.Op {
	ops := make([]store.Op, 0, len(x.ops)+len(x.puts)+4)
	var touched []*destination
	touch := func(d *destination) {
		if !d.spooled.touched && !d.gone {
			d.spooled.touched = true
			touched = append(touched, d)
		}
	}
	for i := range x.ops {
		o := &x.ops[i]
		if o.Kind == store.DropDestination {
			o.n, o.size = o.dest.spooled.count, o.dest.spooled.bytes
		}
		s.count1(o.dest, -o.n, -o.size)
		touch(o.dest)
		ops = append(ops, o.Op)
	}
	for _, p := range x.puts {
		s.count1(p.dest, 1, p.size)
		touch(p.dest)
		ops = append(ops, store.Op{Kind: store.PutMessage, Dest: p.dest.id,
			Seq: store.Seq(p.copy.Seq), Message: p.copy.Message, Lasts: p.of != nil})
	}
	headers := make([]store.Header, len(touched))
	for i, d := range touched {
		r := &d.spooled
		r.touched, r.headed = false, true
		headers[i] = store.Header{ID: d.id, Destination: spoolName(d), Reserved: spoolReserved,
			Count: r.count, Bytes: r.bytes}
		ops = append(ops, store.Op{Kind: store.PutHeader, Dest: d.id, Header: &headers[i]})
	}
	return ops
}

// spoolName is what the spool calls a destination. What waits for one consumer of a topic is a
// queue there: only a log is a topic's in a store, of which nothing is deleted alone.
func spoolName(d *destination) message.Destination {
	if d.name.IsQueue() {
		return d.name
	}
	return message.Destination{Kind: message.Queue, Name: fmt.Sprintf("%s %d", d.name.Name, d.id)}
}

// count1 counts records in, or out.
func (s *spool) count1(d *destination, n, size int64) {
	d.spooled.count += n
	d.spooled.bytes += size
	s.count += n
	s.bytes += size
}

// committed lets the copies leave memory of which there is a record now.
func (s *spool) committed(x *spoolBatch) {
	if s.wait > 0 && len(x.puts) > 0 {
		s.wait = 0
		s.b.tell(Event{Kind: StoreTrouble, Reason: message.TempFull,
			Text: "the spool has room again"})
	}
	for i := 0; i < len(x.puts); {
		d, size, q := x.puts[i].dest, int64(0), x.puts[i].of
		for ; i < len(x.puts) && x.puts[i].dest == d; i++ {
			p := x.puts[i]
			c := p.copy
			c.Put = nil
			switch {
			case p.over:
				s.delete(d, store.Seq(c.Seq), p.expiration(), p.size)
			case !d.gone:
				c.Spooled = true
				size += p.size
				s.total++
			}
		}
		switch {
		case size == 0:
		case q != nil:
			q.leave()
			s.b.relieve()
		default:
			s.b.freed(d, d.queue.Evict(d.queue.ResidentBytes()-size, s.page(d.mark())))
			s.added(d)
		}
	}
	for _, f := range x.waits {
		f()
	}
}

// freed gives back what left memory of a destination.
func (b *Broker) freed(d *destination, bytes int64) {
	if bytes > 0 {
		d.usage.Add(-bytes)
		b.relieve()
	}
}

// refused takes a batch back that there is no room for: nothing of it was done.
func (s *spool) refused(x *spoolBatch, err error) {
	if s.wait == 0 {
		s.b.tell(Event{Kind: StoreTrouble, Reason: message.TempFull, Text: "the spool has no room, and" +
			" messages that are not persistent wait in memory: " + err.Error()})
	}
	for _, o := range x.ops {
		s.count1(o.dest, o.n, o.size)
	}
	for _, p := range x.puts {
		s.count1(p.dest, -1, -p.size)
		p.copy.Put = nil
		if q := p.of; q != nil && !p.over && !p.dest.gone {
			q.onTheirWay = nil
		}
	}
	s.now = append(x.ops, s.now...)
	s.waits = append(x.waits, s.waits...)
	s.wait = min(max(retryFirst, 2*s.wait), retryMost)
	s.shut = true
	s.b.env.After(s.wait, func() {
		s.shut = false
		s.again()
	})
}

// fail ends spooling: what is in the spool alone cannot be read any more.
func (s *spool) fail(err error) {
	s.ended = true
	if !s.b.stopping() {
		s.b.tell(Event{Kind: StoreTrouble, Text: "the spool failed: " + err.Error()})
	}
}
