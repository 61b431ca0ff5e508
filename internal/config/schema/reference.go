package schema

import (
	"fmt"
	"strings"
)

// Reference writes the configuration reference: every known element, its attributes with type and
// default, and what becomes of each, as Markdown. It is made of the tables that the reader
// uses, so it cannot tell anything else.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration reference

Every element, attribute and URI option of ActiveMQ's activemq.xml that Hopwire knows. This page is
made from the table that the reader itself uses.

* **honoured**: it does what it does in ActiveMQ.
* **tolerated**: accepted; there is nothing here that it could act on.
* **not honoured**: accepted and listed at start, with its line, when a file sets it to something
  else than its default.
* **not honoured, messages go astray**: the same, as a warning: they do not go where, or when, it
  says.
* **not honoured, restricts access**: a file that sets it is refused, unless --ignore-security.
* **refused**: an error.

"Hopwire's own" marks what ActiveMQ does not have: it would refuse a file with that.

Anything that is not on this page is an error with the nearest known name, and what stands at a
wrong place is one that tells where it belongs.
`)
	b.WriteString(strings.ReplaceAll(values, "~", "`"))
	b.WriteString("\n## Elements\n")
	for _, e := range Elements() {
		referenceOf(&b, "<"+e.Name+">", e)
	}
	b.WriteString("\n## URI options\n")
	for _, e := range URIOptions() {
		referenceOf(&b, e.Name, e)
	}
	b.WriteString("\n## Transport schemes\n\n| scheme | listens | dials | status | meaning |\n" +
		"|---|---|---|---|---|\n")
	for _, s := range Schemes() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.Name, yes(s.Bind), yes(s.Dial), s.Status,
			s.Doc)
	}
	return b.String()
}

// values is what the reference says about values.
const values = `
## Values

~${name}~ and ~${name:default}~ are replaced where the file has a bean that does so: a
~PropertyPlaceholderConfigurer~, a ~PropertySourcesPlaceholderConfigurer~, Jasypt's in its place, or
~<context:property-placeholder>~. Its property files (~location~, ~locations~) and properties are
read in each form that Spring has for them, from ~<util:properties>~ too; what is not read is told
with its line. Of a name that is nowhere there, ~-D name=value~ counts, then ActiveMQ's folders,
then the environment.

A property ~name=ENC(...)~ is decrypted, as by Jasypt: with ~PBEWithMD5AndDES~, and the password
that stands in the environment variable ~ACTIVEMQ_ENCRYPTION_PASSWORD~, or in the one that
~passwordEnvName~ of Jasypt's bean names. Elsewhere in the file ~ENC(...)~ is refused as a
user's password.

An attribute that begins with ~#~ is a reference to a bean, in a password as well: it is refused,
since none is followed. ~##x~ is ~#x~, and ~#null~ is as if the attribute were not there. So is
~#{...}~ refused at any place, an expression of Spring's. A value that a placeholder has may begin
with ~#~.
`

func referenceOf(b *strings.Builder, title string, e *Element) {
	fmt.Fprintf(b, "\n### %s\n\n", title)
	if e.Doc != "" {
		fmt.Fprintf(b, "%s. ", strings.ToUpper(e.Doc[:1])+e.Doc[1:])
	}
	fmt.Fprintf(b, "Status: %s.\n", e.Status)
	if e.Open {
		rest := ""
		if len(e.Attributes) > 0 {
			rest = " else"
		}
		fmt.Fprintf(b, "Whatever%s it contains is accepted and has no effect.\n", rest)
	}
	if len(e.Attributes) > 0 {
		b.WriteString("\n| attribute | type | default | status | meaning |\n|---|---|---|---|---|\n")
	}
	for _, a := range e.Attributes {
		def := a.Default
		if a.Default6 != "" {
			def += "; " + a.Default6 + " at level 6"
		}
		doc := a.Doc
		if len(a.Choices) > 0 {
			doc = strings.TrimSpace(doc + " (" + strings.Join(a.Choices, ", ") + ")")
		}
		status := max(a.Status, e.Status)
		if e.Open { // those that are named are read, whatever becomes of the rest
			status = a.Status
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", a.Name, a.Syntax(), def, status, cell(doc))
	}
	if len(e.Properties) > 0 {
		b.WriteString("\n| child | holds | status | meaning |\n|---|---|---|---|\n")
	}
	for _, p := range e.Properties {
		holds := strings.Join(p.Elements, ", ")
		if p.List {
			holds += " (any number)"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", p.Name, holds, max(p.Status, e.Status), cell(p.Doc))
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func yes(on bool) string {
	if on {
		return "yes"
	}
	return ""
}
