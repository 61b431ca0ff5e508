package properties

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

func TestTextSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOf(rapid.StringMatching(`[ -~é😀]{1,8}`), rapid.String()).Draw(t, "values")
		if got := Decode(Encode(values)); !maps.Equal(got, values) {
			t.Fatalf("%q came back as %q", values, got)
		}
	})
}

func TestForms(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"  a = 1\nb:2\nc 3\nd\n! no\ne=x\\\n   y\r\nf=\\u0041\\t\n\n": {"a": "1", "b": "2",
			"c": "3", "d": "", "e": "xy", "f": "A\t"},
		"a=1\na=2":                {"a": "2"},
		"# c\\\na=1":              {"a": "1"},
		"a=x\\":                   {"a": "x"},
		"a=x\\\\\nb=y":            {"a": "x\\", "b": "y"},
		"a\\ b\\=c = d e ":        {"a b=c": "d e "},
		"a=\\é\\uD83D\\uDE00\\u1": {"a": "é😀u1"},
		"a=\xe9":                  {"a": "é"},
		"# c\n! c\n a = 1 \r\nb:2\nc 3\nd\\=e=4\\\n   5\nf=\\u00fc\\t\ng=h=i\nj\nk=\\\\\nl=\xfc\n": {
			"a": "1 ", "b": "2", "c": "3", "d=e": "45", "f": "ü\t", "g": "h=i", "j": "",
			"k": `\`, "l": "ü"},
		"":   {},
		"\\": {"": ""},
	} {
		if got := Decode(text); !maps.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// What java.util.Properties of a JVM makes of texts that no brokers write.
func TestOddTextsAreReadAsJavaReadsThem(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"a=x\\\n\nb=1":            {"a": "x", "b": "1"},
		"a=x\\\r\n\r\nb=1":        {"a": "x", "b": "1"},
		"a=x\\\n \t\nb=1":         {"a": "x", "b": "1"},
		"a=x\\\n\\\nb=1":          {"a": "xb=1"},
		"a=x\\\n\\\n\nb=1":        {"a": "x", "b": "1"},
		"a=x\\\n#y":               {"a": "x#y"},
		"a=x\\\n  !y\nb":          {"a": "x!y", "b": ""},
		"\\\n\na":                 {"a": ""},
		"\\\n#c\nb":               {"b": ""},
		"\\\n\\\n\n# c\\\na=1":    {"a": "1"},
		"a\r\\\n !b":              {"a": ""},
		"a\r\n\\\n\t":             {"a": ""},
		"\\\n":                    {"": ""},
		"\\\r":                    {"": ""},
		"\\\r\n":                  {},
		"\\\n\\":                  {"": ""},
		"a\\\r\n":                 {"a": ""},
		"a=x\\\\\\\n y":           {"a": "x\\y"},
		"a=x\\\\\n y":             {"a": "x\\", "y": ""},
		"\f a\f=\fb\f":            {"a": "b\f"},
		"a\\\n=\\\n b":            {"a": "b"},
		"\va\u0085=\u2028b\nc:=d": {"\va\u0085": "\u2028b", "c": "=d"},
		": :a":                    {"": ":a"},
	} {
		if got := Decode(text); !maps.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("a=\\u0041\\\n b")
	f.Fuzz(func(t *testing.T, text string) {
		values := Decode(text)
		if again := Decode(Encode(values)); !maps.Equal(again, values) {
			t.Fatalf("%q came back as %q", values, again)
		}
	})
}
