package link

import (
	"errors"
	"io"
	"log/slog"
	"syscall"

	"hopwire/internal/bridge"
	"hopwire/internal/message"
	"hopwire/internal/wire"
	"hopwire/openwire"
)

var _ bridge.Link = (*wire.Session)(nil)

// Peers adopts duplex connections for the bridges of a home; it is what front/openwire calls
// Peers.
type Peers struct {
	home *bridge.Home
	log  *slog.Logger
}

// NewPeers makes the adopter of a home. log may be nil.
func NewPeers(home *bridge.Home, log *slog.Logger) *Peers {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Peers{home: home, log: log}
}

// Adopt makes the accepting half of a duplex bridge of a connection whose peer was let in.
func (p *Peers) Adopt(s *wire.Session, info *message.BrokerInfo, as message.Principal) (
	func(message.Command), func(error), error,
) {
	hello := helloOf(s.Peer())
	hello.As = as
	a, err := p.home.Accept(s, hello, info)
	if err != nil {
		return nil, nil, err
	}
	down := func(err error) {
		if err != nil {
			err = lineOf(s.Remote(), "connection", err)
		}
		a.Down(err)
	}
	return a.Receive, down, nil
}

// unsent tells the bridge of a message that the peer cannot be sent: it keeps that one back and
// goes on. Anything else ends the link.
func unsent(s *wire.Session, c message.Command, err error, receive func(message.Command)) {
	if m, ok := c.(*message.Message); ok {
		receive(wire.Unsendable(m, err))
		return
	}
	s.Close(err.Error())
}

// plain says the usual ends of sockets in words.
func plain(err error) string {
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return "the peer closed the connection"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the peer closed the connection in the middle of a command"
	case errors.Is(err, syscall.ECONNRESET):
		return "the peer reset the connection"
	}
	if s, ok := errors.AsType[*openwire.StrangerError](err); ok {
		return s.Answer()
	}
	return err.Error()
}
