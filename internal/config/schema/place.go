package schema

import (
	"slices"
	"strings"
)

// mostPlaces bounds the elements that a message names.
const mostPlaces = 3

// besideBroker are Spring's elements that the file may have, and only beside the broker.
var besideBroker = []string{"alias", "bean", "description", "import", "property-placeholder"}

// place is where an element or an attribute may stand.
type place struct {
	on   string // the element that has the attribute; "" of elements
	path string // the elements around it, from where the search began: <a><b>
}

func (p place) String() string {
	switch {
	case p.on == "":
		return "it belongs into " + p.path
	case p.path == "":
		return "it belongs on <" + p.on + ">"
	}
	return "it belongs on <" + p.on + "> in " + p.path
}

// Belongs returns "; it belongs ..." for an element or attribute that stands at the wrong place,
// and "" for what is known nowhere. from is the element it stands in, nil outside of any; within is
// from's property whose element it stands in, nil directly in from. What is inside of these is
// looked at first.
func Belongs(name string, from *Element, within *Property, attribute bool) string {
	elements, attributes := search(name, from, within)
	if len(elements)+len(attributes) == 0 {
		if broker := ElementNamed("broker"); from != broker || within != nil {
			elements, attributes = search(name, broker, nil)
		}
	}
	switch {
	case len(attributes) > 0 && (attribute || len(elements) == 0):
		return "; " + onOneOf(attributes)
	case len(elements) > 0:
		return "; " + elements[0].String()
	case !attribute && name == "broker":
		return "; it belongs into <beans>"
	case !attribute && slices.Contains(besideBroker, name):
		return "; it belongs into <beans>, beside <broker>"
	}
	return option(name, from, attribute)
}

// search returns the places for name below an element, the nearest first.
func search(name string, from *Element, within *Property) (elements, attributes []place) {
	type step struct {
		e      *Element
		around string
	}
	var todo []step
	seen := make(map[string]bool)
	enter := func(p *Property, path string) {
		for _, inner := range p.Elements {
			if !seen[inner] {
				seen[inner] = true
				todo = append(todo, step{ElementNamed(inner), path})
			}
		}
	}
	switch {
	case within != nil:
		enter(within, "<"+within.Name+">")
	case from != nil:
		seen[from.Name] = true
		todo = []step{{from, ""}}
	}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if s.e.Attribute(name) != nil {
			attributes = append(attributes, place{s.e.Name, s.around})
		}
		path := s.around + "<" + s.e.Name + ">"
		if s.e.Property(name) != nil {
			elements = append(elements, place{"", path})
		}
		for i := range s.e.Properties {
			p := &s.e.Properties[i]
			if p.Name != name && slices.Contains(p.Elements, name) {
				elements = append(elements, place{"", path + "<" + p.Name + ">"})
			}
			enter(p, path+"<"+p.Name+">")
		}
	}
	return elements, attributes
}

// onOneOf tells of an attribute of one element, where that stands, and else the elements' names.
func onOneOf(places []place) string {
	if len(places) == 1 {
		return places[0].String()
	}
	var names []string
	for _, p := range places[:min(len(places), mostPlaces)] {
		names = append(names, "<"+p.on+">")
	}
	if len(places) > mostPlaces {
		return "it belongs on " + strings.Join(names, ", ") + " or others"
	}
	last := len(names) - 1
	return "it belongs on " + strings.Join(names[:last], ", ") + " or " + names[last]
}

// option tells of a URI's option that stands as an attribute.
func option(name string, on *Element, attribute bool) string {
	if !attribute {
		return ""
	}
	first := "client"
	if on != nil && on.Name == "transportConnector" {
		first = "server"
	}
	for _, at := range []string{first, "wireFormat.", "transport.", "static", "failover"} {
		full := name
		if strings.HasSuffix(at, ".") {
			full = at + strings.TrimPrefix(name, at)
		}
		if OptionsAt(at).Option(strings.TrimPrefix(name, at)) == nil {
			continue
		}
		if on != nil && on.Attribute("uri") != nil {
			return "; it is an option of the uri: ?" + full + "="
		}
		return "; it is an option of a connector's uri: ?" + full + "="
	}
	return ""
}
