package mem

import (
	"cmp"
	"maps"
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// dest is all that is kept of one destination.
type dest struct {
	header   *store.Header // nil until put
	log      bool          // known from the begin of the batch that puts the first header
	prepared bool          // likewise: it keeps what a prepared branch sent
	msgs     list
	receipts map[message.BrokerID]*receipts
	numbers  map[message.ProducerID]*message.Numbers
}

// receipts are those of one peer.
type receipts struct {
	store.PeerReceipts
	low uint64 // none is put below it
}

// state is what a store holds at one moment.
type state struct {
	dests map[store.DestID]*dest
	meta  map[string][]byte
	used  int64 // sum of the sizes of the messages

	// expiring holds every stored message that expires, and removed ones until they are swept.
	// The first sorted entries are in order.
	expiring []store.ExpiredRef
	sorted   int
	removed  int
}

func newState() *state {
	return &state{dests: map[store.DestID]*dest{}, meta: map[string][]byte{}}
}

func (s *state) dest(id store.DestID) *dest {
	d := s.dests[id]
	if d == nil {
		d = &dest{}
		s.dests[id] = d
	}
	return d
}

// apply carries out one batch.
func (s *state) apply(b *store.Batch) error {
	for i := range b.Ops {
		if op := &b.Ops[i]; op.Kind == store.PutHeader {
			d := s.dest(op.Header.ID)
			d.log, d.prepared = op.Header.IsLog(), op.Header.Prepared != nil
		}
	}
	puts := false
	for i := range b.Ops {
		op := &b.Ops[i]
		puts = puts || op.Puts()
		if err := s.op(op); err != nil {
			return err
		}
	}
	if !puts {
		return nil
	}
	for i := range b.Ops {
		if op := &b.Ops[i]; op.Puts() {
			if err := s.checkPut(op); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *state) op(op *store.Op) error {
	switch op.Kind {
	case store.Nothing:
	case store.PutHeader:
		return s.putHeader(op.Header)
	case store.DropDestination:
		s.drop(op.Dest)
	case store.PutMessage:
		return s.put(op, entry{seq: op.Seq, msg: op.Message, lasts: op.Lasts})
	case store.PutReference:
		return s.put(op, entry{seq: op.Seq,
			ref: &reference{source: op.Source, expiration: op.Expiration}})
	case store.DeleteMessage:
		return s.remove(op)
	case store.SetRedelivery:
		if d := s.dests[op.Dest]; d != nil {
			if e := d.msgs.get(op.Seq); e != nil {
				e.redelivery = op.Count
			}
		}
	case store.DeleteRange:
		return s.removeRange(op)
	case store.PutReceipt:
		return s.putReceipt(op)
	case store.DropReceipts:
		s.dropReceipts(op)
	case store.PutNumber:
		s.putNumber(op)
	case store.DropNumbers:
		if d := s.dests[op.Dest]; d != nil {
			delete(d.numbers, op.ID.Producer)
		}
	case store.PutMeta:
		if op.Value == nil {
			delete(s.meta, op.Name)
		} else {
			s.meta[op.Name] = op.Value
		}
	default:
		return message.Errorf(message.Internal, "store: unknown operation %d", op.Kind)
	}
	return nil
}

// putHeader puts a header; a log's messages below its head are gone with it.
func (s *state) putHeader(h *store.Header) error {
	d := s.dest(h.ID)
	if d.header != nil && !sameTerms(d.header, h) {
		return message.Errorf(message.Internal,
			"store: a header of destination %d makes it another subscription, or branch", h.ID)
	}
	kept := *h // it may be one of many of its batch
	d.header = &kept
	if d.log {
		s.used -= d.msgs.raise(h.Head)
	}
	return nil
}

// sameTerms reports whether two headers are of the same subscription, or of none. That of a branch
// is put once.
func sameTerms(a, b *store.Header) bool {
	if a.Prepared != nil || b.Prepared != nil {
		return false
	}
	if a.Subscription == nil || b.Subscription == nil {
		return a.Subscription == nil && b.Subscription == nil
	}
	return a.Destination == b.Destination && *a.Subscription == *b.Subscription
}

func (s *state) put(op *store.Op, e entry) error {
	d := s.dest(op.Dest)
	if !d.msgs.put(e) {
		return message.Errorf(message.Internal,
			"store: message %d of destination %d was put twice", op.Seq, op.Dest)
	}
	if e.msg != nil {
		s.used += e.msg.Size()
	}
	if t := d.expiration(&e); t != 0 {
		s.expiring = append(s.expiring,
			store.ExpiredRef{Dest: op.Dest, Seq: op.Seq, Expiration: t})
	}
	return nil
}

// expiration gives the expiration under which an entry is kept, 0 for none.
func (d *dest) expiration(e *entry) int64 {
	switch {
	case e.ref != nil:
		return e.ref.expiration
	case e.msg != nil && !d.log && !d.prepared && !e.lasts:
		return e.msg.Expiration
	}
	return 0
}

// checkPut holds a put to the header that its batch left. What the batch itself removed again,
// alone or with its destination, is free.
func (s *state) checkPut(op *store.Op) error {
	d := s.dests[op.Dest]
	if d == nil || !d.log && d.msgs.get(op.Seq) == nil {
		return nil
	}
	if err := d.fits(op.Dest, op.Seq); err != nil {
		return err
	}
	if (d.header.Subscription != nil) != (op.Kind == store.PutReference) {
		return message.Errorf(message.Internal,
			"store: %d put to %s: messages go to queues and logs, references to subscriptions",
			op.Seq, d.header.Destination)
	}
	if op.Kind == store.PutReference {
		return s.resolve(d, op)
	}
	return nil
}

// fits reports whether a sequence put to a destination is one of those that its header allows.
func (d *dest) fits(id store.DestID, seq store.Seq) error {
	h := d.header
	if h == nil {
		return message.Errorf(message.Internal,
			"store: message %d put to destination %d, which has no header", seq, id)
	}
	if seq < h.Head || seq >= h.Reserved {
		return message.Errorf(message.Internal,
			"store: message %d put to %s outside of head %d and reserved %d",
			seq, h.Destination, h.Head, h.Reserved)
	}
	return nil
}

// resolve finds the message that a new reference is to.
func (s *state) resolve(d *dest, op *store.Op) error {
	m := s.logged(op.Source, op.Seq)
	if m == nil {
		return message.Errorf(message.Internal,
			"store: reference %d put to destination %d: destination %d is no log with such a message",
			op.Seq, op.Dest, op.Source)
	}
	r := *d.msgs.get(op.Seq).ref
	r.size = m.Size()
	d.msgs.get(op.Seq).ref = &r
	d.msgs.bytes += r.size
	return nil
}

// logged gives the message that a log has at a sequence, or nil.
func (s *state) logged(id store.DestID, seq store.Seq) *message.Message {
	if d := s.dests[id]; d != nil && d.log {
		if e := d.msgs.get(seq); e != nil {
			return e.msg
		}
	}
	return nil
}

func (s *state) remove(op *store.Op) error {
	d := s.dests[op.Dest]
	if d == nil {
		return nil
	}
	if d.log || d.prepared {
		return message.Errorf(message.Internal,
			"store: message %d of the log or branch %d is deleted alone", op.Seq, op.Dest)
	}
	e := d.msgs.remove(op.Seq)
	if !e.live() {
		return nil
	}
	t := d.expiration(&e)
	if t != op.Expiration {
		return message.Errorf(message.Internal,
			"store: message %d of destination %d deleted with expiration %d, it has %d",
			op.Seq, op.Dest, op.Expiration, t)
	}
	if e.msg != nil {
		s.used -= e.msg.Size()
	}
	if t != 0 {
		s.removed++
		s.sweep()
	}
	return nil
}

func (s *state) drop(id store.DestID) {
	d := s.dests[id]
	if d == nil {
		return
	}
	for i := range d.msgs.entries {
		e := &d.msgs.entries[i]
		if d.expiration(e) != 0 {
			s.removed++
		}
		if e.msg != nil {
			s.used -= e.msg.Size()
		}
	}
	delete(s.dests, id)
	s.sweep()
}

func (s *state) putReceipt(op *store.Op) error {
	d := s.dest(op.Dest)
	if d.receipts == nil {
		d.receipts = map[message.BrokerID]*receipts{}
	}
	p := d.receipts[op.Peer]
	if p == nil {
		p = &receipts{PeerReceipts: store.PeerReceipts{Peer: op.Peer}}
		d.receipts[op.Peer] = p
	}
	i, put := p.find(op.Receipt.N)
	if put || op.Receipt.N < max(1, p.low) {
		return message.Errorf(message.Internal,
			"store: receipt %d of destination %d and peer %s was put before or dropped",
			op.Receipt.N, op.Dest, op.Peer)
	}
	p.List, p.Next = slices.Insert(p.List, i, op.Receipt), max(p.Next, op.Receipt.N+1)
	return nil
}

// find gives the index of the first receipt whose number is at least n, and whether that is it.
func (p *receipts) find(n uint64) (int, bool) {
	return slices.BinarySearchFunc(p.List, n,
		func(r store.Receipt, n uint64) int { return cmp.Compare(r.N, n) })
}

func (s *state) dropReceipts(op *store.Op) {
	d := s.dests[op.Dest]
	if d == nil || d.receipts[op.Peer] == nil {
		return
	}
	p := d.receipts[op.Peer]
	i, _ := p.find(op.Receipt.N)
	p.List, p.low = p.List[i:], max(p.low, min(op.Receipt.N, p.Next))
}

func (s *state) putNumber(op *store.Op) {
	d := s.dest(op.Dest)
	if d.numbers == nil {
		d.numbers = map[message.ProducerID]*message.Numbers{}
	}
	d.numbers[op.ID.Producer] = d.numbers[op.ID.Producer].With(op.ID.Sequence, int(op.Count))
}

// sweep forgets removed messages in expiring once they are the greater part.
func (s *state) sweep() {
	if s.removed <= 64 || s.removed <= len(s.expiring)/2 {
		return
	}
	kept, sorted := s.expiring[:0], 0
	for i, r := range s.expiring {
		if s.stored(r) {
			kept = append(kept, r)
			if i < s.sorted {
				sorted++
			}
		}
	}
	s.expiring, s.sorted = kept, sorted
	s.removed = 0
}

func (s *state) stored(r store.ExpiredRef) bool {
	d := s.dests[r.Dest]
	return d != nil && d.msgs.get(r.Seq) != nil
}

func (s *state) expired(after *store.ExpiredRef, before int64, limit int) []store.ExpiredRef {
	if s.sorted < len(s.expiring) {
		slices.SortFunc(s.expiring, compareExpiring)
		s.sorted = len(s.expiring)
	}
	var out []store.ExpiredRef
	first := 0
	if after != nil {
		i, found := slices.BinarySearchFunc(s.expiring, *after, compareExpiring)
		if first = i; found {
			first++
		}
	}
	for _, r := range s.expiring[first:] {
		if r.Expiration >= before || len(out) >= limit {
			break
		}
		if s.stored(r) {
			out = append(out, r)
		}
	}
	return out
}

func compareExpiring(a, b store.ExpiredRef) int {
	return cmp.Or(cmp.Compare(a.Expiration, b.Expiration),
		cmp.Compare(a.Dest, b.Dest), cmp.Compare(a.Seq, b.Seq))
}

func (s *state) page(r store.PageRequest) []store.Stored {
	d := s.dests[r.Dest]
	if d == nil {
		return nil
	}
	var out []store.Stored
	var bytes int64
	for i := d.msgs.find(r.From); i < len(d.msgs.entries) && d.msgs.entries[i].seq < r.To; i++ {
		e := &d.msgs.entries[i]
		if !e.live() {
			continue
		}
		st := store.Stored{Seq: e.seq, Redelivery: e.redelivery, Message: e.msg}
		if e.ref != nil {
			st.Message = s.logged(e.ref.source, e.seq)
		}
		if st.Message == nil {
			st.Redelivery, st.Damage = 0, d.dangling(r.Dest, e)
			st.Expiration = d.expiration(e)
		} else {
			bytes += st.Message.Size()
		}
		out = append(out, st)
		if r.Count > 0 && len(out) >= r.Count || r.Bytes > 0 && bytes >= r.Bytes {
			break
		}
	}
	return out
}

// dangling is the error of a reference to a message that is missing.
func (d *dest) dangling(id store.DestID, e *entry) error {
	return message.Errorf(message.Corrupt,
		"store: reference %d of destination %d is to a message that destination %d does not have",
		e.seq, id, e.ref.source)
}

func (s *state) headers() []store.Header {
	var out []store.Header
	for _, d := range s.dests {
		if d.header != nil {
			h := *d.header
			h.ForwardedBelow = maps.Clone(h.ForwardedBelow)
			if h.Subscription != nil {
				sub := *h.Subscription
				h.Subscription = &sub
			}
			if h.Prepared != nil {
				p := *h.Prepared
				p.Acks = slices.Clone(p.Acks)
				h.Prepared = &p
			}
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b store.Header) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// opened notes that a store begins with what is there.
func (s *state) opened() {
	for _, d := range s.dests {
		for _, p := range d.receipts {
			p.low = p.Next
		}
	}
}

func (s *state) clone() *state {
	c := &state{
		dests:    make(map[store.DestID]*dest, len(s.dests)),
		meta:     maps.Clone(s.meta),
		used:     s.used,
		expiring: slices.Clone(s.expiring),
		sorted:   s.sorted,
		removed:  s.removed,
	}
	for id, d := range s.dests {
		cd := &dest{header: d.header, log: d.log, prepared: d.prepared, msgs: d.msgs.clone()}
		if d.receipts != nil {
			cd.receipts = make(map[message.BrokerID]*receipts, len(d.receipts))
			for peer, p := range d.receipts {
				c := *p
				c.List = slices.Clone(p.List)
				cd.receipts[peer] = &c
			}
		}
		if d.numbers != nil {
			cd.numbers = make(map[message.ProducerID]*message.Numbers, len(d.numbers))
			for producer, w := range d.numbers {
				cd.numbers[producer] = w.Clone()
			}
		}
		c.dests[id] = cd
	}
	return c
}
