package broker

import (
	"slices"
	"time"

	"hopwire/internal/network"
)

// Bounds of what is remembered of bridges of peers that went without a word.
const (
	awayMost = 300
	awayTime = 12 * time.Hour
)

// IncomingStatus is a peer's bridge at one moment.
type IncomingStatus struct {
	Peer     network.Peer
	Address  string
	ClientID string // which begins with the connector's name
	Received int64  // messages
	Since    time.Duration
	// Away is set when its connection ended, Since ago, without a word of the peer.
	Away bool
}

// awayBridge is a bridge that led here alone and whose connection ended without a word of the peer.
type awayBridge struct {
	status    IncomingStatus
	connector string
	at        time.Duration
}

// leadsHere reports whether this is a peer's bridge that leads here alone: what leads back as well
// is a bridge of ours, too.
func (c *Connection) leadsHere() bool { return c.network && (c.mirror == nil || c.duplex == nil) }

func (c *Connection) tellOfBridge(kind EventKind) {
	if kind == BridgeCame && c.network {
		c.b.isBack(c)
	}
	if !c.leadsHere() {
		return
	}
	c.b.tell(Event{Kind: kind, Peer: c.peer.Name, Count: c.received,
		Text: c.remote.Address + " as " + c.clientID})
}

// goesAway remembers a bridge of which nothing is left here.
func (c *Connection) goesAway() {
	b := c.b
	if !c.opened || !c.leadsHere() || slices.ContainsFunc(b.connOrder, func(x *Connection) bool {
		return x != c && x.network && x.peer.Name == c.peer.Name && x.connector == c.connector
	}) {
		return
	}
	b.isBack(c)
	s := IncomingStatus{Peer: c.peer, Address: c.remote.Address, ClientID: c.clientID,
		Received: c.received, Away: true}
	b.away = append(b.away, awayBridge{s, c.connector, b.env.Mono()})
	if n := len(b.away) - awayMost; n > 0 {
		b.away = slices.Delete(b.away, 0, n)
	}
}

// isBack forgets what is known of the connector of a peer, whatever the peer's id was.
func (b *Broker) isBack(c *Connection) {
	b.away = slices.DeleteFunc(b.away, func(m awayBridge) bool {
		return m.status.Peer.Name == c.peer.Name && m.connector == c.connector
	})
}

// incoming tells of the bridges that lead here alone.
func (b *Broker) incoming() []IncomingStatus {
	var out []IncomingStatus
	now := b.env.Mono()
	for _, c := range b.connOrder {
		if c.leadsHere() {
			out = append(out, IncomingStatus{Peer: c.peer, Address: c.remote.Address,
				ClientID: c.clientID, Received: c.received, Since: now - c.since})
		}
	}
	b.away = slices.DeleteFunc(b.away, func(m awayBridge) bool { return now-m.at > awayTime })
	for _, m := range b.away {
		m.status.Since = now - m.at
		out = append(out, m.status)
	}
	return out
}
