package address

import (
	"regexp"
	"strings"
)

// list is how a list begins.
var list = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:\(`)

// plain is a host, with a port or what is one but for its size; an IPv6 address also without its
// brackets.
var plain = regexp.MustCompile(
	`^([^:]*(:[0-9]*)?|[0-9a-fA-F:.]*|\[[0-9a-fA-F:.]*(%[0-9A-Za-z]+)?\]?(:[0-9]*)?)$`)

// Shown is a URI, or a list of them, as messages show it: without what may be secret. That are
// options, up to the end of the member of a list that they belong to, what stands before an @, and
// what stands where a port should and is no number, for which "..." is shown.
func Shown(uri string) string {
	var out strings.Builder
	zone, _, _ := strings.Cut(uri, "//")
	if at := strings.LastIndexByte(zone, '@'); at >= 0 { // of a URI without its scheme
		out.WriteString(list.FindString(uri))
		uri = uri[at+1:]
	}
	for uri != "" {
		i := strings.IndexByte(uri, '?')
		if j := strings.Index(uri, "//"); j >= 0 && (i < 0 || j < i) {
			out.WriteString(uri[:j+2])
			var host string
			host, uri = shownHost(uri[j+2:])
			out.WriteString(host)
			continue
		}
		if i < 0 {
			out.WriteString(uri)
			break
		}
		out.WriteString(uri[:i])
		if uri = uri[i:]; strings.ContainsAny(uri, "),") {
			uri = uri[strings.IndexAny(uri, "),"):]
		} else {
			uri = ""
		}
	}
	return out.String()
}

// shownHost takes the host and port from what follows a //, as they are shown. rest is what stands
// behind them.
func shownHost(text string) (host, rest string) {
	zone, _, _ := strings.Cut(text, "//") // what is behind that has its own host
	before, _, _ := strings.Cut(zone, "?")
	at := strings.LastIndexByte(before, '@')
	if at < 0 && !plain.MatchString(untilAny(before, "/(),")) {
		at = strings.LastIndexByte(zone, '@') // the ? is of the password
	}
	text = text[at+1:]
	if host = untilAny(text, "/(),?"); plain.MatchString(host) {
		return host, text[len(host):]
	}
	return untilAny(host, ":") + ":...", text[len(untilAny(text, "),?")):]
}

// untilAny is what stands before the first of some characters.
func untilAny(text, chars string) string {
	if i := strings.IndexAny(text, chars); i >= 0 {
		return text[:i]
	}
	return text
}
