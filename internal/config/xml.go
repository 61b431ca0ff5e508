package config

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"hopwire/internal/config/schema"
)

// Limits on a configuration file.
const (
	maxFileBytes = 4 << 20
	maxXMLDepth  = 64
	maxElements  = 100_000
	maxAttrs     = 1000 // of one element
)

const (
	springNS = "http://www.springframework.org/schema/beans"
	xsiNS    = "http://www.w3.org/2001/XMLSchema-instance"
)

// node is an XML element with places.
type node struct {
	ns, name string
	pos      Pos
	attrs    []xmlAttr
	children []*node
	text     string   // all character data inside, without that of children
	raw      string   // name with its prefix
	pieces   []string // of text, until the element ends
}

// xmlAttr is an XML attribute with its place; xmlns attributes are left out.
type xmlAttr struct {
	ns, name, value string
	pos             Pos
}

// isSpring reports whether n is the Spring element called name.
func (n *node) isSpring(name string) bool {
	return n.name == name && (n.ns == springNS || n.ns == "")
}

// get returns the value of an attribute without namespace, or "".
func (n *node) get(name string) string {
	for _, a := range n.attrs {
		if a.name == name && a.ns == "" {
			return a.value
		}
	}
	return ""
}

// child returns the first child called name, or nil.
func (n *node) child(name string) *node {
	for _, c := range n.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// reader builds the tree. Tokens are matched here and not by the decoder, for better messages.
type reader struct {
	file   string
	data   []byte
	starts []int // offset of each line
	dec    *xml.Decoder
	stack  []*node
	spaces []map[string]string // namespaces by prefix that each element of the stack declares
	last   place               // that pos found
	root   *node
	count  int
}

// readXML parses data into a tree. No entities but the five of XML exist, and a document type with
// declarations is refused. The error is a Problem.
func readXML(file string, data []byte) (*node, error) {
	if len(data) > maxFileBytes {
		return nil, Problem{Pos{file, 1, 1}, tooLong}
	}
	data, wide, err := fromUTF16(data)
	if err != nil {
		return nil, Problem{Pos{file, 1, 1}, err.Error()}
	}
	data = toUTF8(bytes.TrimPrefix(data, []byte("\ufeff")))
	r := &reader{file: file, data: data, starts: []int{0}, last: place{line: -1}}
	for i, b := range data {
		if b == '\n' {
			r.starts = append(r.starts, i+1)
		}
	}
	r.dec = xml.NewDecoder(bytes.NewReader(data))
	r.dec.CharsetReader = func(charset string, input io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "us-ascii") || strings.EqualFold(charset, latin1) ||
			wide && strings.HasPrefix(strings.ToUpper(charset), "UTF-16") {
			return input, nil
		}
		return nil, fmt.Errorf("encoding %s is not supported: save the file as UTF-8", charset)
	}
	for {
		start := int(r.dec.InputOffset())
		t, err := r.dec.RawToken()
		if errors.Is(err, io.EOF) {
			return r.finish()
		}
		if err != nil {
			return nil, r.syntax(err)
		}
		if err := r.token(t, start, int(r.dec.InputOffset())); err != nil {
			return nil, err
		}
	}
}

const latin1 = "ISO-8859-1"

// toUTF8 converts a file that declares ISO 8859-1, whose bytes are the first 256 characters.
func toUTF8(data []byte) []byte {
	declaration, _, found := bytes.Cut(data, []byte("?>"))
	if !found || !bytes.HasPrefix(declaration, []byte("<?xml")) ||
		!bytes.Contains(bytes.ToUpper(declaration), []byte(latin1)) {
		return data
	}
	out := make([]byte, 0, len(data))
	for _, b := range data {
		out = utf8.AppendRune(out, rune(b))
	}
	return out
}

// place is an offset in a line, and how many characters are before it there.
type place struct{ line, offset, chars int }

// pos returns the place of an offset. In the line of the last one it counts from there, so that a
// file that is one line takes no longer.
func (r *reader) pos(offset int) Pos {
	low, high := 0, len(r.starts)
	for high-low > 1 {
		if mid := (low + high) / 2; r.starts[mid] <= offset {
			low = mid
		} else {
			high = mid
		}
	}
	if r.last.line != low || r.last.offset > offset {
		r.last = place{low, r.starts[low], 0}
	}
	r.last.chars += utf8.RuneCount(r.data[r.last.offset:offset])
	r.last.offset = offset
	return Pos{r.file, low + 1, r.last.chars + 1}
}

// syntax turns an error of the decoder into a Problem.
func (r *reader) syntax(err error) error {
	text := err.Error()
	if se, ok := errors.AsType[*xml.SyntaxError](err); ok {
		text = se.Msg
		if entity, ok := strings.CutPrefix(text, "invalid character entity "); ok {
			text = entity + " is no character entity: in a URI, & is written &amp;"
		}
	}
	text = strings.NewReplacer("\n", " ", "\r", " ").Replace(text)
	return Problem{r.pos(int(r.dec.InputOffset())), "XML: " + text}
}

// token takes in one token that spans the offsets.
func (r *reader) token(t xml.Token, start, end int) error {
	switch t := t.(type) {
	case xml.StartElement:
		return r.open(t, start, end)
	case xml.EndElement:
		return r.close(rawName(t.Name), start)
	case xml.CharData:
		if len(r.stack) > 0 {
			top := r.stack[len(r.stack)-1]
			top.pieces = append(top.pieces, string(t))
		} else if strings.TrimSpace(string(t)) != "" {
			return Problem{r.pos(start), "text outside of any element; is this an XML file?"}
		}
	case xml.Directive:
		if bytes.ContainsAny(t, "[<") {
			return Problem{r.pos(start), "a document type with declarations is not accepted"}
		}
	}
	return nil
}

