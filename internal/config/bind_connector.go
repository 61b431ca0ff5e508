package config

import (
	"slices"
	"strings"

	"hopwire/internal/config/schema"
)

// scheme finds the scheme of a transport URI and says what becomes of it; nil when the transport
// cannot be used.
func (b *builder) scheme(u *URI, at Pos) *schema.Scheme {
	s := schema.SchemeNamed(u.Scheme)
	if s == nil {
		var names []string
		for _, known := range schema.Schemes() {
			names = append(names, known.Name)
		}
		hint := b.suggest(u.Scheme, names)
		if hint == "" {
			hint = "; use tcp://host:port"
		}
		b.problem(at, "unknown scheme %s%s", u.Scheme, hint)
		return nil
	}
	if s.Status != schema.Honoured {
		return nil
	}
	return s
}

// transport binds <transportConnector>; nil when it is not used.
func (b *builder) transport(n *bean) *Transport {
	if !n.has("uri") {
		b.problem(n.pos, "<transportConnector> without uri")
		return nil
	}
	at := n.at("uri")
	u, err := ParseURI(n.text("uri"))
	if err != nil {
		b.problem(at, "uri on <transportConnector>: %v", err)
		return nil
	}
	if u.User {
		b.notice(at, Warning, "the user in the uri of connector %s is not used: clients log in with"+
			" their own", n.connectorName(u))
	}
	before := len(b.problems)
	s := b.scheme(u, at)
	if len(b.problems) > before {
		return nil
	}
	if s != nil && u.Host == "" {
		b.problem(at, "uri on <transportConnector>: %s has no host:port; use %s://host:port", u, u.Scheme)
		return nil
	}
	notices := len(b.notices)
	options := b.options(u, at, "server", "transport.", "wireFormat.", "auto.")
	if s == nil {
		// What its options do not do is part of the connector's own notice, unless it is a safeguard.
		b.dropOptionNotices(notices)
		b.notice(at, NotHonoured, "connector %s is not opened: %s is not supported", n.connectorName(u),
			u.Scheme)
		return nil
	}
	t := &Transport{
		Pos:          n.pos,
		Name:         n.connectorName(u),
		URI:          u,
		LinkStealing: n.bool("allowLinkStealing"),
		AutoStart:    n.bool("autoStart"),
		DiscoveryURI: n.text("discoveryUri"),
	}
	if !t.AutoStart {
		b.notice(n.at("autoStart"), Warning, "connector %s is not opened: autoStart is false", t.Name)
	}
	t.LinkStealing = t.LinkStealing || options["server"].bool("allowLinkStealing")
	return t
}

// dropOptionNotices removes notices about settings without effect that came after the first n.
func (b *builder) dropOptionNotices(n int) {
	kept := b.notices[:n]
	for _, notice := range b.notices[n:] {
		if notice.Kind != NotHonoured && notice.Kind != Restricting {
			kept = append(kept, notice)
		}
	}
	b.notices = kept
}

// connectorName returns the name of a transport connector, its address without one.
func (n *bean) connectorName(u *URI) string {
	if name := n.text("name"); name != "" {
		return name
	}
	return u.String()
}

// networks binds the network connectors of a broker.
func (b *builder) networks(n *bean, out *Broker) {
	seen := make(map[string]*Network)
	for _, c := range n.many("networkConnectors") {
		if c.el.Open {
			out.Unserved = append(out.Unserved, Unserved{Pos: c.pos, Name: c.label, URI: c.el.Name,
				Why: "<" + c.el.Name + "> is not supported"})
			continue
		}
		net := b.network(c)
		if net == nil {
			continue
		}
		if net.Links == nil {
			out.Unserved = append(out.Unserved, Unserved{Pos: net.Pos, Name: net.Name,
				URI: net.URI.String(), Why: "discovery by " + net.URI.Scheme + " is not supported"})
			continue
		}
		if first := seen[net.Name]; first != nil {
			b.namesake(first, net)
		} else {
			seen[net.Name] = net
		}
		out.Networks = append(out.Networks, net)
	}
	if len(out.Networks) > 0 && !out.AdvisorySupport {
		b.notice(n.at("advisorySupport"), Warning, "advisorySupport=false: other brokers learn nothing "+
			"of the consumers here and forward only what they include statically")
	}
}

// namesake says what becomes of a second connector of a name. Client ids and duplex halves are made
// of it: at one peer each ends the other's link, again and again.
func (b *builder) namesake(first, second *Network) {
	for _, p := range first.peers() {
		if slices.Contains(second.peers(), p) {
			b.problem(second.Pos, "two network connectors called %s (line %d has the first) lead to %s, "+
				"where each would end the other's link; give them different names", second.Name,
				first.Pos.Line, p)
			return
		}
	}
	b.notice(second.Pos, Warning, "two network connectors are called %s (line %d has the first): "+
		"should both lead to one broker, each ends the other's link; give them different names",
		second.Name, first.Pos.Line)
}

// peers are the addresses that a connector dials.
func (n *Network) peers() []string {
	var out []string
	for _, l := range n.Links {
		for _, p := range l.Peers {
			out = append(out, strings.ToLower(p.URI.Address()))
		}
	}
	return out
}

