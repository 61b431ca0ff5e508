package broker

import (
	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/store"
)

// A topic's messages that durable subscriptions keep are stored once, in the topic's log; each
// subscription has references to them. All sequences are drawn from one counter, so that a
// subscription of several topics has one order. What all subscriptions are through with ends when
// the log's head rises.

// topicLog is what a topic keeps for durable subscriptions: each message once, from head on.
type topicLog struct {
	logged  uint64   // the last sequence
	head    uint64   // as last handed over
	floor   uint64   // while a batch is made: the lowest message put
	looked  bool     // is in the journal's looks
	shares  []*share // of the subscriptions that it keeps messages for
	keepers []*share // those with last > 0
	blocker int      // in keepers, where holding.blocked goes on
}

// logPut is one message's record in its topic's log, while it is collected. It is not written when
// no reference to it is.
type logPut struct {
	topic *destination
	put   *op
	refs  int // that are not taken back
}

// retain lets every durable subscription of a topic that wants the message have a copy, by way of
// add: now waiting, or out until a transaction commits.
func (b *Broker) retain(d *destination, m *message.Message, a *arrival,
	add func(*destination, *message.Message, uint64) *queue.Copy) {
	var log *logPut
	seq := uint64(0)
	for _, h := range d.shares {
		s := h.sub
		if why := s.refuses(m); why != "" {
			s.dest.reasons[why]++
			continue
		}
		if s.active == nil && (!m.Persistent || !b.opt.Persistent) && s.dest.usage.Full() {
			b.drop(s.dest, message.MemoryFull, m) // nobody may ever come for it
			continue
		}
		if seq == 0 {
			seq = b.nextLogged(m)
			if m.Persistent && b.opt.Persistent {
				log = b.journal.log(d, seq, m)
			}
		}
		s.dest.reserveTo(b, seq)
		if log != nil {
			h.keep(seq)
		}
		b.kept(s.dest, add(s.dest, m, seq), log, a)
	}
}

// nextLogged gives the sequence of a message in the logs: its broker sequence, or another one when
// that has a copy in them already.
func (b *Broker) nextLogged(m *message.Message) uint64 {
	if m.BrokerSequence <= b.logged {
		b.sequence++
		m.BrokerSequence = b.sequence
	}
	b.logged = m.BrokerSequence
	return uint64(b.logged)
}

// addLogged lets a copy wait.
func (b *Broker) addLogged(d *destination, m *message.Message, seq uint64) *queue.Copy {
	return d.queue.AddAs(seq, m, b.env.Mono())
}

// kept counts a subscription's new copy and stores its reference.
func (b *Broker) kept(d *destination, c *queue.Copy, log *logPut, a *arrival) {
	size := c.Message.Size()
	d.usage.Add(size)
	d.counts.Enqueued++
	d.counts.Bytes += size
	if log == nil {
		b.spool.added(d)
		return
	}
	b.journal.refer(d, c, log)
	if a != nil {
		a.unsafe++
		c.Arrival = a
	}
}

// log stores a message in a topic's log, if a reference to it is stored with it.
func (j *journal) log(d *destination, seq uint64, m *message.Message) *logPut {
	d.reserveTo(j.b, seq)
	d.logged = seq
	o := j.change(nil, nil, &store.Op{Kind: store.PutMessage, Dest: d.id, Seq: store.Seq(seq),
		Message: m}, m.Size())
	o.log = &logPut{topic: d, put: o}
	j.onItsWay(o.unit, o.size)
	o.unit.logs++
	j.now.logs++
	return o.log
}

// refer stores a subscription's copy as a reference, in the unit of the message.
func (j *journal) refer(d *destination, c *queue.Copy, l *logPut) {
	l.refs++
	j.putAs(d, c, &store.Op{Kind: store.PutReference, Dest: d.id, Seq: store.Seq(c.Seq),
		Source: l.topic.id, Expiration: c.Message.Expiration}).log = l
}

