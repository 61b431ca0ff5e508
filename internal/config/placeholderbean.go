package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hopwire/internal/properties"
)

const (
	springP    = "http://www.springframework.org/schema/p"
	maxRefs    = 8 // a bean that names one that names one ...
	factoryFor = "PropertiesFactoryBean"
)

// beanSetting is one property of a Spring bean, however it is written: as an attribute, p:name,
// p:name-ref, or <property>.
type beanSetting struct {
	name  string
	value string
	ref   string  // the bean it refers to
	inner []*node // what stands in it
	pos   Pos
}

// givenBy returns the properties of a bean, of <context:property-placeholder> or <util:properties>.
func givenBy(n *node) []beanSetting {
	var out []beanSetting
	for _, a := range n.attrs {
		switch name, isRef := strings.CutSuffix(a.name, "-ref"); {
		case n.isSpring("bean") && a.ns != springP, a.ns != springP && a.ns != "", a.name == "id":
		case isRef:
			out = append(out, beanSetting{name: camel(name), ref: a.value, pos: a.pos})
		default:
			out = append(out, beanSetting{name: camel(name), value: a.value, pos: a.pos})
		}
	}
	for _, p := range n.children {
		if p.name == "property" {
			out = append(out, beanSetting{p.get("name"), p.get("value"), p.get("ref"), p.children, p.pos})
		}
	}
	return out
}

