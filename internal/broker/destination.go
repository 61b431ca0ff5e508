package broker

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"hopwire/internal/broker/queue"
	"hopwire/internal/broker/recall"
	"hopwire/internal/broker/usage"
	"hopwire/internal/message"
	"hopwire/internal/policy"
	"hopwire/internal/store"
)

// metaNextDest is the name under which the store keeps the number of the next destination, as
// decimal text, once one was removed.
const metaNextDest = "nextDest"

// NextDest reads from a store what Options.NextDest wants, 0 when there is nothing.
func NextDest(st interface {
	Meta(name string) ([]byte, error)
}) (store.DestID, error) {
	n, err := number(st, metaNextDest)
	return store.DestID(n), err
}

// Metas are the names of the small facts that brokers keep in their stores.
func Metas() []string { return []string{metaNextDest, metaNextSequence, metaPeers, metaPatience} }

// DropAll gives the changes that empty a store; next is its NextDest. What the store still has of
// these destinations names none that is made later: their numbers are not given again.
func DropAll(headers []store.Header, next store.DestID) []store.Op {
	var ops []store.Op
	for _, h := range headers {
		ops = append(ops, store.Op{Kind: store.DropDestination, Dest: h.ID})
		next = max(next, h.ID+1)
	}
	return append(ops, putNextDest(next))
}

func putNextDest(n store.DestID) store.Op {
	return store.Op{Kind: store.PutMeta, Name: metaNextDest,
		Value: strconv.AppendUint(nil, uint64(n), 10)}
}

func number(st interface {
	Meta(name string) ([]byte, error)
}, name string) (uint64, error) {
	text, err := st.Meta(name)
	if err != nil || text == nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0, message.Errorf(message.Corrupt, "the store's %s is %q: %w", name, text, err)
	}
	return n, nil
}

// metaNextSequence is the name under which the store keeps a broker sequence that no stored message
// has reached, as decimal text; sequenceReserve is how far ahead it is.
const (
	metaNextSequence = "nextSequence"
	sequenceReserve  = 100_000
)

// NextSequence reads from a store what Options.NextSequence wants, 0 when there is nothing.
func NextSequence(st interface {
	Meta(name string) ([]byte, error)
}) (int64, error) {
	n, err := number(st, metaNextSequence)
	if err == nil && n > math.MaxInt64 {
		err = message.Errorf(message.Corrupt, "the store's %s is %d", metaNextSequence, n)
	}
	return int64(n), err
}

// sequenceBlock is how many sequences a header reserves ahead.
const sequenceBlock = 1000

// destination is one queue or topic with all that belongs to it: what it has in common stands here,
// the rest with those who work on it.
type destination struct {
	name   message.Destination
	id     store.DestID
	policy *policy.Entry
	usage  *usage.Usage
	gone   bool

	composite *Composite // that the file has of the name

	queue     *queue.Queue  // queues
	sub       *subscription // whose queue this is
	host      *queueHost
	consumers []*consumer // clients' consumers, in the order of their making
	nets      []*netSub   // bridges' subscriptions
	pulls     []*pull     // those that wait for the end of a dispatch
	slowLook  slowLook
	durables  int // of consumers: those of durable subscriptions
	browsers  int // of clients, that name it

	topicLog
	retention
	recorded
	spooled spoolRecords
	history
	parkingLot
	ownership
	idleness

	producerCount int
	counts        DestinationCounts
	reasons       map[message.Reason]int64
}

// DestinationCounts are one destination's totals.
type DestinationCounts struct {
	Enqueued, Dequeued, Dispatched, Expired, Forwarded, Duplicates int64
	Bytes                                                          int64 // of all enqueued
}

// Limits of a destination's name, in bytes, and of a composite's members. Advisory topics carry
// the name of another destination behind their own prefix.
const (
	maxNameBytes     = 4096
	maxAdvisoryBytes = maxNameBytes + 256
	maxMembers       = 1024
)

// testName refuses a name that no destination may have.
func testName(d message.Destination) error {
	if d.Kind < message.Queue || d.Kind > message.TempTopic {
		return message.Errorf(message.InvalidDestination, "no destination is named")
	}
	if !d.IsComposite() {
		return testMember(d)
	}
	members := d.Split()
	if len(members) == 0 || len(members) > maxMembers {
		return message.Errorf(message.InvalidDestination,
			"%s %.80s names %d destinations: it must be one at least and %d at most",
			d.Kind, d.Name, len(members), maxMembers)
	}
	for _, m := range members {
		if err := testMember(m); err != nil {
			return err
		}
	}
	return nil
}

func testMember(d message.Destination) error {
	limit := maxNameBytes
	if d.IsAdvisory() {
		limit = maxAdvisoryBytes
	}
	switch {
	case d.Name == "":
		return message.Errorf(message.InvalidDestination, "a destination has no name")
	case len(d.Name) > limit:
		return message.Errorf(message.InvalidDestination,
			"the name of %s %.80s... is %d bytes long, the limit is %d",
			d.Kind, d.Name, len(d.Name), limit)
	}
	return nil
}

