// Package address takes the URIs apart by which brokers are reached: scheme://host:port?options,
// and lists of them, scheme:(uri,uri)?options. Which schemes, options and lists there are is known
// to who calls it.
//
// No error shows what may be secret. In a password the characters that take URIs and lists apart
// are written in hexadecimal: / is %2F, and so are , ( ) ? and @. Where they are not, what stands
// before an @, or where a port should be, is taken for a secret; digits that may be a port are not.
package address

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Address is one URI.
type Address struct {
	Scheme string // lower case
	Host   string // without the brackets of IPv6; "" when the URI has none
	Port   string // from 0 to 65535; "" when the URI has none
	Path   string // behind the host, with its "/"; behind the scheme where there is no "//"
	Query  string // the options, as written
	Bare   bool   // no "//" behind the scheme
	User   bool   // a user stands before the host; nobody reads it
}

var errSeveral = errors.New("one address stands here; several are a list in parentheses, as in" +
	" failover:(tcp://a:61616,tcp://b:61616)")

// Split takes a URI apart that is no list. The error says what is wrong and what to write, and
// leaves it to the caller to show the URI (see Shown).
func Split(text string) (Address, error) {
	text, query, _ := strings.Cut(strings.TrimSpace(text), "?")
	a := Address{Query: query}
	if strings.Contains(query, ",tcp://") {
		return a, errSeveral
	}
	scheme, rest, found := strings.Cut(text, ":")
	_, notPort := strconv.Atoi(rest)
	switch {
	case text == "":
		return a, wrong("it is empty")
	case !found || !IsScheme(scheme) || notPort == nil:
		return a, wrong("no tcp:// in front")
	}
	a.Scheme = strings.ToLower(scheme)
	host, found := strings.CutPrefix(rest, "//")
	if !found {
		a.Path, a.Bare = rest, true
		return a, nil
	}
	given := host
	host, a.Path = authority(given)
	a.User = !strings.HasPrefix(given, host+a.Path)
	return a, a.read(host)
}

// authority takes apart what follows the //: host:port and the path. A user before them no broker
// reads. Its password may have a slash, if what is before that cannot be a host.
func authority(text string) (host, path string) {
	host = text
	if i := strings.IndexByte(text, '/'); i >= 0 {
		host, path = text[:i], text[i:]
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		return host[i+1:], path
	}
	if i := strings.LastIndexByte(path, '@'); i >= 0 && !isHost(host) {
		return authority(path[i+1:])
	}
	return host, path
}

// isHost reports whether a text may be host:port, or a host.
func isHost(text string) bool {
	var a Address
	return a.read(text) == nil
}

// Reachable is the error of a URI that leads to no host.
func (a Address) Reachable() error {
	switch {
	case a.Bare:
		return wrong("no // behind %s:", a.Scheme)
	case a.Host == "":
		return wrong("no host")
	}
	return nil
}

// read takes host:port, which may be missing.
func (a *Address) read(text string) error {
	host, port, err := net.SplitHostPort(text)
	switch {
	case err == nil:
		a.Host, a.Port = host, port
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		a.Host = text[1 : len(text)-1]
	case strings.ContainsAny(text, "[]"):
		return wrong("it has brackets that do not match, as in tcp://[::1]:61616")
	case strings.Contains(text, ","):
		return errSeveral
	case strings.Count(text, ":") > 1:
		return wrong("an IPv6 address stands in brackets, as in tcp://[::1]:61616")
	default:
		a.Host = text
	}
	if a.Port != "" || err == nil {
		n, err := strconv.Atoi(a.Port)
		if err != nil || n < 0 || n > 65535 {
			return wrong("%s is no port from 0 to 65535", shownPort(a.Port))
		}
		a.Port = strconv.Itoa(n)
	}
	if strings.ContainsAny(a.Host, " \t\r\n\"'<>\\,;()") {
		return wrong("%q is no host", a.Host)
	}
	return nil
}

// shownPort is what stands where a port should, as errors show it: it may be of a password that is
// not written as it should be.
func shownPort(text string) string {
	if isNumber(text) {
		return strconv.Quote(text)
	}
	return "what stands behind the host's colon"
}

// isNumber reports whether a text has digits alone.
func isNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }

func wrong(format string, args ...any) error {
	return fmt.Errorf(format+"; use tcp://host:port", args...)
}

// IsScheme reports whether a text may be a URI's scheme, in either case.
func IsScheme(s string) bool {
	for i, r := range strings.ToLower(s) {
		if (r < 'a' || r > 'z') && (i == 0 || !strings.ContainsRune("0123456789+-.", r)) {
			return false
		}
	}
	return s != ""
}

// IsList reports whether what follows a scheme is a list in parentheses.
func IsList(rest string) bool { return strings.HasPrefix(strings.TrimPrefix(rest, "//"), "(") }

// Members takes a list apart that follows a scheme: "(a,b)?options", or "a,b", whose last member
// has the options. Members may be lists; empty ones are left out. tail is what stands behind the
// parentheses.
func Members(rest string) (members []string, tail string, err error) {
	list := strings.TrimPrefix(rest, "//")
	if strings.HasPrefix(list, "(") {
		end := closing(list)
		if end < 0 {
			return nil, "", fmt.Errorf("it has a ( without its )")
		}
		list, tail = list[1:end], list[end+1:]
	}
	depth, start := 0, 0
	member := func(end int) {
		if m := strings.TrimSpace(list[start:end]); m != "" {
			members = append(members, m)
		}
		start = end + 1
	}
	for i := range len(list) {
		switch list[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				member(i)
			}
		}
	}
	member(len(list))
	if len(members) == 0 {
		return nil, "", fmt.Errorf("it lists no address")
	}
	return members, tail, nil
}

// closing gives the index of the ) that matches the ( at 0, -1 without one.
func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

var errPercent = errors.New("a % stands before two hexadecimal digits; %25 is one itself")

// Path decodes the path of a URI, as Java does: a plus is one.
func Path(text string) (string, error) {
	path, err := url.PathUnescape(text)
	if err != nil {
		return "", errPercent
	}
	return path, nil
}

// Option is one option of a URI, decoded.
type Option struct{ Name, Value string }

// Options decodes a query in the order written, as ActiveMQ does: an ampersand separates, a plus is
// a blank, an option without "=" has the value "". An ampersand may be written as XML does, also
// twice over.
func Options(query string) ([]Option, error) {
	var out []Option
	for i, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(strings.TrimPrefix(pair, "amp;"), "=")
		if name == "" && value == "" {
			continue
		}
		plain, err := url.QueryUnescape(name)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return nil, fmt.Errorf("option %d: %w", i+1, errPercent)
		}
		out = append(out, Option{plain, value})
	}
	return out, nil
}
