package broker

import (
	"time"

	"hopwire/internal/message"
	"hopwire/internal/network"
)

// refusedDelay is how long a refused connection stays, so that its client reads why.
const refusedDelay = 2 * time.Second

// open authenticates and registers the connection.
func (c *Connection) open(info *message.ConnectionInfo) {
	if c.opened && info.ID == c.id {
		c.answer(info, nil)
		return
	}
	if err := c.admit(info); err != nil {
		of := "user " + info.UserName
		if message.KindOf(err) == message.InvalidClientID {
			of += ", client " + info.ClientID
		}
		c.turnAway(of, err)
		c.refuse(&info.Header, err)
		return
	}
	if info.ResponseRequired {
		c.out.Respond(info.CommandID)
	}
	if info.Manageable {
		c.out.Send(&message.ConnectionControl{FaultTolerant: info.FaultTolerant})
	}
	c.b.tell(Event{Kind: ConnectionOpened, Text: c.remote.Address + " as " + c.clientID})
	c.since = c.b.env.Mono()
	c.tellOfBridge(BridgeCame)
	c.b.adviseConnection(c)
	if c.network && c.b.opt.PeerSeen != nil {
		c.b.opt.PeerSeen(c.peer.ID)
	}
	if c.mirror != nil && c.duplex != nil {
		c.duplex(c.mirror)
	}
}

// turnAway counts a connection of somebody that is not let in, and ends it when its client has read
// why.
func (c *Connection) turnAway(of string, err error) {
	c.b.counts.Reasons[message.LoginRefused]++
	c.b.tell(Event{Kind: ConnectionRefused, Reason: message.LoginRefused,
		Of: of + " at " + c.remote.host(), Text: c.whose() + ": " + err.Error()})
	c.b.env.After(refusedDelay, func() { c.close("refused: " + err.Error()) })
}

// whose is where the connection comes from, and of a peer's bridge which it is.
func (c *Connection) whose() string {
	if !c.network {
		return c.remote.Address
	}
	text := "bridge "
	if c.connector != "" {
		text += c.connector + " "
	}
	return text + "of " + c.peer.Name + " (" + c.remote.Address + ")"
}

func (c *Connection) admit(info *message.ConnectionInfo) error {
	b := c.b
	switch {
	case c.barred != nil:
		return c.barred
	case b.stopping():
		return message.Errorf(message.Unavailable, "broker %s is stopping", b.opt.Name)
	case info.ClientID == "":
		return message.Errorf(message.InvalidClientID,
			"No clientID specified for connection request")
	case c.opened:
		return message.Errorf(message.IllegalState, "connection %s is open already as %s",
			info.ID, c.id)
	}
	principal := message.Principal{User: info.UserName}
	if b.opt.Authenticator != nil {
		var err error
		if principal, err = b.opt.Authenticator.Authenticate(info.UserName, info.Password); err != nil {
			return err
		}
	}
	old, err := c.replaces(info, principal)
	if err != nil {
		return err
	}
	for _, o := range old {
		if c.network && o.peer.ID != c.peer.ID {
			b.sameName(c, o)
		}
		o.close("taken over by a new connection of the same client")
	}
	if c.network && c.peer.Name == b.opt.Name {
		b.counts.Reasons[message.SameName]++
		b.tell(Event{Kind: PeerWarning, Reason: message.SameName, Of: c.peer.Name,
			Text: "the broker at " + c.remote.Address + " (" + string(c.peer.ID) + ") is called " +
				c.peer.Name + " as this one; give each broker of a network its own brokerName"})
	}
	kept := *info
	kept.Password = ""
	c.info, c.id, c.clientID, c.principal, c.opened = &kept, info.ID, info.ClientID, principal, true
	c.rights = b.rightsOf(principal, "client "+c.clientID+" at "+c.remote.Address)
	b.connections[c.id] = c
	b.connOrder = append(b.connOrder, c)
	b.clientIDs[c.clientID] = c
	c.sessions[message.SessionID{Connection: c.id, Value: -1}] = true
	return nil
}

// sameName tells of a connection of a peer that ends that of another broker with its name, here and
// to who loses it.
func (b *Broker) sameName(c, old *Connection) {
	b.counts.Reasons[message.SameName]++
	text := "two brokers are called " + c.peer.Name + ", or one lost its data folder: " +
		string(c.peer.ID) + " at " + c.remote.Address + " takes the link of " + string(old.peer.ID) +
		" at " + old.remote.Address + "; give each its own brokerName"
	b.tell(Event{Kind: PeerWarning, Reason: message.SameName, Of: c.peer.Name, Text: text})
	old.out.Send(&message.ConnectionError{Exception: message.Exception(
		message.Errorf(message.InvalidClientID, "%s", text))})
}

// replaces gives the connections that a new one ends, each of the same principal: the one with its
// connection id (a client that lost its old one), that with its client id where the connector lets
// it be stolen, and a peer's old link, dead or not, since answers of both must not mix. Everything
// is tested before anything is closed.
func (c *Connection) replaces(info *message.ConnectionInfo,
	by message.Principal) ([]*Connection, error) {
	b := c.b
	var out []*Connection
	if old := b.connections[info.ID]; old != nil {
		if old.principal.User != by.User {
			return nil, message.Errorf(message.Denied,
				"Connection %s belongs to another user", info.ID)
		}
		out = append(out, old)
	}
	old := b.clientIDs[info.ClientID]
	if old == nil || len(out) > 0 && old == out[0] {
		return out, nil
	}
	samePeer := c.network && old.network && old.principal.User == by.User &&
		(old.peer.ID == c.peer.ID || old.peer.Name == c.peer.Name)
	steals := c.remote.LinkStealing && !c.network && !old.network &&
		old.principal.User == by.User
	if !samePeer && !steals {
		return nil, message.Errorf(message.InvalidClientID, "Broker: %s - Client: %s already"+
			" connected from %s, last heard of %v ago", b.opt.Name, info.ClientID,
			old.remote.Address, (b.env.Mono() - old.active).Round(time.Second))
	}
	return append(out, old), nil
}

// introduce takes a broker's BrokerInfo: from here on this is a peer's bridge. A duplex peer's
// other direction begins when its ConnectionInfo was let in. A peer introduces itself once, before
// it logs in: receipts are kept under its id, which must be one and not ours.
func (c *Connection) introduce(info *message.BrokerInfo) error {
	if !info.NetworkConnection {
		return nil
	}
	if c.network || c.opened {
		return message.Errorf(message.Protocol,
			"a second BrokerInfo on one connection, or one after the login: %s", info.Name)
	}
	if info.ID == "" || info.ID == c.b.opt.ID {
		c.barred = message.Errorf(message.Protocol,
			"the broker id %q of the peer %q is ours or none", info.ID, info.Name)
		c.turnAway("peer "+info.Name, c.barred)
		return c.barred
	}
	c.network = true
	c.peer = network.Peer{ID: info.ID, Name: info.Name, Hopwire: c.remote.HopwireLevel > 0}
	c.peer.Prefetch, c.peer.PerConsumer = windowsOf(info.NetworkProperties)
	c.connector = connectorOf(info.NetworkProperties)
	if info.Duplex {
		c.mirror = info
	}
	return nil
}
