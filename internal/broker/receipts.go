package broker

import (
	"time"

	"hopwire/internal/broker/audit"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/store"
)

// receiptsKept is how many receipts of each peer and destination are kept at least, receiptsMost
// what they may grow to: some 40 MB.
const (
	receiptsKept = 2000
	receiptsMost = 1 << 18
)

// history is what came to a destination before, of peers and of producers.
type history struct {
	receipts  *audit.Receipts // nil while they are not in memory
	producers *audit.Producers
	loads     loads
}

// loadReceipts makes sure that the receipts of the destination, and the numbers of its producers,
// are in memory when the message may have been here before, or may come again: it is of a peer, or
// of a client that fails over.
func (b *Broker) loadReceipts(a *arrival) outcome {
	if a.m.Destination.IsAdvisory() {
		return proceed
	}
	if a.peer == nil && (!a.comesAgain() || !a.m.Persistent && !a.conn.info.FailoverReconnect) {
		return proceed
	}
	d := b.wireDestination(a.wire)
	if !b.hasReceipts(d) {
		return b.awaitReceipts(d, a)
	}
	if a.peer != nil {
		d.raiseReceipts(a.peer)
	}
	return proceed
}

// raiseReceipts has more of a peer's receipts kept, which are here, if need be: it may have asked
// before it sent, or have larger windows since.
func (d *destination) raiseReceipts(peer *network.Peer) {
	d.receipts.Raise(peer.ID, receiptLimit(d, peer))
}

// receiptLimit gives how many receipts of the peer must be kept: twice what it may have in doubt.
// It asks about all of that before it sends anything new over the link. That is one window, and one
// for each network subscription here (the consumers of brokers behind us, which a peer need not
// fold), and one for each consumer when it folds none. A limit is only raised (audit.Receipts):
// consumers that are gone leave copies that may still be in doubt.
func receiptLimit(d *destination, peer *network.Peer) int {
	windows := 1 + len(d.nets)
	if peer.PerConsumer {
		windows += len(d.consumers)
	}
	return min(receiptsMost, max(receiptsKept, 2*min(peer.Prefetch, prefetchMost)*windows))
}

// readReceipts reads the receipts of a destination, until it can.
func (b *Broker) readReceipts(d *destination) {
	b.journal.whenHandedOver(func() {
		b.journal.storage.Receipts(d.id, func(read store.Receipts, err error) {
			if err != nil && !d.gone {
				b.unreadReceipts(d, err)
				return
			}
			r := &restoring{b: b, d: d, read: read, receipts: audit.NewReceipts()}
			if read.Damage != nil && !d.gone {
				r.receipts.From(read.From)
				b.loseReceipts(d, read.Damage)
			}
			r.slice()
		})
	})
}

// restoring brings a destination's receipts and numbers into memory, in slices.
type restoring struct {
	b        *Broker
	d        *destination
	read     store.Receipts // what is left of it
	receipts *audit.Receipts
}

// What is restored in one turn: for so long, but no more than so many steps. The clock is looked at
// once in restoreLook steps, each of which is a producer or so many receipts.
const (
	restoreTime     = time.Millisecond / 2
	restoreMost     = 256
	restoreLook     = 8
	restoreReceipts = 16
)

func (r *restoring) slice() {
	until := r.b.env.Mono() + restoreTime
	for n := 1; r.step(); n++ {
		if n%restoreLook == 0 && (n == restoreMost || r.b.env.Mono() >= until) {
			r.b.env.Soon(r.slice)
			return
		}
	}
	r.d.receipts = r.receipts
	r.b.loaded(r.d)
}

// step reports whether anything was left to do.
func (r *restoring) step() bool {
	left := &r.read
	switch {
	case r.d.gone:
		return false
	case len(left.Producers) > 0:
		r.b.restoreNumbers(r.d, left.Producers[0])
		left.Producers = left.Producers[1:]
	case len(left.Peers) > 0:
		p := &left.Peers[0]
		if len(p.List) > 0 && r.b.unseen(p.Peer) {
			r.b.dropReceipts(r.d, p.Peer, p.Next)
			p.List = nil
		}
		now := p.List[:min(restoreReceipts, len(p.List))]
		for _, receipt := range now {
			if r.read.Damage != nil {
				r.receipts.Remember(p.Peer, receipt.Key)
				continue
			}
			r.receipts.Restore(p.Peer, receipt.N, receipt.Key)
		}
		if p.List = p.List[len(now):]; len(p.List) == 0 {
			r.receipts.Continue(p.Peer, max(p.Next, r.read.From))
			left.Peers = left.Peers[1:]
		}
	default:
		return false
	}
	return true
}

func (b *Broker) dropReceipts(d *destination, peer message.BrokerID, below uint64) {
	if b.opt.Persistent && d.stores() {
		b.journal.add(store.Op{Kind: store.DropReceipts, Dest: d.id, Peer: peer,
			Receipt: store.Receipt{N: below}})
	}
}

// loseReceipts tells that some of what is kept of peers and producers cannot be read: what they
// send again may be there twice, all goes on.
func (b *Broker) loseReceipts(d *destination, damage error) {
	b.trouble(d, message.Unreadable, 1, "it is not known of all messages that came whether they were"+
		" here before: "+damage.Error())
}
