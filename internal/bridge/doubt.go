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

// asking is the round about copies in doubt, before a link forwards anything new.
type asking struct {
	id    uint64
	after message.CopyRef
	page  []network.Doubt // read and not answered; the first asked of them are on their way
	asked int
	when  time.Duration // they were asked
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
		b.home.doubts.hold(b.peer.ID)
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
	if a.mark != b.home.doubts.marks {
		// Another link ended meanwhile; its copies may lie before the page that was read last.
		a.after, a.mark = message.CopyRef{}, b.home.doubts.marks
		b.resolve()
		return
	}
	a.begun = false
	b.home.doubts.resolved(b.peer.ID)
	if a.total > 0 {
		e := Event{Kind: DoubtsResolved, Count: a.known, Text: fmt.Sprintf("the peer was asked about"+
			" %d copies in doubt: it had %d, %d went back", a.total, a.known, a.total-a.known)}
		if b.hello.HopwireLevel == 0 {
			e = Event{Kind: DoubtsReleased, Count: a.total, Text: fmt.Sprintf("%d copies in doubt went"+
				" back: the peer is no Hopwire broker and cannot be asked", a.total)}
		}
		b.event(e)
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
	links := b.home.linksTo(b.peer.ID)
	a.asked, a.when = network.FitsTalk(links, keys), b.home.env.Mono()
	a.id++
	b.bound(doubtTimeout, "the peer did not answer about copies in doubt")
	b.say(network.Talk{Kind: network.Ask, ID: a.id, Links: links, Keys: keys[:a.asked],
		Seen: true})
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
		b.answer(t)
	case network.Known:
		b.prove()
		b.told(t)
	case network.Later:
		b.prove()
		b.patient(t)
	}
}

// answer tells the peer what of its copies in doubt is here, when that can be told.
func (b *Bridge) answer(t network.Talk) {
	told, answered := false, func() {}
	b.home.local.Known(b.asker(), t.Links, t.Keys, func(known []bool, seen bool) {
		told = true
		answered()
		if b.phase != over {
			b.say(network.Talk{Kind: network.Known, ID: t.ID, Known: known, Seen: seen && t.Seen})
		}
	})
	if !told && t.Seen {
		answered = network.SayLater(b.after, func() bool {
			if b.phase != over {
				b.say(network.Talk{Kind: network.Later, ID: t.ID})
			}
			return b.phase != over
		})
	}
}

// asker is the peer as one that asks over this link.
func (b *Bridge) asker() network.Asker {
	return network.Asker{Peer: b.peer.ID, User: b.hello.As.User, Ours: !b.accepted}
}

func (b *Bridge) after(d time.Duration, f func()) { b.home.env.After(d, f) }

