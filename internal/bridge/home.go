package bridge

import (
	"fmt"
	"slices"
	"strings"

	"hopwire/internal/loop"
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// Config is what the bridges of one broker need of the house around them.
type Config struct {
	Local  Local
	Env    loop.Env
	Dialer Dialer
	// Observe may be nil.
	Observe Observer
	// Selectors parses a selector; nil takes each selector for "anything".
	Selectors func(text string) (Selector, error)
}

// Home is what all bridges of one broker share. Its methods, and those of what it makes, are
// called on the loop.
type Home struct {
	local     Local
	env       loop.Env
	dialer    Dialer
	observe   Observer
	selectors func(text string) (Selector, error)
	bridges   []*Bridge // live links, in order of their making
	accepted  []*Acceptor
	away      []*Away // by Since, the first first
	// connectors are all that were made, in the order of their making.
	connectors []*Connector
	seeds      int
	absences   absences
	again      bool // suppressed demand is to be looked at again
}

// NewHome makes the bridges' side of a broker.
func NewHome(c Config) *Home {
	h := &Home{local: c.Local, env: c.Env, dialer: c.Dialer, observe: c.Observe,
		selectors: c.Selectors}
	if h.observe == nil {
		h.observe = func(Event) {}
	}
	h.absences = absences{home: h, peers: map[message.BrokerID]*absence{}}
	return h
}

// seed begins the connection ids of one link: unique over restarts, readable in a peer's lists.
func (h *Home) seed(remote string) string {
	h.seeds++
	name := strings.ReplaceAll(h.local.Info().Name+"->"+remote, ":", "_")
	return fmt.Sprintf("%s-%d-%d-%d", name, 10000+h.env.Rand()%50000, h.env.Wall(), h.seeds)
}

// linksTo lists this broker's connections at a peer; none when they are too many to tell.
func (h *Home) linksTo(peer message.BrokerID) []message.ConnectionID {
	var out []message.ConnectionID
	for _, b := range h.bridges {
		if b.peer.ID == peer {
			out = append(out, b.remote)
		}
	}
	if !network.LinksFit(out) {
		return nil
	}
	return out
}

// EndOthers ends the duplex links to a peer whose connection here is not among links: the peer has
// them no more. It gives how many the asker may not end: they are not of its user.
func (h *Home) EndOthers(from network.Asker, links []message.ConnectionID) (left int) {
	for _, b := range slices.Clone(h.bridges) {
		if b.peer.ID != from.Peer || b.mirrored == "" || slices.Contains(links, b.mirrored) {
			continue
		}
		if !from.MayEnd(b.user()) {
			left++
			continue
		}
		b.fail(message.Unavailable, "the peer asks over another connection, and has this one no more")
	}
	return left
}

// user is who the link is of: who it logs in as at the peer, or who the peer logged in as here.
func (b *Bridge) user() string {
	if b.accepted {
		return b.hello.As.User
	}
	user, _ := b.opts.remoteLogin()
	return user
}

func (h *Home) leave(b *Bridge) {
	for i, x := range h.bridges {
		if x == b {
			h.bridges = append(h.bridges[:i:i], h.bridges[i+1:]...)
			return
		}
	}
}

// redundant reports whether all consumers behind d are served by other demand, of any bridge, that
// has at least the priority given; more than it when above is set.
func (h *Home) redundant(d *demand, priority int8, above bool) bool {
	if !d.bridge.opts.suppresses(d.dest) || len(d.members) == 0 {
		return false
	}
	if above {
		priority++
	}
	for i := range d.members {
		if !h.served(d, d.members[i].origins, priority) {
			return false
		}
	}
	return true
}

func (h *Home) served(d *demand, origins []message.ConsumerID, priority int8) bool {
	for _, b := range h.bridges {
		for _, x := range b.table.by[d.dest] {
			if x == d || x.state != active || x.priority < priority {
				continue
			}
			for i := range x.members {
				if meet(x.members[i].origins, origins) {
					return true
				}
			}
		}
	}
	return false
}

// outdone suppresses demand that d, just opened, makes redundant.
func (h *Home) outdone(d *demand) {
	for _, b := range h.bridges {
		for _, x := range slices.Clone(b.table.by[d.dest]) {
			if x.state == active && x.priority < d.priority &&
				h.redundant(x, x.priority, true) {
				b.windUp(x, yielding)
			}
		}
	}
}

func meet(a, b []message.ConsumerID) bool {
	for _, x := range a {
		if slices.Contains(b, x) {
			return true
		}
	}
	return false
}

// reconsider looks at suppressed demand again, after what suppressed it may have gone.
func (h *Home) reconsider() {
	if h.again {
		return
	}
	h.again = true
	h.env.Soon(func() {
		h.again = false
		for _, b := range slices.Clone(h.bridges) {
			b.openWaiting()
		}
	})
}
