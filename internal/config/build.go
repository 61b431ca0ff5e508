package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hopwire/internal/config/schema"
)

// bean is a checked element: every value in it has the syntax that the schema asks for.
type bean struct {
	el     *schema.Element
	pos    Pos
	values map[string]setting
	props  map[string][]*bean
	compat int
	label  string // the name of an open element, as written
}

// setting is a value with its place.
type setting struct {
	text string
	pos  Pos
}

// builder checks nodes against the schema and makes beans of them. It goes on after a problem.
type builder struct {
	resolver *resolver
	compat   int
	guessed  bool // no compatibility level was given
	named    map[string]*node
	brokers  map[string]bool // the names of those that were read
	problems Problems
	notices  []Notice
	newer    []setting // attributes that 5.17 does not have
	// broken are where values could not be resolved, and their elements: what else is wrong there
	// comes of it.
	broken map[Pos]bool
}

func (b *builder) problem(at Pos, format string, args ...any) {
	if b.broken[at] {
		return
	}
	text := strings.NewReplacer("\n", " ", "\r", " ").Replace(fmt.Sprintf(format, args...))
	b.problems = append(b.problems, Problem{at, text})
}

// suggest is schema.Suggest as long as problems are shown: to look for a name takes longer than to
// read it.
func (b *builder) suggest(name string, candidates []string) string {
	if len(b.problems) >= maxProblems {
		return ""
	}
	return schema.Suggest(name, candidates)
}

// belongs is schema.Belongs, likewise.
func (b *builder) belongs(name string, from *schema.Element, within *schema.Property,
	attribute bool,
) string {
	if len(b.problems) >= maxProblems {
		return ""
	}
	return schema.Belongs(name, from, within, attribute)
}

func (b *builder) notice(at Pos, kind NoticeKind, format string, args ...any) {
	text := strings.NewReplacer("\n", " ", "\r", " ").Replace(fmt.Sprintf(format, args...))
	b.notices = append(b.notices, Notice{at, kind, text})
}

// fail takes in an error of a part that stops at its first one.
func (b *builder) fail(err error) {
	if p, ok := errors.AsType[Problem](err); ok {
		if p.Text != "" { // told before
			b.problems = append(b.problems, p)
		}
		b.broken[p.Pos] = true
	}
}

// use says what becomes of a setting with a status; it reports whether its content counts.
func (b *builder) use(at Pos, s schema.Status, what, doc string) bool {
	if doc != "" {
		doc = ": " + doc
	}
	switch s {
	case schema.Later:
		b.notice(at, NotHonoured, "%s has no effect%s", what, doc)
	case schema.Astray:
		if !strings.Contains(doc, " here") { // else it says where they go
			doc += "; messages do not go where, or when, it says"
		}
		b.notice(at, Warning, "%s has no effect%s", what, doc)
	case schema.Restricts:
		b.notice(at, Restricting, "%s restricts access and has no effect%s", what, doc)
	case schema.Refused:
		b.problem(at, "%s is not accepted%s", what, doc)
	}
	return s == schema.Honoured
}

// bean checks an element and all in it.
func (b *builder) bean(n *node, el *schema.Element) *bean {
	out := &bean{el: el, pos: n.pos, values: make(map[string]setting),
		props: make(map[string][]*bean), compat: b.compat}
	if el.Status == schema.Later && el.Open && len(el.Attributes) > 0 {
		b.notice(n.pos, NotHonoured, "<%s> has no effect beyond its %s: %s", el.Name,
			el.Attributes[0].Name, el.Doc)
	} else {
		b.use(n.pos, el.Status, "<"+el.Name+">", el.Doc)
	}
	if el.Open {
		out.label = n.get("name")
		for _, a := range n.attrs {
			if a.ns == "" && el.Attribute(a.name) != nil {
				b.written(out, a)
			}
		}
		return out
	}
	for _, a := range n.attrs {
		switch {
		case a.ns == "" && a.name == "id", a.ns == xsiNS, a.ns == "xml":
		case a.ns != "":
			b.notice(a.pos, NotHonoured, "attribute %s of another namespace on <%s> is ignored",
				a.name, el.Name)
		default:
			b.written(out, a)
		}
	}
	for _, c := range n.children {
		b.child(out, c)
	}
	if text := strings.Join(strings.Fields(n.text), " "); text != "" {
		b.notice(n.pos, Warning, "text in <%s> has no effect: %.40q", el.Name, text)
	}
	return out
}

