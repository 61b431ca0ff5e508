// Package link is the sockets of bridges: it dials peers for a bridge.Home, and adopts the
// connections on which peers asked for the other half of a duplex bridge. A link is a wire.Session
// seen as a bridge.Link; everything about it is bounded in time, and every end is one line that
// names the peer's address and the phase.
package link
