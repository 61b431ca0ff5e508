package bridge

import (
	"slices"
	"time"

	"hopwire/internal/message"
)

// Bounds of what is remembered of peers that are away.
const (
	awayMost = 300
	awayTime = 12 * time.Hour
)

// Away is a duplex bridge of a peer whose link ended without a word of it, and that has not come
// back.
type Away struct {
	status Status
	rules  rules
}

// Status tells how the bridge stood at its end; Since is that.
func (a *Away) Status() Status { return a.status }

// Explain gives the reason why messages of d have no way over it.
func (a *Away) Explain(d message.Destination) message.Reason {
	if why := a.rules.refuses(d); why != "" {
		return why
	}
	return message.BridgeDown
}

// Away gives the bridges of peers that went without a word, the longest away first. They are
// forgotten when their connector is back, after awayTime, and when there are more than awayMost.
func (h *Home) Away() []*Away {
	h.away = slices.DeleteFunc(h.away, func(a *Away) bool {
		return h.env.Mono()-a.status.Since > awayTime
	})
	return slices.Clone(h.away)
}

// missed remembers an accepted bridge that ended.
func (h *Home) missed(a *Acceptor) {
	s := a.Status()
	s.Since, s.InFlight, s.Silent, s.Demands, s.Parked = h.env.Mono(), 0, 0, nil, nil
	h.back(s.Name, s.Peer.Name)
	h.away = append(h.Away(), &Away{status: s, rules: newRules(&a.opts)})
	if n := len(h.away) - awayMost; n > 0 {
		h.away = slices.Delete(h.away, 0, n)
	}
}

// back forgets what is known of a connector of a peer, whatever the peer's id: it is there again.
func (h *Home) back(connector, peer string) {
	h.away = slices.DeleteFunc(h.away, func(a *Away) bool {
		return a.status.Name == connector && a.status.Peer.Name == peer
	})
}
