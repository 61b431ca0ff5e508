package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Finding is one broken rule.
type Finding struct {
	File string // slash-separated path below the module's root
	Line int    // from 1; 0 for the file or folder as a whole
	Text string // what is wrong and what to do, one line
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// file is one Go source file.
type file struct {
	path  string
	test  bool
	gen   bool
	lines [][]byte
	ast   *ast.File
}

// pkg is one folder with Go files, the external test package included.
type pkg struct {
	path  string // below the module, "." for the root
	files []*file
	doc   string // package comments, joined
	aside string // all comments of doc.go: what is said there is not all for users
}

// checker collects what is found in a tree.
type checker struct {
	set      *token.FileSet
	packages []*pkg
	findings []Finding
}

// Check runs every rule over a module's tree and returns what it found, in the order of the files.
// An error says that the tree could not be read or a file did not parse.
func Check(tree fs.FS) ([]Finding, error) {
	c := &checker{set: token.NewFileSet()}
	if err := c.load(tree); err != nil {
		return nil, err
	}
	for _, p := range c.packages {
		c.checkPlace(p)
		c.checkSize(p)
		for _, f := range p.files {
			c.checkFile(p, f)
		}
	}
	if err := c.checkDependencies(tree); err != nil {
		return nil, err
	}
	return c.findings, nil
}

func (c *checker) checkFile(p *pkg, f *file) {
	if f.gen {
		c.checkImports(p, f)
		return
	}
	c.checkImports(p, f)
	c.checkLines(f)
	c.checkComments(f)
	c.checkFuncs(f)
	c.checkGo(p, f)
	c.checkCore(p, f)
	c.checkPrint(p, f)
	c.checkSleep(p, f)
}

// load parses all Go files below the root, nested modules and testdata left out.
func (c *checker) load(tree fs.FS) error {
	byPath := map[string]*pkg{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && skipped(tree, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		folder := path.Dir(name)
		if byPath[folder] == nil {
			byPath[folder] = &pkg{path: folder}
			c.packages = append(c.packages, byPath[folder])
		}
		return c.parse(tree, byPath[folder], name)
	})
	slices.SortFunc(c.packages, func(a, b *pkg) int { return strings.Compare(a.path, b.path) })
	return err
}

func skipped(tree fs.FS, folder string) bool {
	base := path.Base(folder)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	if base == "testdata" || base == "node_modules" {
		return true
	}
	_, err := fs.Stat(tree, path.Join(folder, "go.mod"))
	return err == nil
}

func (c *checker) parse(tree fs.FS, p *pkg, name string) error {
	source, err := fs.ReadFile(tree, name)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(c.set, name, source, parser.ParseComments)
	if err != nil {
		return err
	}
	f := &file{
		path:  name,
		test:  strings.HasSuffix(name, "_test.go"),
		gen:   strings.HasSuffix(name, "_gen.go") && ast.IsGenerated(parsed),
		lines: bytes.Split(bytes.TrimSuffix(source, []byte("\n")), []byte("\n")),
		ast:   parsed,
	}
	p.files = append(p.files, f)
	if parsed.Doc != nil {
		p.doc += parsed.Doc.Text()
	}
	if path.Base(name) == "doc.go" {
		for _, c := range parsed.Comments {
			p.aside += c.Text()
		}
	}
	return nil
}

// found notes a broken rule at a place in the source.
func (c *checker) found(at token.Pos, format string, args ...any) {
	place := c.set.Position(at)
	c.foundIn(place.Filename, place.Line, format, args...)
}

func (c *checker) foundIn(file string, line int, format string, args ...any) {
	c.findings = append(c.findings, Finding{file, line, fmt.Sprintf(format, args...)})
}