// trim looks where the stored copies begin that are not in memory: those that ended there were not
// read one by one, and the logs keep their messages until that is known.
func (h *queueHost) trim() {
	from, ok := h.queue.Gap(0)
	if !ok || h.dest.gone || from > h.queue.OldestStored() {
		return
	}
	to := h.queue.OldestResident() // what leaves memory meanwhile is above
	h.b.journal.whenHandedOver(func() {
		h.b.journal.storage.Page(store.PageRequest{Dest: h.dest.id, From: store.Seq(from),
			To: store.Seq(to), Count: 1}, func(page []store.Stored, err error) {
			if err != nil || h.dest.gone {
				return // the next search looks again
			}
			if len(page) > 0 {
				to = uint64(page[0].Seq)
			}
			h.queue.Absent(from, to)
			h.b.journal.touch(h.dest)
			for _, k := range h.dest.sub.keeps {
				h.b.journal.look(k.log) // the references to it were removed before
			}
		})
	})
}

// logStep is how far a log's head stays behind while messages are left, so that few batches carry
// its header.
const logStep = 256

// floors finds the logs that messages are put into by what goes out or is held, and the lowest
// sequence of those in each: no head may rise above it. They are the caller's to clear.
func (j *journal) floors() (logs []*destination) {
	for _, p := range []*part{&j.now, &j.held} {
		if p.logs == 0 {
			continue
		}
		for o := range p.changes() {
			if o.log == nil || o.Kind != store.PutMessage {
				continue
			}
			t, seq := o.log.topic, uint64(o.Seq)
			if t.floor == 0 {
				logs = append(logs, t)
			}
			if t.floor == 0 || seq < t.floor {
				t.floor = seq
			}
		}
	}
	return logs
}

// look has the next batch see whether a log's head can rise.
func (j *journal) look(t *destination) {
	if !t.looked {
		t.looked = true
		j.looks = append(j.looks, t)
	}
}

// raiseLogs has the logs that touched subscriptions are through with, and those that references to
// were removed, raise their heads in this batch. The head of a log that a subscription is further
// on in, but removed no reference to, rises when one is removed, or none is left.
func (j *journal) raiseLogs() {
	for _, d := range j.touched {
		if d.sub != nil {
			head, keeps := j.hold.head(d)
			d.sub.through(uint64(head), keeps, j.look)
		}
	}
	logs := j.looks
	j.looks = nil
	for _, t := range logs {
		t.looked = false
		if j.rises(t) {
			j.touchLog(t)
		} else {
			j.lag(t)
		}
	}
}

// rises reports whether a log's head can rise as far as is worth a header: to the end, or a step.
func (j *journal) rises(t *destination) bool {
	above := min(t.head+logStep, max(t.head, t.logged))
	return t.top() > above && !j.hold.blocked(t, above)
}

// lag has the next batch look again at a log that nobody keeps messages of and that has some, as
// they were under way.
func (j *journal) lag(t *destination) {
	if t.floor > 0 && !t.gone && t.head <= t.logged && len(t.keepers) == 0 {
		j.look(t)
	}
}

// keepAll notes, of a batch that came back, that its subscriptions keep messages: the ends of these
// wait for room now.
func (j *journal) keepAll(p *part) {
	done := map[*destination]bool{}
	for o := range p.changes() {
		d := o.dest
		if d == nil || d.sub == nil || d.gone || o.Kind != store.DeleteMessage || done[d] {
			continue
		}
		done[d] = true
		for _, h := range d.sub.shares {
			h.keep(h.log.logged)
		}
	}
}

// touchLog makes the batch carry the header of a topic's log, if it has one.
func (j *journal) touchLog(d *destination) {
	if d.reserved > 0 && !d.gone {
		j.touch(d)
	}
}

// head is the sequence that no stored copy of a queue is below, and whether it has any, as the
// store knows it: without what is held.
func (h *holding) head(d *destination) (head store.Seq, keeps bool) {
	head, keeps = store.Seq(min(d.queue.OldestStored(), d.reserved)), d.stored > 0
	if x := h.deltas[d]; x != nil && x.head > 0 {
		head, keeps = min(head, store.Seq(x.head)), true
	}
	return head, keeps
}

// top is the sequence that a log's head cannot rise above, whoever needs its messages.
func (d *destination) top() uint64 {
	top := min(d.logged+1, d.reserved)
	if d.floor > 0 {
		top = min(top, d.floor)
	}
	return top
}

// logHead is the sequence that no subscription needs a message of the log below.
func (h *holding) logHead(d *destination) store.Seq {
	head := store.Seq(d.top())
	for _, k := range d.keepers {
		if x, keeps := h.head(k.sub.dest); keeps {
			head = min(head, x)
		}
	}
	return head
}
