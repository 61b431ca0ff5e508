package broker

import (
	"slices"
	"sort"
	"strings"

	"hopwire/internal/broker/audit"
	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/store"
)

// receiptsKept is how many receipts of each peer and destination are kept at least.
const receiptsKept = 2000

// markBlock is how far ahead a destination's mark toward a peer is raised.
const markBlock = 1000

// Receive implements bridge.Local.
func (b *Broker) Receive(m *message.Message, from network.Peer, done func(error)) {
	b.counts.Received++
	b.run(&arrival{b: b, m: m, wire: m.Destination, peer: &from, done: done})
}

// loadReceipts makes sure that the receipts of the peer and destination are in memory.
func (b *Broker) loadReceipts(a *arrival) outcome {
	if a.peer == nil || a.m.Destination.IsAdvisory() {
		return proceed
	}
	d := b.wireDestination(a.wire)
	if b.withReceipts(d, a.peer, func() { b.run(a) }) {
		return proceed
	}
	return parkedHere
}

// withReceipts reports whether the receipts are in memory; if not, f runs when they are, behind
// all that waited before.
func (b *Broker) withReceipts(d *destination, peer *network.Peer, f func()) bool {
	if d.receipts == nil {
		d.receipts = audit.NewReceipts()
		d.loading = map[message.BrokerID][]func(){}
	}
	limit := max(receiptsKept, 2*peer.Prefetch)
	if d.receipts.Loaded(peer.ID) {
		// A peer that asked before it sent, or has a larger window since, may need more.
		d.receipts.Raise(peer.ID, limit)
		return true
	}
	if !b.opt.Persistent || !d.stores() {
		d.receipts.Open(peer.ID, limit, 1)
		return true
	}
	waiting, asked := d.loading[peer.ID]
	d.loading[peer.ID] = append(waiting, f)
	if asked {
		return false
	}
	id := peer.ID
	b.journal.beforeRead(func() {
		b.journal.storage.Receipts(d.id, id, func(rs []store.Receipt, err error) {
			if err != nil {
				b.tell(Event{Kind: StoreTrouble, Dest: d.name,
					Text: "the receipts of " + string(id) + " could not be read: " + err.Error()})
				return // the peer is not answered: it asks again
			}
			next := uint64(1)
			if len(rs) > 0 {
				next = rs[len(rs)-1].N + 1
			}
			d.receipts.Open(id, limit, next)
			for _, r := range rs {
				d.receipts.Restore(id, r.N, r.Key)
			}
			waiting := d.loading[id]
			delete(d.loading, id)
			for _, f := range waiting {
				f()
			}
		})
	})
	return false
}

// stores reports whether messages of the destination can be in the store.
func (d *destination) stores() bool { return d.name.Kind == message.Queue }

// claimFromPeer tests an arrival against the receipts and claims it.
func (b *Broker) claimFromPeer(d *destination, a *arrival) outcome {
	a.key = message.Receipt(a.m, a.wire, a.m.BrokerPath, b.opt.ID)
	known := d.receipts.Look(a.key)
	if known == audit.Unknown && !message.Visited(a.m.BrokerPath, b.opt.ID) &&
		d.producers != nil && d.producers.Has(a.m.ID) {
		known = audit.Claimed // a local producer sent it here itself
	}
	if known != audit.Unknown && !d.receipts.Outlived(a.key, a.m.BrokerPath) {
		b.duplicate(d, a)
		if known == audit.Durable {
			a.answer(nil)
		} else {
			b.journal.after(func() { a.answer(nil) })
		}
		return finished
	}
	peer := a.peer.ID
	if !a.m.Persistent || !b.opt.Persistent || !d.stores() {
		d.receipts.Claim(peer, a.key, audit.Durable)
	} else {
		n := d.receipts.Claim(peer, a.key, audit.Claimed)
		b.journal.add(store.Op{Kind: store.PutReceipt, Dest: d.id, Peer: peer,
			Receipt: store.Receipt{N: n, Key: a.key}})
		b.journal.touch(d)
		a.keyed = true
		b.journal.wait(func() {
			d.receipts.Confirm(a.key)
			a.keyed = false
			a.settle()
		})
	}
	if below, ok := d.receipts.Prune(peer); ok {
		b.dropReceipts(d, peer, below)
	}
	return proceed
}

func (b *Broker) dropReceipts(d *destination, peer message.BrokerID, below uint64) {
	if b.opt.Persistent && d.stores() {
		b.journal.add(store.Op{Kind: store.DropReceipts, Dest: d.id, Peer: peer,
			Receipt: store.Receipt{N: below}})
	}
}

