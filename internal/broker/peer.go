package broker

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"hopwire/internal/broker/audit"
	"hopwire/internal/broker/queue"
	"hopwire/internal/message"
	"hopwire/internal/network"
	"hopwire/internal/plural"
	"hopwire/internal/store"
)

// markBlock is how far ahead a destination's mark toward a peer is raised.
const markBlock = 1000

// Receive implements bridge.Local.
func (b *Broker) Receive(m *message.Message, from network.Peer, done func(error)) {
	b.run(&arrival{b: b, m: m, wire: m.Destination, peer: &from, done: done})
}

// stores reports whether messages of the destination can be in the store.
func (d *destination) stores() bool { return d.name.Kind == message.Queue }

// claimFromPeer tests an arrival against the receipts and claims it.
func (b *Broker) claimFromPeer(d *destination, a *arrival) outcome {
	b.see(a.peer.ID).heard = true
	a.key = message.Receipt(a.m, a.wire, a.m.BrokerPath, b.opt.ID)
	known := d.receipts.Look(a.key)
	if known == audit.Unknown && !message.Visited(a.m.BrokerPath, b.opt.ID) &&
		d.producers != nil && d.producers.Has(a.m.ID) {
		known = audit.Claimed // a local producer sent it here itself
	}
	if known != audit.Unknown && !d.receipts.Outlived(a.key, a.m.BrokerPath) {
		if !b.offerAgain(d, a) {
			b.duplicate(d, a)
		}
		if known == audit.Durable && b.receiptTells(d, a) {
			a.answer(nil)
		} else {
			b.journal.whenAllDurable(func() { a.answer(nil) })
		}
		return finished
	}
	peer := a.peer.ID
	if !a.m.Persistent || !b.opt.Persistent || !d.stores() {
		d.receipts.Remember(peer, a.key)
		d.receipts.LetIn(a.key, b.sequence+1)
	} else {
		n := d.receipts.Claim(peer, a.key)
		b.journal.add(store.Op{Kind: store.PutReceipt, Dest: d.id, Peer: peer,
			Receipt: store.Receipt{N: n, Key: a.key}})
		b.journal.touch(d)
		a.keyed = true
		b.journal.whenDurable(func() {
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

// Known implements bridge.Local: it answers from durable receipts only, so what is on its way to
// the store is waited for.
func (b *Broker) Known(from network.Asker, links []message.ConnectionID,
	keys []network.DoubtKey, done func(known []bool, seen bool)) {
	b.endOthers(from, links)
	b.known(from.Peer, keys, done)
}

// endOthers ends what a peer has given up: its connections that are not among links, of those that
// it may end.
func (b *Broker) endOthers(from network.Asker, links []message.ConnectionID) {
	if len(links) == 0 {
		return
	}
	left := 0
	for _, c := range slices.Clone(b.connOrder) {
		switch {
		case !c.network || c.peer.ID != from.Peer || slices.Contains(links, c.id):
		case from.MayEnd(c.principal.User):
			c.close("the peer asks over another connection, and has this one no more")
		default:
			left++
		}
	}
	if b.opt.PeerAsks != nil {
		left += b.opt.PeerAsks(from, links)
	}
	if left > 0 {
		b.tell(Event{Kind: PeerWarning, Count: int64(left), Of: string(from.Peer),
			Text: plural.Of(left, "link") + " to " + string(from.Peer) + " " +
				plural.Form(left, "stays", "stay") + ", although it says as user " +
				strconv.Quote(from.User) + " that it has " +
				plural.Form(left, "it no more: it is", "them no more: they are") + " of another user"})
	}
}

func (b *Broker) known(peer message.BrokerID, keys []network.DoubtKey,
	done func(known []bool, seen bool)) {
	p := &network.Peer{ID: peer, Hopwire: true}
	for _, k := range keys {
		d := b.find(k.Destination)
		if d == nil {
			continue
		}
		d.stir()
		if !b.haveReceipts(d, func() { b.known(peer, keys, done) }) {
			return
		}
		d.raiseReceipts(p)
	}
	b.forgetParked(peer, keys)
	after := b.journal.whenAllDurable
	if !b.claimed(keys) {
		after = func(f func()) { f() } // nothing that is on its way to the store is asked for
	}
	after(func() {
		known := make([]bool, len(keys))
		for i, k := range keys {
			d := b.find(k.Destination)
			known[i] = d != nil && d.receipts != nil &&
				d.receipts.Look(k.Key) == audit.Durable && !d.receipts.WentBack(k.Key, peer)
		}
		s := b.networks.seen[peer]
		done(known, s == nil || !s.heard)
	})
}

// claimed reports whether the receipt of one of the arrivals is on its way to the store.
func (b *Broker) claimed(keys []network.DoubtKey) bool {
	return slices.ContainsFunc(keys, func(k network.DoubtKey) bool {
		d := b.find(k.Destination)
		return d != nil && d.receipts != nil && d.receipts.Look(k.Key) == audit.Claimed
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
		for _, a := range d.parked {
			if !d.parks(a) || a.peer == nil || a.peer.ID != peer {
				continue
			}
			if asked[network.DoubtKey{Destination: a.wire,
				Key: message.Receipt(a.m, a.wire, a.m.BrokerPath, b.opt.ID)}] {
				d.unpark(a)
				a.answered = true // nobody waits for it
				b.drop(d, message.ConnectionGone, a.m)
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
		b.see(peer)
		d.marks[peer] = seq + markBlock
		b.journal.touch(d)
	}
	mark := d.marks[peer]
	b.journal.whenDurable(func() { s.SetMark(mark) })
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

// pageEnd is the last copy that a page of copies in doubt named, and the number of its destination,
// which tells where to go on when the destination is gone since, or is another of that name.
type pageEnd struct {
	ref message.CopyRef
	id  store.DestID
}

// behind gives where a round about copies in doubt goes on: at the first destination whose number
// is at least id, there behind seq. A reference that no page ended with begins anew when its
// destination is gone: what was asked about before is not in doubt any more.
func (b *Broker) behind(peer message.BrokerID, after message.CopyRef) (id store.DestID,
	seq uint64) {
	switch end, d := b.networks.pages[peer], b.dests[after.Destination]; {
	case after.Destination.IsZero():
		return 0, 0
	case end.ref == after:
		return end.id, after.Seq
	case d != nil:
		return d.id, after.Seq
	}
	return 0, 0
}

// from gives the index in order of the first destination whose number is at least id.
func (b *Broker) from(id store.DestID) int {
	i, _ := slices.BinarySearchFunc(b.order, id, func(d *destination, id store.DestID) int {
		return cmp.Compare(d.id, id)
	})
	return i
}

// InDoubt implements bridge.Local.
func (b *Broker) InDoubt(peer message.BrokerID, after message.CopyRef, limit int,
	done func([]network.Doubt)) {
	id, start := b.behind(peer, after)
	for i := b.from(id); i < len(b.order); i++ {
		d := b.order[i]
		if d.queue == nil || d.gone {
			continue
		}
		seq := uint64(0)
		if d.id == id {
			seq = start
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
			b.networks.pages[peer] = pageEnd{page[len(page)-1].Ref, d.id}
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
	delete(b.networks.pages, peer)
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
		case network.MaybeSeen:
			if c.Redelivery == 0 {
				c.Redelivery = 1
				b.journal.redelivered(d, c)
			}
		case network.NeverLearned:
			if !c.Raised { // once, however many peers may have it
				c.Raised = true
				c.Redelivery++
				b.journal.redelivered(d, c)
			}
			b.counts.Reasons[message.InDoubt]++
			b.tell(Event{Kind: DoubtReleased, Reason: message.InDoubt, Dest: d.name,
				Of: string(peer), Text: c.Message.ID.String() + " toward " + string(peer), Count: 1})
		}
		is := func(p message.BrokerID) bool { return p == peer }
		if c.Doubts = slices.DeleteFunc(c.Doubts, is); len(c.Doubts) == 0 {
			b.forwarded(d, c, "")
			d.queue.Place(c)
		}
	}
	b.relieve()
}

// prefetchMost is what a peer's claim of its prefetch is believed at most.
const prefetchMost = 1 << 16

// windowsOf reads from a peer's networkProperties how many messages it may have on their way, 0
// when that is not there, and whether for each consumer (conduitSubscriptions is off).
func windowsOf(properties string) (prefetch int, perConsumer bool) {
	for line := range strings.SplitSeq(properties, "\n") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "prefetchSize":
			n, _ := strconv.Atoi(value) // of no number 0, of a huge one the most there is
			prefetch = min(max(0, n), prefetchMost)
		case "conduitSubscriptions":
			perConsumer = value == "false"
		}
	}
	return prefetch, perConsumer
}

// connectorOf reads from a peer's networkProperties what its networkConnector is called.
func connectorOf(properties string) string {
	for line := range strings.SplitSeq(properties, "\n") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "name="); ok {
			return strings.ReplaceAll(name, `\`, "") // before : and = in such a text
		}
	}
	return ""
}
