package transport

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Address is where a URI of one socket leads to.
type Address struct {
	Scheme string // lower case
	Host   string // without the brackets of IPv6
	Port   string // DefaultPort where the URI has none
	Query  string // the options, as written
}

// SplitAddress takes scheme://host:port?options apart. The error says what is wrong and what to
// write; it shows nothing that may be secret.
func SplitAddress(text string) (Address, error) {
	text, query, _ := strings.Cut(strings.TrimSpace(text), "?")
	a := Address{Query: query, Port: DefaultPort}
	scheme, rest, found := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	switch {
	case text == "":
		return a, wrongAddress("it is empty")
	case found && isScheme(scheme) && strings.HasPrefix(rest, "("):
		a.Scheme = scheme // a list, which the caller does not take here
		return a, nil
	case found && (sockets[scheme] || encrypted[scheme]) && !strings.HasPrefix(rest, "//"):
		return a, wrongAddress("no // behind %s:", scheme)
	case !found || !isScheme(scheme) || !strings.HasPrefix(rest, "//"):
		return a, wrongAddress("no tcp:// in front")
	}
	a.Scheme = scheme
	host, _, _ := strings.Cut(rest[len("//"):], "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:] // a user, which no broker reads
	}
	return a, a.read(host)
}

// read takes host:port.
func (a *Address) read(text string) error {
	host, port, err := net.SplitHostPort(text)
	switch {
	case err == nil:
		a.Host, a.Port = host, port
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		a.Host = text[1 : len(text)-1]
	case strings.ContainsAny(text, "[]"):
		return wrongAddress("%q has brackets that do not match, as in tcp://[::1]:61616", text)
	case strings.Count(text, ":") > 1:
		return wrongAddress("an IPv6 address stands in brackets, as in tcp://[::1]:61616")
	default:
		a.Host = text
	}
	if n, err := strconv.Atoi(a.Port); err != nil || n < 0 || n > 65535 {
		return wrongAddress("%q is no port from 0 to 65535", a.Port)
	}
	switch {
	case a.Host == "":
		return wrongAddress("no host")
	case strings.ContainsAny(a.Host, " \t\r\n\"'<>\\,;()"):
		return wrongAddress("%q is no host", a.Host)
	}
	return nil
}

func wrongAddress(format string, args ...any) error {
	return fmt.Errorf(format+"; use tcp://host:port", args...)
}

func isScheme(s string) bool {
	for i, r := range s {
		if (r < 'a' || r > 'z') && (i == 0 || !strings.ContainsRune("0123456789+-.", r)) {
			return false
		}
	}
	return s != ""
}
