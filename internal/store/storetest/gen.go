package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// Generated expirations lie in [expireFrom, expireFrom+expireSpan).
const (
	expireFrom = int64(1_800_000_000_000)
	expireSpan = int64(1000)
)

var peers = []message.BrokerID{"ID:a-1", "ID:b-22", "", "ID:a"}

// maker makes random batches that obey the rules of the contract, as a broker would.
type maker struct {
	r      *rand.Rand
	m      *model // after all batches made
	nextID store.DestID
	seqs   map[store.DestID]store.Seq // next to give out of a queue
	topics topics
	ns     map[string]uint64   // last receipt per destination and peer
	left   map[string][]uint64 // those passed over, that may still come
	made   []*store.Batch
}

func newMaker(seed uint64) *maker {
	return &maker{r: rand.New(rand.NewPCG(seed, 7)), m: newModel(), nextID: 1,
		seqs: map[store.DestID]store.Seq{}, ns: map[string]uint64{},
		left: map[string][]uint64{}, topics: newTopics()}
}

// Batches gives n random batches that obey the contract, to be applied to an empty store, which may
// be opened again behind each.
func Batches(seed uint64, n int) []*store.Batch {
	k := newMaker(seed)
	for range n {
		k.batch()
		clear(k.left)
	}
	return k.made
}

// modelAfter replays the first n batches.
func (k *maker) modelAfter(n int) *model {
	m := newModel()
	for _, b := range k.made[:n] {
		m.apply(b)
	}
	return m
}

// batch makes one batch of a few operations; each is applied to the model at once so that the
// next one fits. It ends with a mark that tells how many batches were made.
func (k *maker) batch() *store.Batch {
	b := &store.Batch{}
	clear(k.topics.low)
	for range 1 + k.r.IntN(5) {
		k.action(b)
	}
	return k.finish(b)
}

func (k *maker) finish(b *store.Batch) *store.Batch {
	k.made = append(k.made, b)
	k.add(b, store.Op{Kind: store.PutMeta, Name: mark, Value: fmt.Append(nil, len(k.made))})
	return b
}

const mark = "batches"

func (k *maker) add(b *store.Batch, ops ...store.Op) {
	k.m.apply(&store.Batch{Ops: ops})
	b.Ops = append(b.Ops, ops...)
}

func (k *maker) action(b *store.Batch) {
	if len(k.m.dests) == 0 {
		k.create(b)
		return
	}
	id := k.m.ids()[k.r.IntN(len(k.m.dests))]
	switch p := k.r.IntN(100); {
	case k.m.dests[id].header.Prepared != nil:
		if p < 30 {
			k.drop(b, id)
		}
	case p < 5:
		k.create(b)
	case p < 6:
		k.prepare(b)
	case p < 7:
		k.drop(b, id)
	case p < 19:
		k.receipt(b, id, 1+k.r.IntN(4))
	case p < 20:
		k.receipt(b, id, 600)
	case p < 26:
		k.dropReceipts(b, id)
	case p < 28:
		k.number(b, id, 1+k.r.IntN(20))
	case p < 29:
		k.dropNumbers(b, id)
	case p < 32:
		k.add(b, store.Op{Kind: store.PutMeta, Name: fmt.Sprint("m", k.r.IntN(3)),
			Value: fmt.Append(nil, k.r.Uint32())})
	case p < 34:
		k.add(b, store.Op{Kind: store.PutMeta, Name: fmt.Sprint("m", k.r.IntN(3))},
			store.Op{Kind: store.Nothing})
	case k.isLog(id):
		k.logAction(b, id)
	default:
		k.messages(b, id)
	}
}

// messages puts, removes or redelivers messages of a queue or references of a subscription.
func (k *maker) messages(b *store.Batch, id store.DestID) {
	put := k.put
	if k.m.dests[id].header.Subscription != nil {
		put = k.refer
	}
	switch p := k.r.IntN(70); {
	case p < 33:
		put(b, id, 1+k.r.IntN(5))
	case p < 36:
		put(b, id, 300+k.r.IntN(400))
	case p < 53:
		k.remove(b, id, k.r.IntN(5), false)
	case p < 58:
		k.remove(b, id, 700, k.r.IntN(2) == 0)
	case p < 59:
		k.removeRange(b, id)
	default:
		k.redeliver(b, id)
	}
}

func (k *maker) create(b *store.Batch) {
	h := &store.Header{ID: k.nextID, Head: 1, Reserved: 1, Destination: message.Destination{
		Kind: message.Kind(1 + k.r.IntN(4)), Name: fmt.Sprint("d.", k.nextID)}}
	k.seqs[h.ID] = 1
	k.nextID += 1 + store.DestID(k.r.IntN(2)*k.r.IntN(300))
	if h.Destination.Kind == message.Topic {
		h.Head, h.Reserved = k.topics.next, k.topics.next
		k.subscribe(h)
	}
	k.add(b, store.Op{Kind: store.PutHeader, Header: h})
}

