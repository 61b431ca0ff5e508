package hopwire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"hopwire/internal/config"
	"hopwire/internal/config/schema"
	"hopwire/internal/policy"
)

// sources parses the Go files below the folders, without tests; a folder that ends in /* is not
// descended into.
func sources(t *testing.T, folders ...string) []*ast.File {
	t.Helper()
	var out []*ast.File
	add := func(path string) {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, f)
		}
	}
	for _, folder := range folders {
		if flat, ok := strings.CutSuffix(folder, "/*"); ok {
			files, err := filepath.Glob(filepath.Join(flat, "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range files {
				add(path)
			}
			continue
		}
		if err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			add(path)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// reads are the names X that the files use as something.X, other than to assign to it.
func reads(files []*ast.File) map[string]bool {
	out := map[string]bool{}
	for _, f := range files {
		assigned := map[ast.Expr]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return n.Name.Name != "Validate" // a check is no use
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					assigned[to] = true
				}
			case *ast.SelectorExpr:
				if !assigned[n] {
					out[n.Sel.Name] = true
				}
			}
			return true
		})
	}
	return out
}

// fedBy are the texts in the expressions that give each field its value.
func fedBy(files []*ast.File) map[string][]string {
	out := map[string][]string{}
	texts := func(field string, value ast.Node) {
		ast.Inspect(value, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil {
					out[field] = append(out[field], s)
				}
			}
			return true
		})
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if k, ok := n.Key.(*ast.Ident); ok {
					texts(k.Name, n.Value)
				}
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if s, ok := to.(*ast.SelectorExpr); ok && len(n.Rhs) == len(n.Lhs) {
						texts(s.Sel.Name, n.Rhs[i])
					}
				}
			}
			return true
		})
	}
	return out
}

// honoured are the settings that the reference calls so somewhere, by name.
func honoured() map[string]bool {
	out := map[string]bool{}
	note := func(name string, s schema.Status) {
		if s == schema.Honoured {
			out[name] = true
		}
	}
	for _, e := range append(schema.Elements(), schema.URIOptions()...) {
		for _, a := range e.Attributes {
			note(a.Name, max(a.Status, e.Status))
		}
		for _, p := range e.Properties {
			note(p.Name, max(p.Status, e.Status))
		}
	}
	return out
}

// namesakes are fields of settings that are not honoured, with the name of another that is.
var namesakes = map[string]string{
	"policy.Dispatch.StrictOrder": "strictOrder",
	"policy.Groups.CacheSize":     "cacheSize",
}

// A setting that the reference calls honoured is acted on: the field it is read into is used by
// somebody.
func TestFieldsOfHonouredSettingsAreRead(t *testing.T) {
	says := honoured()
	for _, c := range []struct {
		structs []any
		readers []string
		binders []string
	}{
		{
			[]any{
				config.Broker{}, config.Persistence{}, config.Limit{}, config.Usage{},
				config.SimpleAuth{}, config.User{}, config.Transport{}, config.Network{}, config.Link{},
				config.Peer{}, config.BackOff{},
			},
			[]string{"./*"},
			[]string{"internal/config/*"},
		},
		{
			[]any{
				policy.Entry{}, policy.Memory{}, policy.Dispatch{}, policy.Expiry{}, policy.Prefetch{},
				policy.GC{}, policy.Advisory{}, policy.DispatchPolicy{}, policy.Recovery{},
				policy.DeadLetter{}, policy.PendingLimit{}, policy.Eviction{}, policy.SlowConsumer{},
				policy.Cursors{}, policy.BridgeFilter{}, policy.Groups{}, policy.HeaderRule{},
			},
			[]string{"internal/broker", "internal/policy"},
			[]string{"internal/config/*"},
		},
	} {
		used, fed := reads(sources(t, c.readers...)), fedBy(sources(t, c.binders...))
		for _, s := range c.structs {
			typ := reflect.TypeOf(s)
			for i := range typ.NumField() {
				field := typ.String() + "." + typ.Field(i).Name
				if used[typ.Field(i).Name] {
					continue
				}
				for _, name := range fed[typ.Field(i).Name] {
					if says[name] && namesakes[field] != name {
						t.Errorf("%s is called honoured and read into %s, which nobody reads", name, field)
					}
				}
			}
		}
	}
}
