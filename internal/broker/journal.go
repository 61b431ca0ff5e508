package broker

import (
	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// journal collects what a turn changes into one batch. One batch is on its way at a time; what
// comes meanwhile waits in the next one, so that a copy consumed before its record was handed
// over need not be written.
type journal struct {
	b       *Broker
	storage Storage

	batch   *store.Batch
	gen     uint64 // number of the batch that collects
	copies  []putCopy
	waits   []func() // to run when the collecting batch is durable
	reads   []func() // to run when the collecting batch was handed over
	touched []*destination

	busy    bool
	drained func()
	// undurable is the size of the messages handed over or collected and not durable.
	undurable int64
	failed    error
}

type putCopy struct {
	dest *destination
	copy *queue.Copy
	op   int
}

// put stores a copy.
func (j *journal) put(d *destination, c *queue.Copy) {
	c.Stored, c.PutBatch, c.PutOp = true, j.gen, len(j.batch.Ops)
	j.copies = append(j.copies, putCopy{d, c, c.PutOp})
	j.batch.Ops = append(j.batch.Ops, store.Op{Kind: store.PutMessage, Dest: d.id,
		Seq: store.Seq(c.Seq), Message: c.Message})
	size := c.Message.Size()
	j.batch.Bytes += size
	j.undurable += size
	d.stored++
	d.storedBytes += size
	j.touch(d)
}

// remove deletes a copy's record. A record that was not handed over is cancelled; its receipt and
// its sequence stay.
func (j *journal) remove(d *destination, c *queue.Copy) {
	if !c.Stored {
		return
	}
	d.stored--
	d.storedBytes -= c.Message.Size()
	j.touch(d)
	if c.PutBatch == j.gen && c.Redelivery == c.Message.RedeliveryCounter {
		j.batch.Ops[c.PutOp] = store.Op{}
		j.batch.Bytes -= c.Message.Size()
		return
	}
	j.batch.Ops = append(j.batch.Ops, store.Op{Kind: store.DeleteMessage, Dest: d.id,
		Seq: store.Seq(c.Seq), Expiration: c.Message.Expiration})
}

// redelivered stores a copy's redelivery count.
func (j *journal) redelivered(d *destination, c *queue.Copy) {
	if c.Stored {
		j.add(store.Op{Kind: store.SetRedelivery, Dest: d.id, Seq: store.Seq(c.Seq),
			Count: c.Redelivery})
	}
}

func (j *journal) add(op store.Op) { j.batch.Ops = append(j.batch.Ops, op) }

// touch makes the batch carry the destination's header.
func (j *journal) touch(d *destination) {
	if !d.touched {
		d.touched = true
		j.touched = append(j.touched, d)
	}
}

// after runs f when everything collected so far is durable: at once when nothing is on its way.
func (j *journal) after(f func()) {
	if len(j.batch.Ops) == 0 && len(j.touched) == 0 && !j.busy {
		f()
		return
	}
	j.waits = append(j.waits, f)
}

// wait runs f when the batch that collects now is durable.
func (j *journal) wait(f func()) { j.waits = append(j.waits, f) }

// beforeRead runs f when everything collected so far was handed over, so that a read made by f
// sees it.
func (j *journal) beforeRead(f func()) {
	if len(j.batch.Ops) == 0 && len(j.touched) == 0 {
		f()
		return
	}
	j.reads = append(j.reads, f)
}

// flush hands the collecting batch over, unless one is on its way.
func (j *journal) flush() {
	if j.busy || j.failed != nil {
		return
	}
	if len(j.batch.Ops) == 0 && len(j.touched) == 0 && len(j.waits) == 0 {
		if j.drained != nil {
			f := j.drained
			j.drained = nil
			f()
		}
		return
	}
	for _, d := range j.touched {
		d.touched = false
		if !d.gone {
			j.add(store.Op{Kind: store.PutHeader, Dest: d.id, Header: d.header()})
		}
	}
	batch, copies, waits, reads := j.batch, j.copies, j.waits, j.reads
	j.batch, j.copies, j.waits, j.reads, j.touched = &store.Batch{}, nil, nil, nil, nil
	j.gen++
	j.busy = true
	j.storage.Commit(batch, func(err error) {
		j.busy = false
		if err != nil {
			j.fail(err)
			return
		}
		j.committed(copies, waits)
	})
	for _, f := range reads {
		f()
	}
}

// committed makes a batch's copies durable and answers who waited for them.
func (j *journal) committed(copies []putCopy, waits []func()) {
	for _, p := range copies {
		c := p.copy
		j.undurable -= c.Message.Size()
		if p.dest.queue != nil {
			p.dest.queue.Committed(c)
		}
		if a, ok := c.Arrival.(*arrival); ok && a != nil {
			a.safe(c)
		}
	}
	for _, f := range waits {
		f()
	}
	j.b.relieve()
}

// fail stops all confirmations: what is not durable now must not be believed.
func (j *journal) fail(err error) {
	j.failed = err
	j.b.tell(Event{Kind: StoreTrouble, Text: "the store failed and nothing more is confirmed: " +
		err.Error()})
}

// drain calls f when nothing is on its way.
func (j *journal) drain(f func()) {
	j.drained = f
	j.flush()
}

// header gives the destination's header for the store.
func (d *destination) header() *store.Header {
	h := &store.Header{ID: d.id, Destination: d.name, Reserved: store.Seq(d.reserved),
		Count: d.stored, Bytes: d.storedBytes}
	if d.queue != nil {
		h.Head = store.Seq(min(d.queue.OldestStored(), d.reserved))
	}
	if len(d.marks) > 0 {
		h.ForwardedBelow = make(map[message.BrokerID]store.Seq, len(d.marks))
		for peer, seq := range d.marks {
			h.ForwardedBelow[peer] = store.Seq(seq)
		}
	}
	return h
}
