package config

import (
	"strings"

	"hopwire/internal/config/schema"
	"hopwire/internal/message"
)

// groupPrincipal is the Java class of groups.
const groupPrincipal = "org.apache.activemq.jaas.GroupPrincipal"

// authorization binds <authorizationPlugin>. A map of another kind is told of as not honoured.
func (b *builder) authorization(n *bean) *Authorization {
	m := n.one("map")
	if m == nil {
		b.problem(n.pos, "<authorizationPlugin> without <map>")
		return nil
	}
	if m.el.Name != "authorizationMap" {
		return nil
	}
	out := &Authorization{Pos: n.pos}
	for _, e := range m.many("authorizationEntries") {
		out.Entries = append(out.Entries, b.authorizationEntry(e))
	}
	if d := m.one("defaultEntry"); d != nil {
		out.Default = b.rights(d)
	}
	if t := m.one("tempDestinationAuthorizationEntry"); t != nil {
		out.Temp = b.rights(t)
	}
	return out
}

// strangers looks at rights of users that nobody authenticates.
func (b *builder) strangers(n *bean, out *Broker) {
	if out.Authorization == nil || out.Auth != nil {
		return
	}
	at := out.Authorization.Pos
	for _, p := range n.many("plugins") {
		if p.el.Status == schema.Restricts {
			b.notice(at, Restricting, "<authorizationPlugin> restricts access and has no effect: who"+
				" users are is <%s>'s to say", p.el.Name)
			out.Authorization = nil
			return
		}
	}
	b.notice(at, Warning, "<authorizationPlugin> without <simpleAuthenticationPlugin>: nobody is"+
		" authenticated, and nobody has a right to anything")
}

func (b *builder) authorizationEntry(n *bean) AuthorizationEntry {
	out := AuthorizationEntry{Rights: *b.rights(n)}
	switch queue, topic := n.text("queue"), n.text("topic"); {
	case queue != "" && topic != "":
		b.problem(n.pos, "<authorizationEntry> has both queue and topic: write two")
	case queue != "":
		out.Destination = message.Destination{Kind: message.Queue, Name: queue}
	case topic != "":
		out.Destination = message.Destination{Kind: message.Topic, Name: topic}
	default:
		b.problem(n.pos, "<authorizationEntry> without queue or topic")
	}
	return out
}

// rights binds who has which right. Users that are authenticated here are groups only: as in
// ActiveMQ, names of another Java class are nobody's.
func (b *builder) rights(n *bean) *Rights {
	class := n.text("groupClass")
	if class != groupPrincipal {
		b.notice(n.at("groupClass"), Warning, "groupClass=%q on <%s>: users of"+
			" simpleAuthenticationPlugin are groups only, so that the names on it are nobody's", class,
			n.el.Name)
	}
	roles := func(right string) (names []string) {
		for name := range strings.SplitSeq(n.text(right), ",") {
			name = strings.TrimSpace(name)
			if name == "*" || name != "" && class == groupPrincipal {
				names = append(names, name)
			}
		}
		return names
	}
	return &Rights{Read: roles("read"), Write: roles("write"), Admin: roles("admin")}
}