// Known implements bridge.Local: it answers from durable receipts only, so what is on its way to
// the store is waited for.
func (b *Broker) Known(peer message.BrokerID, keys []network.DoubtKey, done func([]bool)) {
	p := &network.Peer{ID: peer, Hopwire: true}
	for _, k := range keys {
		d := b.find(k.Destination)
		if d == nil {
			continue
		}
		if !b.withReceipts(d, p, func() { b.Known(peer, keys, done) }) {
			return
		}
	}
	b.forgetParked(peer, keys)
	b.journal.after(func() {
		known := make([]bool, len(keys))
		for i, k := range keys {
			d := b.find(k.Destination)
			known[i] = d != nil && d.receipts != nil &&
				d.receipts.Look(k.Key) == audit.Durable && !d.receipts.WentBack(k.Key, peer)
		}
		done(known)
	})
}

// forgetParked drops what the peer sent over a link that is gone and what waits for space since: it
// is told that these never arrived, and may give them to others.
func (b *Broker) forgetParked(peer message.BrokerID, keys []network.DoubtKey) {
	if len(b.parked) == 0 {
		return
	}
	asked := make(map[network.DoubtKey]bool, len(keys))
	for _, k := range keys {
		asked[k] = true
	}
	for _, d := range b.parked {
		for _, a := range append([]*arrival(nil), d.parked...) {
			if a.peer != nil && a.peer.ID == peer && asked[network.DoubtKey{Destination: a.wire,
				Key: message.Receipt(a.m, a.wire, a.m.BrokerPath, b.opt.ID)}] {
				d.unpark(a)
				a.answered = true // nobody waits for it
			}
		}
	}
}

// raiseMark makes the destination's mark toward a peer durable above seq and opens the slot up to
// it.
func (b *Broker) raiseMark(d *destination, peer message.BrokerID, seq uint64, s *queue.Slot) {
	if d.marks == nil {
		d.marks = map[message.BrokerID]uint64{}
	}
	if d.marks[peer] <= seq {
		d.marks[peer] = seq + markBlock
		b.journal.touch(d)
	}
	mark := d.marks[peer]
	b.journal.afterUnit(func() { s.SetMark(mark) })
}

// clearMarks takes back, at a clean stop, the marks toward peers that nothing is in doubt with.
func (b *Broker) clearMarks() {
	for _, d := range b.order {
		if d.queue == nil || len(d.marks) == 0 {
			continue
		}
		doubted := map[message.BrokerID]bool{}
		d.queue.EachOut(func(c *queue.Copy) {
			for _, p := range c.Doubts {
				doubted[p] = true
			}
			if n, ok := c.Owner.(*netSub); ok {
				doubted[n.sub.Peer] = true // its bridge has not told yet how it ended
			}
		})
		for peer := range d.marks {
			if !doubted[peer] && d.bootMarks[peer] == 0 {
				delete(d.marks, peer)
				b.journal.touch(d)
			}
		}
	}
}

// doubts gives the peers that may have a stored copy since before the broker's start.
func (d *destination) doubts(seq uint64) []message.BrokerID {
	var out []message.BrokerID
	for peer, mark := range d.bootMarks {
		if seq < mark && seq >= d.bootAsked[peer] {
			out = append(out, peer)
		}
	}
	slices.Sort(out)
	return out
}

// DoubtedPeers gives the peers that may have copies since before the broker's start.
func (b *Broker) DoubtedPeers() []message.BrokerID {
	seen := map[message.BrokerID]bool{}
	var peers []message.BrokerID
	for _, d := range b.order {
		for peer := range d.bootMarks {
			if !seen[peer] {
				seen[peer] = true
				peers = append(peers, peer)
			}
		}
	}
	slices.Sort(peers)
	return peers
}

// InDoubt implements bridge.Local.
func (b *Broker) InDoubt(peer message.BrokerID, after message.CopyRef, limit int,
	done func([]network.Doubt)) {
	i := 0
	for i < len(b.order) && !after.Destination.IsZero() && b.order[i].name != after.Destination {
		i++
	}
	for seq := after.Seq; i < len(b.order); i, seq = i+1, 0 {
		d := b.order[i]
		if d.queue == nil {
			continue
		}
		// What is not in memory comes first where its sequences are lower.
		mark := d.bootMarks[peer]
		gap, isGap := d.queue.Gap(max(seq+1, d.bootAsked[peer]))
		isGap = isGap && gap < mark
		below := ^uint64(0)
		if isGap {
			below = gap
		}
		if page := b.doubtsOf(d, peer, seq, below, limit); len(page) > 0 {
			if mark > 0 {
				d.bootAsked[peer] = page[len(page)-1].Ref.Seq + 1
			}
			done(page)
			return
		}
		if isGap {
			b.networks.whenLoaded(d, func() { b.InDoubt(peer, after, limit, done) })
			d.queue.Want(gap)
			return
		}
		delete(d.bootMarks, peer)
	}
	done(nil)
}

