package primitive

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func every() Map {
	return Map{
		{"null", nil}, {"bool", true}, {"byte", int8(-7)}, {"char", Char(0xd83d)},
		{"short", int16(-300)}, {"int", int32(math.MinInt32)}, {"long", int64(math.MaxInt64)},
		{"double", math.Inf(-1)}, {"float", float32(1.5)}, {"string", "café\x00😀"},
		{"bytes", []byte{}}, {"map", Map{{"list", List{nil, List{}, Map(nil)}}}},
		{"big", strings.Repeat("é", 8191)}, {"ключ", "x"}, {"", int32(0)},
	}
}

func encoded(t *testing.T, m Map) []byte {
	t.Helper()
	raw, err := AppendMap([]byte{}, m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestMapsKeepOrderTypesAndValues(t *testing.T) {
	for _, m := range []Map{every(), {}, nil} {
		got, err := ParseMap(encoded(t, m))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("got %v, %v\nwant %v", got, err, m)
		}
	}
	if m, err := ParseMap(nil); m != nil || err != nil {
		t.Errorf("no bytes: %v, %v", m, err)
	}
}

func TestLookupFindsWhatParseFinds(t *testing.T) {
	raw := encoded(t, every())
	for _, e := range every() {
		got, ok := LookupProperty(raw, e.Key)
		if !ok || !reflect.DeepEqual(got, e.Value) {
			t.Errorf("%q: %v, %t; want %v", e.Key, got, ok, e.Value)
		}
	}
	for _, absent := range []string{"list", "nul", "nulll", "é"} {
		if v, ok := LookupProperty(raw, absent); ok {
			t.Errorf("%q found: %v", absent, v)
		}
	}
	if _, ok := LookupProperty(raw[:len(raw)-1], "null"); ok {
		got, _ := ParseMap(raw[:len(raw)-1])
		if got != nil {
			t.Error("a cut map was parsed")
		}
	}
}

func TestLookupAllocatesOnlyTheValue(t *testing.T) {
	raw := encoded(t, every())
	if n := testing.AllocsPerRun(100, func() { LookupProperty(raw, "bool") }); n > 0 {
		t.Errorf("%v allocations for a boolean", n)
	}
}

func TestOfARepeatedKeyTheLastValueCounts(t *testing.T) {
	few := Map{{"a", int32(1)}, {"b", int32(2)}, {"a", int32(3)}}
	many := append(Map{}, few...)
	for i := range 20 {
		many = append(many, Entry{strings.Repeat("k", i+1), nil})
	}
	for _, m := range []Map{few, many} {
		got, err := ParseMap(encoded(t, m))
		if err != nil || len(got) != len(m)-1 || got[0] != (Entry{"a", int32(3)}) || got[1].Key != "b" {
			t.Errorf("%v, %v", got, err)
		}
		if v, _ := LookupProperty(encoded(t, m), "a"); v != int32(3) {
			t.Errorf("lookup gave %v", v)
		}
	}
}

func TestSetKeepsAKeysPlace(t *testing.T) {
	m := Map{{"a", 1}, {"b", 2}}
	m.Set("a", 3)
	m.Set("c", 4)
	if want := (Map{{"a", 3}, {"b", 2}, {"c", 4}}); !reflect.DeepEqual(m, want) {
		t.Errorf("%v", m)
	}
}

func TestStringsAreBigFrom8191Units(t *testing.T) {
	for units, want := range map[int]Code{8190: CodeString, 8191: CodeBigString} {
		for _, s := range []string{strings.Repeat("x", units),
			strings.Repeat("😀", units/2) + strings.Repeat("y", units%2)} {
			raw, err := AppendValue(nil, s)
			if err != nil || Code(raw[0]) != want {
				t.Errorf("%d units of %.1s: code %d, %v", units, s, raw[0], err)
			}
		}
	}
}

func TestMalformedMapsAreRefusedWithoutMemory(t *testing.T) {
	deep := []byte{0, 0, 0, 1, 0, 0}
	for range 10000 {
		deep = append(deep, byte(CodeList), 0, 0, 0, 1)
	}
	for _, c := range []struct {
		name string
		raw  []byte
		want string
	}{
		{"count", []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0}, "count"},
		{"negative count", []byte{0xff, 0xff, 0xff, 0xfe}, "negative count"},
		{"no value", []byte{0, 0, 0, 1, 0, 0}, "count"},
		{"unknown type", []byte{0, 0, 0, 1, 0, 0, 14}, "unknown value type"},
		{"key", []byte{0, 0, 0, 1, 0xff, 0xff, 0}, "length"},
		{"bytes", []byte{0, 0, 0, 1, 0, 0, 10, 0x7f, 0xff, 0xff, 0xff}, "length"},
		{"negative bytes", []byte{0, 0, 0, 1, 0, 0, 10, 0xff, 0xff, 0xff, 0xff}, "negative length"},
		{"big string", []byte{0, 0, 0, 1, 0, 0, 13, 0xff, 0xff, 0xff, 0xfe}, "negative length"},
		{"text", []byte{0, 0, 0, 1, 0, 0, 9, 0, 1, 0xff}, "UTF-8"},
		{"left over", []byte{0, 0, 0, 0, 0}, "left over"},
		{"short", []byte{0, 0}, "ends too early"},
		{"deep", deep, "nest too deep"},
		{"deep list count", []byte{0, 0, 0, 1, 0, 0, 12, 0x7f, 0xff, 0xff, 0xff}, "count"},
	} {
		var m Map
		var err error
		grown := allocated(func() { m, err = ParseMap(c.raw) })
		var wrong *Error
		if m != nil || !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.name, m, err, c.want)
		}
		if grown > 64<<10 {
			t.Errorf("%s: %d bytes allocated", c.name, grown)
		}
		LookupProperty(c.raw, "absent")
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestLimitsBoundEntriesValuesAndNesting(t *testing.T) {
	limits := Limits{Entries: 2, ValueBytes: 3, Flat: true}
	for want, m := range map[string]Map{
		"":            {{"abc", "abc"}, {"d", []byte("abc")}},
		"entries":     {{"a", nil}, {"b", nil}, {"c", nil}},
		"longer":      {{"a", "abcd"}},
		"not allowed": {{"a", List{}}},
	} {
		_, err := ParseMapWithin(encoded(t, m), limits)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", m, err, want)
		}
	}
}

