package bridge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// absence is a peer that may have copies of ours and has not told about all of them. It lasts from
// the end of the link that left them until the peer has told. At since+patience the copies are
// released, unless a link is asking the peer just then: its end, or the answer, decides.
type absence struct {
	since    time.Duration // the last it said about copies, or the end of a link that left some
	patience time.Duration // the longest inDoubtTimeout of those links; NeverTimeout is the longest
	name     string        // of the last connector; "" since before the start
	place    string        // Bridge.place of the last link; "" since before the start
	run      int64         // of the peer that had those links; 0 when not known, severalRuns
	timer    loop.Timer    // for since+patience
}

// severalRuns is the run of an absence that links to several runs of the peer left copies in.
const severalRuns = -1

// absences are those of all peers.
type absences struct {
	home  *Home
	peers map[message.BrokerID]*absence
	marks int // how often a link left copies
}

// left begins an absence, or goes on with one: b ended and leaves copies. fresh says that it had
// sent them itself; others were there before, and a peer that never told of them was away all the
// time.
func (a *absences) left(b *Bridge, fresh bool) {
	a.marks++
	x := a.of(b.peer.ID)
	if fresh {
		x.since = a.home.env.Mono()
		if x.run != 0 && x.run != b.hello.HopwireRun {
			x.run = severalRuns
		} else {
			x.run = b.hello.HopwireRun
		}
	}
	if fresh || x.patience == 0 {
		x.patience = network.LongerPatience(x.patience, b.opts.InDoubtTimeout)
	}
	x.name, x.place = b.opts.Name, b.place()
	a.wait(b.peer.ID, x)
}

func (a *absences) of(peer message.BrokerID) *absence {
	x := a.peers[peer]
	if x == nil {
		x = &absence{since: a.home.env.Mono()}
		a.peers[peer] = x
	}
	return x
}

// restarted reports whether the peer is another run of its broker than one that was sent copies in
// doubt. What such a one had not stored, its clients may have seen all the same.
func (a *absences) restarted(b *Bridge) bool {
	x := a.peers[b.peer.ID]
	return x != nil && x.run != 0 && x.run != b.hello.HopwireRun
}

// heard notes that the peer said something about copies.
func (a *absences) heard(peer message.BrokerID) {
	if x := a.peers[peer]; x != nil {
		x.since = a.home.env.Mono()
		a.wait(peer, x)
	}
}

// wait sets the timer anew: since or patience has changed, or a link does not ask any more.
func (a *absences) wait(peer message.BrokerID, x *absence) {
	x.stop()
	if x.patience == NeverTimeout {
		return
	}
	x.timer = a.home.env.After(max(0, x.since+x.patience-a.home.env.Mono()), func() {
		x.timer = nil
		if !a.asking(peer) {
			a.release(peer, "the peer did not tell of them within inDoubtTimeout")
		}
	})
}

func (x *absence) stop() {
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
}

// end ends an absence, if there is one: nothing is in doubt toward the peer.
func (a *absences) end(peer message.BrokerID) {
	if x := a.peers[peer]; x != nil {
		x.stop()
		delete(a.peers, peer)
	}
}

// asking reports whether a link asks the peer; what it answers goes before any time.
func (a *absences) asking(peer message.BrokerID) bool {
	return slices.ContainsFunc(a.home.bridges, func(b *Bridge) bool {
		return b.peer.ID == peer && b.phase == resolving
	})
}

// release ends an absence and gives the peer's copies free.
func (a *absences) release(peer message.BrokerID, why string) {
	x := a.of(peer)
	a.end(peer)
	a.page(peer, Event{Kind: DoubtsReleased, Connector: x.name, Peer: peer, Text: why,
		Reason: message.InDoubt}, message.CopyRef{})
}

// page gives back page after page, until a link to the peer asks for itself.
func (a *absences) page(peer message.BrokerID, e Event, after message.CopyRef) {
	h := a.home
	h.local.InDoubt(peer, after, network.MaxTalkKeys, func(page []network.Doubt) {
		if len(page) > 0 && !a.asking(peer) {
			h.local.Resolve(peer, refsOf(page), network.NeverLearned)
			e.Count += len(page)
			a.page(peer, e, page[len(page)-1].Ref)
			return
		}
		if e.Count > 0 {
			e.Text = fmt.Sprintf("%d copies in doubt went back: %s", e.Count, e.Text)
			h.observe(e)
		}
	})
}

// succeeded gives the copies free that went to a broker whose place another one has taken: our
// connector reached it at the same address, it has the same name, and its id is new. A broker
// keeps its id with its store, so what the old one had taken is gone with its receipts. A broker of
// another name may only stand in for one that comes back; so may one at another address of a list.
// Of peers that come to us no address is known that others could not come from, and names are
// theirs to choose: they succeed nobody.
func (a *absences) succeeded(b *Bridge) {
	if b.accepted {
		return
	}
	for _, peer := range slices.Sorted(maps.Keys(a.peers)) {
		x := a.peers[peer]
		linked := slices.ContainsFunc(a.home.bridges, func(b *Bridge) bool { return b.peer.ID == peer })
		if x.patience != NeverTimeout && x.place == b.place() && !linked {
			a.release(peer, b.peer.Name+" came back as another broker, without its store")
		}
	}
}

// place is where a link leads: connector, address, none of an accepted one, and the broker's name.
func (b *Bridge) place() string {
	return b.opts.Name + "\n" + b.uri + "\n" + b.peer.Name
}

// WatchDoubts begins the absence of a peer toward which copies were in doubt when the broker began.
// told is the inDoubtTimeout that its own duplex connectors told, 0 when none did. Which of our
// connectors led to it is not known any more: the longest of all these times counts.
func (h *Home) WatchDoubts(peer message.BrokerID, told time.Duration) {
	x := h.absences.of(peer)
	for _, c := range h.connectors {
		told = network.LongerPatience(told, c.opts.InDoubtTimeout)
	}
	if told == 0 {
		told = inDoubtDefault
	}
	x.patience = network.LongerPatience(x.patience, told)
	h.absences.wait(peer, x)
}
