package selector

import (
	"fmt"
	"slices"
	"strings"
)

// Limits on a selector's text, checked before and while it is parsed.
const (
	// MaxTextBytes is the longest selector text accepted.
	MaxTextBytes = 64 << 10
	// MaxDepth bounds the nesting of parentheses, unary operators and function calls, and the
	// length of a chain of operators of one precedence other than AND and OR, which are flat.
	MaxDepth = 256
	// MaxMadeBytes bounds a text that a selector makes of others, by + and by functions; one that
	// would be longer cannot be evaluated, as what the message lacks cannot.
	MaxMadeBytes = 1 << 20
	// MaxMatches bounds the places that REPLACE replaces and SPLIT cuts at.
	MaxMatches = 1 << 16
	// MaxFoundPatternBytes bounds a regular expression that comes from a message: it is compiled
	// anew for each.
	MaxFoundPatternBytes = 1 << 10
)

// convertPrefix is what ActiveMQ accepts before a selector's text to make numbers and strings
// comparable.
const convertPrefix = "convert_string_expressions:"

// Tri is a truth value of three-valued logic.
type Tri int8

// The truth values. Only True selects a message.
const (
	Unknown Tri = iota
	False
	True
)

// String returns the SQL word for t.
func (t Tri) String() string {
	switch t {
	case True:
		return "TRUE"
	case False:
		return "FALSE"
	}
	return "UNKNOWN"
}

// Fields is what a selector sees of a message.
type Fields interface {
	// Field returns the header field or property called name: nil when the message lacks it, else
	// a bool, int8, int16, int32, int64, float32, float64 or string. Any other type counts as a
	// value that compares with nothing.
	Field(name string) any
}

// XPath compiles the expression of an XPATH clause into a test of a message's body.
type XPath func(expr string) (func(m Fields) (bool, error), error)

// Selector is a parsed selector, safe for concurrent use.
type Selector struct {
	text     string
	root     node
	ids      []string
	warnings []string
}

// SyntaxError says why and where a selector's text is not one. Fronts answer it as the JMS
// exception InvalidSelectorException.
type SyntaxError struct {
	Text string // the whole selector
	Pos  int    // 1-based position in characters
	Msg  string // what is wrong, and what to write instead where that is known
}

// maxQuoted is how much of a selector an error line quotes, in characters.
const maxQuoted = 120

// Error returns one line with position, reason and the selector.
func (e *SyntaxError) Error() string {
	text := []rune(e.Text)
	if len(text) > maxQuoted {
		text = append(text[:maxQuoted], '…')
	}
	return fmt.Sprintf("invalid selector at position %d: %s, in %q", e.Pos, e.Msg, string(text))
}

// Parse reads a selector. An empty or blank text is no selector: it returns nil and no error
// (JMS 1.1, 3.8.1.1). Every error is a *SyntaxError. XPATH clauses are refused; see ParseXPath.
func Parse(text string) (*Selector, error) {
	return ParseXPath(text, nil)
}

// ParseXPath is Parse for callers that can evaluate XPATH clauses over a message's body.
func ParseXPath(text string, xpath XPath) (*Selector, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if len(text) > MaxTextBytes {
		return nil, &SyntaxError{Text: text, Pos: MaxTextBytes + 1,
			Msg: fmt.Sprintf("longer than %d bytes", MaxTextBytes)}
	}
	p := newParser(text, xpath)
	root, err := p.selector()
	if err != nil {
		return nil, err
	}
	slices.Sort(p.ids)
	return &Selector{text: text, root: root, ids: slices.Compact(p.ids), warnings: p.warnings}, nil
}

// Matches reports whether m is selected. A nil selector selects everything.
func (s *Selector) Matches(m Fields) bool {
	return s.Eval(m) == True
}

// Eval returns the truth value of the selector for m; a selector that fails on m is Unknown.
func (s *Selector) Eval(m Fields) Tri {
	t, err := s.Check(m)
	if err != nil {
		return Unknown
	}
	return t
}

// Check is Eval that also says why a selector could not be evaluated on m, such as an addition of
// a string to a number. With an error the result is Unknown.
func (s *Selector) Check(m Fields) (Tri, error) {
	if s == nil {
		return True, nil
	}
	v, err := s.root.eval(m)
	if err != nil {
		return Unknown, err
	}
	switch v {
	case nil:
		return Unknown, nil
	case true:
		return True, nil
	}
	return False, nil
}

// Text returns the selector as it was given, or "" for a nil selector.
func (s *Selector) Text() string {
	if s == nil {
		return ""
	}
	return s.text
}

// Identifiers returns the sorted names that the selector reads. A name outside the message's own
// header and properties (JMSRedelivered, JMSXDeliveryCount, JMSXUserID) makes the result depend
// on the broker that evaluates it.
func (s *Selector) Identifiers() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.ids)
}

// Reads reports whether the selector reads the field called name.
func (s *Selector) Reads(name string) bool {
	if s == nil {
		return false
	}
	_, found := slices.BinarySearch(s.ids, name)
	return found
}

// Warnings returns a line for each clause that is legal but hardly meant.
func (s *Selector) Warnings() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.warnings)
}