// written takes in what is an attribute in the file, where # begins the name of a bean, as in
// ActiveMQ, ## stands for a # and #null for nothing.
func (b *builder) written(to *bean, a xmlAttr) {
	known, value := to.el.Attribute(a.name), a.value
	reference, ok := strings.CutPrefix(value, "#")
	if ok && known != nil && known.Type != schema.Object {
		switch {
		case strings.HasPrefix(reference, "#"):
			value = reference
		case reference == "null":
			return
		case strings.HasPrefix(reference, "{"): // told of as an expression
		case known.Status != schema.Honoured:
			b.use(a.pos, known.Status, fmt.Sprintf("%s on <%s>", a.name, to.el.Name), known.Doc)
			return
		default:
			b.problem(a.pos, "%s on <%s> begins with #: that is a reference to a bean, as in ActiveMQ, and"+
				" references are not followed; write the value itself, with ## where it begins with #",
				a.name, to.el.Name)
			b.broken[to.pos] = true
			return
		}
	}
	b.attribute(to, a.name, value, a.pos)
}

// attribute takes in one simple setting of a bean.
func (b *builder) attribute(to *bean, name, value string, at Pos) {
	a := to.el.Attribute(name)
	if a == nil && to.el.Property(name) != nil {
		b.problem(at, "%s on <%s>: write <%s> as an element, references to beans are not followed",
			name, to.el.Name, name)
		return
	}
	if a == nil {
		var names []string
		for i := range to.el.Attributes {
			names = append(names, to.el.Attributes[i].Name)
		}
		b.problem(at, "unknown attribute %s on <%s>%s%s", name, to.el.Name,
			b.belongs(name, to.el, nil, true), b.suggest(name, names))
		return
	}
	if _, twice := to.values[name]; twice {
		b.problem(at, "%s is set twice on <%s>", name, to.el.Name)
		return
	}
	what := fmt.Sprintf("%s on <%s>", name, to.el.Name)
	v, ok := b.value(a, value, at, what)
	if ok && a.Status == schema.Honoured && strings.Contains(v, "#{") {
		ok = false
		b.problem(at, "%s has #{...}, an expression of Spring's, which is not evaluated here; write the"+
			" value itself, or ${...} with the name of a property or a variable of the environment", what)
		b.broken[at] = true
	}
	if b.broken[at] {
		b.broken[to.pos] = true
	}
	if !ok {
		v = a.DefaultAt(b.compat) // reported; go on as if it were not there
	}
	to.values[name] = setting{v, at}
}

// value resolves and checks a value and says what becomes of it. what names the setting.
func (b *builder) value(a *schema.Attribute, value string, at Pos, what string) (string, bool) {
	value, err := b.resolver.resolve(value, at)
	if err != nil {
		b.fail(err)
		return "", false
	}
	if err := a.Check(value); err != nil {
		b.problem(at, "%s: %v", what, err)
		return "", false
	}
	if a.Since > 517 {
		b.newer = append(b.newer, setting{a.Name, at})
	}
	if !a.IsDefault(value, b.compat) {
		b.use(at, a.Status, what, a.Doc)
	}
	return value, true
}

// child takes in a child element: a property, a simple setting, or an element out of its property.
func (b *builder) child(to *bean, c *node) {
	el := to.el
	if c.name == "property" && el.Property("property") == nil {
		b.springProperty(to, c)
		return
	}
	if p := el.Property(c.name); p != nil && (len(c.children) > 0 || el.Attribute(c.name) == nil) {
		b.property(to, c, p)
		return
	}
	if a := el.Attribute(c.name); a != nil && len(c.children) == 0 {
		b.attribute(to, c.name, strings.TrimSpace(c.text), c.pos)
		return
	}
	if p := el.Holder(c.name); p != nil {
		b.notice(c.pos, Warning, "<%s> belongs into <%s>, which is missing here", c.name, p.Name)
		if b.use(c.pos, p.Status, "<"+p.Name+">", p.Doc) {
			b.member(to, c, p)
		}
		return
	}
	var settings, members []string
	for i := range el.Attributes {
		settings = append(settings, el.Attributes[i].Name)
	}
	for _, p := range el.Properties {
		settings, members = append(settings, p.Name), append(members, p.Elements...)
	}
	hint := b.suggest(c.name, settings)
	if hint == "" {
		hint = b.suggest(c.name, members)
	}
	hint = cmp.Or(b.belongs(c.name, el, nil, false), hint)
	b.problem(c.pos, "unknown element <%s> in <%s>%s", c.raw, el.Name, hint)
}

