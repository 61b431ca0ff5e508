package tidy

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// coreImports are packages that the core may not import, nor anything below them.
var coreImports = []string{"net", "os", "log", "syscall", "context", "sync/atomic"}

// coreNames are the names that the core may not use of packages it may import otherwise.
var coreNames = map[string][]string{
	"time": {
		"Now", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Since", "Until",
	},
	"sync": {"Mutex", "RWMutex", "Locker", "Cond", "WaitGroup", "Map"},
}

// randMakers are what is left of math/rand without its global source.
var randMakers = []string{
	"Rand", "Source", "Source64", "New", "NewSource", "NewPCG", "PCG", "NewChaCha8", "ChaCha8",
	"Zipf", "NewZipf",
}

// checkCore holds internal/broker and internal/bridge to events in, effects out.
func (c *checker) checkCore(p *pkg, f *file) {
	if f.test || !inCore(p.path) {
		return
	}
	local := map[string]string{}
	for _, spec := range f.ast.Imports {
		name := importPath(spec)
		for _, bad := range coreImports {
			if name == bad || strings.HasPrefix(name, bad+"/") {
				c.found(spec.Pos(), "the core may not import %s; what it needs from outside comes "+
					"as an event or through loop.Env", name)
			}
		}
		local[localName(spec)] = name
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				c.checkCoreName(n, local[x.Name])
			}
		case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
			c.found(n.Pos(), "the core may not use channels; it runs on one loop: post an event")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				c.found(n.Pos(), "the core may not receive; it runs on one loop: post an event")
			}
		}
		return true
	})
}

func (c *checker) checkCoreName(n *ast.SelectorExpr, from string) {
	name := n.Sel.Name
	switch {
	case slices.Contains(coreNames[from], name):
		c.found(n.Pos(), "the core may not use %s.%s; it has one owner and takes time from loop.Env",
			from, name)
	case from == "math/rand" || from == "math/rand/v2":
		if !slices.Contains(randMakers, name) {
			c.found(n.Pos(), "the core may not use the global %s.%s; take loop.Env's source",
				from, name)
		}
	}
}

// checkGo asks that goroutines are started by name through the run group.
func (c *checker) checkGo(p *pkg, f *file) {
	if f.test || fits(goers, p.path) {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			c.found(g.Pos(), "a naked go statement; start it by name through internal/rungroup")
		}
		return true
	})
}

// checkPrint asks that the commands print through internal/terminal, so that no name of others does
// more on a terminal than be seen.
func (c *checker) checkPrint(p *pkg, f *file) {
	if f.test || !fits(printers, p.path) {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := s.X.(*ast.Ident)
		if ok && slices.Contains(printing, from.Name+"."+s.Sel.Name) {
			c.found(s.Pos(), "a command prints through internal/terminal, not %s.%s", from.Name,
				s.Sel.Name)
		}
		return true
	})
}

// checkSleep forbids real waiting in tests. Inside a testing/synctest bubble Sleep only moves the
// bubble's clock, so a file that imports that package is left alone.
func (c *checker) checkSleep(p *pkg, f *file) {
	if !f.test && !strings.HasPrefix(p.path+"/", "test/") {
		return
	}
	sleeper := ""
	for _, spec := range f.ast.Imports {
		switch importPath(spec) {
		case "testing/synctest":
			return
		case "time":
			sleeper = localName(spec)
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == sleeper {
				c.found(s.Pos(), "a test may not sleep; wait for the event, with a deadline")
			}
		}
		return true
	})
}
