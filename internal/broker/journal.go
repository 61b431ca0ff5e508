package broker

import (
	"strconv"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// journal collects what a turn changes into one batch for the store: units (unit.go), headers of
// the destinations that they touch, and what is about none. One batch is on its way at a time; what
// comes meanwhile waits in the next one, so that a copy consumed before its record was handed over
// need not be written: its put is taken back where it stands, and what is left of the put's unit is
// durable no earlier than the unit that ended the copy. A copy knows what puts it until that is
// durable. A batch that the store has no room for comes back, and those of its units that put are
// held (held.go), whole as they are. Who waits says what for:
//
//	whenAllDurable  all that was collected, and what is held: whoever answers for what others did.
//	                Duplicates, doubts, commits that send, heirs, a stop's last word
//	whenDurable     the open unit, if there is one, and headers: whoever answers for what he did.
//	                Receipts, acknowledgements, commits that only acknowledge, marks, subscriptions,
//	                what is removed by hand. It need not wait for the room that others' puts need
//	whenHandedOver  the next batch is on its way, so that a read sees it, but for what is held:
//	                pages, searches
type journal struct {
	b       *Broker
	storage Storage

	now   part // collects
	held  part // waits for room in the store
	hold  holding
	open  *unit // of the changes to come; nil: each is one of its own
	puts  int   // copies ever stored
	reads []func()

	freeUnits pool[unit]
	freeOps   pool[op]
	spare     part // empty; its memory is for the next one

	// sequences is above the broker sequence of every stored message, durably or in a batch.
	sequences int64
	touched   []*destination
	looks     []*destination // logs whose heads may rise in the next batch

	busy    bool
	ops     []store.Op // of the batch on its way
	drained func()     // runs when all is durable that there is room for
	ended   bool       // nothing more is handed over
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

func newJournal(b *Broker, storage Storage) journal {
	return journal{b: b, storage: storage, sequences: b.sequence,
		hold: holding{deltas: map[*destination]*delta{}}}
}

// enter opens a unit, unless one is open; leave closes what enter opened.
func (j *journal) enter() bool {
	if j.open != nil {
		return false
	}
	j.open = j.freeUnits.get()
	return true
}

func (j *journal) leave(opened bool) {
	if opened {
		if u := j.open; len(u.ops) == 0 && !u.named {
			j.freeUnits.put(u)
		}
		j.open = nil
	}
}

// apart runs f in a unit of its own, and gives that.
func (j *journal) apart(f func()) (u *unit) {
	was := j.open
	j.open = &unit{named: true}
	f()
	u = j.open
	j.open = was
	return u
}

// current gives the unit that a change belongs to: the open one, one of loose changes if nothing
// came behind that, or a new one.
func (j *journal) current(loose bool) *unit {
	if j.open != nil {
		return j.open
	}
	if n := len(j.now.units); loose && n > 0 && j.now.units[n-1].loose {
		return j.now.units[n-1]
	}
	u := j.freeUnits.get()
	u.loose = loose
	return u
}

// change adds a change to a unit; nil is the one that it belongs to.
func (j *journal) change(u *unit, d *destination, x *store.Op, size int64) *op {
	if u == nil {
		u = j.current(!x.Puts())
	}
	if len(u.ops) == 0 {
		j.now.add(u, collected)
	}
	o := j.freeOps.get()
	o.Op, o.dest, o.size, o.off, o.unit = *x, d, size, false, u
	u.ops = append(u.ops, o)
	if o.Puts() {
		u.puts++
	}
	if u.place == held {
		j.hold.count(o, 1)
	}
	return o
}

// add adds a change that is about no copy's record.
func (j *journal) add(x store.Op) {
	switch x.Kind {
	case store.PutMeta:
		j.now.meta = append(j.now.meta, x)
	case store.DropReceipts, store.DropNumbers:
		j.now.drops = append(j.now.drops, x)
	default:
		j.change(nil, nil, &x, 0)
	}
}

// addIdle adds a change that goes with whatever is handed over next.
func (j *journal) addIdle(x store.Op) {
	j.add(x)
	j.now.idle++
}

// put stores a copy.
func (j *journal) put(d *destination, c *queue.Copy) {
	o := j.putAs(d, c, &store.Op{Kind: store.PutMessage, Dest: d.id, Seq: store.Seq(c.Seq),
		Message: c.Message})
	j.onItsWay(o.unit, o.size)
}

func (j *journal) putAs(d *destination, c *queue.Copy, x *store.Op) *op {
	o := j.change(nil, d, x, c.Message.Size())
	o.copy = c
	c.Stored, c.Put = true, o
	j.puts++
	j.reserveSequence(c.Message.BrokerSequence)
	d.stored++
	d.storedBytes += o.size
	j.touch(d)
	return o
}

// onItsWay counts a message that is not durable before a unit is.
func (j *journal) onItsWay(u *unit, size int64) {
	u.undurable += size
	j.undurable += size
}

// reserveSequence makes the next start count on above a stored message's broker sequence.
func (j *journal) reserveSequence(n int64) {
	if n >= j.sequences {
		j.sequences = n + sequenceReserve
		j.add(store.Op{Kind: store.PutMeta, Name: metaNextSequence,
			Value: strconv.AppendInt(nil, j.sequences, 10)})
	}
}

// remove deletes a copy's record. A record that was not handed over is cancelled; its receipt and
// its sequence stay, and need no room.
func (j *journal) remove(d *destination, c *queue.Copy) {
	if !c.Stored {
		if c.Spooled || c.Put != nil {
			j.b.spool.remove(d, c)
		}
		return
	}
	put := unwritten(c)
	if put == nil {
		j.delete(d, c, store.Seq(c.Seq), c.Message.Expiration, c.Message.Size())
	} else {
		j.ends(d, 1, c.Message.Size())
		j.cancel(put, j.open)
	}
	if d.sub != nil {
		if t := j.b.dests[c.Message.Destination]; t != nil && t.queue == nil {
			j.look(t)
		}
	}
}

// delete deletes a record; c is nil when it is durable.
func (j *journal) delete(d *destination, c *queue.Copy, seq store.Seq, expiration, size int64) {
	j.ends(d, 1, size)
	j.alter(d, c, &store.Op{Kind: store.DeleteMessage, Dest: d.id, Seq: seq,
		Expiration: expiration}, size)
}

// alter adds a change of a copy's record, or of a durable one without c. A redelivery count goes
// behind the put that was not handed over, into its unit, instead of the one that is there.
func (j *journal) alter(d *destination, c *queue.Copy, x *store.Op, size int64) {
	if put := unwritten(c); put != nil {
		if put.count != nil {
			j.off(put.count)
		}
		put.count = j.change(put.unit, d, x, size)
	} else if o := j.change(nil, d, x, size); c != nil && c.Put != nil {
		o.copy = c // its put may come back
	}
}

// cancel takes a put back that was not handed over, as a change of the unit by, if there is one,
// ends its copy.
func (j *journal) cancel(put *op, by *unit) {
	if u := put.unit; by != nil && by != u {
		u.behind, by.named = append(u.behind, by), true
	}
	j.off(put)
}

// off takes a change back that was not handed over. A topic's message goes with its last reference.
func (j *journal) off(o *op) {
	if o.off {
		return
	}
	o.off = true
	if o.unit.place == held {
		j.hold.count(o, -1)
	}
	if o.Puts() {
		if o.unit.puts--; o.unit.puts == 0 && o.unit.place == held {
			j.hold.spent = append(j.hold.spent, o.unit)
		}
		if o.count != nil {
			j.off(o.count)
		}
	}
	if l := o.log; l != nil && o.Kind == store.PutReference {
		if l.refs--; l.refs == 0 {
			j.off(l.put)
		}
	}
}

// withdraw takes back a unit that was not handed over, or came back for lack of room.
func (j *journal) withdraw(u *unit) {
	for _, o := range u.ops {
		j.off(o)
	}
}

// ends counts records out.
func (j *journal) ends(d *destination, n, size int64) {
	d.stored -= n
	d.storedBytes -= size
	if d.stored == 0 && len(j.hold.deltas) == 0 {
		d.storedBytes = 0 // sizes of what was lost are not known
	}
	j.touch(d)
}

// lose deletes the record of a message that cannot be read.
func (j *journal) lose(d *destination, s *store.Stored) {
	size := j.writeOff(d, 1)
	j.alter(d, nil, &store.Op{Kind: store.DeleteMessage, Dest: d.id, Seq: s.Seq,
		Expiration: s.Expiration}, size)
}

// redelivered stores a copy's redelivery count.
func (j *journal) redelivered(d *destination, c *queue.Copy) {
	if c.Stored {
		j.alter(d, c, &store.Op{Kind: store.SetRedelivery, Dest: d.id, Seq: store.Seq(c.Seq),
			Count: c.Redelivery}, 0)
	}
}

// touch makes the batch carry the destination's header.
func (j *journal) touch(d *destination) {
	if !d.touched {
		d.touched = true
		j.touched = append(j.touched, d)
	}
}

// collects reports whether there is a reason to hand something over.
func (j *journal) collects() bool {
	p := &j.now
	return len(p.units)+len(p.meta)+len(j.touched) > 0 || len(p.drops) > p.idle ||
		j.drained != nil && len(p.drops) > 0
}

// whenAllDurable runs f when everything collected so far is durable: at once when nothing is on its
// way.
func (j *journal) whenAllDurable(f func()) {
	if !j.collects() && !j.busy && j.held.empty() {
		f()
		return
	}
	j.now.waits = append(j.now.waits, wait{f: f, all: true})
}

// whenDurable is whenAllDurable for who depends on the open unit and on headers alone.
func (j *journal) whenDurable(f func()) {
	if !j.collects() && !j.busy {
		f()
		return
	}
	w := wait{f: f}
	if j.open != nil && len(j.open.ops) > 0 {
		w.unit = j.open
	}
	j.now.waits = append(j.now.waits, w)
}

// whenHandedOver runs f when everything collected so far was handed over, but for what is held.
func (j *journal) whenHandedOver(f func()) {
	if !j.collects() {
		f()
		return
	}
	j.reads = append(j.reads, f)
}

// flush hands the collecting part over, unless a batch is on its way.
func (j *journal) flush() {
	if j.busy || j.failed != nil || j.ended {
		return
	}
	if j.open != nil {
		panic("broker: a batch is handed over within a unit")
	}
	j.sortHeld()
	if !j.collects() && len(j.now.waits) == 0 {
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
	floors := j.floors()
	j.raiseLogs()
	p, touched, reads := j.now, j.touched, j.reads
	bytes := j.write(&p)
	j.writeHeaders(touched)
	for _, d := range floors {
		d.floor = 0
	}
	j.now, j.touched, j.reads = j.newPart(), nil, nil
	j.busy = true
	j.storage.Commit(&store.Batch{Ops: j.ops, Bytes: bytes}, func(err error) {
		j.busy = false
		clear(j.ops)
		if j.ops = j.ops[:0]; cap(j.ops) > poolMost {
			j.ops = nil
		}
		switch {
		case err == nil:
			for _, d := range touched {
				d.delivered.committed()
			}
			j.committed(&p)
			j.reuse(&p)
		case message.KindOf(err) == message.Limit:
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

// write fills a batch with what is in a part, and gives the size of its messages.
func (j *journal) write(p *part) (bytes int64) {
	j.ops = append(append(j.ops, p.meta...), p.drops...)
	for _, u := range p.units {
		u.place = handedOver
		for _, o := range u.ops {
			switch {
			case o.off, o.Kind == store.PutNumber && !o.dest.producers.Kept(o.ID.Producer):
				continue // of a number its producer is forgotten since
			case o.Kind == store.PutMessage:
				bytes += o.size
			}
			j.ops = append(j.ops, o.Op)
		}
	}
	return bytes
}

// writeHeaders adds the headers of the destinations that are touched.
func (j *journal) writeHeaders(touched []*destination) {
	headers := make([]store.Header, len(touched))
	for i, d := range touched {
		d.touched = false
		if d.gone {
			continue
		}
		d.headed = true
		d.delivered.handed = d.delivered.below
		h := &headers[i]
		j.hold.header(d, h)
		if d.queue == nil {
			d.head = uint64(h.Head)
			j.lag(d)
		}
		j.ops = append(j.ops, store.Op{Kind: store.PutHeader, Dest: d.id, Header: h})
	}
}

// committed makes a batch's copies durable and answers who waited for them.
func (j *journal) committed(p *part) {
	j.hasRoom()
	for _, u := range p.units {
		j.undurable -= u.undurable
		for _, o := range u.ops {
			if o.copy != nil && o.Puts() {
				o.durable()
			}
		}
	}
	for _, w := range p.waits {
		w.f()
	}
	j.b.evictAgain()
	j.b.relieve()
}

// durable tells who waits for the copy that it puts.
func (o *op) durable() {
	c := o.copy
	c.Put = nil
	if o.dest.queue != nil {
		o.dest.queue.Committed(c)
	}
	if a, ok := c.Arrival.(*arrival); ok && a != nil {
		a.safe(c)
	}
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
