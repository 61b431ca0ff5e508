package network

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hopwire/internal/message"
)

func TestSelectorsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 1, 20).Draw(t, "texts")
		got, err := JoinSelectors(texts).Split()
		want := slices.Compact(slices.Sorted(slices.Values(texts)))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q came back as %q %v", want, got, err)
		}
	})
}

func TestTooManySelectorsAreNoSet(t *testing.T) {
	var many []string
	for i := range MaxSelectors + 1 {
		many = append(many, strconv.Itoa(i))
	}
	if s := JoinSelectors(many); s != "" {
		t.Errorf("a set of %d bytes", len(s))
	}
	s := JoinSelectors(many[:MaxSelectors])
	if texts, err := s.Split(); len(texts) != MaxSelectors || err != nil {
		t.Errorf("%d texts, %v", len(texts), err)
	}
	if s := JoinSelectors([]string{strings.Repeat("x", maxSelectorsBytes)}); s != "" {
		t.Errorf("a set of %d bytes", len(s))
	}
	if texts, err := JoinSelectors(nil).Split(); texts != nil || err != nil {
		t.Errorf("none: %q %v", texts, err)
	}
}

func TestSelectorsThatMakeNoSenseAreAProtocolError(t *testing.T) {
	for _, s := range []Selectors{"x", "\"a\"\n", "\"a\"b", Selectors(strings.Repeat("\n", 2000)),
		Selectors(`"` + strings.Repeat("x", maxSelectorsBytes) + `"`)} {
		if _, err := s.Split(); message.KindOf(err) != message.Protocol {
			t.Errorf("%.40q: %v", s, err)
		}
	}
}
