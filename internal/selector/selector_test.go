package selector

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fields is a message made of a map.
type fields map[string]any

func (f fields) Field(name string) any { return f[name] }

// lines returns the lines of a test data file without comments.
func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	return slices.DeleteFunc(all, func(l string) bool { return strings.HasPrefix(l, "#") })
}

// message reads testdata/message.txt.
func message(t *testing.T) fields {
	t.Helper()
	m := fields{}
	for _, line := range lines(t, "testdata/message.txt") {
		p := strings.SplitN(line, " ", 3)
		n, _ := strconv.ParseInt(p[2], 10, 64)
		f, _ := strconv.ParseFloat(p[2], 64)
		switch p[1] {
		case "string":
			m[p[0]] = strings.ReplaceAll(p[2], `\n`, "\n")
		case "boolean":
			m[p[0]] = p[2] == "true"
		case "byte":
			m[p[0]] = int8(n)
		case "short":
			m[p[0]] = int16(n)
		case "int":
			m[p[0]] = int32(n)
		case "long":
			m[p[0]] = n
		case "float":
			m[p[0]] = float32(f)
		case "double":
			m[p[0]] = f
		default:
			t.Fatalf("type of %q", line)
		}
	}
	return m
}

// divergences are the rows of testdata/activemq.golden where we mean to answer something else.
var divergences = map[string]string{
	// Numbers of any widths compare; ActiveMQ only widens the left side for some pairs.
	"5 = b":   "true",
	"5 = sh":  "true",
	"sh = b":  "true",
	"l = b":   "true",
	"i = b":   "true",
	"d = f":   "true",
	"d2 = f2": "false",
	"d2 < f2": "false",
	// A literal beyond 64 bits keeps its value instead of losing its upper bits.
	"18446744073709551621 = 5": "false",
	// Bytes and shorts have a sign like other numbers, and there is one zero.
	"-b = -5":      "true",
	"-sh = -5":     "true",
	"0 = -0.0":     "true",
	"d - d = -0.0": "true",
	// The last line of a selector may be a comment without a line end.
	"i=5--comment": "true",
	"i --5":        "false",
	// A pattern that is none is found when the selector is read.
	"REGEX('(', s)": "invalid",
	// Conversion works on either side.
	"convert_string_expressions:t = 'true'": "true",
	// XPATH needs a caller that can evaluate it.
	"XPATH 'x'": "invalid",
}

func outcome(text string, m Fields) string {
	s, err := Parse(text)
	if err != nil {
		return "invalid"
	}
	v, err := s.Check(m)
	if err != nil {
		return "error"
	}
	return strings.ToLower(v.String())
}

// The golden file was made by running ActiveMQ 5.17.2's own parser over testdata/selectors.txt.
func TestSelectorsPickWhatActiveMQPicks(t *testing.T) {
	m := message(t)
	for _, line := range lines(t, "testdata/activemq.golden") {
		theirs, text, _ := strings.Cut(line, "\t")
		text = strings.ReplaceAll(text, `\n`, "\n")
		want, diverges := divergences[text]
		if !diverges {
			want = theirs
		}
		if got := outcome(text, m); got != want {
			t.Errorf("%s\n\tgot %s, want %s (ActiveMQ: %s)", text, got, want, theirs)
		}
		if diverges && want == theirs {
			t.Errorf("%s: listed as a divergence, but ActiveMQ agrees", text)
		}
	}
}

func TestBlankTextIsNoSelector(t *testing.T) {
	for _, text := range []string{"", "   ", "\t\n"} {
		s, err := Parse(text)
		if s != nil || err != nil {
			t.Errorf("Parse(%q) = %v, %v", text, s, err)
		}
		if !s.Matches(fields{}) || s.Text() != "" || s.Identifiers() != nil || s.Warnings() != nil {
			t.Errorf("the selector of %q does not select everything", text)
		}
	}
}

