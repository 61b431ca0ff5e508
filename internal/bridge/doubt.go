package bridge

import (
	"fmt"
	"time"

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
	mark  int // absences.marks when the round began
}

func (a *asking) open() int { return len(a.page) }

// unfinished reports whether copies may still be in doubt when the link ends.
func (a *asking) unfinished() bool { return a.begun }

// resolve reads the next page of copies in doubt. A peer that is no Hopwire broker (any more)
// cannot be asked: all of them go back.
func (b *Bridge) resolve() {
	a := &b.doubts
	if !a.begun {
		a.begun, a.mark = true, b.home.absences.marks
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
	if a.mark != b.home.absences.marks {
		// Another link ended meanwhile; its copies may lie before the page that was read last.
		a.after, a.mark = message.CopyRef{}, b.home.absences.marks
		b.resolve()
		return
	}
	a.begun = false
	b.home.absences.end(b.peer.ID)
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
	a.asked = network.FitsTalk(links, keys)
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
		b.home.absences.heard(b.peer.ID)
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
	b.home.absences.heard(b.peer.ID)
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
		b.count.forwarded += int64(len(taken))
		b.home.local.Resolve(b.peer.ID, taken, network.WasTaken)
	}
	if len(free) > 0 {
		how := network.WasNotTaken
		if t.Seen || b.home.absences.restarted(b) {
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
