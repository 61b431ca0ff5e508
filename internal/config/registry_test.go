package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// everyTable returns the elements and the URI options.
func everyTable() []*Element {
	return append(append([]*Element(nil), Elements()...), URIOptions()...)
}

func TestDefaultsHaveTheSyntaxOfTheirType(t *testing.T) {
	for _, e := range everyTable() {
		for i := range e.Attributes {
			a := &e.Attributes[i]
			for _, def := range []string{a.Default, a.Default6} {
				if def == "" {
					continue
				}
				if err := a.check(def); err != nil {
					t.Errorf("%s on <%s>: the default %v", a.Name, e.Name, err)
				}
			}
		}
	}
}

func TestNamesInTheRegistryAreUniqueAndKnown(t *testing.T) {
	for i, e := range Elements() {
		if i > 0 && Elements()[i-1].Name == e.Name {
			t.Errorf("<%s> stands twice", e.Name)
		}
		for _, p := range e.Properties {
			for _, name := range p.Elements {
				if elementByName[name] == nil {
					t.Errorf("<%s> of <%s> is no element", name, p.Name)
				}
			}
		}
	}
	for _, e := range everyTable() {
		seen := make(map[string]bool)
		for _, a := range e.Attributes {
			if seen[a.Name] {
				t.Errorf("%s stands twice on <%s>", a.Name, e.Name)
			}
			seen[a.Name] = true
		}
	}
}

func TestWhatIsNotHonouredSaysWhatItIs(t *testing.T) {
	for _, e := range Elements() {
		if e.Doc == "" {
			t.Errorf("<%s> has no words", e.Name)
		}
		for _, a := range e.Attributes {
			if a.Doc == "" && (a.Status == Refused || a.Status == Restricts) {
				t.Errorf("%s on <%s> has no words", a.Name, e.Name)
			}
		}
	}
}

// A setting that is called honoured must be read somewhere.
func TestHonouredSettingsAreBound(t *testing.T) {
	files, err := filepath.Glob("bind_*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range append(files, "config.go") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(data)
	}
	for _, e := range everyTable() {
		if e.Open || e.Status != Honoured {
			continue
		}
		for _, a := range e.Attributes {
			if a.Status == Honoured && !strings.Contains(source.String(), `"`+a.Name+`"`) {
				t.Errorf("%s on <%s> is called honoured and never read", a.Name, e.Name)
			}
		}
		for _, p := range e.Properties {
			if p.Status == Honoured && !strings.Contains(source.String(), `"`+p.Name+`"`) {
				t.Errorf("<%s> in <%s> is called honoured and never read", p.Name, e.Name)
			}
		}
	}
}
