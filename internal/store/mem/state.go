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
	msgs     list
	receipts map[message.BrokerID]*store.PeerReceipts
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
	puts := false
	for i := range b.Ops {
		op := &b.Ops[i]
		puts = puts || op.Kind == store.PutMessage
		if err := s.op(op); err != nil {
			return err
		}
	}
	if !puts {
		return nil
	}
	for i := range b.Ops {
		if op := &b.Ops[i]; op.Kind == store.PutMessage {
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
		s.dest(op.Header.ID).header = op.Header
	case store.DropDestination:
		s.drop(op.Dest)
	case store.PutMessage:
		return s.put(op)
	case store.DeleteMessage:
		return s.remove(op)
	case store.SetRedelivery:
		if d := s.dests[op.Dest]; d != nil {
			if e := d.msgs.get(op.Seq); e != nil {
				e.redelivery = op.Count
			}
		}
	case store.PutReceipt:
		return s.putReceipt(op)
	case store.DropReceipts:
		s.dropReceipts(op)
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

func (s *state) put(op *store.Op) error {
	if !s.dest(op.Dest).msgs.put(op.Seq, op.Message) {
		return message.Errorf(message.Internal,
			"store: message %d of destination %d was put twice", op.Seq, op.Dest)
	}
	s.used += op.Message.Size()
	if op.Message.Expiration != 0 {
		s.expiring = append(s.expiring,
			store.ExpiredRef{Dest: op.Dest, Seq: op.Seq, Expiration: op.Message.Expiration})
	}
	return nil
}

// checkPut holds a put to the header that its batch left. A message that the batch itself removed
// again, alone or with its destination, is free.
func (s *state) checkPut(op *store.Op) error {
	d := s.dests[op.Dest]
	if d == nil || d.msgs.get(op.Seq) == nil {
		return nil
	}
	h := d.header
	if h == nil {
		return message.Errorf(message.Internal,
			"store: message %d put to destination %d, which has no header", op.Seq, op.Dest)
	}
	if op.Seq < h.Head || op.Seq >= h.Reserved {
		return message.Errorf(message.Internal,
			"store: message %d put to %s outside of head %d and reserved %d",
			op.Seq, h.Destination, h.Head, h.Reserved)
	}
	return nil
}

func (s *state) remove(op *store.Op) error {
	d := s.dests[op.Dest]
	if d == nil {
		return nil
	}
	m := d.msgs.remove(op.Seq)
	if m == nil {
		return nil
	}
	if m.Expiration != op.Expiration {
		return message.Errorf(message.Internal,
			"store: message %d of destination %d deleted with expiration %d, it has %d",
			op.Seq, op.Dest, op.Expiration, m.Expiration)
	}
	s.used -= m.Size()
	if m.Expiration != 0 {
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
	for _, e := range d.msgs.entries {
		if e.msg != nil && e.msg.Expiration != 0 {
			s.removed++
		}
	}
	s.used -= d.msgs.bytes
	delete(s.dests, id)
	s.sweep()
}

func (s *state) putReceipt(op *store.Op) error {
	d := s.dest(op.Dest)
	if d.receipts == nil {
		d.receipts = map[message.BrokerID]*store.PeerReceipts{}
	}
	p := d.receipts[op.Peer]
	if p == nil {
		p = &store.PeerReceipts{Peer: op.Peer}
		d.receipts[op.Peer] = p
	}
	if op.Receipt.N < p.Next {
		return message.Errorf(message.Internal,
			"store: receipt %d of destination %d and peer %s was put after %d",
			op.Receipt.N, op.Dest, op.Peer, p.Next-1)
	}
	p.List, p.Next = append(p.List, op.Receipt), op.Receipt.N+1
	return nil
}

func (s *state) dropReceipts(op *store.Op) {
	d := s.dests[op.Dest]
	if d == nil || d.receipts[op.Peer] == nil {
		return
	}
	p := d.receipts[op.Peer]
	i, _ := slices.BinarySearchFunc(p.List, op.Receipt.N,
		func(r store.Receipt, n uint64) int { return cmp.Compare(r.N, n) })
	p.List = p.List[i:]
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
		if e.msg == nil {
			continue
		}
		out = append(out, store.Stored{Seq: e.seq, Redelivery: e.redelivery, Message: e.msg})
		bytes += e.msg.Size()
		if r.Count > 0 && len(out) >= r.Count || r.Bytes > 0 && bytes >= r.Bytes {
			break
		}
	}
	return out
}

func (s *state) headers() []store.Header {
	var out []store.Header
	for _, d := range s.dests {
		if d.header != nil {
			h := *d.header
			h.ForwardedBelow = maps.Clone(h.ForwardedBelow)
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b store.Header) int { return cmp.Compare(a.ID, b.ID) })
	return out
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
		cd := &dest{header: d.header, msgs: d.msgs.clone()}
		if d.receipts != nil {
			cd.receipts = make(map[message.BrokerID]*store.PeerReceipts, len(d.receipts))
			for peer, p := range d.receipts {
				cd.receipts[peer] = &store.PeerReceipts{Peer: peer, Next: p.Next,
					List: slices.Clone(p.List)}
			}
		}
		c.dests[id] = cd
	}
	return c
}
