package broker

import (
	"slices"
	"strconv"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// journal collects what a turn changes into one batch. One batch is on its way at a time; what
// comes meanwhile waits in the next one, so that a copy consumed before its record was handed
// over need not be written. What the store has no room for is held (held.go).
type journal struct {
	b       *Broker
	storage Storage

	now   part // collects
	held  part // waits for room in the store
	spare part // empty; its memory is for the next one
	hold  holding
	parts uint64 // ever begun
	unit  uint64 // the open unit, 0 for none
	units uint64 // ever opened
	reads []func()
	// sequences is above the broker sequence of every stored message, durably or in a batch.
	sequences int64
	touched   []*destination
	looks     []*destination // logs whose heads may rise in the next batch

	busy    bool
	drained func() // runs when all is durable that there is room for
	ended   bool   // nothing more is handed over
	// undurable is the size of the messages handed over or collected and not durable.
	undurable int64
	failed    error
}

// recorded is what the store has of a destination, durably or in a batch.
type recorded struct {
	stored      int64 // copies with a record
	storedBytes int64
	reserved    uint64                      // sequences below it are not given anew after a restart
	marks       map[message.BrokerID]uint64 // forwardedBelow
	bootMarks   map[message.BrokerID]uint64 // those of the last run, while their peer is not asked
	bootAsked   map[message.BrokerID]uint64 // stored copies below it were asked about
	delivered   delivered                   // to clients
	touched     bool                        // the header goes into the batch
	headed      bool                        // the header is in the store or on the way there
}

// part is a run of changes that were not handed over.
type part struct {
	gen    uint64 // PutBatch of the copies whose record is put by it
	ops    []store.Op
	notes  []note // of ops
	copies []putCopy
	waits  []wait
	ties   []tie
	bytes  int64 // of the messages put
	logs   int   // puts into logs
	idle   int   // ops that are no reason to hand the part over
}

// note is what is remembered of a change. Changes of one unit are one thing to who made them, such
// as a transaction, or a dead letter and the end of its original: they are handed over together.
type note struct {
	unit uint64
	dest *destination // of a put or delete
	size int64        // of the message put or deleted
	log  *logPut      // of the put of a topic's message, and of a reference to it
}

type putCopy struct {
	dest *destination
	copy *queue.Copy
	op   int    // -1 when it was cancelled
	unit uint64 // of the put
	size int64  // of the message; 0 of a reference but the first
}

// tie is that a unit is durable no earlier than another one is, which ended a copy that it put: the
// put is cancelled, and what the unit is about is safe by the other one alone. A transaction that
// acknowledged the copy is so, and the dead letter that stands for it.
type tie struct{ unit, by uint64 }

// wait is something to run when changes are durable: those of a unit, or all before it.
type wait struct {
	f    func()
	unit uint64
	all  bool
}

func newJournal(b *Broker, storage Storage) journal {
	return journal{b: b, storage: storage, sequences: b.sequence,
		now: part{gen: 1}, held: part{gen: 2}, parts: 2,
		hold: holding{deltas: map[*destination]*delta{}}}
}

func (j *journal) newPart() part {
	j.parts++
	p := j.spare
	j.spare, p.gen = part{}, j.parts
	return p
}

// spareMost bounds how many changes a part may have whose memory is used again.
const spareMost = 1 << 15

// reuse keeps the memory of a part that is durable for the next one: one message of a topic with
// many subscriptions takes much of it.
func (j *journal) reuse(p *part) {
	if cap(p.ops) > spareMost {
		return
	}
	clear(p.ops)
	clear(p.notes)
	clear(p.copies)
	clear(p.waits)
	j.spare = part{ops: p.ops[:0], notes: p.notes[:0], copies: p.copies[:0], waits: p.waits[:0],
		ties: p.ties[:0]}
}

// grow makes room for so many more puts.
func (p *part) grow(n int) {
	p.ops, p.notes = slices.Grow(p.ops, n), slices.Grow(p.notes, n)
	p.copies = slices.Grow(p.copies, n)
}

// enter opens a unit, unless one is open; leave closes what enter opened.
func (j *journal) enter() bool {
	if j.unit != 0 {
		return false
	}
	j.units++
	j.unit = j.units
	return true
}

func (j *journal) leave(opened bool) {
	if opened {
		j.unit = 0
	}
}

// put stores a copy.
func (j *journal) put(d *destination, c *queue.Copy) {
	j.now.bytes += c.Message.Size()
	j.putAs(d, c, store.Op{Kind: store.PutMessage, Dest: d.id, Seq: store.Seq(c.Seq),
		Message: c.Message}, nil)
}

func (j *journal) putAs(d *destination, c *queue.Copy, op store.Op, log *logPut) {
	defer j.leave(j.enter())
	p := &j.now
	c.Stored, c.PutBatch, c.PutOp = true, p.gen, len(p.ops)
	size := c.Message.Size()
	put := putCopy{d, c, c.PutOp, j.unit, size}
	if log != nil && log.refs > 1 {
		put.size = 0
	}
	p.copies = append(p.copies, put)
	p.add(op, note{unit: j.unit, dest: d, size: size, log: log})
	j.undurable += put.size
	j.reserveSequence(c.Message.BrokerSequence)
	d.stored++
	d.storedBytes += size
	j.touch(d)
}

// reserveSequence makes the next start count on above a stored message's broker sequence.
func (j *journal) reserveSequence(n int64) {
	if n >= j.sequences {
		j.sequences = n + sequenceReserve
		j.add(store.Op{Kind: store.PutMeta, Name: metaNextSequence,
			Value: strconv.AppendInt(nil, j.sequences, 10)})
	}
}

func (p *part) add(op store.Op, n note) {
	p.ops = append(p.ops, op)
	p.notes = append(p.notes, n)
}

// home gives the part that puts the copy's record, nil when it was handed over.
func (j *journal) home(c *queue.Copy) *part {
	switch c.PutBatch {
	case j.now.gen:
		return &j.now
	case j.held.gen:
		return &j.held
	}
	return nil
}

// remove deletes a copy's record. A record that was not handed over is cancelled; its receipt and
// its sequence stay.
func (j *journal) remove(d *destination, c *queue.Copy) {
	if !c.Stored {
		return
	}
	size := c.Message.Size()
	d.stored--
	d.storedBytes -= size
	if d.stored == 0 && len(j.hold.deltas) == 0 {
		d.storedBytes = 0 // sizes of what was lost are not known
	}
	j.touch(d)
	if d.sub != nil {
		if t := j.b.dests[c.Message.Destination]; t != nil && t.queue == nil {
			j.look(t)
		}
	}
	op := store.Op{Kind: store.DeleteMessage, Dest: d.id, Seq: store.Seq(c.Seq),
		Expiration: c.Message.Expiration}
	p := j.home(c)
	switch {
	case p == nil:
		j.now.add(op, note{unit: j.unit, dest: d, size: size})
	case c.Redelivery == c.Message.RedeliveryCounter:
		j.cancel(p, c.PutOp, j.unit)
	default:
		j.follow(p, c, op, note{dest: d, size: size})
	}
}

// lose deletes the record of a message that cannot be read.
func (j *journal) lose(d *destination, s *store.Stored) {
	size := j.writeOff(d, 1)
	j.now.add(store.Op{Kind: store.DeleteMessage, Dest: d.id, Seq: s.Seq,
		Expiration: s.Expiration}, note{unit: j.unit, dest: d, size: size})
}

// apart runs f in a unit of its own, and gives its number.
func (j *journal) apart(f func()) (unit uint64) {
	was := j.unit
	j.unit = 0
	j.enter()
	unit = j.unit
	f()
	j.unit = was
	return unit
}

// withdraw takes back a unit that was not handed over, or came back for lack of room, and that is
// about no copies.
func (j *journal) withdraw(unit uint64) {
	for _, p := range []*part{&j.now, &j.held} {
		for i := range p.ops {
			if p.notes[i].unit != unit {
				continue
			}
			if p.ops[i].Puts() {
				p.bytes -= p.notes[i].size
			}
			p.ops[i] = store.Op{}
		}
	}
}

// redelivered stores a copy's redelivery count.
func (j *journal) redelivered(d *destination, c *queue.Copy) {
	if !c.Stored {
		return
	}
	op := store.Op{Kind: store.SetRedelivery, Dest: d.id, Seq: store.Seq(c.Seq),
		Count: c.Redelivery}
	if p := j.home(c); p != nil {
		j.follow(p, c, op, note{dest: d})
		return
	}
	j.now.add(op, note{unit: j.unit, dest: d})
}

// follow adds a change behind the put of the copy's record, in the put's unit.
func (j *journal) follow(p *part, c *queue.Copy, op store.Op, n note) {
	n.unit = p.notes[c.PutOp].unit
	p.add(op, n)
	if p == &j.held {
		j.hold.count(op, n, 1)
	}
}

// cancel takes a put back that was not handed over, as a change of the unit by ends its copy; 0 is
// no unit.
func (j *journal) cancel(p *part, i int, by uint64) {
	if unit := p.notes[i].unit; by != 0 && by != unit {
		p.ties = append(p.ties, tie{unit, by})
	}
	if p == &j.held {
		j.hold.count(p.ops[i], p.notes[i], -1)
	}
	p.uncount(i)
	p.ops[i] = store.Op{}
}

// uncount takes a put out of the part's bytes; a reference has none, and its message one reference
// less.
func (p *part) uncount(i int) {
	if n := &p.notes[i]; n.log != nil && p.ops[i].Kind == store.PutReference {
		n.log.refs--
	} else {
		p.bytes -= n.size
	}
}

func (j *journal) add(op store.Op) { j.now.add(op, note{unit: j.unit}) }

// touch makes the batch carry the destination's header.
func (j *journal) touch(d *destination) {
	if !d.touched {
		d.touched = true
		j.touched = append(j.touched, d)
	}
}

// addIdle adds a change that goes with whatever is handed over next.
func (j *journal) addIdle(op store.Op) {
	j.add(op)
	j.now.idle++
}

func (j *journal) collected() bool {
	return len(j.now.ops) > j.now.idle || len(j.touched) > 0 || j.drained != nil && j.now.idle > 0
}

// after runs f when everything collected so far is durable: at once when nothing is on its way.
func (j *journal) after(f func()) {
	if !j.collected() && !j.busy && j.held.empty() {
		f()
		return
	}
	j.wait(f)
}

// wait runs f when the batch that collects now is durable.
func (j *journal) wait(f func()) { j.now.waits = append(j.now.waits, wait{f: f, all: true}) }

// afterUnit is after for who depends on the open unit and on headers alone: f need not wait for
// the room that others' puts need.
func (j *journal) afterUnit(f func()) {
	if !j.collected() && !j.busy {
		f()
		return
	}
	j.now.waits = append(j.now.waits, wait{f: f, unit: j.unit})
}

// beforeRead runs f when everything collected so far was handed over, so that a read made by f
// sees it, but for what is held.
func (j *journal) beforeRead(f func()) {
	if !j.collected() {
		f()
		return
	}
	j.reads = append(j.reads, f)
}

// flush hands the collecting batch over, unless one is on its way.
func (j *journal) flush() {
	if j.busy || j.failed != nil || j.ended {
		return
	}
	j.sortHeld()
	if !j.collected() && len(j.now.waits) == 0 {
		reads := j.reads
		j.reads = nil
		for _, f := range reads {
			f()
		}
		if j.drained != nil {
			f := j.drained
			j.drained = nil
			f()
		}
		return
	}
	j.now.dropUnreferred()
	floors := j.floors()
	j.raiseLogs()
	p, touched, reads := j.now, j.touched, j.reads
	headers := make([]store.Header, len(touched))
	p.ops = slices.Grow(p.ops, len(touched))
	for i, d := range touched {
		d.touched = false
		if !d.gone {
			d.headed = true
			d.delivered.handed = d.delivered.below
			h := &headers[i]
			j.hold.header(d, h)
			if d.queue == nil {
				d.head = uint64(h.Head)
				j.lag(d)
			}
			p.ops = append(p.ops, store.Op{Kind: store.PutHeader, Dest: d.id, Header: h})
		}
	}
	for _, d := range floors {
		d.floor = 0
	}
	j.now, j.touched, j.reads = j.newPart(), nil, nil
	j.busy = true
	j.storage.Commit(&store.Batch{Ops: p.ops, Bytes: p.bytes}, func(err error) {
		j.busy = false
		switch {
		case err == nil:
			for _, d := range touched {
				d.delivered.committed()
			}
			j.committed(&p)
			j.reuse(&p)
		case message.KindOf(err) == message.Limit:
			p.ops = p.ops[:len(p.notes)]
			for _, d := range touched {
				j.touch(d)
			}
			j.refused(p, err)
		default:
			j.fail(err)
		}
	})
	for _, f := range reads {
		f()
	}
}

// committed makes a batch's copies durable and answers who waited for them.
func (j *journal) committed(p *part) {
	j.hasRoom()
	for _, p := range p.copies {
		c := p.copy
		j.undurable -= p.size
		if p.dest.queue != nil {
			p.dest.queue.Committed(c)
		}
		if a, ok := c.Arrival.(*arrival); ok && a != nil {
			a.safe(c)
		}
	}
	for _, w := range p.waits {
		w.f()
	}
	j.b.evictAgain()
	j.b.relieve()
}

// fail stops all confirmations: what is not durable now must not be believed.
func (j *journal) fail(err error) {
	j.failed = err
	j.b.tell(Event{Kind: StoreTrouble, Text: "the store failed and nothing more is confirmed: " +
		err.Error()})
}

// drain calls f when nothing is on its way. What is held is tried once more; what has no room then
// stays held, as nobody can tell when it would have.
func (j *journal) drain(f func()) {
	j.drained, j.hold.due = f, true
	j.flush()
}

// header fills in the destination's header for the store.
func (d *destination) header(h *store.Header) {
	*h = store.Header{ID: d.id, Destination: d.name, Reserved: store.Seq(d.reserved),
		Count: d.stored, Bytes: d.storedBytes}
	if d.queue != nil {
		h.DeliveredBelow = store.Seq(d.delivered.below)
	}
	if d.sub != nil {
		h.Subscription = &d.sub.record
	}
	if len(d.marks) > 0 {
		h.ForwardedBelow = make(map[message.BrokerID]store.Seq, len(d.marks))
		for peer, seq := range d.marks {
			h.ForwardedBelow[peer] = store.Seq(seq)
		}
	}
}
