package config

import (
	"fmt"
	"slices"
	"strings"

	"hopwire/internal/config/schema"
	"hopwire/internal/message"
)

// everybody is who is in any group; at compatibility level 6 a user of no group is as well.
const everybody = "*"

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

// strangers looks at rights of users that nobody authenticates, and of groups that nobody is in.
func (b *builder) strangers(n *bean, out *Broker) {
	if out.Authorization == nil {
		return
	}
	if out.Auth != nil {
		b.emptyGroups(n, out.Auth)
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

// groupsMost is how many groups that users are in a warning names.
const groupsMost = 10

// maxCompared is with how many groups a name is compared that may be misspelt.
const maxCompared = 1000

// emptyGroups warns of each group that is given a right and that nobody is in, once.
func (b *builder) emptyGroups(n *bean, users *SimpleAuth) {
	var have []string
	if users.Anonymous {
		have = append(have, users.AnonymousGroup)
	}
	for _, u := range users.Users {
		have = append(have, u.Groups...)
	}
	have = slices.DeleteFunc(have, func(g string) bool { return g == everybody })
	slices.Sort(have)
	have = slices.Compact(have)
	told := map[string]bool{}
	hinted := maxProblems
	for _, g := range given(n) {
		if _, is := slices.BinarySearch(have, g.text); is || g.text == everybody || told[g.text] {
			continue
		}
		told[g.text] = true
		hint := ""
		if hinted--; hinted >= 0 && len(have) <= maxCompared {
			hint = schema.Suggest(g.text, have)
		}
		switch {
		case hint != "":
		case len(have) == 0:
			hint = "; no user is in any group"
		case len(have) > groupsMost:
			hint = fmt.Sprintf("; users are in %s and %d others", strings.Join(have[:groupsMost], ", "),
				len(have)-groupsMost)
		default:
			hint = "; users are in " + strings.Join(have, ", ")
		}
		b.notice(g.pos, Warning, "no user of <simpleAuthenticationPlugin> is in group %s, which is"+
			" given rights here%s", g.text, hint)
	}
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
	return &Rights{Read: roles(n, "read"), Write: roles(n, "write"), Admin: roles(n, "admin")}
}

// roles are the groups that an entry gives a right.
func roles(n *bean, right string) (names []string) {
	for name := range strings.SplitSeq(n.text(right), ",") {
		name = strings.TrimSpace(name)
		if name == everybody || name != "" && n.text("groupClass") == groupPrincipal {
			names = append(names, name)
		}
	}
	return names
}

// given are the groups that a broker's authorizationMap gives rights, each with its place.
func given(n *bean) (out []setting) {
	for _, p := range n.many("plugins") {
		if p.el.Name != "authorizationPlugin" {
			continue
		}
		m := p.one("map")
		if m == nil || m.el.Name != "authorizationMap" {
			continue
		}
		for _, list := range []string{"authorizationEntries", "defaultEntry",
			"tempDestinationAuthorizationEntry"} {
			for _, e := range m.many(list) {
				out = append(out, named(e)...)
			}
		}
	}
	return out
}

// named are the groups that an entry names, each with its place.
func named(n *bean) (out []setting) {
	for _, right := range []string{"read", "write", "admin"} {
		for _, name := range roles(n, right) {
			out = append(out, setting{name, n.at(right)})
		}
	}
	return out
}
