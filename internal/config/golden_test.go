package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// testEnv is the environment of the golden files.
var testEnv = map[string]string{
	"ACTIVEMQ_CONF": "testdata",
	"ACTIVEMQ_BASE": "/opt/mq",
	"ENC_PASSWORD":  "activemq",
}

// testOptions reads property files from testdata and nothing else from outside.
func testOptions() Options {
	return Options{
		Defines: map[string]string{"peer.port": "61617"},
		LookupEnv: func(name string) (string, bool) {
			v, ok := testEnv[name]
			return v, ok
		},
		ReadFile: func(path string) ([]byte, error) {
			return os.ReadFile(filepath.Join("testdata", filepath.Base(path)))
		},
	}
}

// dump writes what in v differs from def, a line for each field, in the order of the declaration.
// Types with a default of their own are held against that.
func dump(b *strings.Builder, indent, name string, v, def reflect.Value, own defaults) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		if u, ok := reflect.TypeAssert[*URI](v); ok {
			fmt.Fprintf(b, "%s%s: %s%s\n", indent, name, u, dumpOptions(u.Options))
			return
		}
		v, def = v.Elem(), reflect.Zero(v.Type().Elem())
	}
	if d, ok := own[v.Type()]; ok {
		def = d
	}
	switch x := v.Interface().(type) {
	case Pos:
		return
	case NetworkDestination:
		fmt.Fprintf(b, "%s%s: %s%s\n", indent, name, x.Destination, dumpOptions(x.Options))
		return
	case fmt.Stringer:
		if !v.Equal(def) {
			fmt.Fprintf(b, "%s%s: %s\n", indent, name, x)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		var inner strings.Builder
		for i := range v.NumField() {
			dump(&inner, indent+"  ", v.Type().Field(i).Name, v.Field(i), def.Field(i), own)
		}
		if inner.Len() > 0 || strings.HasSuffix(name, "]") {
			fmt.Fprintf(b, "%s%s:\n%s", indent, name, inner.String())
		}
	case reflect.Slice:
		for i := range v.Len() {
			dump(b, indent, fmt.Sprintf("%s[%d]", name, i), v.Index(i), reflect.Zero(v.Type().Elem()),
				own)
		}
	case reflect.String:
		if !v.Equal(def) {
			fmt.Fprintf(b, "%s%s: %q\n", indent, name, v)
		}
	default:
		if !v.Equal(def) {
			fmt.Fprintf(b, "%s%s: %v\n", indent, name, v)
		}
	}
}

// defaults are the values that goldens do not show again.
type defaults map[reflect.Type]reflect.Value

// goldenDefaults are those of the file defaults.xml, whose own golden shows everything.
func goldenDefaults(t *testing.T) defaults {
	t.Helper()
	c, err := Load("testdata/defaults.xml", testOptions())
	if err != nil {
		t.Fatal(err)
	}
	broker := c.Brokers[0]
	d := make(defaults)
	for _, v := range []any{*broker, *broker.Networks[0], *broker.Transports[0],
		*broker.Policy.Entries[0], broker.Networks[0].BackOff} {
		d[reflect.TypeOf(v)] = reflect.ValueOf(v)
	}
	return d
}

func dumpOptions(options []Option) string {
	s := ""
	for _, o := range options {
		s += " " + o.Name + "=" + o.Value
	}
	return s
}

// becomes is what a file becomes: the notices and the brokers, or the mistakes.
func becomes(path string, opts Options, own defaults) string {
	c, err := Load(path, opts)
	if err != nil {
		return "refused\n" + err.Error() + "\n"
	}
	var b strings.Builder
	for _, n := range c.Notices {
		fmt.Fprintln(&b, n)
	}
	for _, broker := range c.Brokers {
		dump(&b, "", "broker", reflect.ValueOf(broker), reflect.Value{}, own)
	}
	return b.String()
}

// Each testdata/*.xml becomes what its .golden says. A name that ends in -6 is read at level 6.
func TestFileBecomesWhatItsGoldenSays(t *testing.T) {
	files, err := filepath.Glob("testdata/*.xml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	known := goldenDefaults(t)
	for _, file := range files {
		base := strings.TrimSuffix(file, ".xml")
		t.Run(filepath.Base(base), func(t *testing.T) {
			opts := testOptions()
			if strings.HasSuffix(base, "-6") {
				opts.Compat = 6
			}
			own := known
			if base == "testdata/defaults" {
				own = nil
			}
			got := becomes(file, opts, own)
			golden := base + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs (run with -update to accept):\n%s", golden, firstDifference(got,
					string(want)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			expected := "the end"
			if i < len(w) {
				expected = w[i]
			}
			return fmt.Sprintf("line %d\n got %s\nwant %s", i+1, g[i], expected)
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}
