package tidy

import (
	"bytes"
	"go/ast"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	fileLines     = 500  // above it the package comment names the file and says why
	fileLinesMax  = 800  // above it the file is split
	packageLines  = 4000 // above it doc.go says why, with the words "4,000 lines"
	funcLines     = 70
	decodeLines   = 100 // for a function that is one switch over a protocol
	lineCharsMax  = 100 // characters, a tab counts as one
	packageExcuse = "4,000 lines"
)

// decoder is the name of a function that may be one long switch.
var decoder = regexp.MustCompile(`(?i)decode|dispatch`)

// unfinished are the words that mark work left lying.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

// checkSize holds files and the package as a whole to their limits.
func (c *checker) checkSize(p *pkg) {
	total := 0
	for _, f := range p.files {
		n := len(f.lines)
		if f.gen {
			continue
		}
		if !f.test {
			total += n
		}
		switch {
		case n > fileLinesMax:
			c.foundIn(f.path, n, "%d lines; a file may have %d: split it by what its parts do",
				n, fileLinesMax)
		case n > fileLines && !strings.Contains(p.doc, path.Base(f.path)):
			c.foundIn(f.path, n, "%d lines; split it, or say in the package comment why %s "+
				"has more than %d", n, path.Base(f.path), fileLines)
		}
	}
	if total > packageLines && !strings.Contains(p.doc+p.aside, packageExcuse) {
		c.foundIn(p.path, 0, "%d lines; split the package, or say in its comment why it has more "+
			"than %s", total, packageExcuse)
	}
}

// checkLines holds lines to the width of the page; directives and lone long words cannot be broken.
func (c *checker) checkLines(f *file) {
	for i, line := range f.lines {
		n := utf8.RuneCount(line)
		if n <= lineCharsMax || bytes.HasPrefix(line, []byte("//go:")) {
			continue
		}
		if text := bytes.TrimLeft(line, "\t /"); !bytes.ContainsRune(text, ' ') {
			continue
		}
		c.foundIn(f.path, i+1, "%d characters; a line may have %d", n, lineCharsMax)
	}
}

// checkComments finds the words that mark unfinished work.
func (c *checker) checkComments(f *file) {
	for _, group := range f.ast.Comments {
		for _, comment := range group.List {
			if word := unfinished.FindString(comment.Text); word != "" {
				c.found(comment.Pos(), "%s in a comment; finish it, or leave it out and say so "+
					"in the documentation", word)
			}
		}
	}
}

// checkFuncs holds functions to their length, from func to the closing brace.
func (c *checker) checkFuncs(f *file) {
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		limit := funcLines
		if decoder.MatchString(fn.Name.Name) {
			limit = decodeLines
		}
		n := c.set.Position(fn.End()).Line - c.set.Position(fn.Pos()).Line + 1
		if n > limit {
			c.found(fn.Pos(), "%s has %d lines of %d: take a step out and name it",
				fn.Name.Name, n, limit)
		}
	}
}
