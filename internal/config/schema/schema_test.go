package schema

import (
	"slices"
	"testing"
)

// everyTable returns the elements and the URI options.
func everyTable() []*Element {
	return slices.Concat(Elements(), URIOptions())
}

func TestDefaultsHaveTheSyntaxOfTheirType(t *testing.T) {
	for _, e := range everyTable() {
		for i := range e.Attributes {
			a := &e.Attributes[i]
			for _, def := range []string{a.Default, a.Default6} {
				if def == "" {
					continue
				}
				if err := a.Check(def); err != nil {
					t.Errorf("%s on <%s>: the default %v", a.Name, e.Name, err)
				}
			}
		}
	}
}

// An element that stands only where nothing is honoured is not honoured either.
func TestWhatIsInsideOfWhatIsNotHonouredIsNotHonoured(t *testing.T) {
	best := map[string]Status{"broker": Honoured}
	for _, e := range Elements() {
		for _, p := range e.Properties {
			for _, name := range p.Elements {
				s := max(p.Status, e.Status)
				if have, ok := best[name]; !ok || s < have {
					best[name] = s
				}
			}
		}
	}
	for _, e := range Elements() {
		if s, ok := best[e.Name]; ok && e.Status == Honoured && s != Honoured {
			t.Errorf("<%s> is called %s, and stands only where things are %s", e.Name, e.Status, s)
		}
	}
}

func TestNamesAreUniqueAndKnown(t *testing.T) {
	for i, e := range Elements() {
		if i > 0 && Elements()[i-1].Name == e.Name {
			t.Errorf("<%s> stands twice", e.Name)
		}
		for _, p := range e.Properties {
			for _, name := range p.Elements {
				if ElementNamed(name) == nil {
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
