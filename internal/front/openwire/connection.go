package openwire

import (
	"errors"
	"fmt"
	"log/slog"

	"hopwire/internal/broker"
	"hopwire/internal/message"
	"hopwire/internal/wire"
	"hopwire/openwire"
)

// connection is one client or peer. All of it is the loop's.
type connection struct {
	l       *Listener
	remote  string
	session *wire.Session
	core    *broker.Connection // nil before the hello

	// Of a duplex bridge's half that has the connection's commands; nil for anybody else.
	half     func(message.Command)
	halfDown func(error)
}

// up greets: the hellos agreed.
func (k *connection) up(p wire.Peer) {
	var duplex func(*message.BrokerInfo)
	if k.l.opt.Peers != nil {
		duplex = k.duplex
	}
	k.core = k.l.opt.Broker.Connect(k.session, broker.Remote{
		Address:   p.Remote,
		Connector: k.l.opt.Name, HopwireLevel: p.HopwireLevel, LinkStealing: k.l.opt.LinkStealing,
	}, duplex)
	k.session.Send(k.l.opt.Broker.Greeting())
}

func (k *connection) receive(c message.Command) {
	if k.half != nil {
		k.half(c)
		return
	}
	if u, ok := c.(*message.Unknown); ok && u.Type == openwire.TypeMessageDispatchNotification {
		k.refuseNotification(u)
		return
	}
	k.core.Handle(c)
	if _, ok := c.(*message.ConnectionInfo); ok && k.core.Opened() {
		k.session.Trust()
	}
}

// refuseNotification answers what only a slave of an old master would be told.
func (k *connection) refuseNotification(u *message.Unknown) {
	if u.ResponseRequired {
		k.session.Send(&message.Response{
			Correlation: u.CommandID,
			Exception: message.Exception(message.Errorf(message.Protocol,
				"MessageDispatchNotification is for slaves of a master; this broker is none")),
		})
	}
}

// duplex is called by the broker when the peer was let in.
func (k *connection) duplex(info *message.BrokerInfo) {
	receive, down, err := k.l.opt.Peers.Adopt(k.session, info, k.core.Principal())
	if err != nil {
		k.l.opt.Log.Warn("a duplex bridge was refused", slog.String("connector", k.l.opt.Name),
			slog.String("remote", k.remote), slog.String("peer", info.Name),
			slog.String("error", err.Error()))
		k.session.Send(&message.ConnectionError{Exception: message.Exception(err)})
		k.session.Close(err.Error())
		return
	}
	k.half, k.halfDown = receive, down
}

// unsent takes what this peer's own limits do not let through. A delivery that can never arrive
// would be sent again and again: it is dead-lettered in the consumer's name.
func (k *connection) unsent(c message.Command, err error) {
	if k.half != nil {
		if m, ok := c.(*message.Message); ok {
			k.half(wire.Unsendable(m, err))
			return
		}
	}
	d, ok := c.(*message.MessageDispatch)
	if !ok || d.Message == nil {
		k.l.opt.Log.Error("a command cannot be sent; the connection closes",
			slog.String("remote", k.remote),
			slog.String("command", fmt.Sprintf("%T", c)), slog.String("error", err.Error()))
		k.session.Close(err.Error())
		return
	}
	k.l.opt.Log.Warn("a message cannot be sent to its consumer and is dead-lettered",
		slog.String("remote", k.remote), slog.String("destination", d.Destination.String()),
		slog.String("message", d.Message.ID.String()),
		slog.String("error", err.Error()))
	k.core.Handle(&message.MessageAck{
		Consumer: d.Consumer, Destination: d.Destination,
		Type: message.PoisonAck, First: d.Message.ID, Last: d.Message.ID, HasFirst: true,
		HasLast: true, Count: 1, PoisonCause: &message.Throwable{
			Class:   "java.io.IOException",
			Message: err.Error(),
		},
	})
}

// down releases everything: the connection is over.
func (k *connection) down(err error) {
	if k.core == nil {
		k.l.strangers.left(k.remote, k.l.opt.Name, err)
		return
	}
	half := k.halfDown
	k.half, k.halfDown = nil, nil
	if half != nil {
		half(err)
	}
	k.core.Gone()
	if errors.Is(err, wire.ErrNoLogin) {
		k.l.strangers.silent(k.remote, k.l.opt.Name, err)
		return
	}
	k.l.strangers.ended(k.remote, k.l.opt.Name, err)
}
