package security

import (
	"slices"
	"strings"

	"hopwire/internal/broker"
	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// Roles are the groups that have a right. "*" among them is everybody who is in any group, be it
// one of that name.
type Roles []string

func (r Roles) include(p *message.Principal) bool {
	return slices.ContainsFunc(p.Groups, func(g string) bool { return slices.Contains(r, g) }) ||
		len(p.Groups) > 0 && slices.Contains(r, "*")
}

// Rights are who may read, write, and make and remove.
type Rights struct {
	Read, Write, Admin Roles
}

func (r *Rights) of(right broker.Right) Roles {
	return [...]Roles{broker.Read: r.Read, broker.Write: r.Write, broker.Admin: r.Admin}[right]
}

func (r *Rights) give(p *message.Principal, right broker.Right) bool {
	return r.of(right).include(p)
}

// Entry is an <authorizationEntry>: rights to what a pattern, or several, take.
type Entry struct {
	Destination message.Destination
	Rights
}

// Map is an <authorizationMap>: all its entries that take a destination count together, and Default
// with them. Who is in none of them has no right. The zero value gives nobody a right but to
// temporary destinations. It must not change once it is used.
type Map struct {
	Entries []Entry
	Default *Rights
	// Temp are the rights to temporary destinations; nil lets everybody have them.
	Temp *Rights
}

var _ broker.Authorizer = (*Map)(nil)

// May implements broker.Authorizer.
func (m *Map) May(p *message.Principal, right broker.Right, d message.Destination) bool {
	if d.IsTemp() {
		return m.Temp == nil || m.Temp.give(p, right)
	}
	for i := range m.Entries {
		if e := &m.Entries[i]; takes(e.Destination, d) && e.give(p, right) {
			return true
		}
	}
	return m.Default != nil && m.Default.give(p, right)
}

// Groups implements broker.Authorizer.
func (m *Map) Groups(right broker.Right, d message.Destination) (out []string) {
	from := func(r *Rights) {
		if r != nil {
			out = append(out, r.of(right)...)
		}
	}
	if d.IsTemp() {
		from(m.Temp)
	} else {
		for i := range m.Entries {
			if e := &m.Entries[i]; takes(e.Destination, d) {
				from(&e.Rights)
			}
		}
		from(m.Default)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// takes reports whether an entry's pattern counts for a destination, which may be a consumer's
// pattern. There "*" stands for any element of the entry's, as in ActiveMQ; what the consumer then
// gets is decided for each destination by itself.
func takes(entry, d message.Destination) bool {
	if entry.IsComposite() {
		return slices.ContainsFunc(entry.Split(), func(e message.Destination) bool {
			return takes(e, d)
		})
	}
	if policy.Matches(entry, d) {
		return true
	}
	return entry.Kind == d.Kind && strings.Contains(d.Name, "*") &&
		fits(strings.Split(entry.Name, "."), strings.Split(d.Name, "."))
}

func fits(entry, name []string) bool {
	for i, e := range entry {
		switch {
		case e == ">":
			return true
		case i == len(name), e != "*" && name[i] != "*" && e != name[i]:
			return false
		}
	}
	return len(entry) == len(name)
}