// network binds <networkConnector>; nil when it is wrong. It is without links when its kind is not
// honoured.
func (b *builder) network(n *bean) *Network {
	out := &Network{
		Pos:                              n.pos,
		Name:                             n.text("name"),
		UserName:                         n.raw("userName"),
		Password:                         n.raw("password"),
		Duplex:                           n.bool("duplex"),
		StaticBridge:                     n.bool("staticBridge"),
		DynamicOnly:                      n.bool("dynamicOnly"),
		ConduitSubscriptions:             n.bool("conduitSubscriptions"),
		ConduitNetworkQueueSubscriptions: n.bool("conduitNetworkQueueSubscriptions"),
		Dynamic:                          b.destinations(n, "dynamicallyIncludedDestinations"),
		Static:                           b.destinations(n, "staticallyIncludedDestinations"),
		Excluded:                         b.destinations(n, "excludedDestinations"),
		DestinationFilter:                n.text("destinationFilter"),
		BridgeTempDestinations:           n.bool("bridgeTempDestinations"),
		DecreaseConsumerPriority:         n.bool("decreaseNetworkConsumerPriority"),
		ConsumerPriorityBase:             n.int("consumerPriorityBase"),
		ConsumerTTL:                      1,
		Prefetch:                         n.int("prefetchSize"),
		AdvisoryPrefetch:                 n.int("advisoryPrefetchSize"),
		AdvisoryAckPct:                   n.int("advisoryAckPercentage"),
		AlwaysSyncSend:                   n.bool("alwaysSyncSend"),
		SuppressDuplicateQueues:          n.bool("suppressDuplicateQueueSubscriptions"),
		SuppressDuplicateTopics:          n.bool("suppressDuplicateTopicSubscriptions"),
		AdvisoryForFailed:                n.bool("advisoryForFailedForward"),
		ClientIDToken:                    n.raw("clientIdToken"),
		AutoStart:                        n.bool("autoStart"),
		InDoubtTimeout:                   n.patience("inDoubtTimeout"),
		ForwardAhead:                     n.bool("forwardAhead"),
	}
	if !out.AutoStart {
		b.notice(n.at("autoStart"), Warning, "network connector %s stays stopped: autoStart is false, "+
			"and there is no command yet that starts it", out.Name)
	}
	if n.has("remoteUserName") || n.has("remotePassword") {
		out.RemoteUserName, out.RemotePassword = out.UserName, out.Password
	}
	if n.has("remoteUserName") {
		out.RemoteUserName = n.raw("remoteUserName")
	}
	if n.has("remotePassword") {
		out.RemotePassword = n.raw("remotePassword")
	}
	n.ttl("networkTTL", &out.ConsumerTTL)
	out.MessageTTL = out.ConsumerTTL
	n.ttl("consumerTTL", &out.ConsumerTTL)
	n.ttl("messageTTL", &out.MessageTTL)
	if out.AdvisoryPrefetch == 0 {
		out.AdvisoryPrefetch = out.Prefetch
	}
	b.checkNetwork(n, out)
	if !b.links(n, out) {
		return nil
	}
	return out
}

// ttl binds a number of hops if the file has it: networkTTL sets both, the others win over it.
func (n *bean) ttl(name string, to *int) {
	if !n.has(name) {
		return
	}
	*to = n.int(name)
}

// checkNetwork tests values against each other.
func (b *builder) checkNetwork(n *bean, c *Network) {
	if c.Name == "" {
		b.problem(n.at("name"), "name on <networkConnector> is empty")
	}
	if c.StaticBridge && len(c.Static) == 0 {
		b.notice(n.at("staticBridge"), Warning,
			"staticBridge without staticallyIncludedDestinations forwards nothing")
	}
}

// destinations binds a list; nil when the file has none.
func (b *builder) destinations(n *bean, property string) []NetworkDestination {
	var out []NetworkDestination
	for _, d := range n.many(property) {
		dest := b.destination(d)
		for _, o := range dest.Options {
			switch durable, err := schema.ParseBool(o.Value); {
			case o.Name != "forceDurable":
				b.notice(d.at("physicalName"), Warning, "option %s of %s has no effect in <%s>%s", o.Name,
					dest.Destination, property, b.suggest(o.Name, []string{"forceDurable"}))
			case err != nil:
				b.problem(d.at("physicalName"), "forceDurable of %s: %q is neither true nor false",
					dest.Destination, o.Value)
			case durable:
				b.notice(d.at("physicalName"), NotHonoured, "forceDurable of %s: bridges have no durable"+
					" subscriptions; what is published while the bridge is down is not forwarded",
					dest.Destination)
			}
		}
		out = append(out, dest)
	}
	return out
}

