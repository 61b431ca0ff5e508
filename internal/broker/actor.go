package broker

import (
	"strings"

	"hopwire/internal/message"
)

// actor is a user that a bridge to a peer acts as here, with the groups that it was let in with.
type actor struct {
	user, groups string
	peer         message.BrokerID
}

// actorsMost is how many users of bridges are remembered with what was decided of them: an ActiveMQ
// peer is another one after each start.
const actorsMost = 1000

// namesMost is how many names of peers are remembered.
const namesMost = 1000

// rightsOf gives what decides for a bridge that acts as a user; nil without one.
func (n *networks) rightsOf(b *Broker, as *message.Principal, peer message.BrokerID) *rights {
	if as == nil || b.opt.Authorizer == nil {
		return nil
	}
	k := actor{as.User, strings.Join(as.Groups, "\x00"), peer}
	if n.actors[k] == nil {
		if len(n.actors) >= actorsMost {
			clear(n.actors)
		}
		n.actors[k] = b.rightsOf(*as, "bridge to "+b.peerText(peer))
	}
	return n.actors[k]
}