// find gives a destination that exists.
func (b *Broker) find(name message.Destination) *destination { return b.dests[name] }

// destination gives the destination, made if need be.
func (b *Broker) destination(name message.Destination) *destination {
	if d := b.dests[name]; d != nil {
		return d
	}
	return b.add(name, nil)
}

// add makes a destination; path is by way of whom the owner of a mirror is reached.
func (b *Broker) add(name message.Destination, path []message.BrokerID) *destination {
	d := b.make(name, b.nextDest)
	d.vouch(path)
	b.nextDest++
	if name.Kind == message.Queue && b.opt.Persistent {
		b.journal.touch(d)
	}
	b.join(d)
	b.adviseDestination(d, message.AddDestination)
	b.tell(Event{Kind: DestinationAdded, Dest: name})
	if name.IsTemp() {
		b.announced(name)
	}
	if isVirtual(name) {
		b.tell(Event{Kind: NotAsMeant, Dest: name, Text: "virtual topics are not supported:" +
			" messages to " + name.String() + " reach its subscribers and no Consumer.* queue"})
	}
	return d
}

// make makes a destination without telling anybody.
func (b *Broker) make(name message.Destination, id store.DestID) *destination {
	d := b.newDestination(name, id, b.opt.Policies.Find(name))
	if name.IsQueue() {
		d.makeQueue(b, b.firstSeq)
	}
	b.dests[name] = d
	b.unsupported.joined(name, 1)
	d.composite = b.compositeOf(name)
	b.order = append(b.order, d)
	if name.IsTopic() && recall.Keeps(d.policy.Recovery) {
		d.memory = recall.New(d.policy.Recovery)
	}
	if name.Kind == message.Topic {
		b.topics = append(b.topics, d)
		b.durables.join(d)
	}
	return d
}

func (b *Broker) newDestination(name message.Destination, id store.DestID,
	entry *policy.Entry) *destination {
	return &destination{name: name, id: id, policy: entry,
		usage:   usage.New(b.memory, entry.Memory.LimitBytes),
		reasons: map[message.Reason]int64{}}
}

func (d *destination) makeQueue(b *Broker, first uint64) {
	d.host = &queueHost{b: b, dest: d}
	d.queue = queue.New(d.name, b.env, d.host, first)
	d.queue.Follow(d.policy)
	d.host.queue = d.queue
}

// named gives the destinations that can be named, in the order of their making: all but the queues
// of durable subscriptions.
func (b *Broker) named() iter.Seq[*destination] {
	return func(yield func(*destination) bool) {
		for _, d := range b.order {
			if d.sub == nil && !yield(d) {
				return
			}
		}
	}
}

// newestOf leaves one header of each name. The store has no two, unless it was repaired by an older
// version; of the others nobody gets anything, so it is told.
func (b *Broker) newestOf(headers []store.Header) []store.Header {
	older := store.Older(slices.Values(headers))
	if len(older) == 0 {
		return headers
	}
	var out []store.Header
	for i := range headers {
		h := &headers[i]
		if !older[h.ID] {
			out = append(out, *h)
			continue
		}
		b.nextDest = max(b.nextDest, h.ID+1)
		b.counts.Reasons[message.Unreadable] += h.Count
		b.tell(Event{Kind: StoreTrouble, Reason: message.Unreadable, Dest: h.Destination, Count: h.Count,
			Text: "the store has two of this name, and nobody gets what the older one has: stop the" +
				" broker when it suits, and run hopwire repair FILE, which leaves the newer"})
	}
	return out
}

// restore makes a destination from its header. One of a temporary destination, which earlier
// versions wrote, names one whose owner is gone.
func (b *Broker) restore(h *store.Header) {
	switch {
	case h.Prepared != nil:
		b.nextDest = max(b.nextDest, h.ID+1)
		return // when what it acknowledged is there
	case h.Destination.IsTemp():
		b.nextDest = max(b.nextDest, h.ID+1)
		b.journal.add(store.Op{Kind: store.DropDestination, Dest: h.ID})
		b.journal.keepNextDest()
		return
	}
	var d *destination
	if h.Subscription != nil {
		d = b.restoreSubscription(h)
	} else {
		d = b.make(h.Destination, h.ID)
	}
	b.nextDest = max(b.nextDest, h.ID+1)
	d.headed = true
	d.stored, d.storedBytes = h.Count, h.Bytes
	d.reserved = uint64(h.Reserved)
	if d.name.Kind == message.Topic { // the sequences of logs are broker sequences
		b.sequence = max(b.sequence, int64(h.Reserved))
		d.logged, d.head = uint64(max(h.Reserved, 1))-1, uint64(h.Head)
	}
	if d.queue == nil {
		return
	}
	d.queue.Restore(uint64(h.Head), d.reserved, h.Count)
	d.delivered.restore(uint64(min(h.DeliveredBelow, h.Reserved)))
	for _, peer := range slices.Sorted(maps.Keys(h.ForwardedBelow)) {
		if b.unseen(peer) {
			continue
		}
		seq := h.ForwardedBelow[peer]
		if d.marks == nil {
			d.marks = map[message.BrokerID]uint64{}
			d.bootMarks = map[message.BrokerID]uint64{}
			d.bootAsked = map[message.BrokerID]uint64{}
		}
		d.marks[peer] = uint64(seq)
		d.bootMarks[peer] = uint64(min(seq, h.Reserved)) // what comes from now on is above
	}
}

