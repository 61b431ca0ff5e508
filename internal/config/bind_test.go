package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hopwire/internal/config/schema"
)

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
	for _, e := range slices.Concat(schema.Elements(), schema.URIOptions()) {
		if slices.Contains([]string{"server", "client", "transport.", "wireFormat."}, e.Name) {
			continue // read by package transport, as a test of package hopwire shows
		}
		if e.Open || e.Status != schema.Honoured {
			continue
		}
		for _, a := range e.Attributes {
			if a.Status == schema.Honoured && !strings.Contains(source.String(), `"`+a.Name+`"`) {
				t.Errorf("%s on <%s> is called honoured and never read", a.Name, e.Name)
			}
		}
		for _, p := range e.Properties {
			if p.Status == schema.Honoured && acts(p) && !strings.Contains(source.String(), `"`+p.Name+`"`) {
				t.Errorf("<%s> in <%s> is called honoured and never read", p.Name, e.Name)
			}
		}
	}
}

// acts reports whether a property may hold something that is honoured.
func acts(p schema.Property) bool {
	return slices.ContainsFunc(p.Elements, func(name string) bool {
		e := schema.ElementNamed(name)
		return e != nil && e.Status == schema.Honoured &&
			(len(e.Attributes) > 0 || len(e.Properties) == 0 || slices.ContainsFunc(e.Properties, acts))
	})
}
