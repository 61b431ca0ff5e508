package bridge

import (
	"hopwire/internal/message"
	"hopwire/internal/network"
)

// Local is a bridge's home broker as the bridge sees it. All methods are called on the broker's
// loop and return at once; what takes time answers through a function, on the loop.
type Local interface {
	// Info introduces the home broker: id, name, URL.
	Info() message.BrokerInfo
	// Subscribe opens a network subscription. Deliveries go to s.Sink until Unsubscribe.
	Subscribe(s *network.Subscription) error
	// Wake makes the broker ask the subscription's Filter again, from its first pending copy: its
	// rules changed. It costs a look at all of them.
	Wake(id message.ConsumerID)
	// Ready tells that a subscription takes more deliveries, after its sink wanted no more.
	Ready(id message.ConsumerID)
	// SetSelectors tells what the consumers behind a network subscription select now. Bridges of
	// Hopwire peers are told of it.
	SetSelectors(id message.ConsumerID, s network.Selectors)
	// Unsubscribe closes a network subscription. Copies delivered and not settled go back to
	// their places, their redelivery count as it was; settle what must not before.
	Unsubscribe(id message.ConsumerID)
	// Settle ends deliveries of a subscription. Unknown references are ignored. While its window
	// has room the broker asks the gate again.
	Settle(id message.ConsumerID, refs []message.CopyRef, how network.Settlement)
	// Receive takes a message that a peer forwarded. done tells that it is safe (durably, if it is
	// persistent), or was known, or an error; then the peer may be answered.
	Receive(m *message.Message, from network.Peer, done func(err error))
	// InDoubt pages through the copies in doubt toward a peer, in order of destination and
	// sequence, behind after (the zero CopyRef begins). An empty page ends it.
	InDoubt(peer message.BrokerID, after message.CopyRef, limit int,
		done func([]network.Doubt))
	// Resolve ends the doubt about copies: those that the peer took are removed, others go back in
	// place, with their redelivery count as how says.
	Resolve(peer message.BrokerID, refs []message.CopyRef, how network.Resolution)
	// Known asks which of the arrivals a peer asks about were taken durably. links are the peer's
	// connections as it sees them; its others are ended before, as what they still hold must not
	// come after the answer. None says nothing about them. seen says that a client may have got what
	// is not known, before the broker was killed.
	Known(from network.Asker, links []message.ConnectionID, keys []network.DoubtKey,
		done func(known []bool, seen bool))
	// Temp creates or removes a temporary destination of the peer's side.
	Temp(from network.Peer, info *message.DestinationInfo) error
	// Advise publishes a bridge advisory (NetworkBridge, ForwardFailure) and tells the broker that
	// the peer is there or gone.
	Advise(e network.Event)
}

// Link is an established connection to a peer as a bridge sees it: commands go out in order, and
// come in through Bridge.Receive.
type Link interface {
	// Send queues a command; it never blocks. After Close it does nothing.
	Send(c message.Command)
	// Room reports whether more messages should be sent: not when much waits for the peer to read.
	// The function given to OnRoom is called when there is room again.
	Room() bool
	OnRoom(f func())
	// Close ends the link; the reason is logged.
	Close(reason string)
}

// Hello is what the handshake told about the peer.
type Hello struct {
	Remote       string // address, for messages
	Version      int    // negotiated OpenWire version
	MaxFrame     int64  // bytes the peer takes at most in a frame; 0 is no limit
	HopwireLevel int    // 0: the peer is no Hopwire broker
	HopwireRun   int64  // another after each start of the peer; 0 when it does not tell
	// As is who the peer of an accepted connection logged in as.
	As message.Principal
}

// Dialer makes links. The connector is told of the outcome on the loop.
type Dialer interface {
	// Dial begins to connect; exactly one of up and down is called later, then after up down once
	// at the link's end. cancel (returned) gives up; down is then called, too.
	Dial(uri string, up func(Link, Hello), receive func(message.Command),
		down func(error)) (cancel func())
}
