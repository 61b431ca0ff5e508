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
	return l.config.URI.Scheme + "://" + net.JoinHostPort(l.config.URI.Host, port)
}

// mayListen warns of ports that are open to the network without authentication, or refuses them.
func (s *Setup) mayListen(c *config.Broker) error {
	if c.Auth != nil {
		return nil
	}
	for _, t := range opened(c) {
		ip := net.ParseIP(t.URI.Host)
		if t.URI.Host == "localhost" || ip != nil && ip.IsLoopback() {
			continue
		}
		line := fmt.Sprintf("%s: connector %s is open to the network and there is no authentication;"+
			" add simpleAuthenticationPlugin or listen on 127.0.0.1", t.Pos, t.Name)
		if s.options.StrictListeners {
			return fmt.Errorf("%w: %s (refused by --strict-listeners)", ErrRefused, line)
		}
		s.options.Log.Warn(line)
	}
	return nil
}

// warnUnserved tells of what would connect brokers and does not.
func (s *Setup) warnUnserved(c *config.Broker) {
	for _, u := range c.Unserved {
		s.options.Log.Warn(fmt.Sprintf("%s: network connector %s never connects: %s; write the peers'"+
			" addresses, static:(tcp://host:port)", u.Pos, cmp.Or(u.Name, u.URI), u.Why))
	}
	for _, t := range opened(c) {
		if t.DiscoveryURI != "" {
			s.options.Log.Warn(fmt.Sprintf("%s: connector %s is not announced: discoveryUri is not"+
				" supported; brokers that look for it there do not find it, give them its address",
				t.Pos, t.Name))
		}
	}
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

// Addresses are where the broker listens.
func (b *Broker) Addresses() []string {
	var out []string
	for _, l := range b.listeners {
		out = append(out, l.config.Name+"  "+l.address())
	}
	return out
}