func TestNamesAreJavaIdentifiers(t *testing.T) {
	m := fields{"naïve": "ü", "größe": int32(3), "名": true, "x\u0301": int32(1), "a€": int32(2)}
	for _, text := range []string{"naïve = 'ü'", "größe > 2", "名", "x\u0301 = 1", "a€ = 2"} {
		if got := outcome(text, m); got != "true" {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := outcome("1a = 1", m); got != "invalid" {
		t.Errorf("a name that starts with a digit: %s", got)
	}
}

func TestHyphenatedNameIsWarnedAbout(t *testing.T) {
	warned := map[string]bool{
		"my-prop = 'x'":               true,
		"i = 1 AND (my-prop = 'x')":   true,
		"a - b = 1":                   false,
		"(a)-b = 1":                   false,
		"a -b = 1":                    false,
		"a-1 = 1":                     false,
		"a = 'my-prop' -- my-prop = ": false,
	}
	for text, want := range warned {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Warnings(); (len(got) == 1) != want {
			t.Errorf("%s: warnings %q, want one: %v", text, got, want)
		}
	}
	s, _ := Parse("my-prop = 'x'")
	want := "position 3: my-prop is my minus prop: a property name in a selector cannot contain '-'"
	if got := s.Warnings()[0]; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s.Matches(fields{"my-prop": "x"}) {
		t.Error("my-prop = 'x' matches")
	}
}

func TestErrorsNamePositionAndRemedy(t *testing.T) {
	tests := []struct{ text, want string }{
		{"i == 5", `invalid selector at position 3: no operator "==": equality is "=", in "i == 5"`},
		{"i != 5", `invalid selector at position 3: no operator "!=": inequality is "<>", in "i != 5"`},
		{`"i" = 5`, `invalid selector at position 1: unexpected "\"": strings stand in single quotes, ` +
			`names in none, in "\"i\" = 5"`},
		{"a.b = 1", `invalid selector at position 2: unexpected ".": names cannot contain '.', ` +
			`in "a.b = 1"`},
		{"i =", `invalid selector at position 4: unexpected the end, expected a value or a condition, ` +
			`in "i ="`},
		{"é = 'x", `invalid selector at position 5: string without its closing quote, in "é = 'x"`},
		{"i\n= NULL", `invalid selector at position 3: NULL cannot be compared: write IS NULL or ` +
			`IS NOT NULL, in "i\n= NULL"`},
		{"s > 'a'", `invalid selector at position 3: only numbers have an order, not the string "a", ` +
			`in "s > 'a'"`},
		{"regex('a', b)", `invalid selector at position 1: no function "regex": did you mean REGEX?, ` +
			`in "regex('a', b)"`},
		{"XPATH '//a'", `invalid selector at position 1: XPATH is not supported: select on a property ` +
			`instead, in "XPATH '//a'"`},
		{"convert_string_expressions:i ==1", `invalid selector at position 30: no operator "==": ` +
			`equality is "=", in "convert_string_expressions:i ==1"`},
	}
	for _, tt := range tests {
		_, err := Parse(tt.text)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s\n\tgot  %v\n\twant %s", tt.text, err, tt.want)
		}
	}
}

func TestDepthAndLengthAreLimited(t *testing.T) {
	deep := func(n int) string {
		return strings.Repeat("(", n) + "t" + strings.Repeat(")", n)
	}
	long := "t" + strings.Repeat(" AND t", 5000)
	for text, want := range map[string]string{
		deep(MaxDepth - 1):                            "true",
		deep(MaxDepth):                                "invalid",
		strings.Repeat("NOT ", MaxDepth) + "t":        "invalid",
		strings.Repeat("-", MaxDepth) + "1 = 1":       "invalid",
		"1" + strings.Repeat("+1", MaxDepth+1) + "=1": "invalid",
		"t" + strings.Repeat(" = TRUE", MaxDepth+1):   "invalid",
		"t" + strings.Repeat(" = TRUE", 100):          "true",
		long:                                          "true",
		"t OR " + strings.Repeat("t", MaxTextBytes):   "invalid",
	} {
		if got := outcome(text, fields{"t": true}); got != want {
			t.Errorf("%.40s… (%d bytes): got %s, want %s", text, len(text), got, want)
		}
	}
}

// A selector runs on the broker's loop, once per message and subscription.
func TestWhatASelectorMakesIsLimited(t *testing.T) {
	m := fields{"p": strings.Repeat("a", 2000), "many": strings.Repeat("x,", MaxMatches),
		"few": strings.Repeat("x,", 1000), "pattern": strings.Repeat("a", MaxFoundPatternBytes+1),
		"short": "a*"}
	grown := func(depth int) string {
		s := "'a'"
		for range depth {
			s = "REPLACE(" + s + ",'','bbbbbbbbbb')"
		}
		return s + " <> 'x'"
	}
	for text, want := range map[string]string{
		grown(4):                                    "true",
		grown(7):                                    "error",
		"REPLACE(p, 'a', 'bb') <> 'x'":              "true",
		"REPLACE(p, '', p) <> 'x'":                  "error",
		"REPLACE(many, 'x', 'y') <> 'x'":            "true",
		"REPLACE(many, '', 'y') <> 'x'":             "error",
		"INLIST(SPLIT(few, ','), 'x')":              "true",
		"INLIST(SPLIT(many, ','), 'x')":             "error",
		"INLIST(SPLIT(many, ',', 2), 'x')":          "true",
		"p" + strings.Repeat(" + p", 100):           "invalid",
		"(p" + strings.Repeat("+p", 100) + ")<>'x'": "true",
		"(many + many + many + many + many + many + many + many + many) <> 'x'": "error",
		"REGEX(short, p)":   "true",
		"REGEX(pattern, p)": "error",
	} {
		if got := outcome(text, m); got != want {
			t.Errorf("%.60s: got %s, want %s", text, got, want)
		}
	}
}

func TestIdentifiersListEachNameOnce(t *testing.T) {
	s, err := Parse("b = 1 AND a IN ('x') AND REGEX('y', JMSXUserID) AND b IS NULL " +
		"AND NOT JMSRedelivered")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"JMSRedelivered", "JMSXUserID", "a", "b"}
	if got := s.Identifiers(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !s.Reads("JMSXUserID") || s.Reads("REGEX") {
		t.Error("Reads disagrees with Identifiers")
	}
}

func TestXPathIsAskedOfTheCaller(t *testing.T) {
	compile := func(expr string) (func(Fields) (bool, error), error) {
		return func(m Fields) (bool, error) { return m.Field("body") == expr, nil }, nil
	}
	s, err := ParseXPath("XPATH '//a' OR i = 1", compile)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Matches(fields{"body": "//a"}) || s.Matches(fields{"body": "//b", "i": int32(2)}) {
		t.Error("the result is not that of the caller's test")
	}
}

func TestFieldOfUnknownTypeIsOpaque(t *testing.T) {
	m := fields{"x": []byte("a"), "y": map[string]int{}}
	for text, want := range map[string]string{
		"x IS NULL": "false", "x = 'a'": "false", "x = y": "false", "x": "false",
		"INLIST(MAKELIST(x), y)": "true", "x LIKE '%'": "false", "x + 1 = 2": "error",
		"INLIST(MAKELIST(MAKELIST(x)), MAKELIST(y))": "false",
	} {
		if got := outcome(text, m); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestFloatTextIsJavas(t *testing.T) {
	tests := []struct {
		v    any
		want string
	}{
		{1.0, "1.0"}, {-0.5, "-0.5"}, {1e7, "1.0E7"}, {1.5e-7, "1.5E-7"}, {float32(2.1), "2.1"},
		{123456.75, "123456.75"}, {math.NaN(), "NaN"}, {math.Inf(-1), "-Infinity"}, {0.0, "0.0"},
	}
	for _, tt := range tests {
		if got := text(tt.v); got != tt.want {
			t.Errorf("text(%v) = %s, want %s", tt.v, got, tt.want)
		}
	}
}

func TestMatchingDoesNotAllocate(t *testing.T) {
	s, err := Parse("color = 'red' AND i BETWEEN 1 AND 9 AND name LIKE 'a%z' AND k IN ('x', 'y')")
	if err != nil {
		t.Fatal(err)
	}
	m := fields{"color": "red", "i": int32(5), "name": "abcz", "k": "y"}
	if !s.Matches(m) {
		t.Fatal("no match")
	}
	if n := testing.AllocsPerRun(100, func() { s.Matches(m) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/selectors.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f.Add(strings.TrimSuffix(line, "\n"))
	}
	m := fields{"i": int32(5), "s": "abc", "t": true, "d": 2.5, "l": int64(7), "list": "a,b"}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("an error of more than one line: %q", err)
			}
			return
		}
		if first, again := s.Eval(m), s.Eval(m); first != again {
			t.Errorf("%q is %v, then %v", text, first, again)
		}
		if v, err := s.Check(m); err != nil && v != Unknown {
			t.Errorf("%q failed with %v", text, v)
		}
	})
}
