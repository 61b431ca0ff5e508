package hopwire

import (
	"go/ast"
	"go/token"
	"log/slog"
	"strings"
	"testing"
)

// internals are the packages of ours that a file imports and a user's module cannot.
func internals(f *ast.File) map[string]bool {
	out := map[string]bool{}
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if strings.HasPrefix(path, "hopwire/internal/") {
			out[path[strings.LastIndexByte(path, '/')+1:]] = true
		}
	}
	return out
}

// A program that uses the package can name all that its functions take and give.
func TestWhatIsPublicNamesNothingInternal(t *testing.T) {
	aliases := map[string]bool{}
	for _, f := range sources(t, "./*") {
		inside := internals(f)
		look := func(what string, n ast.Node) {
			ast.Inspect(n, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && inside[x.Name] {
						t.Errorf("%s names %s.%s, which users cannot", what, x.Name, s.Sel.Name)
					}
				}
				return true
			})
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if !d.Name.IsExported() || d.Recv != nil && !exportedReceiver(d.Recv) {
					continue
				}
				look(d.Name.Name, d.Type)
				if strings.Contains(d.Doc.Text(), "implements manage.") {
					t.Errorf("%s says nothing to users: %s", d.Name.Name, d.Doc.Text())
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					x, ok := s.(*ast.TypeSpec)
					if !ok || d.Tok != token.TYPE || !x.Name.IsExported() {
						continue
					}
					if aliases[x.Name.Name] = x.Assign != 0; x.Assign != 0 {
						continue
					}
					if st, ok := x.Type.(*ast.StructType); ok {
						for _, field := range st.Fields.List {
							if len(field.Names) > 0 && field.Names[0].IsExported() {
								look(x.Name.Name, field.Type)
							}
						}
					}
				}
			}
		}
	}
	for _, f := range sources(t, "internal/manage/*") {
		for name, o := range f.Scope.Objects {
			if o.Kind == ast.Typ && ast.IsExported(name) && name != "Subject" && name != "Presence" &&
				!aliases[name] {
				t.Errorf("manage.%s has no name in the public package", name)
			}
		}
	}
}

func exportedReceiver(r *ast.FieldList) bool {
	x := r.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	name, ok := x.(*ast.Ident)
	return ok && name.IsExported()
}

func TestAProgramThatStopsItsBrokerIsNamedInTheLog(t *testing.T) {
	var log strings.Builder
	b, err := Embed(t.Context(), "b", Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	end(t, b)
	if want := `msg=stopping broker=b why="asked to by the program"`; !strings.Contains(log.String(),
		want) {
		t.Errorf("no %s in\n%s", want, log.String())
	}
}