// camel is a name of Spring's namespaces as the property is called.
func camel(name string) string {
	words := strings.Split(name, "-")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// texts returns the texts that a property has: its value, or the value elements inside.
func (g *beanSetting) texts() []string {
	if g.value != "" {
		return []string{g.value}
	}
	var values []string
	for _, c := range g.inner {
		values = append(values, springTexts(c)...)
	}
	return values
}

// says reports whether a property is the given word.
func (g *beanSetting) says(word string) bool {
	v := g.texts()
	return len(v) == 1 && strings.EqualFold(strings.TrimSpace(v[0]), word)
}

// springTexts returns the texts of n or of all value elements inside.
func springTexts(n *node) []string {
	if n.name == "value" {
		return []string{strings.TrimSpace(n.text)}
	}
	var values []string
	for _, c := range n.children {
		values = append(values, springTexts(c)...)
	}
	return values
}

// alias are properties by what namespaces call them.
var alias = map[string]string{"ignoreUnresolvable": "ignoreUnresolvablePlaceholders",
	"systemPropertiesMode": "systemPropertiesModeName"}

// usually are the settings of placeholder beans that have no effect, with what need not be told.
var usually = map[string][]string{"fileEncoding": {"UTF-8", "UTF8", "ISO-8859-1"},
	"searchSystemEnvironment": {"true"}, "placeholderPrefix": {"${"}, "placeholderSuffix": {"}"},
	"valueSeparator": {":"}, "trimValues": {"false"}}

// sources are where a bean has its properties from.
type sources struct {
	own, files    map[string]string
	localOverride bool
}

// merged gives all of them: files come before what stands in the bean, unless it says otherwise.
func (s *sources) merged() map[string]string {
	first, then := s.own, s.files
	if s.localOverride {
		first, then = then, first
	}
	maps.Copy(first, then)
	return first
}

// bean reads one placeholder bean and the files it names. Of a name that several beans have, the
// first bean's counts, as in Spring.
func (r *resolver) bean(n *node, several bool) error {
	all := givenBy(n)
	for _, g := range all {
		if full, ok := alias[g.name]; ok {
			g.name = full
		}
		switch g.name {
		case "ignoreUnresolvablePlaceholders":
			r.keepUnknown = r.keepUnknown || g.says("true")
		case "systemPropertiesModeName":
			override := slices.ContainsFunc([]string{"SYSTEM_PROPERTIES_MODE_OVERRIDE", "OVERRIDE", "2"},
				g.says)
			r.systemFirst = r.systemFirst || override
		case "location", "locations", "properties", "propertiesArray", "localOverride",
			"ignoreResourceNotFound":
		default:
			usual := usually[g.name]
			if !slices.ContainsFunc(usual, g.says) && (g.name != "order" || several) {
				r.note(g.pos, NotHonoured, "%s of the bean that resolves placeholders is ignored", g.name)
			}
		}
	}
	found, err := r.sources(n, all, 0)
	if err != nil {
		return err
	}
	for name, value := range found {
		if _, have := r.files[name]; !have {
			r.files[name] = value
		}
	}
	return nil
}

func (r *resolver) note(at Pos, kind NoticeKind, format string, args ...any) {
	text := strings.NewReplacer("\n", " ", "\r", " ").Replace(fmt.Sprintf(format, args...))
	r.notices = append(r.notices, Notice{at, kind, text})
}

// sources reads the properties that a bean names or has.
func (r *resolver) sources(n *node, all []beanSetting, depth int) (map[string]string, error) {
	s := sources{own: make(map[string]string), files: make(map[string]string)}
	for _, g := range all {
		switch g.name {
		case "ignoreResourceNotFound":
			r.skipMissing = r.skipMissing || g.says("true")
		case "localOverride":
			s.localOverride = g.says("true")
		}
	}
	for _, g := range all {
		var err error
		switch g.name {
		case "location", "locations":
			err = r.locations(n, g, s.files)
		case "properties", "propertiesArray":
			err = r.local(g, s.own, depth)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.merged(), nil
}

// locations reads the files that a property names.
func (r *resolver) locations(n *node, g beanSetting, to map[string]string) error {
	places := []string{g.value}
	switch {
	case g.value == "":
		places = r.placesIn(g)
	case n.name == "property-placeholder":
		places = strings.Split(g.value, ",")
	}
	for _, place := range places {
		place, err := r.resolve(strings.TrimSpace(place), n.pos)
		if err == nil {
			err = r.load(place, n.pos, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// placesIn gives the places of files that stand in a property, and tells of what is none.
func (r *resolver) placesIn(g beanSetting) (places []string) {
	var look func(inner []*node)
	look = func(inner []*node) {
		for _, c := range inner {
			switch c.name {
			case "value":
				places = append(places, strings.TrimSpace(c.text))
			case "list", "array", "set":
				look(c.children)
			default:
				r.unread(c.pos, g.name, "<"+c.raw+">")
			}
		}
	}
	if g.ref != "" {
		r.unread(g.pos, g.name, "a reference")
	}
	look(g.inner)
	return places
}

// unread tells of properties that placeholders should have and do not.
func (r *resolver) unread(at Pos, name, what string) {
	hint := `name the file by <property name="location" value="file:..."/>`
	if name == "properties" || name == "propertiesArray" {
		hint = "write <props>, or name a file as location"
	}
	r.note(at, Warning, "%s of the bean that resolves placeholders is not read from %s: what it has"+
		" is not defined here; %s", name, what, hint)
}

// local reads properties that stand in the file.
func (r *resolver) local(g beanSetting, to map[string]string, depth int) error {
	if g.value != "" {
		maps.Copy(to, properties.Decode(g.value))
		return nil
	}
	if g.ref != "" {
		return r.referred(g.ref, g, to, depth)
	}
	for _, c := range g.inner {
		if err := r.localIn(c, g, to, depth); err != nil {
			return err
		}
	}
	return nil
}

// localIn reads the properties that an element is.
func (r *resolver) localIn(c *node, g beanSetting, to map[string]string, depth int) error {
	class := c.get("class")
	switch {
	case c.name == "value":
		maps.Copy(to, properties.Decode(c.text))
	case c.name == "props", c.name == "map":
		r.pairs(c, g, to)
	case c.name == "ref":
		return r.referred(c.get("bean")+c.get("local"), g, to, depth)
	case c.name == "list", c.name == "array", c.name == "set":
		for _, inner := range c.children {
			if err := r.localIn(inner, g, to, depth); err != nil {
				return err
			}
		}
	case c.name == "properties", strings.HasSuffix(class, factoryFor):
		found, err := r.sources(c, givenBy(c), depth+1)
		maps.Copy(to, found)
		if c.name == "properties" {
			r.pairs(c, g, to)
		}
		return err
	case class == "java.util.Properties":
		for _, arg := range c.children {
			held := beanSetting{g.name, arg.get("value"), arg.get("ref"), arg.children, arg.pos}
			if err := r.local(held, to, depth+1); err != nil {
				return err
			}
		}
	default:
		r.unread(c.pos, g.name, "<"+c.raw+">")
	}
	return nil
}

// pairs reads <prop key="">...</prop> and <entry key="" value=""/>.
func (r *resolver) pairs(n *node, g beanSetting, to map[string]string) {
	for _, p := range n.children {
		key, value := strings.TrimSpace(p.get("key")), p.get("value")
		if v := p.child("value"); value == "" && v != nil {
			value = v.text
		}
		switch {
		case p.name == "prop" && len(p.children) == 0:
			to[key] = strings.TrimSpace(p.text)
		case p.name == "entry" && key != "" && p.get("value-ref") == "" &&
			(value != "" || len(p.children) == 0):
			to[key] = value
		default:
			r.unread(p.pos, g.name, "<"+p.raw+">")
		}
	}
}

// referred reads the properties that a bean elsewhere in the file is.
func (r *resolver) referred(id string, g beanSetting, to map[string]string, depth int) error {
	if n := r.named[id]; n != nil && depth <= maxRefs {
		r.used[n] = true
		return r.localIn(n, g, to, depth+1)
	}
	r.unread(g.pos, g.name, "bean "+id)
	return nil
}

// namedBeans are the elements of <beans> by their ids and names.
func namedBeans(root *node) map[string]*node {
	named := make(map[string]*node)
	for _, n := range root.children {
		for _, name := range strings.FieldsFunc(n.get("id")+" "+n.get("name"), isNameEnd) {
			named[name] = n
		}
	}
	return named
}

// isNameEnd reports whether a character is between the names of a bean.
func isNameEnd(c rune) bool { return strings.ContainsRune(",; ", c) }
