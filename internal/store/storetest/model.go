package storetest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// model is the simplest thing that obeys the contract.
type model struct {
	dests map[store.DestID]*modelDest
	meta  map[string][]byte
}

type modelDest struct {
	header   *store.Header
	msgs     map[store.Seq]modelMsg
	receipts map[message.BrokerID]store.PeerReceipts
	numbers  map[message.ProducerID]modelNumbers
}

// modelNumbers are all numbers that a producer ever used, and of how many the store was to know.
type modelNumbers struct {
	used  []int64
	depth int64
}

// modelMsg is a message, or a reference to the one that source has.
type modelMsg struct {
	message    *message.Message
	source     store.DestID
	expiration int64
	redelivery int32
}

func newModel() *model {
	return &model{dests: map[store.DestID]*modelDest{}, meta: map[string][]byte{}}
}

func (m *model) dest(id store.DestID) *modelDest {
	d := m.dests[id]
	if d == nil {
		d = &modelDest{msgs: map[store.Seq]modelMsg{},
			receipts: map[message.BrokerID]store.PeerReceipts{},
			numbers:  map[message.ProducerID]modelNumbers{}}
		m.dests[id] = d
	}
	return d
}

func (m *model) apply(b *store.Batch) {
	for _, op := range b.Ops {
		switch op.Kind {
		case store.PutHeader:
			d := m.dest(op.Header.ID)
			d.header = op.Header
			if d.header.IsLog() {
				maps.DeleteFunc(d.msgs, func(s store.Seq, _ modelMsg) bool { return s < d.header.Head })
			}
		case store.DropDestination:
			delete(m.dests, op.Dest)
		case store.PutMessage:
			x := modelMsg{message: op.Message}
			if !op.Lasts {
				x.expiration = op.Message.Expiration
			}
			m.dest(op.Dest).msgs[op.Seq] = x
		case store.PutReference:
			m.dest(op.Dest).msgs[op.Seq] = modelMsg{source: op.Source, expiration: op.Expiration}
		case store.DeleteMessage:
			delete(m.dest(op.Dest).msgs, op.Seq)
		case store.DeleteRange:
			maps.DeleteFunc(m.dest(op.Dest).msgs,
				func(s store.Seq, _ modelMsg) bool { return s >= op.Seq && s < op.To })
		case store.SetRedelivery:
			d := m.dest(op.Dest)
			s := d.msgs[op.Seq]
			s.redelivery = op.Count
			d.msgs[op.Seq] = s
		case store.PutReceipt:
			d := m.dest(op.Dest)
			p := d.receipts[op.Peer]
			p.Peer, p.Next = op.Peer, max(p.Next, op.Receipt.N+1)
			p.List = append(slices.Clone(p.List), op.Receipt)
			slices.SortFunc(p.List, func(a, b store.Receipt) int { return cmp.Compare(a.N, b.N) })
			d.receipts[op.Peer] = p
		case store.DropReceipts:
			d := m.dest(op.Dest)
			if p, ok := d.receipts[op.Peer]; ok {
				p.List = slices.DeleteFunc(slices.Clone(p.List),
					func(r store.Receipt) bool { return r.N < op.Receipt.N })
				d.receipts[op.Peer] = p
			}
		case store.PutNumber:
			d := m.dest(op.Dest)
			n := d.numbers[op.ID.Producer]
			d.numbers[op.ID.Producer] = n.with(op.ID.Sequence, int64(op.Count))
		case store.DropNumbers:
			delete(m.dest(op.Dest).numbers, op.ID.Producer)
		case store.PutMeta:
			m.meta[op.Name] = op.Value
			if op.Value == nil {
				delete(m.meta, op.Name)
			}
		}
	}
}

// ids gives the destinations in order.
func (m *model) ids() []store.DestID { return slices.Sorted(maps.Keys(m.dests)) }

