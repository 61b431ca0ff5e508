package broker

import (
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// talk answers what a Hopwire peer asks beside OpenWire.
func (c *Connection) talk(cmd *message.ControlCommand) {
	if !c.network || !c.peer.Hopwire || !c.opened || !network.IsTalk(cmd.Command) {
		return
	}
	t, err := network.ParseTalk(cmd.Command)
	if err != nil {
		c.b.tell(Event{Kind: PeerWarning, Of: string(c.peer.ID), Text: c.peer.Name + ": " + err.Error()})
		return
	}
	if t.Kind != network.Ask {
		return
	}
	c.b.endOthers(network.Asker{Peer: c.peer.ID, User: c.principal.User}, t.Links)
	told, answered := false, func() {}
	c.b.known(c.peer.ID, t.Keys, func(known []bool, seen bool) {
		told = true
		answered()
		c.say(network.Talk{Kind: network.Known, ID: t.ID, Known: known, Seen: seen && t.Seen})
	})
	if !told && t.Seen {
		answered = network.SayLater(func(d time.Duration, f func()) { c.b.env.After(d, f) },
			func() bool {
				if c.opened {
					c.say(network.Talk{Kind: network.Later, ID: t.ID})
				}
				return c.opened
			})
	}
}

func (c *Connection) say(t network.Talk) {
	c.out.Send(&message.ControlCommand{Command: t.Encode()})
}