// patient waits on for a peer that is there and cannot tell yet.
func (b *Bridge) patient(t network.Talk) {
	a := &b.doubts
	if b.phase == resolving && t.ID == a.id && a.asked > 0 {
		a.when = b.home.env.Mono()
		b.bound(doubtTimeout, "the peer did not answer about copies in doubt")
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
		how := network.WasNotTaken
		if t.Seen {
			how = network.MaybeSeen
		}
		b.home.local.Resolve(b.peer.ID, free, how)
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
	peers map[message.BrokerID]*doubtTime
	marks int // how often copies came into doubt
}

// doubtTime is the time in which a peer must be found again.
type doubtTime struct {
	name   string // of the connector; "" since before the start
	place  string // Bridge.place of the last link; "" since before the start
	timer  loop.Timer
	end    time.Duration // when the time that ran last is over
	wanted bool          // copies may be in doubt, and not for ever
	asking int           // links that ask the peer: its time stands still
}

func (c *doubtClock) of(peer message.BrokerID) *doubtTime {
	t := c.peers[peer]
	if t == nil {
		t = &doubtTime{}
		if c.peers == nil {
			c.peers = map[message.BrokerID]*doubtTime{}
		}
		c.peers[peer] = t
	}
	return t
}

func (t *doubtTime) stop() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// hold stops a peer's time: a link to it was made and asks.
func (c *doubtClock) hold(peer message.BrokerID) {
	t := c.of(peer)
	t.asking++
	t.stop()
}

// resolved ends a peer's time: nothing is in doubt.
func (c *doubtClock) resolved(peer message.BrokerID) {
	t := c.of(peer)
	t.asking--
	t.wanted = false
	t.stop()
	c.tidy(peer, t)
}

func (c *doubtClock) tidy(peer message.BrokerID, t *doubtTime) {
	if t.asking == 0 && !t.wanted {
		delete(c.peers, peer)
	}
}

// watch begins a peer's time at the end of a link that leaves copies in doubt. To a peer that was
// found and did not answer, the time that ran before counts on, as if there had been no link.
func (c *doubtClock) watch(b *Bridge) {
	c.marks++
	t, now := c.of(b.peer.ID), c.home.env.Mono()
	a, timeout := &b.doubts, b.opts.InDoubtTimeout
	if a.unfinished() {
		t.asking--
		if a.asked > 0 && now-a.when >= doubtTimeout && t.wanted {
			timeout = max(0, t.end-now)
		}
	}
	t.name, t.place = b.opts.Name, b.place()
	c.start(b.peer.ID, t, timeout)
}

func (c *doubtClock) start(peer message.BrokerID, t *doubtTime, timeout time.Duration) {
	t.stop()
	t.wanted = peer != "" && timeout != NeverTimeout
	if !t.wanted {
		c.tidy(peer, t)
		return
	}
	t.end = c.home.env.Mono() + timeout
	if t.asking > 0 {
		return
	}
	t.timer = c.home.env.After(timeout, func() {
		c.over(peer, t, "the peer was not there within inDoubtTimeout")
	})
}

// over gives the peer's copies free.
func (c *doubtClock) over(peer message.BrokerID, t *doubtTime, why string) {
	t.stop()
	t.wanted = false
	c.tidy(peer, t)
	c.release(peer, Event{Kind: DoubtsReleased, Connector: t.name, Peer: peer, Text: why,
		Reason: message.InDoubt}, message.CopyRef{})
}

// release gives back page after page, until a link to the peer asks for itself.
func (c *doubtClock) release(peer message.BrokerID, e Event, after message.CopyRef) {
	h := c.home
	h.local.InDoubt(peer, after, network.MaxTalkKeys, func(page []network.Doubt) {
		if t := c.peers[peer]; len(page) > 0 && (t == nil || t.asking == 0) {
			h.local.Resolve(peer, refsOf(page), network.NeverLearned)
			e.Count += len(page)
			c.release(peer, e, page[len(page)-1].Ref)
			return
		}
		if e.Count > 0 {
			e.Text = fmt.Sprintf("%d copies in doubt went back: %s", e.Count, e.Text)
			h.observe(e)
		}
	})
}

// succeeded gives the copies free that went to a broker whose place another one has taken: the
// connector reached it at the same address, it has the same name, and its id is new. A broker
// keeps its id with its store, so what the old one had taken is gone with its receipts. A broker of
// another name may only stand in for one that comes back; so may one at another address of a list.
func (c *doubtClock) succeeded(b *Bridge) {
	for _, peer := range slices.Sorted(maps.Keys(c.peers)) {
		t := c.peers[peer]
		if t.wanted && t.asking == 0 && t.place == b.place() && peer != b.peer.ID &&
			!c.home.linked(peer) {
			c.over(peer, t, b.peer.Name+" came back as another broker, without its store")
		}
	}
}

// place is where a link leads: connector, address and the name of the broker there.
func (b *Bridge) place() string {
	return b.opts.Name + "\n" + b.uri + "\n" + b.peer.Name
}

func (h *Home) linked(peer message.BrokerID) bool {
	return slices.ContainsFunc(h.bridges, func(b *Bridge) bool { return b.peer.ID == peer })
}

// InDoubtTimeout is the longest that a connector gives its peers, the default without connectors.
// Which of them led to a peer is not known after a restart.
func (h *Home) InDoubtTimeout() time.Duration {
	if h.patience == 0 {
		return inDoubtDefault
	}
	return h.patience
}

func (h *Home) wait(timeout time.Duration) {
	if timeout == NeverTimeout || h.patience != NeverTimeout && timeout > h.patience {
		h.patience = timeout
	}
}

// WatchDoubts begins the time in which a peer must be found again, for copies that were in doubt
// when the broker started. Bridges to the peer end it; timeout is NeverTimeout or a time.
func (h *Home) WatchDoubts(peer message.BrokerID, timeout time.Duration) {
	h.doubts.start(peer, h.doubts.of(peer), timeout)
}
