package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hopwire/internal/address"
	"hopwire/internal/config/schema"
)

// Limits on composite URIs: how deep they nest, and how many members one has.
const (
	maxURIDepth   = 5
	maxURIMembers = 1000
)

// URI is a transport's or a discovery agent's address: either Host and Port, or Members.
type URI struct {
	Scheme  string
	Host    string // without the brackets of IPv6; "" when the URI has none
	Port    string // as written; "" when the URI has none, "0" is any free one
	Path    string // what follows the address, without "?"
	Members []*URI // of a composite such as static:(a,b)
	User    bool   // a user stands before the host; it is not used
	Options []Option
}

// Option is name=value of a URI's query, decoded.
type Option = address.Option

// composites are the schemes whose URIs list others, with or without parentheses.
var composites = map[string]bool{"static": true, "simple": true, "masterslave": true,
	"failover": true, "fanout": true, "discovery": true}

// Text returns the URI with its options, as it can be read again: here, and by package transport,
// which decodes options by the same rule as ActiveMQ (a plus is a blank). It is not for messages.
func (u *URI) Text() string {
	text := u.String()
	if u.Members != nil {
		parts := make([]string, len(u.Members))
		for i, m := range u.Members {
			parts[i] = m.Text()
		}
		text = u.Scheme + ":(" + strings.Join(parts, ",") + ")"
	}
	for i, o := range u.Options {
		text += string("?&"[min(i, 1)]) + url.QueryEscape(o.Name) + "=" + url.QueryEscape(o.Value)
	}
	return text
}

// String returns the address without options, as messages show it.
func (u *URI) String() string {
	if u.Members != nil {
		parts := make([]string, len(u.Members))
		for i, m := range u.Members {
			parts[i] = m.String()
		}
		return u.Scheme + ":(" + strings.Join(parts, ",") + ")"
	}
	if u.Host == "" && u.Port == "" {
		return u.Scheme + "://" + u.Path
	}
	return u.Scheme + "://" + u.Address() + u.Path
}

// Address returns host:port, the host alone when there is no port. IPv6 is in brackets.
func (u *URI) Address() string {
	switch {
	case u.Port != "":
		return net.JoinHostPort(u.Host, u.Port)
	case strings.Contains(u.Host, ":"):
		return "[" + u.Host + "]"
	}
	return u.Host
}

// ParseURI reads a URI, also a composite one.
func ParseURI(text string) (*URI, error) { return parseURI(strings.TrimSpace(text), 0) }

func parseURI(text string, depth int) (*URI, error) {
	if depth > maxURIDepth {
		return nil, fmt.Errorf("URIs nested more than %d deep", maxURIDepth)
	}
	scheme, rest, _ := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	inOpen := composites[scheme] && (scheme != "discovery" || strings.Contains(rest, ":"))
	u, err := &URI{Scheme: scheme}, error(nil)
	if address.IsScheme(scheme) && (address.IsList(rest) || inOpen) {
		err = u.list(rest, depth)
	} else {
		err = u.plain(text)
	}
	if err != nil {
		return nil, err
	}
	return u, nil
}

// list reads (uri,uri)?query.
func (u *URI) list(rest string, depth int) error {
	members, tail, err := address.Members(rest)
	if err != nil {
		return u.wrong(u.Scheme+":"+rest, err)
	}
	if len(members) > maxURIMembers {
		return fmt.Errorf("%s: of more than %d addresses", u.Scheme, maxURIMembers)
	}
	var query string
	u.Path, query, _ = strings.Cut(tail, "?")
	for _, part := range members {
		m, err := parseURI(part, depth+1)
		if err != nil {
			return err
		}
		u.Members = append(u.Members, m)
	}
	u.Options, err = address.Options(query)
	return u.wrong(u.Scheme+":"+rest, err)
}

// plain reads //host:port/path?query.
func (u *URI) plain(text string) error {
	a, err := address.Split(text)
	if err != nil {
		return u.wrong(text, err)
	}
	s := schema.SchemeNamed(a.Scheme)
	if a.Bare && s != nil && s.Status == schema.Honoured {
		return u.wrong(text, fmt.Errorf("no // behind %s:; use %s://host:port", a.Scheme, a.Scheme))
	}
	u.Host, u.Port, u.Path, u.User = a.Host, a.Port, a.Path, a.User
	u.Options, err = address.Options(a.Query)
	return u.wrong(text, err)
}

// wrong is an error with the URI it is about, up to the first options.
func (u *URI) wrong(text string, err error) error {
	if err == nil {
		return nil
	}
	text, _, _ = strings.Cut(text, "?")
	return fmt.Errorf("%q: %w", address.Shown(text), err)
}

// optionPlace returns the table an option belongs to, and its name there.
func optionPlace(name, base string) (place, short string) {
	for _, prefix := range []string{"transport.", "wireFormat.", "auto."} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if prefix == "wireFormat." || base == "server" {
				return prefix, rest
			}
		}
	}
	return base, name
}

// options checks the options of a URI and returns them by place; base is where options without
// prefix belong. Places without options are there, too.
func (b *builder) options(u *URI, at Pos, base string, places ...string) map[string]*bean {
	out := make(map[string]*bean)
	for _, place := range append(places, base) {
		out[place] = &bean{el: schema.OptionsAt(place), pos: at, values: make(map[string]setting),
			compat: b.compat}
	}
	u.Options = b.once(u.Options, at, u.String())
	for i, o := range u.Options {
		place, name := optionPlace(o.Name, base)
		to := out[place]
		var a *schema.Attribute
		if to != nil {
			a = to.el.Option(name)
		}
		if a == nil {
			b.unknownOption(u, o.Name, at, out)
			continue
		}
		v, ok := b.value(a, o.Value, at, fmt.Sprintf("option %s of %s", o.Name, u))
		if !ok {
			continue
		}
		to.values[name] = setting{v, at}
		if a.Type == schema.Size { // the transport knows bytes only
			u.Options[i].Value = strconv.FormatInt(to.size(a.Name), 10)
		}
	}
	return out
}

// once leaves the last of options that are repeated, which is what ActiveMQ's map of them has.
func (b *builder) once(options []Option, at Pos, of string) []Option {
	times := make(map[string]int)
	for _, o := range options {
		times[o.Name]++
	}
	if len(times) == len(options) {
		return options
	}
	var out []Option
	left := maps.Clone(times)
	for _, o := range options {
		if left[o.Name]--; left[o.Name] > 0 {
			continue
		}
		out = append(out, o)
		if n := times[o.Name]; n > 1 {
			b.notice(at, Warning, "option %s of %s is given %d times; the last counts, as in ActiveMQ",
				o.Name, of, n)
		}
	}
	return out
}

func (b *builder) unknownOption(u *URI, name string, at Pos, known map[string]*bean) {
	if len(b.problems) >= maxProblems {
		b.problem(at, "unknown option %s of %s", name, u)
		return
	}
	var names []string
	for place, t := range known {
		prefix := ""
		if strings.HasSuffix(place, ".") {
			prefix = place
		}
		for i := range t.el.Attributes {
			names = append(names, prefix+t.el.Attributes[i].Name)
		}
	}
	slices.Sort(names) // one order among those that are as near
	hint := b.suggest(name, names)
	b.problem(at, "unknown option %s of %s%s", name, u, hint)
}
