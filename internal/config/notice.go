package config

import (
	"fmt"
	"strings"
)

// Pos is a place in a file; lines and columns count from 1, columns in characters.
type Pos struct {
	File      string
	Line, Col int
}

// String returns file:line:col.
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// NoticeKind says what a notice is about.
type NoticeKind uint8

// The kinds of notices.
const (
	// NotHonoured: a known setting that has no effect; listed at start.
	NotHonoured NoticeKind = iota
	// Warning: a setting that works and is hardly meant.
	Warning
	// Restricting: a setting that would restrict access and has no effect; a broker does not start
	// with it unless told to ignore security.
	Restricting
	// UnknownPlugin: a plugin of a class nobody knows, which may be what keeps a broker safe; a
	// broker does not start with it unless told to ignore unknown plugins.
	UnknownPlugin
)

// String returns the word that begins a notice's line in reports.
func (k NoticeKind) String() string {
	return [...]string{"not honoured", "warning", "restricting", "unknown plugin"}[k]
}

// Notice is something to know about a configuration that can be used.
type Notice struct {
	Pos  Pos
	Kind NoticeKind
	Text string // one line
}

// String returns one line: place, kind and text.
func (n Notice) String() string { return fmt.Sprintf("%s: %s: %s", n.Pos, n.Kind, n.Text) }

// Problem is a mistake in a configuration.
type Problem struct {
	Pos  Pos
	Text string // one line: what is wrong and what to write instead
}

// Error returns one line: place and text.
func (p Problem) Error() string { return p.Pos.String() + ": " + p.Text }

// Problems are all mistakes found in one reading, in file order.
type Problems []Problem

// Error returns a line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i := range p {
		lines[i] = p[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each problem.
func (p Problems) Unwrap() []error {
	all := make([]error, len(p))
	for i := range p {
		all[i] = p[i]
	}
	return all
}

// maxProblems is how many problems are reported at most.
const maxProblems = 50
