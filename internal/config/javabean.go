package config

import (
	"cmp"
	"slices"
	"strings"

	"hopwire/internal/config/schema"
)

// javaBean says what becomes of a Java class inside a property, or of a reference to one.
func (b *builder) javaBean(c *node, p *schema.Property) {
	class := c.get("class")
	what, cannot := "plugin "+class, " is a Java class that cannot be run here"
	var is *node
	if c.name == "ref" {
		id := cmp.Or(c.get("bean"), c.get("local"))
		is, cannot = b.named[id], " cannot be run here"
		switch {
		case is == nil:
			class, what = id, "plugin "+id+", a bean that this file does not have,"
		case is.get("class") == "":
			class, what = is.name, "plugin "+id+", <"+is.raw+"> elsewhere in this file,"
		default:
			class = is.get("class")
			what = "plugin " + id + ", of class " + class + ","
		}
	}
	if p.Name != "plugins" {
		b.problem(c.pos, "a Java class cannot be used in <%s>: %s%s", p.Name, class,
			instead(class, is, p))
		return
	}
	if class == "" {
		what, cannot = "a plugin whose <bean> has no class", " cannot be run here"
	}
	hint := instead(class, is, p)
	if schema.DecidesAccess(class) {
		b.notice(c.pos, Restricting, "%s restricts access and has no effect%s", what, hint)
		return
	}
	b.notice(c.pos, UnknownPlugin, "%s%s%s", what, cannot, hint)
}

// instead names the element to write in place of a Java class; is what a reference leads to.
func instead(class string, is *node, p *schema.Property) string {
	name := class[strings.LastIndexByte(class, '.')+1:]
	if is != nil && !is.isSpring("bean") {
		name = is.name
	}
	for _, element := range p.Elements {
		if strings.EqualFold(element, name) {
			return "; write <" + element + "> here"
		}
	}
	if is == nil && !strings.Contains(class, ".") &&
		slices.Contains(p.Elements, simpleAuthentication) {
		return "; if it says who may connect, write <" + simpleAuthentication + "> here"
	}
	return ""
}

const simpleAuthentication = "simpleAuthenticationPlugin"
