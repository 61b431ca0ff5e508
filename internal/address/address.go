// Package address takes the URIs apart by which brokers are reached: scheme://host:port?options,
// and lists of them, scheme:(uri,uri)?options. Which schemes, options and lists there are is known
// to who calls it. No error shows what may be secret.
package address

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
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
}

// Split takes a URI apart that is no list. The error says what is wrong and what to write, and
// leaves it to the caller to show the URI (see Shown).
func Split(text string) (Address, error) {
	text, query, _ := strings.Cut(strings.TrimSpace(text), "?")
	a := Address{Query: query}
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
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:] // a user, which no broker reads; its password may have a slash
	}
	if i := strings.IndexByte(host, '/'); i >= 0 {
		host, a.Path = host[:i], host[i:]
	}
	return a, a.read(host)
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
		return wrong("%q has brackets that do not match, as in tcp://[::1]:61616", text)
	case strings.Count(text, ":") > 1:
		return wrong("an IPv6 address stands in brackets, as in tcp://[::1]:61616")
	default:
		a.Host = text
	}
	if a.Port != "" || err == nil {
		n, err := strconv.Atoi(a.Port)
		if err != nil || n < 0 || n > 65535 {
			return wrong("%q is no port from 0 to 65535", a.Port)
		}
		a.Port = strconv.Itoa(n)
	}
	if strings.ContainsAny(a.Host, " \t\r\n\"'<>\\,;()") {
		return wrong("%q is no host", a.Host)
	}
	return nil
}

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

// secrets are the parts of a URI that may hold passwords: options, up to the end of the member of a
// list that they belong to, and what stands before an @.
var secrets = regexp.MustCompile(`\?[^),]*|//[^?(),]*@`)

// Shown is a URI, or a list of them, as messages show it: without what may be secret.
func Shown(uri string) string {
	return secrets.ReplaceAllStringFunc(uri, func(secret string) string {
		if secret[0] == '/' {
			return "//"
		}
		return ""
	})
}