func rawName(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

func (r *reader) open(t xml.StartElement, start, end int) error {
	r.count++
	switch {
	case len(r.stack) >= maxXMLDepth:
		return Problem{r.pos(start), fmt.Sprintf("nested more than %d deep", maxXMLDepth)}
	case r.count > maxElements:
		return Problem{r.pos(start), fmt.Sprintf("more than %d elements", maxElements)}
	case len(t.Attr) > maxAttrs:
		return Problem{r.pos(start), fmt.Sprintf("more than %d attributes", maxAttrs)}
	case len(r.stack) == 0 && r.root != nil:
		return Problem{r.pos(start), "a second root element"}
	}
	r.spaces = append(r.spaces, namespaces(t.Attr))
	n := &node{ns: r.namespace(t.Name.Space), name: t.Name.Local, raw: rawName(t.Name),
		pos: r.pos(start)}
	places := attrOffsets(r.data[start:end])
	for i, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			continue
		}
		at := n.pos
		if i < len(places) {
			at = r.pos(start + places[i])
		}
		ns := ""
		if a.Name.Space != "" {
			ns = cmp.Or(r.namespace(a.Name.Space), a.Name.Space)
		}
		for _, other := range n.attrs {
			if other.ns == ns && other.name == a.Name.Local {
				return Problem{at, fmt.Sprintf("attribute %s twice on <%s>", rawName(a.Name), n.raw)}
			}
		}
		n.attrs = append(n.attrs, xmlAttr{ns: ns, name: a.Name.Local, value: a.Value, pos: at})
	}
	if len(r.stack) > 0 {
		parent := r.stack[len(r.stack)-1]
		parent.children = append(parent.children, n)
	} else {
		r.root = n
	}
	r.stack = append(r.stack, n)
	return nil
}

// namespaces returns what an element with the attributes declares, nil for nothing.
func namespaces(attrs []xml.Attr) map[string]string {
	var spaces map[string]string
	for _, a := range attrs {
		prefix := a.Name.Local
		switch {
		case a.Name.Space == "" && a.Name.Local == "xmlns":
			prefix = ""
		case a.Name.Space != "xmlns":
			continue
		}
		if spaces == nil {
			spaces = make(map[string]string)
		}
		spaces[prefix] = a.Value
	}
	return spaces
}

// namespace returns what a prefix means inside the innermost element, "" for nothing.
func (r *reader) namespace(prefix string) string {
	for _, spaces := range slices.Backward(r.spaces) {
		if ns, ok := spaces[prefix]; ok {
			return ns
		}
	}
	return ""
}

// attrOffsets returns where the attributes of a start tag begin, in order.
func attrOffsets(tag []byte) []int {
	var offsets []int
	isSpace := func(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }
	i := 0
	for i < len(tag) && !isSpace(tag[i]) {
		i++
	}
	for {
		for i < len(tag) && isSpace(tag[i]) {
			i++
		}
		if i >= len(tag) || tag[i] == '>' || tag[i] == '/' {
			return offsets
		}
		offsets = append(offsets, i)
		for i < len(tag) && tag[i] != '"' && tag[i] != '\'' {
			i++
		}
		if i >= len(tag) {
			return offsets
		}
		quote := bytes.IndexByte(tag[i+1:], tag[i])
		if quote < 0 {
			return offsets
		}
		i += quote + 2
	}
}

func (r *reader) close(name string, start int) error {
	if len(r.stack) == 0 {
		return Problem{r.pos(start), fmt.Sprintf("</%s> closes nothing", name)}
	}
	top := r.stack[len(r.stack)-1]
	if top.raw != name {
		return r.unclosed(r.pos(start), "</"+name+">")
	}
	top.text, top.pieces = strings.Join(top.pieces, ""), nil
	r.stack, r.spaces = r.stack[:len(r.stack)-1], r.spaces[:len(r.spaces)-1]
	return nil
}

// unclosed explains that something stands where an open element should be closed. The usual cause
// is a closing tag written as an opening one: then an element stands inside one of its own name.
func (r *reader) unclosed(at Pos, what string) error {
	for i := 1; i < len(r.stack); i++ {
		outer, inner := r.stack[i-1], r.stack[i]
		if outer.name == inner.name && !isWrapped(inner.name) {
			return Problem{inner.pos, fmt.Sprintf("<%s> inside <%s>; did you mean </%s>?",
				inner.raw, outer.raw, inner.raw)}
		}
	}
	top := r.stack[len(r.stack)-1]
	return Problem{at, fmt.Sprintf("%s where <%s> of line %d is still open; did you mean </%s>?",
		what, top.raw, top.pos.Line, top.raw)}
}

// isWrapped reports whether an element may stand in a property of the same name.
func isWrapped(name string) bool {
	for _, e := range schema.Elements() {
		for _, p := range e.Properties {
			if p.Name == name && slices.Contains(p.Elements, name) {
				return true
			}
		}
	}
	return false
}

func (r *reader) finish() (*node, error) {
	if len(r.stack) > 0 {
		return nil, r.unclosed(r.pos(len(r.data)), "the end of the file")
	}
	if r.root == nil {
		return nil, Problem{Pos{r.file, 1, 1}, "no element: this is no configuration"}
	}
	return r.root, nil
}
