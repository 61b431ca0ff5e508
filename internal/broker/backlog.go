package broker

import (
	"maps"
	"slices"

	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/plural"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// backlog holds the topic messages that a consumer, or a bridge's subscription, has no room for
// yet. While memory is short what is in the middle of it is in the spool:
//
//	items, which go next | records, and what stays between them | tail, which came since
//
// What stays are the messages of topics whose policies keep them in memory (vmCursor).
type backlog struct {
	b          *Broker
	of         interface{ paged() }
	items      fifo[backlogItem]
	messages   int   // of items, that are no advisories
	bytes      int64 // in memory, without advisories
	advisories int64 // bytes of them

	spools bool // may have messages in the spool
	place  int  // in spool.backlogs, from 1 on; 0: it is not there
	backlogSpool
}

// backlogSpool is what of a backlog is in the spool, or behind what is there. The destination of
// the records has no queue, and nobody finds it by its name.
type backlogSpool struct {
	dest       *destination // nil: nothing ever was in the spool
	first, end store.Seq    // the records are from first to end
	next       store.Seq    // of the record that is made next
	records    int64
	stays      fifo[stayed]
	recordsOf  map[message.Destination]recordsOf
	page       int64 // bytes that are read at once
	reading    bool
	tail       fifo[backlogItem]
	behind     int64      // bytes of stays and tail
	onTheirWay []onItsWay // the first ones of tail
}

// stayed is a message that stays in memory. Invariant: the sequences of those, and of the records,
// are as they came.
type stayed struct {
	backlogItem
	seq store.Seq
}

// onItsWay is one that gets a record; without a put it stays, between those that do.
type onItsWay struct {
	seq store.Seq
	put *spoolPut
}

// spillLooks is how many that stay are passed over, at most, for one more that goes with others.
const spillLooks = 1000

type recordsOf struct {
	dest  *destination
	count int64
}

// advisoryBacklogBytes is how many bytes of advisories may wait for one consumer. They are in no
// destination's usage, so no policy bounds them. A client loses the oldest, which it is told again
// when it subscribes again; a bridge would not know of demand: its connection is closed, and it
// begins anew.
const advisoryBacklogBytes = 64 << 20

type backlogItem struct {
	dest *destination // whose usage is charged; nil for advisories
	name message.Destination
	m    *message.Message
}

// mayBeSpooled looks whether what waits may be spooled: not where advisories wait too, which are of
// no destination, nor where a limit of their number is to bound them.
func (q *backlog) mayBeSpooled(members []message.Destination) {
	q.spools = q.b.spool.storage != nil
	for _, m := range members {
		q.spools = q.spools && !m.IsAdvisory()
	}
}

// ready is how many are in memory and go next.
func (q *backlog) ready() int { return q.items.len() }

// len is how many wait.
func (q *backlog) len() int { return q.ready() + int(q.records) + q.stays.len() + q.tail.len() }

// unread reports whether some wait, and what goes next is in the spool.
func (q *backlog) unread() bool { return q.ready() == 0 && q.len() > 0 }

func (q *backlog) push(it backlogItem) {
	q.charge(it)
	if it.dest == nil || q.len() == q.ready() {
		q.items.push(it)
		if it.dest != nil {
			q.messages++
		}
	} else {
		q.tail.push(it)
		q.behind += it.m.Size()
	}
	if q.spools && it.dest != nil && q.b.spool.takes(it.dest) {
		q.b.spool.list(q)
	}
}

func (q *backlog) pop() backlogItem {
	it := q.items.pop()
	q.out(it)
	q.goOn()
	return it
}

// out counts one that was in items and is out.
func (q *backlog) out(it backlogItem) {
	if it.dest != nil {
		q.messages--
	}
	q.uncharge(it)
}

func (q *backlog) charge(it backlogItem) {
	size := it.m.Size()
	if it.dest == nil {
		q.advisories += size
		q.b.memory.Add(size)
		return
	}
	if q.bytes += size; !it.dest.gone {
		it.dest.usage.Add(size)
	}
}

// uncharge gives back what one took that leaves memory.
func (q *backlog) uncharge(it backlogItem) {
	size := it.m.Size()
	if it.dest == nil {
		q.advisories -= size
		q.b.memory.Add(-size)
		return
	}
	if q.bytes -= size; !it.dest.gone {
		it.dest.usage.Add(-size)
	}
}

// release ends all that waits.
func (q *backlog) release() {
	q.each(q.uncharge)
	q.items, q.messages = fifo[backlogItem]{}, 0
	if q.dest != nil {
		q.b.spool.drop(q.dest)
		q.dest.gone = true
	}
	q.b.spool.unlist(q)
	q.spools, q.backlogSpool = false, backlogSpool{}
}

// each gives all that is in memory.
func (q *backlog) each(f func(backlogItem)) {
	for _, it := range q.items.all() {
		f(it)
	}
	for _, it := range q.stays.all() {
		f(it.backlogItem)
	}
	for _, it := range q.tail.all() {
		f(it)
	}
}

// spill gives copies of what is in memory beyond the first page, the oldest first, that are to be
// spooled: so many bytes, or what there is, and gives how many.
func (q *backlog) spill(c *choice, need, page int64) (found int64) {
	q.part(page)
	passed := 0
	for len(q.onTheirWay) < q.tail.len() && found < need && !c.full() && passed < spillLooks {
		it, seq := q.tail.at(len(q.onTheirWay)), q.next
		q.next++
		switch {
		case q.b.spool.takes(it.dest):
			p := &spoolPut{dest: q.dest, of: q, size: it.m.Size(),
				copy: &queue.Copy{Seq: uint64(seq), Message: it.m}}
			q.onTheirWay = append(q.onTheirWay, onItsWay{seq, p})
			c.puts, c.size = append(c.puts, p), c.size+p.size
			found += p.size
		case len(q.onTheirWay) == 0: // once, however many
			q.stays.push(stayed{q.tail.pop(), seq})
		default:
			q.onTheirWay = append(q.onTheirWay, onItsWay{seq: seq})
			passed++
		}
	}
	return found
}

// part has what is in memory beyond a page be the tail.
func (q *backlog) part(page int64) {
	if q.dest == nil {
		q.dest = q.b.newDestination(q.items.at(0).name, q.b.nextDest, policy.NewEntry())
		q.b.nextDest++
		q.first, q.end, q.next = 1, 1, 1
		q.recordsOf = map[message.Destination]recordsOf{}
	}
	q.page = max(1, page)
	if q.len() > q.ready() {
		return
	}
	i, bytes := 0, int64(0)
	for ; i < q.items.len() && bytes < q.page; i++ {
		bytes += q.items.at(i).m.Size()
	}
	q.tail = q.items.split(i)
	q.messages -= q.tail.len()
	q.behind = q.bytes - bytes
}

// leave lets what was on its way leave memory, as there is a record of it now.
func (q *backlog) leave() {
	for _, w := range q.onTheirWay {
		it := q.tail.pop()
		if w.put == nil {
			q.stays.push(stayed{it, w.seq})
			continue
		}
		q.uncharge(it)
		q.behind -= w.put.size
		of := q.recordsOf[it.name]
		q.recordsOf[it.name] = recordsOf{it.dest, of.count + 1}
		q.records++
		q.end = w.seq + 1
	}
	q.onTheirWay = nil
	q.goOn()
}

// goOn sees to it that what goes next is in memory, or will be.
func (q *backlog) goOn() {
	switch {
	case q.reading:
	case q.records > 0:
		if q.bytes-q.behind <= q.page/2 {
			q.read()
		}
	case q.stays.len() > 0:
		for q.stays.len() > 0 && q.bytes-q.behind <= q.page/2 {
			q.goesNext()
		}
	case q.ready() == 0 && q.tail.len() > 0:
		for _, w := range q.onTheirWay {
			if w.put != nil {
				w.put.over = true
			}
		}
		q.items, q.messages = q.tail, q.tail.len()
		q.tail, q.behind, q.onTheirWay = fifo[backlogItem]{}, 0, nil
		q.first, q.end = q.next, q.next
	}
}

// goesNext has the first one of those that stay go next.
func (q *backlog) goesNext() {
	it := q.stays.pop().backlogItem
	q.items.push(it)
	q.messages++
	q.behind -= it.m.Size()
}

// read reads a page.
func (q *backlog) read() {
	q.reading = true
	dest, to := q.dest, q.end
	q.b.journal.storage.Page(store.PageRequest{Dest: dest.id, From: q.first, To: to,
		Count: queue.PageCopies, Bytes: q.page}, func(page []store.Stored, err error) {
		switch {
		case dest.gone:
		case err != nil:
			q.b.tell(Event{Kind: StoreTrouble, Dest: dest.name,
				Text: "a page of spooled messages could not be read: " + err.Error()})
			q.b.env.After(retryMost, func() {
				if !dest.gone {
					q.read()
				}
			})
		default:
			q.take(page, to)
		}
	})
}

// take takes a page. Its records end: what is in memory is not spooled again.
func (q *backlog) take(page []store.Stored, to store.Seq) {
	q.reading = false
	if len(page) == 0 {
		q.first = to
	}
	for i := range page {
		s := &page[i]
		q.first = s.Next()
		for q.stays.len() > 0 && q.stays.at(0).seq < s.Seq {
			q.goesNext()
		}
		if s.To > 0 || s.Message == nil {
			q.b.spool.deleteRange(q.dest, uint64(s.Seq), uint64(s.Next()))
			continue
		}
		of := q.recordsOf[s.Message.Destination]
		if of.count--; of.count > 0 {
			q.recordsOf[s.Message.Destination] = of
		} else {
			delete(q.recordsOf, s.Message.Destination)
		}
		q.records--
		it := backlogItem{of.dest, s.Message.Destination, s.Message}
		q.charge(it)
		q.items.push(it)
		q.messages++
		q.b.spool.delete(q.dest, s.Seq, 0, s.Message.Size())
	}
	if q.first >= q.end {
		q.miss()
	}
	q.goOn()
	q.of.paged()
}

// spilledNames gives the topics of the records.
func (q *backlog) spilledNames() []message.Destination {
	return slices.SortedFunc(maps.Keys(q.recordsOf), message.Destination.Compare)
}

// miss takes records off the books that were not there, or could not be read.
func (q *backlog) miss() {
	if q.records == 0 {
		return
	}
	q.b.spool.writeOff(q.dest, q.records)
	for _, name := range q.spilledNames() {
		of := q.recordsOf[name]
		if of.count == 0 {
			continue
		}
		q.b.trouble(of.dest, message.Unreadable, of.count, plural.Of(of.count, "spooled message")+
			" of a slow consumer "+plural.Form(of.count, "is", "are")+" lost: "+
			plural.Form(of.count, "it", "they")+" cannot be read")
	}
	q.records = 0
	clear(q.recordsOf)
}
