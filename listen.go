package hopwire

import (
	"cmp"
	"fmt"
	"net"

	"hopwire/internal/config"
	"hopwire/internal/front/openwire"
	"hopwire/internal/link"
	"hopwire/internal/transport"
)

// listener is the open port of a transportConnector.
type listener struct {
	*openwire.Listener
	config *config.Transport
}

// address is where the port is reached, as the file says it, with the port that was taken for 0.
func (l *listener) address() string {
	_, port, err := net.SplitHostPort(l.Addr())
	if err != nil {
		port = l.config.URI.Port
	}
	return addressOf(l.config.URI, port)
}

// addressOf is where a connector is reached, without options.
func addressOf(u *config.URI, port string) string {
	return u.Scheme + "://" + net.JoinHostPort(u.Host, cmp.Or(port, transport.DefaultPort))
}

// opened are the transportConnectors that get a port.
func opened(c *config.Broker) []*config.Transport {
	var out []*config.Transport
	for _, t := range c.Transports {
		if t.AutoStart {
			out = append(out, t)
		}
	}
	return out
}

// listen opens the ports, and the way in from this process.
func (b *Broker) listen() (inside *openwire.Listener, err error) {
	o := openwire.Options{Broker: b.core, Hub: b.hub, Group: b.group,
		Peers: link.NewPeers(b.home, b.log), Log: b.log}
	for _, t := range opened(b.config) {
		o.Name, o.URI, o.LinkStealing = t.Name, t.URI.Text(), t.LinkStealing
		l, err := openwire.Listen(o)
		if err != nil {
			if t.Name == t.URI.String() { // it has no name, and the error begins with the address
				return nil, fmt.Errorf("%s: connector %w", t.Pos, err)
			}
			return nil, fmt.Errorf("%s: connector %s: %w", t.Pos, t.Name, err)
		}
		b.listeners = append(b.listeners, listener{l, t})
	}
	o.Name, o.URI, o.LinkStealing = "vm", "", false
	b.inside = transport.NewInside(b.config.Name)
	o.Inside = b.inside
	return openwire.Listen(o)
}

// url is where clients reach the broker: its first connector.
func (b *Broker) url() string {
	for _, t := range opened(b.config) {
		return t.URI.String()
	}
	return "vm://" + b.config.Name
}

// Connectors are those that the broker listens with, in the order of the file.
func (b *Broker) Connectors() []Connector {
	var out []Connector
	for _, l := range b.listeners {
		out = append(out, Connector{Name: l.config.Name, Address: l.address()})
	}
	return out
}
