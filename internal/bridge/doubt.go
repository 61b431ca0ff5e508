package bridge

import (
	"time"

	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// asking is the round about copies in doubt, before a link forwards anything new.
type asking struct {
	id    uint64
	after message.CopyRef
	page  []network.Doubt // read and not answered; the first asked of them are on their way
	asked int
	known int
	total int
	begun bool
	mark  int // of the clock when the round began
}

func (a *asking) open() int { return len(a.page) }

// unfinished reports whether copies may still be in doubt when the link ends.
func (a *asking) unfinished() bool { return a.begun }

// resolve reads the next page of copies in doubt. A peer that is no Hopwire broker (any more)
// cannot be asked: all of them go back.
func (b *Bridge) resolve() {
	a := &b.doubts
	if !a.begun {
		a.begun, a.mark = true, b.home.doubts.marks
	}
	b.bound(doubtTimeout, "the home broker listed no copies in doubt")
	b.home.local.InDoubt(b.peer.ID, a.after, network.MaxTalkKeys, func(page []network.Doubt) {
		if b.phase != resolving {
			return
		}
		if len(page) == 0 {
			b.resolved()
			return
		}
		a.page = page
		a.after = page[len(page)-1].Ref
		a.total += len(page)
		if b.hello.HopwireLevel == 0 {
			b.home.local.Resolve(b.peer.ID, refsOf(page), network.NeverLearned)
			a.page = nil
			b.resolve()
			return
		}
		b.ask()
	})
}

func (b *Bridge) resolved() {
	a := &b.doubts
	a.begun = false
	if a.mark != b.home.doubts.marks {
		// Another link ended meanwhile; its copies may lie before the page that was read last.
		a.after = message.CopyRef{}
		b.resolve()
		return
	}
	b.home.doubts.end(b.peer.ID)
	if a.total > 0 {
		kind, n := DoubtsResolved, a.known
		if b.hello.HopwireLevel == 0 {
			kind, n = DoubtsReleased, a.total
		}
		b.event(Event{Kind: kind, Count: n})
	}
	b.run()
}

// ask sends as much of the page as fits.
func (b *Bridge) ask() {
	a := &b.doubts
	keys := make([]network.DoubtKey, len(a.page))
	for i, d := range a.page {
		keys[i] = d.Key
	}
	a.asked = network.FitsTalk(keys)
	a.id++
	b.bound(doubtTimeout, "the peer did not answer about copies in doubt")
	b.say(network.Talk{Kind: network.Ask, ID: a.id, Keys: keys[:a.asked]})
}

func (b *Bridge) say(t network.Talk) { b.send(&message.ControlCommand{Command: t.Encode()}) }

// talk takes the text of a ControlCommand.
func (b *Bridge) talk(text string) {
	if b.hello.HopwireLevel == 0 || !network.IsTalk(text) {
		b.useless(message.NotTarget)
		return
	}
	t, err := network.ParseTalk(text)
	if err != nil {
		b.fail(message.Protocol, "%w", err)
		return
	}
	switch t.Kind {
	case network.Ask:
		b.home.local.Known(b.peer.ID, t.Keys, func(known []bool) {
			if b.phase != over {
				b.say(network.Talk{Kind: network.Known, ID: t.ID, Known: known})
			}
		})
	case network.Known:
		b.proven = true
		b.told(t)
	case network.Settled:
		if p, ok := b.home.local.(network.Pruner); ok {
			p.Settled(b.peer.ID, t.Keys)
		}
	}
}

// told takes the peer's answer about the copies asked for.
func (b *Bridge) told(t network.Talk) {
	a := &b.doubts
	if b.phase != resolving || t.ID != a.id || a.asked == 0 {
		return // late, and asked again on this link
	}
	if len(t.Known) != a.asked {
		b.fail(message.Protocol, "asked about %d copies in doubt and got %d answers", a.asked,
			len(t.Known))
		return
	}
	var taken, free []message.CopyRef
	for i, d := range a.page[:a.asked] {
		if t.Known[i] {
			taken = append(taken, d.Ref)
		} else {
			free = append(free, d.Ref)
		}
	}
	a.page, a.asked = a.page[a.asked:], 0
	a.known += len(taken)
	if len(taken) > 0 {
		b.home.local.Resolve(b.peer.ID, taken, network.WasTaken)
	}
	if len(free) > 0 {
		b.home.local.Resolve(b.peer.ID, free, network.WasNotTaken)
	}
	if len(a.page) > 0 {
		b.ask()
		return
	}
	b.resolve()
}

func refsOf(list []network.Doubt) []message.CopyRef {
	out := make([]message.CopyRef, len(list))
	for i, d := range list {
		out[i] = d.Ref
	}
	return out
}

// doubtClock releases copies in doubt toward peers that did not come back in time.
type doubtClock struct {
	home  *Home
	peers map[message.BrokerID]loop.Timer
	marks int // how often copies came into doubt
}

// watch begins the time of a peer unless it runs.
func (c *doubtClock) watch(peer message.BrokerID, o *Options) {
	c.marks++
	c.start(peer, o.Name, o.InDoubtTimeout)
}

func (c *doubtClock) start(peer message.BrokerID, name string, timeout time.Duration) {
	if peer == "" || timeout == NeverTimeout || c.peers[peer] != nil {
		return
	}
	if c.peers == nil {
		c.peers = map[message.BrokerID]loop.Timer{}
	}
	c.peers[peer] = c.home.env.After(timeout, func() {
		delete(c.peers, peer)
		c.release(peer, name, message.CopyRef{}, 0)
	})
}

// end stops the time of a peer: nothing is in doubt.
func (c *doubtClock) end(peer message.BrokerID) {
	if t := c.peers[peer]; t != nil {
		t.Stop()
		delete(c.peers, peer)
	}
}

// release gives back page after page.
func (c *doubtClock) release(peer message.BrokerID, name string, after message.CopyRef, n int) {
	h := c.home
	h.local.InDoubt(peer, after, network.MaxTalkKeys, func(page []network.Doubt) {
		if len(page) > 0 {
			h.local.Resolve(peer, refsOf(page), network.NeverLearned)
			c.release(peer, name, page[len(page)-1].Ref, n+len(page))
			return
		}
		if n > 0 {
			h.observe(Event{Kind: DoubtsReleased, Connector: name, Peer: peer, Count: n,
				Reason: message.InDoubt})
		}
	})
}

// WatchDoubts begins the time in which a peer must be found again, for copies that were in doubt
// when the broker started. Bridges to the peer end it; timeout is NeverTimeout or a time.
func (h *Home) WatchDoubts(peer message.BrokerID, timeout time.Duration) {
	h.doubts.start(peer, "", timeout)
}