func TestWhatIsNoPrimitiveIsNotWritten(t *testing.T) {
	nested := List{}
	for range MaxDepth + 1 {
		nested = List{nested}
	}
	for name, v := range map[string]any{"int": 1, "deep": nested, "inside": List{uint8(1)}} {
		out, err := AppendMap([]byte("kept"), Map{{"ok", "x"}, {name, v}})
		if err == nil || string(out) != "kept" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	if _, err := AppendMap(nil, Map{{strings.Repeat("k", 65536), nil}}); err == nil {
		t.Error("a key of 65536 bytes was written")
	}
}

func TestStreamsKeepTheirValues(t *testing.T) {
	want := List{"a", int8(1), nil, []byte{2}, Char(3)}
	raw, err := AppendStream(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseStream(raw); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := ParseStream(raw[:len(raw)-1]); err == nil {
		t.Error("a cut stream was read")
	}
}

func TestModifiedUTF8GoesBothWays(t *testing.T) {
	for text, want := range map[string]string{
		"":             "",
		"plain":        "plain",
		"a\x00b":       "a\xc0\x80b",
		"é€":           "\xc3\xa9\xe2\x82\xac",
		"😀":            "\xed\xa0\xbd\xed\xb8\x80",
		"\xed\xa0\xbd": "\xed\xa0\xbd", // an unpaired surrogate
	} {
		raw := AppendModified(nil, text)
		if string(raw) != want || ModifiedLen(text) != len(want) {
			t.Errorf("%q: %x of length %d, want %x", text, raw, ModifiedLen(text), want)
		}
		if got, err := UTF8(raw); err != nil || got != text {
			t.Errorf("%x: %q, %v", raw, got, err)
		}
	}
	if got := AppendModified(nil, "a\xffb"); string(got) != "a\xef\xbf\xbdb" {
		t.Errorf("a byte that is no UTF-8 became %x", got)
	}
	for _, bad := range []string{
		"\xf0\x9f\x98\x80", "\xc3", "\xe2\x82", "\xc3(", "\xe2(\xac", "\x80",
	} {
		if s, err := UTF8([]byte(bad)); err == nil {
			t.Errorf("%x read as %q", bad, s)
		}
	}
}

func TestCompressedBodiesStopAtTheDeclaredLengthAndTheLimit(t *testing.T) {
	more := DeflateBytes(bytes.Repeat([]byte("x"), 1000))
	copy(more, []byte{0, 0, 0, 5}) // Java deflates its whole buffer
	if got, err := InflateBytes(more, 100); err != nil || string(got) != "xxxxx" {
		t.Errorf("%q, %v", got, err)
	}
	less := DeflateBytes([]byte("x"))
	less[3] = 9
	if _, err := InflateBytes(less, 100); err == nil {
		t.Error("a body shorter than declared was taken")
	}
	for name, f := range map[string]func() ([]byte, error){
		"inflate":  func() ([]byte, error) { return Inflate(Deflate(make([]byte, 101)), 100) },
		"declared": func() ([]byte, error) { return InflateBytes(DeflateBytes(make([]byte, 101)), 100) },
	} {
		if _, err := f(); !errors.Is(err, ErrInflateLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, raw := range map[string][]byte{"junk": []byte("junkjunk"), "short": {0},
		"negative": {0xff, 0, 0, 0, 0x78, 0x9c}} {
		if _, err := InflateBytes(raw, 100); err == nil {
			t.Errorf("%s inflated", name)
		}
		if _, err := Inflate(raw, math.MaxInt64); err == nil {
			t.Errorf("%s inflated", name)
		}
	}
	if b, err := Inflate(Deflate([]byte("all")), math.MaxInt64); err != nil || string(b) != "all" {
		t.Errorf("%q, %v", b, err)
	}
	if Deflate(nil) != nil || DeflateBytes(nil) != nil {
		t.Error("nil content was compressed")
	}
}

func TestTextBodiesMustHoldTheirLength(t *testing.T) {
	for _, raw := range [][]byte{{0, 0, 0, 2, 'x'}, {0, 0}, {0xff, 0xff, 0xff, 0xff}} {
		if s, err := Text(raw); err == nil {
			t.Errorf("%x read as %q", raw, s)
		}
	}
}

// FuzzParseMap holds the reader to no panic, bounded memory, agreement with LookupProperty, and
// to a result that encodes and parses to itself.
func FuzzParseMap(f *testing.F) {
	for _, m := range []Map{every()[:10], every()[10:12], {}} {
		raw, _ := AppendMap(nil, m)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m Map
		var err error
		if n := allocated(func() { m, err = ParseMap(raw) }); n > 64<<10+100*uint64(len(raw)) {
			t.Fatalf("%d bytes took %d", len(raw), n)
		}
		_, _ = ParseStream(raw)
		_, _ = Text(raw)
		if err != nil {
			return
		}
		out, err := AppendMap(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m {
			v, ok := LookupProperty(raw, e.Key)
			a, _ := AppendValue(nil, v)
			b, _ := AppendValue(nil, e.Value)
			if !ok || !bytes.Equal(a, b) {
				t.Fatalf("%q: lookup %v, parse %v", e.Key, v, e.Value)
			}
		}
		if m2, err := ParseMap(out); err != nil || len(m2) != len(m) {
			t.Fatalf("own encoding %x: %v", out, err)
		}
	})
}
