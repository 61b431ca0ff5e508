package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hopwire/internal/config/schema"
)

// maxURIDepth is how deep composite URIs may nest.
const maxURIDepth = 5

// URI is a transport's or a discovery agent's address: either Host and Port, or Members.
type URI struct {
	Scheme  string
	Host    string // without the brackets of IPv6; "" when the URI has none
	Port    string // as written; "" when the URI has none, "0" is any free one
	Path    string // what follows the address, without "?"
	Members []*URI // of a composite such as static:(a,b)
	Options []Option
}

// Option is name=value of a URI's query, decoded.
type Option struct{ Name, Value string }

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
	scheme, rest, found := strings.Cut(text, ":")
	if !found || !isScheme(scheme) {
		return nil, noScheme(text)
	}
	if isAddress(text) {
		return nil, noScheme(text)
	}
	u := &URI{Scheme: strings.ToLower(scheme)}
	inner := strings.TrimPrefix(rest, "//")
	if !strings.HasPrefix(inner, "(") && !composites[u.Scheme] {
		s := schema.SchemeNamed(u.Scheme)
		if s != nil && s.Status == schema.Honoured && !strings.HasPrefix(rest, "//") {
			return nil, fmt.Errorf("%q has no // behind %s:; use %s://host:port", shown(text), u.Scheme,
				u.Scheme)
		}
		return u, u.plain(rest)
	}
	query := ""
	if strings.HasPrefix(inner, "(") {
		end := closingParen(inner)
		if end < 0 {
			return nil, fmt.Errorf("%q has a ( without its )", shown(text))
		}
		var path string
		path, query, _ = strings.Cut(inner[end+1:], "?")
		u.Path, inner = path, inner[1:end]
	} else if !strings.Contains(inner, ":") {
		return u, u.plain(rest) // discovery://name
	}
	for _, part := range splitMembers(inner) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		m, err := parseURI(part, depth+1)
		if err != nil {
			return nil, err
		}
		u.Members = append(u.Members, m)
	}
	if len(u.Members) == 0 {
		return nil, fmt.Errorf("%q lists no address", shown(text))
	}
	return u, u.query(query)
}

// shown is what an error shows of a URI: it ends at the first options, which may hold secrets.
func shown(text string) string {
	text, _, _ = strings.Cut(text, "?")
	return text
}

func isScheme(s string) bool {
	for i, r := range strings.ToLower(s) {
		isLetter := 'a' <= r && r <= 'z'
		if !isLetter && (i == 0 || !strings.ContainsRune("0123456789+-.", r)) {
			return false
		}
	}
	return s != ""
}

// closingParen returns the index of the ) that matches the ( at 0.
func closingParen(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// splitMembers cuts at the commas outside of parentheses.
func splitMembers(s string) []string {
	var parts []string
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, s[start:])
}

// plain reads //host:port/path?query.
func (u *URI) plain(rest string) error {
	rest, query, _ := strings.Cut(rest, "?")
	if authority, ok := strings.CutPrefix(rest, "//"); ok {
		authority, path, slash := strings.Cut(authority, "/")
		if slash {
			u.Path = "/" + path
		}
		if err := u.authority(authority); err != nil {
			return err
		}
	} else {
		u.Path = rest
	}
	return u.query(query)
}

func (u *URI) authority(s string) error {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:] // a user, which nobody reads
	}
	if strings.ContainsAny(s, " \t\r\n\"'<>\\,;()") {
		return fmt.Errorf("%q is not host:port; use %s://host:port", s, u.Scheme)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if strings.Contains(err.Error(), "missing port") {
			u.Host = strings.Trim(s, "[]")
			return nil
		}
		return fmt.Errorf("%q is not host:port; use %s://host:port, an IPv6 address in brackets", s,
			u.Scheme)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q is not a port from 0 to 65535", port)
	}
	u.Host, u.Port = host, strconv.Itoa(n)
	return nil
}

// noScheme is the error of an address without tcp: or the like.
func noScheme(text string) error {
	return fmt.Errorf("%q has no scheme in front; use tcp://host:port", shown(text))
}

// isAddress reports whether what looks like a scheme is a host: host:port.
func isAddress(text string) bool {
	text, _, _ = strings.Cut(text, "?")
	host, port, found := strings.Cut(text, ":")
	_, err := strconv.Atoi(port)
	return found && err == nil && schema.SchemeNamed(strings.ToLower(host)) == nil
}

func (u *URI) query(s string) error {
	for part := range strings.SplitSeq(s, "&") {
		if part == "" {
			continue
		}
		k, v, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(k)
		if err == nil {
			v, err = url.QueryUnescape(v)
		}
		if err != nil {
			return fmt.Errorf("option %q: %w", k, err)
		}
		u.Options = append(u.Options, Option{name, v})
	}
	return nil
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

func (b *builder) unknownOption(u *URI, name string, at Pos, known map[string]*bean) {
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
	slices.Sort(names)
	hint := schema.Suggest(name, names)
	b.problem(at, "unknown option %s of %s%s", name, u, hint)
}