// join subscribes to a new destination the consumers of patterns, and those that were on it when it
// was removed.
func (b *Broker) join(d *destination) {
	for _, c := range b.orphans[d.name] {
		c.attach(d)
	}
	delete(b.orphans, d.name)
	for _, c := range b.wild {
		if c.matches(d.name) {
			c.attach(d)
		}
	}
	b.joinNetworks(d)
}

// reserve makes sure that the queue's next sequence is reserved.
func (d *destination) reserve(b *Broker) {
	d.reserveTo(b, d.queue.NextSeq())
}

func (d *destination) reserveTo(b *Broker, seq uint64) {
	if b.opt.Persistent && !d.name.IsTemp() && seq >= d.reserved {
		d.reserved = seq + sequenceBlock
		b.journal.touch(d)
	}
}

// queueHost is what a queue asks of the broker.
type queueHost struct {
	b     *Broker
	dest  *destination
	queue *queue.Queue
	dirty bool
}

// Wake implements queue.Host.
func (h *queueHost) Wake(*queue.Queue) {
	if !h.dirty {
		h.dirty = true
		h.b.dirty = append(h.b.dirty, h)
		if len(h.b.dirty) == 1 {
			h.b.env.Soon(func() {})
		}
	}
}

// Expire implements queue.Host.
func (h *queueHost) Expire(_ *queue.Queue, c *queue.Copy) { h.b.expire(h.dest, c) }

// ReadPage implements queue.Host.
func (h *queueHost) ReadPage(_ *queue.Queue, from, to uint64) {
	h.readStored(from, to, func(copies []*queue.Copy, complete uint64) {
		if copies == nil && complete == from {
			h.queue.LoadFailed(func() { h.b.networks.pageLoaded(h.dest) })
			return
		}
		before := h.queue.ResidentBytes()
		h.queue.Loaded(from, complete, copies)
		h.dest.usage.Add(h.queue.ResidentBytes() - before)
		h.miss()
		h.b.networks.pageLoaded(h.dest)
	})
}

// readStored reads a page of stored copies and tells up to which sequence it is complete; no
// progress means that it could not be read. It is read when the turn's batch was handed over, so
// that it shows nothing that this turn removed. A queue that is gone meanwhile is not told.
func (h *queueHost) readStored(from, to uint64, done func(c []*queue.Copy, complete uint64)) {
	h.b.journal.whenHandedOver(func() {
		h.b.journal.storage.Page(store.PageRequest{Dest: h.dest.id, From: store.Seq(from),
			To: store.Seq(to), Count: queue.PageCopies, Bytes: queue.PageBytes},
			func(page []store.Stored, err error) {
				switch {
				case h.dest.gone:
				case err != nil:
					h.b.tell(Event{Kind: StoreTrouble, Dest: h.dest.name,
						Text: "a page of stored messages could not be read: " + err.Error()})
					done(nil, from)
				case len(page) == 0:
					done(nil, to)
				default:
					// Only an empty page tells that nothing follows.
					done(h.copies(page), uint64(page[len(page)-1].Next()))
				}
			})
	})
}

// copies gives what can be read of a page. A message that makes no sense ends; what cannot be read
// stays, and nobody waits for it.
func (h *queueHost) copies(page []store.Stored) []*queue.Copy {
	copies := make([]*queue.Copy, 0, len(page))
	for _, s := range page {
		switch {
		case s.To > 0:
			h.unreadable(&s)
			continue
		case s.Message == nil:
			h.lose(&s)
			continue
		}
		c := &queue.Copy{Seq: uint64(s.Seq), Message: s.Message, Spooled: s.Spooled,
			Redelivery: max(s.Redelivery, s.Message.RedeliveryCounter),
			Arrived:    h.b.arrivedBefore(s.Message)}
		if !s.Spooled { // of what came since the broker's start nobody had anything before
			c.Doubts, c.Suspect = h.dest.doubts(c.Seq), c.Seq < h.dest.delivered.boot
		}
		copies = append(copies, c)
	}
	return copies
}

// RaiseMark implements queue.Host.
func (h *queueHost) RaiseMark(s *queue.Slot, seq uint64) {
	n := s.Sub.(*netSub)
	h.b.raiseMark(h.dest, n.sub.Peer, seq, s)
}
