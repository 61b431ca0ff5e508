package storetest

import (
	"fmt"
	"maps"
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/store"
)

// topics is what a maker knows of logs and subscriptions beside the model.
type topics struct {
	next store.Seq                           // to give out, of all topics
	of   map[store.DestID]store.DestID       // a subscription's log; none for one of all logs
	used map[store.DestID]map[store.Seq]bool // references a subscription ever had
	low  map[store.DestID]store.Seq          // the first that the current batch put to a log
}

func newTopics() topics {
	return topics{next: 1, of: map[store.DestID]store.DestID{},
		used: map[store.DestID]map[store.Seq]bool{}, low: map[store.DestID]store.Seq{}}
}

func (k *maker) isLog(id store.DestID) bool { return k.m.dests[id].header.IsLog() }

// logs gives the ids of the logs.
func (k *maker) logs() []store.DestID {
	return slices.DeleteFunc(k.m.ids(), func(id store.DestID) bool { return !k.isLog(id) })
}

// subscribers gives the ids of the subscriptions that a log's messages go to.
func (k *maker) subscribers(log store.DestID) []store.DestID {
	return slices.DeleteFunc(k.m.ids(), func(id store.DestID) bool {
		of := k.topics.of[id]
		return k.m.dests[id].header.Subscription == nil || of != 0 && of != log
	})
}

// subscribe makes the header of a log one of a subscription, or leaves it.
func (k *maker) subscribe(h *store.Header) {
	logs := k.logs()
	if len(logs) == 0 || k.r.IntN(3) == 0 {
		return
	}
	h.Subscription = &store.Subscription{ClientID: fmt.Sprint("c", k.r.IntN(3)),
		Name: fmt.Sprint("s", h.ID), NoLocal: k.r.IntN(2) == 0}
	if k.r.IntN(2) == 0 {
		h.Subscription.Selector = "a = 'b' OR c > 5"
	}
	k.topics.used[h.ID] = map[store.Seq]bool{}
	log := logs[k.r.IntN(len(logs))]
	switch k.r.IntN(4) {
	case 0:
		h.Destination.Name = "d.>"
	case 1:
		h.Destination.Name = "d.*,topic://e"
	default:
		h.Destination = k.m.dests[log].header.Destination
		k.topics.of[h.ID] = log
	}
}

func (k *maker) logAction(b *store.Batch, id store.DestID) {
	switch p := k.r.IntN(10); {
	case p < 5:
		k.publish(b, id, 1+k.r.IntN(5))
	case p < 6:
		k.publish(b, id, 300+k.r.IntN(200))
	case p < 7:
		k.consume(b, id)
		fallthrough
	default:
		k.logHeader(b, id)
	}
}

// publish puts messages to a log with references of those who take them, in any order.
func (k *maker) publish(b *store.Batch, id store.DestID, n int) {
	subs := k.subscribers(id)
	var ops []store.Op
	for range n {
		seq := k.topics.next
		k.topics.next += 1 + store.Seq(k.r.IntN(2)*k.r.IntN(3))
		m := Message(k.r, n < 10)
		b.Bytes += m.Size()
		if k.topics.low[id] == 0 {
			k.topics.low[id] = seq
		}
		ops = append(ops, store.Op{Kind: store.PutMessage, Dest: id, Seq: seq, Message: m})
		for _, sub := range subs {
			if k.r.IntN(4) > 0 {
				ops = append(ops, k.reference(sub, id, seq, m))
			}
		}
	}
	if k.r.IntN(2) == 0 {
		k.r.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	}
	k.add(b, ops...)
	for _, sub := range subs {
		k.header(b, sub)
	}
	k.logHeader(b, id)
}

func (k *maker) reference(sub, log store.DestID, seq store.Seq, m *message.Message) store.Op {
	k.topics.used[sub][seq] = true
	return store.Op{Kind: store.PutReference, Dest: sub, Seq: seq, Source: log,
		Expiration: m.Expiration}
}

// refer gives a subscription references to messages that are there, where it never had one.
func (k *maker) refer(b *store.Batch, id store.DestID, n int) {
	h := k.m.dests[id].header
	for _, log := range k.logs() {
		if of := k.topics.of[id]; of != 0 && of != log {
			continue
		}
		for _, s := range k.m.stored(log) {
			if n > 0 && s.Seq >= h.Head && !k.topics.used[id][s.Seq] && k.r.IntN(2) == 0 {
				k.add(b, k.reference(id, log, s.Seq, s.Message))
				n--
			}
		}
	}
	k.header(b, id)
}

// consume removes all references to the first messages of a log.
func (k *maker) consume(b *store.Batch, id store.DestID) {
	all := k.m.stored(id)
	if len(all) == 0 {
		return
	}
	k.unrefer(b, id, all[k.r.IntN(len(all))].Seq+1)
}

// unrefer removes all references to the messages of a log below a sequence.
func (k *maker) unrefer(b *store.Batch, id store.DestID, below store.Seq) {
	for _, sub := range k.subscribers(id) {
		msgs := k.m.dests[sub].msgs
		for _, seq := range slices.Sorted(maps.Keys(msgs)) {
			if msgs[seq].source == id && seq < below {
				k.add(b, store.Op{Kind: store.DeleteMessage, Dest: sub, Seq: seq,
					Expiration: msgs[seq].expiration})
			}
		}
		k.header(b, sub)
	}
}

// logHeader puts a log's header. Its head is at most the first message that a reference is to or
// that the batch put, and sometimes behind; count and bytes are anything.
func (k *maker) logHeader(b *store.Batch, id store.DestID) {
	h := *k.m.dests[id].header
	first := k.topics.next
	if low := k.topics.low[id]; low != 0 {
		first = low
	}
	for _, sub := range k.subscribers(id) {
		for seq, e := range k.m.dests[sub].msgs {
			if e.source == id {
				first = min(first, seq)
			}
		}
	}
	if k.r.IntN(3) > 0 {
		h.Head = max(h.Head, first)
	}
	if h.Reserved < k.topics.next {
		h.Reserved = k.topics.next + store.Seq(k.r.IntN(1000))
	}
	h.Count, h.Bytes = k.r.Int64N(1000), k.r.Int64N(1000)
	k.add(b, store.Op{Kind: store.PutHeader, Header: &h})
}

// drop drops a destination. Before or after a log the subscriptions to it are dropped, and before
// it the references of those to other logs as well are removed.
func (k *maker) drop(b *store.Batch, id store.DestID) {
	drop := []store.Op{{Kind: store.DropDestination, Dest: id}}
	if k.isLog(id) {
		for _, sub := range k.subscribers(id) {
			if k.topics.of[sub] == id {
				drop = append(drop, store.Op{Kind: store.DropDestination, Dest: sub})
			}
		}
		k.unrefer(b, id, k.topics.next)
		k.r.Shuffle(len(drop), func(i, j int) { drop[i], drop[j] = drop[j], drop[i] })
	}
	k.add(b, drop...)
}