// stored gives the messages of a destination in order, of references what they are to.
func (m *model) stored(id store.DestID) []store.Stored {
	var out []store.Stored
	for seq, e := range m.dests[id].msgs {
		s := store.Stored{Seq: seq, Redelivery: e.redelivery, Message: e.message}
		if e.source != 0 {
			s.Message = m.dests[e.source].msgs[seq].message
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b store.Stored) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// page is the contract of PageRequest, word for word; stored is in order.
func page(stored []store.Stored, r store.PageRequest) []store.Stored {
	var out []store.Stored
	var size int64
	for _, s := range stored {
		if s.Seq < r.From {
			continue
		}
		if s.Seq >= r.To {
			break
		}
		out = append(out, s)
		size += s.Message.Size()
		if r.Count > 0 && len(out) == r.Count || r.Bytes > 0 && size >= r.Bytes {
			break
		}
	}
	return out
}

func (m *model) expired(before int64) []store.ExpiredRef {
	var out []store.ExpiredRef
	for id, d := range m.dests {
		if h := d.header; h != nil && (h.IsLog() || h.Prepared != nil) {
			continue
		}
		for seq, s := range d.msgs {
			if e := s.expiration; e != 0 && e < before {
				out = append(out, store.ExpiredRef{Dest: id, Seq: seq, Expiration: e})
			}
		}
	}
	slices.SortFunc(out, func(a, b store.ExpiredRef) int {
		return cmp.Or(cmp.Compare(a.Expiration, b.Expiration),
			cmp.Compare(a.Dest, b.Dest), cmp.Compare(a.Seq, b.Seq))
	})
	return out
}

// verify compares everything that a store can be asked with the model.
func (m *model) verify(s store.Store, r *rand.Rand) error {
	if err := m.verifyHeaders(s); err != nil {
		return err
	}
	for _, id := range m.ids() {
		if err := m.verifyDest(s, r, id); err != nil {
			return err
		}
	}
	for name, want := range m.meta {
		got, err := s.Meta(name)
		if err != nil {
			return fmt.Errorf("Meta(%q): %w", name, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("Meta(%q) = %q, want %q", name, got, want)
		}
	}
	got, err := s.Meta("never put")
	if err != nil {
		return fmt.Errorf("what was never put: %w", err)
	}
	if got != nil {
		return fmt.Errorf("what was never put is %q", got)
	}
	return m.verifyExpired(s, r)
}

func (m *model) verifyExpired(s store.Store, r *rand.Rand) error {
	before := expireFrom + r.Int64N(2*expireSpan)
	want := m.expired(before)
	for _, limit := range []int{1 + r.IntN(10), len(want) + 1} {
		var after *store.ExpiredRef
		rest := want
		for {
			got, err := s.Expired(after, before, limit)
			if err != nil {
				return fmt.Errorf("Expired(%v, %d, %d): %w", after, before, limit, err)
			}
			if want := rest[:min(limit, len(rest))]; !slices.Equal(got, want) {
				return fmt.Errorf("Expired(%v, %d, %d) = %v, want %v", after, before, limit, got, want)
			}
			if len(got) == 0 {
				break
			}
			rest, after = rest[len(got):], &got[len(got)-1]
		}
	}
	return nil
}

func (m *model) verifyHeaders(s store.Store) error {
	got, err := s.Headers()
	if err != nil {
		return err
	}
	var want []store.Header
	for _, id := range m.ids() {
		if h := m.dests[id].header; h != nil {
			want = append(want, *h)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d headers, want %d", len(got), len(want))
	}
	for i := range want {
		if !sameHeader(got[i], want[i]) {
			return fmt.Errorf("Headers()[%d] = %+v\nwant %+v", i, got[i], want[i])
		}
	}
	return nil
}

func sameHeader(a, b store.Header) bool {
	if len(a.ForwardedBelow) == 0 && len(b.ForwardedBelow) == 0 {
		a.ForwardedBelow, b.ForwardedBelow = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

func (m *model) verifyDest(s store.Store, r *rand.Rand, id store.DestID) error {
	q := store.PageRequest{Dest: id, To: ^store.Seq(0)}
	stored := m.stored(id)
	for {
		q.Count, q.Bytes = 0, 0
		if r.IntN(2) == 0 {
			q.Count = 1 + r.IntN(20)
		}
		if r.IntN(2) == 0 {
			q.Bytes = 1 + r.Int64N(20000)
		}
		got, err := s.Page(q)
		if err != nil {
			return fmt.Errorf("Page(%+v): %w", q, err)
		}
		if err := samePage(got, page(stored, q)); err != nil {
			return fmt.Errorf("Page(%+v): %w", q, err)
		}
		if len(got) == 0 {
			break
		}
		q.From = got[len(got)-1].Seq + 1
	}
	got, err := s.Receipts(id)
	if err != nil {
		return fmt.Errorf("Receipts(%d): %w", id, err)
	}
	var want []store.PeerReceipts
	for _, peer := range slices.Sorted(maps.Keys(m.dests[id].receipts)) {
		want = append(want, m.dests[id].receipts[peer])
	}
	if !slices.EqualFunc(got.Peers, want, sameReceipts) {
		return fmt.Errorf("Receipts(%d) = %v, want %v", id, got, want)
	}
	return m.verifyNumbers(got.Producers, id)
}

func sameReceipts(a, b store.PeerReceipts) bool {
	return a.Peer == b.Peer && a.Next == b.Next && slices.Equal(a.List, b.List)
}

func samePage(got, want []store.Stored) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d messages, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if g.Seq != w.Seq || g.Redelivery != w.Redelivery {
			return fmt.Errorf("[%d] is seq %d redelivery %d, want %d and %d",
				i, g.Seq, g.Redelivery, w.Seq, w.Redelivery)
		}
		if g.Damage != nil {
			return fmt.Errorf("[%d]: %w", i, g.Damage)
		}
		if err := SameMessage(g.Message, w.Message); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

// SameMessage tells the first field in which two messages differ, leaving out what no store keeps.
func SameMessage(got, want *message.Message) error {
	if got == want || reflect.DeepEqual(got, want) {
		return nil
	}
	g, w := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := range g.NumField() {
		switch name := g.Type().Field(i).Name; name {
		case "Header", "Data":
		case "BrokerPath", "Cluster":
			if g.Field(i).Len() == 0 && w.Field(i).Len() == 0 {
				continue
			}
			fallthrough
		default:
			if a, b := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(a, b) {
				return fmt.Errorf("%s is %+v, want %+v", name, a, b)
			}
		}
	}
	return nil
}
