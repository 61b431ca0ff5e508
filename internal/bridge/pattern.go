package bridge

import (
	"slices"
	"strings"

	"hopwire/internal/message"
)

// covers reports whether every name that d stands for matches pattern; d may be a pattern itself.
// "*" stands for one element and a final ">" for any number, none included.
func covers(pattern, d message.Destination) bool {
	if pattern.Kind != d.Kind {
		return false
	}
	if pattern.Name == d.Name {
		return true
	}
	return coversElements(strings.Split(pattern.Name, "."), strings.Split(d.Name, "."))
}

func coversElements(p, d []string) bool {
	for i, e := range p {
		switch {
		case e == ">":
			return true
		case i >= len(d):
			return false
		case d[i] == ">" || e != "*" && e != d[i]:
			return false
		}
	}
	return len(p) == len(d)
}

// overlap gives the pattern for the names that both a and b stand for; false when there are none.
func overlap(a, b message.Destination) (message.Destination, bool) {
	if a.Kind != b.Kind {
		return message.Destination{}, false
	}
	common, ok := overlapElements(strings.Split(a.Name, "."), strings.Split(b.Name, "."))
	return message.Destination{Kind: a.Kind, Name: strings.Join(common, ".")}, ok
}

func overlapElements(a, b []string) ([]string, bool) {
	var out []string
	for i := 0; ; i++ {
		endA, endB := i == len(a), i == len(b)
		switch {
		case endA && endB:
			return out, true
		case !endA && a[i] == ">":
			return restOf(out, b, i)
		case !endB && b[i] == ">":
			return restOf(out, a, i)
		case endA || endB:
			return nil, false
		case a[i] == "*":
			out = append(out, b[i])
		case b[i] == "*" || a[i] == b[i]:
			out = append(out, a[i])
		default:
			return nil, false
		}
	}
}

// restOf adds what is left of p; nothing is left when ">" stood for no element.
func restOf(out, p []string, i int) ([]string, bool) {
	out = append(out, p[i:]...)
	return out, len(out) > 0
}

// rules say which destinations a bridge may carry.
type rules struct {
	dynamic, static, excluded []message.Destination
	temps                     bool
}

func newRules(o *Options) rules {
	return rules{
		dynamic:  splitAll(o.DynamicallyIncluded),
		static:   splitAll(o.StaticallyIncluded),
		excluded: splitAll(o.Excluded),
		temps:    o.BridgeTempDestinations,
	}
}

func splitAll(list []message.Destination) []message.Destination {
	var out []message.Destination
	for _, d := range list {
		out = append(out, d.Split()...)
	}
	return out
}

// permit gives the destinations to subscribe to for demand on d, a member of a composite already
// split: d itself, or what d and the dynamic list have in common. None comes with the reason.
func (r *rules) permit(d message.Destination) ([]message.Destination, message.Reason) {
	if d.IsTemp() {
		if !r.temps {
			return nil, message.NotIncluded
		}
		return []message.Destination{d}, ""
	}
	if coveredBy(r.excluded, d) {
		return nil, message.Excluded
	}
	if len(r.dynamic) == 0 || coveredBy(r.static, d) || coveredBy(r.dynamic, d) {
		return []message.Destination{d}, ""
	}
	var out []message.Destination
	for _, include := range r.dynamic {
		x, ok := overlap(include, d)
		if !ok || coveredBy(r.excluded, x) || coveredBy(out, x) {
			continue
		}
		out = slices.DeleteFunc(out, func(o message.Destination) bool { return covers(x, o) })
		out = append(out, x)
	}
	if len(out) == 0 {
		return nil, message.NotIncluded
	}
	return out, ""
}

// refuses gives the reason why a message to d may not cross; "" when it may. It is asked where
// a subscription is a pattern and may be wider than the lists.
func (r *rules) refuses(d message.Destination) message.Reason {
	if d.IsTemp() || d.IsAdvisory() {
		return ""
	}
	if coveredBy(r.excluded, d) {
		return message.Excluded
	}
	if len(r.dynamic) > 0 && !coveredBy(r.static, d) && !coveredBy(r.dynamic, d) {
		return message.NotIncluded
	}
	return ""
}

func coveredBy(list []message.Destination, d message.Destination) bool {
	for _, p := range list {
		if covers(p, d) {
			return true
		}
	}
	return false
}
