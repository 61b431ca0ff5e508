package schema

import (
	"math"
	"slices"
	"strings"
)

// Status says what becomes of a known setting.
type Status uint8

// The statuses.
const (
	// Honoured settings do what they do in ActiveMQ.
	Honoured Status = iota
	// Tolerated settings have nothing to act on here (Java threads, JMX, KahaDB's files).
	Tolerated
	// Later settings are not honoured: each one that is used is listed at start.
	Later
	// Astray settings are not honoured, and messages do not go where, or when, they say: each one
	// that is used is a warning.
	Astray
	// Restricts marks settings that would restrict access and are not honoured: a broker refuses
	// to start with them unless told to ignore security.
	Restricts
	// Refused settings are errors.
	Refused
)

// String returns the word used in the reference.
func (s Status) String() string {
	return [...]string{"honoured", "tolerated", "not honoured", "not honoured, messages go astray",
		"not honoured, restricts access",
		"refused"}[s]
}

// Type is the syntax of a value.
type Type uint8

// The types.
const (
	Text     Type = iota
	Bool          // true or false
	Int           // a whole number, of 32 bits as in ActiveMQ unless Attribute.Most says else
	Float         // a decimal number
	Size          // bytes, with an optional unit b, k, kb, m, mb, g or gb; base 1024
	Millis        // a whole number of milliseconds
	Patience      // a whole number of milliseconds from 1, or never, which is -1
	Percent       // a whole number from 0 to 100
	Object        // "#id" of a bean
)

// String returns how a message names the type.
func (t Type) String() string {
	return [...]string{"text", "true or false", "a whole number", "a number",
		"a size such as 64 mb", "a whole number of milliseconds",
		"a whole number of milliseconds from 1, or never", "a percentage from 0 to 100",
		"a reference to a bean"}[t]
}

// Attribute is one simple setting: an XML attribute, the child element of that name with a text,
// or an option of a URI.
type Attribute struct {
	Name    string
	Type    Type
	Default string // as the file would spell it; "" is none
	Status  Status
	Doc     string

	Default6 string   // the default at compatibility level 6, where it differs
	Since    int      // 518: only in ActiveMQ 5.18 and later; 600: only in 6.x; 0: in 5.17
	Choices  []string // the accepted values of a Text, compared without case; nil for any
	// Least and Most bound an Int, Millis or Size; both 0 is all that its type has.
	Least, Most int64
}

// Property is a setting whose value is one element or a list of them, wrapped in an element named
// after the property.
type Property struct {
	Name     string
	Elements []string // names of the elements accepted inside
	List     bool     // more than one is accepted
	Status   Status
	Doc      string
}

// Element is a configuration element with its settings.
type Element struct {
	Name       string
	Status     Status
	Doc        string
	Attributes []Attribute
	Properties []Property
	// Open elements take any attribute and any content: nothing inside is honoured.
	Open bool
}

// Elements returns every known element of activemq.xml, sorted by name. The result must not be
// changed.
func Elements() []*Element { return sortedElements }

// ElementNamed returns the element, or nil when there is none of that name.
func ElementNamed(name string) *Element { return elementByName[name] }

// URIOptions returns the options of transport URIs by where they stand: "server", "client" and
// the prefixes "transport.", "wireFormat.", "auto.", "static", "failover" and "multicast". The
// result must not be changed.
func URIOptions() []*Element { return uriOptions }

var (
	elementByName  = make(map[string]*Element)
	sortedElements []*Element
)

func init() {
	for _, table := range [][]*Element{brokerElements, policyElements, networkElements,
		transportElements, storeElements, pluginElements, destinationElements} {
		for _, e := range table {
			elementByName[e.Name] = e
			sortedElements = append(sortedElements, e)
		}
	}
	slices.SortFunc(sortedElements, func(a, b *Element) int { return strings.Compare(a.Name, b.Name) })
}

// Attribute returns the attribute called name, or nil.
func (e *Element) Attribute(name string) *Attribute {
	for i := range e.Attributes {
		if e.Attributes[i].Name == name {
			return &e.Attributes[i]
		}
	}
	return nil
}

// Property returns the property called name, or nil.
func (e *Element) Property(name string) *Property {
	for i := range e.Properties {
		if e.Properties[i].Name == name {
			return &e.Properties[i]
		}
	}
	return nil
}

// Holder returns the only property of e that takes an element called name, or nil.
func (e *Element) Holder(name string) *Property {
	var found *Property
	for i := range e.Properties {
		if slices.Contains(e.Properties[i].Elements, name) {
			if found != nil {
				return nil
			}
			found = &e.Properties[i]
		}
	}
	return found
}

// Option returns the attribute called name, where "x.*" takes every name behind "x.".
func (e *Element) Option(name string) *Attribute {
	if a := e.Attribute(name); a != nil {
		return a
	}
	for i := range e.Attributes {
		prefix, wild := strings.CutSuffix(e.Attributes[i].Name, "*")
		if wild && strings.HasPrefix(name, prefix) {
			return &e.Attributes[i]
		}
	}
	return nil
}

// attr is a row of a table.
func attr(name string, t Type, def string, s Status, doc string) Attribute {
	return Attribute{Name: name, Type: t, Default: def, Status: s, Doc: doc}
}

// since marks a row as new in an ActiveMQ version.
func (a Attribute) since(version int) Attribute {
	a.Since = version
	return a
}

// six gives a row another default at compatibility level 6.
func (a Attribute) six(def string) Attribute {
	a.Default6 = def
	return a
}

// oneOf limits a row to some words.
func (a Attribute) oneOf(choices ...string) Attribute {
	a.Choices = choices
	return a
}

// within limits a row to a range.
func (a Attribute) within(least, most int64) Attribute {
	a.Least, a.Most = least, most
	return a
}

// from limits a row to what is not below least, and not above what its type has in ActiveMQ.
func (a Attribute) from(least int64) Attribute {
	if a.Type == Int {
		return a.within(least, math.MaxInt32)
	}
	return a.within(least, math.MaxInt64)
}

// intFrom is from where ActiveMQ has an int, whatever the row's type.
func (a Attribute) intFrom(least int64) Attribute { return a.within(least, math.MaxInt32) }

// DefaultAt returns the default at a compatibility level.
func (a *Attribute) DefaultAt(compat int) string {
	if compat >= 6 && a.Default6 != "" {
		return a.Default6
	}
	return a.Default
}

// one and many are rows for properties.
func one(name string, s Status, doc string, elements ...string) Property {
	return Property{Name: name, Status: s, Doc: doc, Elements: elements}
}

func many(name string, s Status, doc string, elements ...string) Property {
	return Property{Name: name, Status: s, Doc: doc, Elements: elements, List: true}
}