// links binds the connector's URI; it reports whether the connector can be used.
func (b *builder) links(n *bean, c *Network) bool {
	attribute := "uri"
	if !n.has(attribute) && n.has("discoveryURI") {
		attribute = "discoveryURI"
	}
	if !n.has(attribute) {
		b.problem(n.pos, "<networkConnector> without uri: write static:(tcp://host:port)")
		return false
	}
	at := n.at(attribute)
	u, err := ParseURI(n.text(attribute))
	if err != nil {
		b.problem(at, "uri on <networkConnector>: %v", err)
		return false
	}
	c.URI = u
	if u.namesUser() {
		b.notice(at, Warning, "the user in the uri of network connector %s is not used; write userName"+
			" and password", c.Name)
	}
	switch {
	case u.Scheme == "static" || u.Scheme == "simple":
		for _, m := range u.Members {
			l := b.link(m, at)
			if slices.ContainsFunc(c.Links, l.same) {
				b.notice(at, Warning, "%s is named twice; it gets one bridge", m)
				continue
			}
			c.Links = append(c.Links, l)
		}
		c.BackOff = b.backOff(b.options(u, at, "static")["static"])
	case u.Scheme == "masterslave":
		if len(u.Members) < 2 {
			b.problem(at, "masterslave: needs two or more addresses; for one write static:(%s)",
				memberNames(u))
		}
		options := b.options(u, at, "failover")["failover"]
		c.Links = []Link{{Peers: b.peers(u, at)}}
		if options.has("randomize") {
			c.Links[0].Randomize = options.bool("randomize")
		}
		c.BackOff = b.backOff(b.defaultOptions("static", at))
	case u.Scheme == "failover" || schema.SchemeNamed(u.Scheme) != nil && u.Scheme != "multicast":
		b.notice(at, Warning, "uri on <networkConnector>: %s is no discovery agent and read as "+
			"static:(%s)", u, u)
		c.Links = []Link{b.link(u, at)}
		c.BackOff = b.backOff(b.defaultOptions("static", at))
	case u.Scheme == "multicast":
		b.options(u, at, "multicast")
		fallthrough
	case slices.Contains([]string{"zeroconf", "ldap", "discovery", "fanout"}, u.Scheme):
		b.notice(at, NotHonoured, "network connector %s is not started: %s is not supported", c.Name,
			u.Scheme)
	default:
		b.problem(at, "unknown discovery agent %s%s", u.Scheme, b.suggest(u.Scheme,
			[]string{"static", "masterslave", "multicast", "failover", "simple"}))
		return false
	}
	return true
}

// namesUser reports whether an address of the URI has a user before its host.
func (u *URI) namesUser() bool { return u.User || slices.ContainsFunc(u.Members, (*URI).namesUser) }

func memberNames(u *URI) string {
	names := make([]string, len(u.Members))
	for i, m := range u.Members {
		names[i] = m.String()
	}
	return strings.Join(names, ",")
}

// defaultOptions returns a place of URI options without any: all defaults.
func (b *builder) defaultOptions(place string, at Pos) *bean {
	return &bean{el: schema.OptionsAt(place), pos: at, compat: b.compat}
}

// backOff binds the waits. An initial wait above the default of the most raises that; one above a
// most that the file sets is a mistake.
func (b *builder) backOff(n *bean) BackOff {
	out := BackOff{
		Initial:        n.millis("initialReconnectDelay"),
		Max:            n.millis("maxReconnectDelay"),
		Exponential:    n.bool("useExponentialBackOff"),
		MinConnectTime: n.millis("minConnectTime"),
	}
	if !n.has("maxReconnectDelay") {
		out.Max = max(out.Max, out.Initial)
	}
	if out.Max < out.Initial {
		b.problem(n.at("maxReconnectDelay"), "maxReconnectDelay of %s is %s, below "+
			"initialReconnectDelay, which is %s", n.el.Name, n.text("maxReconnectDelay"),
			n.text("initialReconnectDelay"))
	}
	return out
}

// same reports whether both are bridges to one address alone.
func (l Link) same(o Link) bool {
	return len(l.Peers) == 1 && len(o.Peers) == 1 &&
		strings.EqualFold(l.Peers[0].URI.Address(), o.Peers[0].URI.Address())
}

// link binds one member of static:(...), which may be a failover of several addresses.
func (b *builder) link(u *URI, at Pos) Link {
	if u.Scheme != "failover" {
		return Link{Peers: b.peer(u, at)}
	}
	options := b.options(u, at, "failover")["failover"]
	return Link{Peers: b.peers(u, at), Randomize: options.bool("randomize")}
}

func (b *builder) peers(u *URI, at Pos) []Peer {
	var out []Peer
	for _, m := range u.Members {
		out = append(out, b.peer(m, at)...)
	}
	return out
}

// peer binds an address to dial; nothing when it is not one.
func (b *builder) peer(u *URI, at Pos) []Peer {
	s := b.scheme(u, at)
	if s == nil {
		if known := schema.SchemeNamed(u.Scheme); known != nil {
			b.problem(at, "%s: %s is not supported toward other brokers; use tcp", u, u.Scheme)
		}
		return nil
	}
	if u.Host == "" || u.Port == "" || u.Port == "0" {
		b.problem(at, "%s has no host:port; use %s://host:port", u, u.Scheme)
	}
	b.options(u, at, "client", "wireFormat.")
	return []Peer{{URI: u}}
}