// doubtsOf gives the copies of one queue in doubt toward the peer, after < sequence < below.
func (b *Broker) doubtsOf(d *destination, peer message.BrokerID, after, below uint64,
	limit int) []network.Doubt {
	var copies []*queue.Copy
	d.queue.EachOut(func(c *queue.Copy) {
		if c.Seq > after && c.Seq < below && doubted(c, peer) {
			copies = append(copies, c)
		}
	})
	sort.Slice(copies, func(i, j int) bool { return copies[i].Seq < copies[j].Seq })
	if len(copies) > limit {
		copies = copies[:limit]
	}
	out := make([]network.Doubt, 0, len(copies))
	for _, c := range copies {
		path := message.AppendPath(c.Message.BrokerPath, b.opt.ID)
		out = append(out, network.Doubt{
			Ref: message.CopyRef{Destination: d.name, Seq: c.Seq},
			Key: network.DoubtKey{Destination: d.name,
				Key: message.Receipt(c.Message, d.name, path, peer)},
		})
	}
	return out
}

func doubted(c *queue.Copy, peer message.BrokerID) bool {
	return slices.Contains(c.Doubts, peer)
}

// Resolve implements bridge.Local.
func (b *Broker) Resolve(peer message.BrokerID, refs []message.CopyRef, how network.Resolution) {
	for _, r := range refs {
		d := b.dests[r.Destination]
		if d == nil {
			continue
		}
		c := d.queue.Outstanding(r.Seq)
		if c == nil || !doubted(c, peer) {
			continue
		}
		switch how {
		case network.WasTaken:
			d.counts.Forwarded++
			b.counts.Forwarded++
			b.consume(d, c)
			continue
		case network.NeverLearned:
			c.Redelivery++
			b.journal.redelivered(d, c)
			b.counts.Reasons[message.InDoubt]++
			b.tell(Event{Kind: DoubtReleased, Reason: message.InDoubt, Dest: d.name,
				Text: c.Message.ID.String() + " toward " + string(peer), Count: 1})
		}
		if c.Doubts = withoutPeer(c.Doubts, peer); len(c.Doubts) == 0 {
			b.forwarded(d, c, "")
			d.queue.Place(c)
		}
	}
	b.relieve()
}

func withoutPeer(list []message.BrokerID, peer message.BrokerID) []message.BrokerID {
	var out []message.BrokerID
	for _, p := range list {
		if p != peer {
			out = append(out, p)
		}
	}
	return out
}

// talk answers what a Hopwire peer asks beside OpenWire.
func (c *Connection) talk(cmd *message.ControlCommand) {
	if !c.network || !c.peer.Hopwire || !c.opened || !network.IsTalk(cmd.Command) {
		return
	}
	t, err := network.ParseTalk(cmd.Command)
	if err != nil {
		c.b.tell(Event{Kind: ConsumerWarning, Text: "peer " + c.peer.Name + ": " + err.Error()})
		return
	}
	switch t.Kind {
	case network.Ask:
		c.b.Known(c.peer.ID, t.Keys, func(known []bool) {
			c.out.Send(&message.ControlCommand{
				Command: network.Talk{Kind: network.Known, ID: t.ID, Known: known}.Encode()})
		})
	case network.Settled:
		c.b.Settled(c.peer.ID, t.Keys)
	}
}

// Settled forgets the receipts that a peer says it will never ask about again: per destination
// everything up to and including the key.
func (b *Broker) Settled(peer message.BrokerID, keys []network.DoubtKey) {
	for _, k := range keys {
		d := b.find(k.Destination)
		if d == nil || d.receipts == nil || !d.receipts.Loaded(peer) {
			continue
		}
		if n, ok := d.receipts.Number(peer, k.Key); ok {
			if below, ok := d.receipts.PruneBelow(peer, n); ok {
				b.dropReceipts(d, peer, below)
			}
		}
	}
}

// prefetchOf reads prefetchSize from a peer's networkProperties, 0 when it is not there.
func prefetchOf(properties string) int {
	n := 0
	for line := range strings.SplitSeq(properties, "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "prefetchSize="); ok {
			for _, r := range rest {
				if r < '0' || r > '9' || n > 1<<24 {
					break
				}
				n = n*10 + int(r-'0')
			}
		}
	}
	return n
}
