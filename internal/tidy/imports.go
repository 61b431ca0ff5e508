package tidy

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// emptyNames say nothing about what a package is for.
var emptyNames = []string{
	"util", "utils", "common", "helper", "helpers", "base", "manager", "misc", "shared",
}

// checkPlace asks that a package stands in the import table, has a telling name and a comment.
func (c *checker) checkPlace(p *pkg) {
	if _, ok := row(p.path); !ok {
		c.foundIn(p.path, 0, "the package is not in the import table; "+
			"give it a row in internal/tidy/table.go")
	}
	name := path.Base(p.path)
	if slices.Contains(emptyNames, name) {
		c.foundIn(p.path, 0, "%q says nothing; name the package after what it provides", name)
	}
	if p.doc == "" && !allGenerated(p) {
		c.foundIn(p.path, 0, "no package comment; say in one file what the package is for")
	}
}

func allGenerated(p *pkg) bool {
	return !slices.ContainsFunc(p.files, func(f *file) bool { return !f.gen })
}

// checkImports holds the import table for files that are not tests.
func (c *checker) checkImports(p *pkg, f *file) {
	if f.test {
		return
	}
	allowed, _ := row(p.path)
	for _, spec := range f.ast.Imports {
		target, ours := own(spec)
		if !ours || target == p.path {
			continue
		}
		if !fits(allowed, target) || fits(refused[p.path], target) {
			c.found(spec.Pos(), "%s may not import %s; it may import %s (internal/tidy/table.go)",
				p.path, target, listed(allowed))
		}
		if target == "internal/loop" && strings.HasPrefix(p.path, "internal/broker/") {
			c.checkNames(f, spec, loopNames)
		}
	}
}

// checkNames asks that a file uses only some names of an import.
func (c *checker) checkNames(f *file, spec *ast.ImportSpec, names []string) {
	local := localName(spec)
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		if ok && x.Name == local && !slices.Contains(names, s.Sel.Name) {
			c.found(s.Pos(), "a state machine may use only %s of package %s, not %s",
				strings.Join(names, ", "), local, s.Sel.Name)
		}
		return true
	})
}

// own returns the path below the module of an import of ours.
func own(spec *ast.ImportSpec) (string, bool) {
	name := importPath(spec)
	if name == module {
		return ".", true
	}
	return strings.CutPrefix(name, module+"/")
}

func importPath(spec *ast.ImportSpec) string {
	name, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return name
}

// localName is the name by which a file speaks of an import; for paths that end in a version it is
// the element before.
func localName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	name := importPath(spec)
	base := path.Base(name)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(name))
	}
	return base
}

func listed(allowed []string) string {
	if len(allowed) == 0 {
		return "nothing of ours"
	}
	return strings.Join(allowed, ", ")
}

// checkDependencies asks that each module which ours requires directly is argued for.
func (c *checker) checkDependencies(tree fs.FS) error {
	mod, err := fs.ReadFile(tree, "go.mod")
	if err != nil {
		return fmt.Errorf("the module's root: %w", err)
	}
	page, err := fs.ReadFile(tree, "DEPENDENCIES.md")
	if err != nil {
		page = nil // then every dependency is a finding
	}
	block := false
	for i, line := range strings.Split(string(mod), "\n") {
		line = strings.TrimSpace(line)
		if line == "require (" || line == ")" {
			block = line != ")"
			continue
		}
		rest, single := strings.CutPrefix(line, "require ")
		fields := strings.Fields(rest)
		if (!block && !single) || len(fields) < 2 || strings.HasSuffix(line, "// indirect") {
			continue
		}
		if !strings.Contains(string(page), fields[0]) {
			c.foundIn("go.mod", i+1, "%s is not in DEPENDENCIES.md; add a line: why, licence, "+
				"what else was looked at", fields[0])
		}
	}
	return nil
}
