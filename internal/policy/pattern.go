package policy

import (
	"slices"
	"strings"

	"hopwire/internal/message"
)

// A pattern is a destination whose name has wildcard elements: "*" stands for exactly one element,
// also an empty one, and ">" as the last element for any number of elements, also none, so "A.>"
// takes "A". Several of them at the end are one. Elsewhere, and inside longer elements, the two
// characters are literal. A composite "A,B.*" takes what any of its members takes.

// Matches reports whether pattern takes d. Kinds must be equal.
func Matches(pattern, d message.Destination) bool {
	if pattern.IsComposite() {
		return slices.ContainsFunc(pattern.Split(), func(p message.Destination) bool {
			return Matches(p, d)
		})
	}
	return pattern.Kind == d.Kind && (pattern.Name == d.Name || matches(pattern.Name, d.Name))
}

// matches walks both names without cutting them into slices: it runs for every destination that
// a wildcard subscription or an include list is held against.
func matches(pattern, name string) bool {
	for {
		if endsIn(pattern) {
			return true
		}
		pe, prest, pmore := strings.Cut(pattern, ".")
		ne, nrest, nmore := strings.Cut(name, ".")
		if pe != "*" && pe != ne {
			return false
		}
		if !nmore {
			return !pmore || endsIn(prest)
		}
		if !pmore {
			return false
		}
		pattern, name = prest, nrest
	}
}

// endsIn reports whether what is left of a pattern is a closing ">", once or several times.
func endsIn(pattern string) bool {
	for strings.HasPrefix(pattern, ">.") {
		pattern = pattern[len(">."):]
	}
	return pattern == ">"
}

// Covers reports whether every name that narrow takes is taken by wide, too.
func Covers(wide, narrow message.Destination) bool {
	if narrow.IsComposite() {
		for _, n := range narrow.Split() {
			if !Covers(wide, n) {
				return false
			}
		}
		return true
	}
	if wide.IsComposite() {
		return slices.ContainsFunc(wide.Split(), func(w message.Destination) bool {
			return Covers(w, narrow)
		})
	}
	if endsIn(narrow.Name) {
		narrow.Name = "*.>" // the same, for a name has at least one element
	}
	return wide.Kind == narrow.Kind &&
		covers(strings.Split(wide.Name, "."), strings.Split(narrow.Name, "."))
}

// isRest is endsIn for elements.
func isRest(elems []string) bool {
	return len(elems) > 0 && !slices.ContainsFunc(elems, func(e string) bool { return e != ">" })
}

func covers(wide, narrow []string) bool {
	for {
		switch {
		case isRest(wide):
			return true
		case isRest(narrow):
			return false
		case len(wide) == 0 || len(narrow) == 0:
			return len(wide) == len(narrow)
		case wide[0] != "*" && wide[0] != narrow[0]:
			return false
		}
		wide, narrow = wide[1:], narrow[1:]
	}
}

// Overlap reports whether some name is taken by both patterns: demand for "wc.>" and an include
// of "wc.foo" overlap, in either direction.
func Overlap(a, b message.Destination) bool {
	if a.IsComposite() {
		return slices.ContainsFunc(a.Split(), func(m message.Destination) bool {
			return Overlap(m, b)
		})
	}
	if b.IsComposite() {
		return Overlap(b, a)
	}
	return a.Kind == b.Kind && overlap(strings.Split(a.Name, "."), strings.Split(b.Name, "."))
}

func overlap(a, b []string) bool {
	for {
		switch {
		case isRest(a), isRest(b):
			return true
		case len(a) == 0 || len(b) == 0:
			return len(a) == len(b)
		case a[0] != "*" && b[0] != "*" && a[0] != b[0]:
			return false
		}
		a, b = a[1:], b[1:]
	}
}

// Intersect gives the pattern for the names that both a and b take; false when there are none.
// Neither may be a composite.
func Intersect(a, b message.Destination) (message.Destination, bool) {
	if a.Kind != b.Kind {
		return message.Destination{}, false
	}
	common, ok := intersect(strings.Split(a.Name, "."), strings.Split(b.Name, "."))
	return message.Destination{Kind: a.Kind, Name: strings.Join(common, ".")}, ok
}

func intersect(a, b []string) ([]string, bool) {
	var out []string
	for i := 0; ; i++ {
		endA, endB := i == len(a), i == len(b)
		switch {
		case endA && endB:
			return out, true
		case isRest(a[i:]):
			return restOf(out, b, i)
		case isRest(b[i:]):
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

// List is a list of patterns, such as a network connector's includes.
type List []message.Destination

// Matches reports whether a pattern of the list takes d.
func (l List) Matches(d message.Destination) bool {
	return slices.ContainsFunc(l, func(p message.Destination) bool { return Matches(p, d) })
}

// Covers reports whether each member of d is covered by a pattern of the list.
func (l List) Covers(d message.Destination) bool {
	for _, m := range d.Split() {
		if !slices.ContainsFunc(l, func(p message.Destination) bool { return Covers(p, m) }) {
			return false
		}
	}
	return true
}

// Overlaps reports whether a pattern of the list and d take a name in common.
func (l List) Overlaps(d message.Destination) bool {
	return slices.ContainsFunc(l, func(p message.Destination) bool { return Overlap(p, d) })
}
