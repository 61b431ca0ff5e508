package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hopwire/internal/message"
)

func TestIntersectionOfPatterns(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"wc.>", "wc.foo", "wc.foo"},
		{"wc.foo", "wc.*", "wc.foo"},
		{"a.*.c", "a.b.>", "a.b.c"},
		{"a.>", "a", "a"},
		{"a.>", "*.b", "a.b"},
		{">", "x.y", "x.y"},
		{"*.x.>", "y.>", "y.x.>"},
		{"a.b", "a.c", ""},
		{"a.b", "a.b.c", ""},
		{"a.*", "a.>", "a.*"},
		{">", ">", ">"},
		{"a.>.>", "a.b.>", "a.b.>"},
		{">.>", "a", "a"},
		{"a.>.b", "a.*.b", "a.>.b"},
	} {
		for _, swap := range []bool{false, true} {
			x, y := queue(c.a), queue(c.b)
			if swap {
				x, y = y, x
			}
			got, ok := Intersect(x, y)
			if ok != (c.want != "") || ok && got.Name != c.want {
				t.Errorf("Intersect(%s, %s) = %q %v, want %q", x.Name, y.Name, got.Name, ok, c.want)
			}
		}
	}
	if _, ok := Intersect(queue("a"), message.Destination{Kind: message.Topic, Name: "a"}); ok {
		t.Error("a queue and a topic have nothing in common")
	}
}

func drawPattern(t *rapid.T, label string) message.Destination {
	e := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*"}), 1, 3).Draw(t, label)
	for range rapid.IntRange(0, 2).Draw(t, label+" deep") {
		e = append(e, ">")
	}
	return queue(strings.Join(e, "."))
}

func drawName(t *rapid.T) message.Destination {
	e := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 4).Draw(t, "name")
	return queue(strings.Join(e, "."))
}

func TestIntersectionTakesWhatBothTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, d := drawPattern(t, "a"), drawPattern(t, "b"), drawName(t)
		x, ok := Intersect(a, b)
		both := Covers(a, d) && Covers(b, d)
		if got := ok && Covers(x, d); got != both {
			t.Fatalf("%s and %s overlap in %q %v; for %s that is %v, both match: %v", a.Name,
				b.Name, x.Name, ok, d.Name, got, both)
		}
	})
}

func TestCoveringPatternMatchesAllOfTheCovered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, d := drawPattern(t, "a"), drawPattern(t, "b"), drawName(t)
		if Covers(a, b) && Covers(b, d) && !Covers(a, d) {
			t.Fatalf("%s covers %s, which matches %s, but does not match it", a.Name, b.Name, d.Name)
		}
	})
}