// prepare makes a branch with messages and what it acknowledged.
func (k *maker) prepare(b *store.Batch) {
	h := &store.Header{ID: k.nextID, Head: 1, Prepared: &store.Prepared{Time: k.r.Int64N(1000),
		ID: message.TransactionID{XA: true, FormatID: k.r.Int32(), Global: "g\x00", Branch: "b"}}}
	k.nextID++
	for range k.r.IntN(3) {
		h.Prepared.Acks = append(h.Prepared.Acks, store.AckRef{Dest: store.DestID(k.r.IntN(1000)),
			Seq: store.Seq(k.r.Uint32()), Expiration: k.r.Int64N(10), Size: k.r.Int64N(3000),
			Redelivery: k.r.Int32N(5)})
	}
	for range k.r.IntN(5) * k.r.IntN(40) {
		m := Message(k.r, k.r.IntN(10) == 0)
		h.Count++
		h.Bytes += m.Size()
		b.Bytes += m.Size()
		k.add(b, store.Op{Kind: store.PutMessage, Dest: h.ID, Seq: store.Seq(h.Count), Message: m})
	}
	h.Reserved = store.Seq(h.Count) + 1
	k.add(b, store.Op{Kind: store.PutHeader, Header: h})
}

// header puts the header that agrees with the model. Its head is sometimes behind.
func (k *maker) header(b *store.Batch, id store.DestID) {
	d := k.m.dests[id]
	h := *d.header
	h.Count, h.Bytes = 0, 0
	next := k.seqs[id]
	if h.Subscription != nil {
		next = k.topics.next
	}
	first := next
	for _, s := range k.m.stored(id) {
		h.Count++
		h.Bytes += s.Message.Size()
		first = min(first, s.Seq)
	}
	if k.r.IntN(3) > 0 {
		h.Head = first
	}
	if h.Reserved < next {
		h.Reserved = next + store.Seq(k.r.IntN(1000))
	}
	h.ForwardedBelow = maps.Clone(h.ForwardedBelow)
	if k.r.IntN(8) == 0 {
		if h.ForwardedBelow == nil {
			h.ForwardedBelow = map[message.BrokerID]store.Seq{}
		}
		h.ForwardedBelow[peers[k.r.IntN(len(peers))]] = next
		h.DeliveredBelow = next * (next % 2) // 0 as well: it is taken back
	}
	k.add(b, store.Op{Kind: store.PutHeader, Header: &h})
}

func (k *maker) put(b *store.Batch, id store.DestID, n int) {
	gaps := k.r.IntN(2) == 0
	for range n {
		seq := k.seqs[id]
		k.seqs[id]++
		if gaps && k.r.IntN(10) == 0 {
			continue // acknowledged before it was written
		}
		m := Message(k.r, n < 10)
		b.Bytes += m.Size()
		k.add(b, store.Op{Kind: store.PutMessage, Dest: id, Seq: seq, Message: m})
	}
	k.header(b, id)
}

// remove removes n messages, from the first on or from anywhere.
func (k *maker) remove(b *store.Batch, id store.DestID, n int, scattered bool) {
	all := k.m.stored(id)
	if scattered {
		k.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		n = min(n, len(all)/2)
	} else if k.r.IntN(2) == 0 && len(all) > 1 {
		all = all[k.r.IntN(len(all)):]
	}
	for _, s := range all[:min(n, len(all))] {
		k.add(b, store.Op{Kind: store.DeleteMessage, Dest: id, Seq: s.Seq,
			Expiration: k.m.dests[id].msgs[s.Seq].expiration})
	}
	k.header(b, id)
}

// removeRange removes a range that begins and ends anywhere, as of what cannot be read.
func (k *maker) removeRange(b *store.Batch, id store.DestID) {
	all := k.m.stored(id)
	if len(all) == 0 {
		return
	}
	from := all[k.r.IntN(len(all))].Seq
	k.add(b, store.Op{Kind: store.DeleteRange, Dest: id, Seq: from,
		To: from + store.Seq(k.r.IntN(400))})
	k.header(b, id)
}

func (k *maker) redeliver(b *store.Batch, id store.DestID) {
	seqs := slices.Sorted(maps.Keys(k.m.dests[id].msgs))
	if len(seqs) == 0 {
		return
	}
	k.add(b, store.Op{Kind: store.SetRedelivery, Dest: id, Seq: seqs[k.r.IntN(len(seqs))],
		Count: k.r.Int32N(1000)})
}

func (k *maker) receipt(b *store.Batch, id store.DestID, n int) {
	peer := peers[k.r.IntN(len(peers))]
	key := fmt.Sprint(id, peer)
	for range n {
		var rc store.Receipt
		if left := k.left[key]; len(left) > 0 && k.r.IntN(3) == 0 {
			i := k.r.IntN(len(left))
			rc.N = left[i]
			k.left[key] = slices.Delete(left, i, i+1)
		} else {
			if k.ns[key]++; k.r.IntN(2) == 0 {
				k.left[key] = append(left, k.ns[key])
				k.ns[key]++
			}
			rc.N = k.ns[key]
		}
		for i := range rc.Key {
			rc.Key[i] = byte(k.r.Uint32())
		}
		k.add(b, store.Op{Kind: store.PutReceipt, Dest: id, Peer: peer, Receipt: rc})
	}
}

func (k *maker) dropReceipts(b *store.Batch, id store.DestID) {
	peer := peers[k.r.IntN(len(peers))]
	key := fmt.Sprint(id, peer)
	n := k.ns[key] + 2
	if k.r.IntN(4) > 0 {
		n = k.r.Uint64N(n + 1)
	}
	k.left[key] = slices.DeleteFunc(k.left[key], func(left uint64) bool { return left < n })
	k.add(b, store.Op{Kind: store.DropReceipts, Dest: id, Peer: peer,
		Receipt: store.Receipt{N: n}})
}