// springProperty takes in <property name="x" value="y"/>.
func (b *builder) springProperty(to *bean, c *node) {
	name, value := c.get("name"), c.get("value")
	if v := c.child("value"); value == "" && v != nil {
		value = strings.TrimSpace(v.text)
	}
	if to.el.Attribute(name) != nil && value != "" {
		b.attribute(to, name, value, c.pos)
		return
	}
	b.notice(c.pos, NotHonoured, "Spring property %s on <%s> is ignored", name, to.el.Name)
}

// property takes in a property element with what it wraps.
func (b *builder) property(to *bean, n *node, p *schema.Property) {
	if !b.use(n.pos, p.Status, "<"+p.Name+">", p.Doc) {
		return
	}
	for _, a := range n.attrs {
		if a.ns == "" && a.name != "id" {
			b.problem(a.pos, "attribute %s on <%s>: that element only wraps others, write it on the "+
				"one inside%s", a.name, n.raw, b.belongs(a.name, to.el, p, true))
		}
	}
	for _, c := range n.children {
		b.member(to, c, p)
	}
}

// member takes in an element of a property.
func (b *builder) member(to *bean, c *node, p *schema.Property) {
	switch {
	case slices.Contains(p.Elements, c.name):
		if !p.List && len(to.props[p.Name]) > 0 {
			b.problem(c.pos, "<%s> takes one element, and this is the second", p.Name)
			return
		}
		to.props[p.Name] = append(to.props[p.Name], b.bean(c, schema.ElementNamed(c.name)))
	case c.isSpring("list"):
		for _, inner := range c.children {
			b.member(to, inner, p)
		}
	case c.isSpring("bean") || c.name == "ref":
		b.javaBean(c, p)
	default:
		b.problem(c.pos, "unknown element <%s> in <%s>%s", c.raw, p.Name, cmp.Or(
			b.belongs(c.name, to.el, p, false), b.suggest(c.name, p.Elements)))
	}
}

// The getters return a setting or its default; their names must be in the schema.

func (n *bean) raw(name string) string {
	if v, ok := n.values[name]; ok {
		return v.text
	}
	return n.el.Attribute(name).DefaultAt(n.compat)
}

// has reports whether the file sets name.
func (n *bean) has(name string) bool {
	_, ok := n.values[name]
	return ok
}

// at returns where name is set, or where the element is.
func (n *bean) at(name string) Pos {
	if v, ok := n.values[name]; ok {
		return v.pos
	}
	return n.pos
}

func (n *bean) text(name string) string { return strings.TrimSpace(n.raw(name)) }

func (n *bean) bool(name string) bool {
	v, _ := schema.ParseBool(n.raw(name))
	return v
}

func (n *bean) int(name string) int {
	v, _ := schema.ParseInt(n.raw(name))
	return int(v)
}

func (n *bean) size(name string) int64 {
	v, _ := schema.ParseSize(n.raw(name))
	return v
}

func (n *bean) millis(name string) time.Duration {
	v, _ := schema.ParseMillis(n.raw(name))
	return v
}

func (n *bean) patience(name string) time.Duration {
	v, _ := schema.ParsePatience(n.raw(name))
	return v
}

func (n *bean) float(name string) float64 {
	v, _ := schema.ParseFloat(n.raw(name))
	return v
}

// one returns the element of a property, or nil.
func (n *bean) one(property string) *bean {
	if l := n.many(property); len(l) > 0 {
		return l[0]
	}
	return nil
}

// many returns the elements of a property, which must be in the schema.
func (n *bean) many(property string) []*bean {
	if n.el.Property(property) == nil {
		panic("no property " + property + " on " + n.el.Name)
	}
	return n.props[property]
}
