package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "10": 10, "10b": 10, " 2 k ": 2048, "2KB": 2048,
		"64 mb": 64 << 20, "1m": 1 << 20, "3 Gb": 3 << 30, "1g": 1 << 30} {
		if got, err := ParseSize(text); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "mb", "1 tb", "1.5 gb", "-1", "1 mbb", "1 k b",
		"9223372036854775807 kb", "99999999999999999999", "x1"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestSuggestionsAreNear(t *testing.T) {
	names := []string{"conduitSubscriptions", "duplex", "uri", "name", "prefetchSize"}
	for name, want := range map[string]string{
		"conduitSubscription": "conduitSubscriptions", "Duplex": "duplex", "dulpex": "duplex",
		"prefechSize": "prefetchSize", "url": "uri", "x": "", "completelyElse": "",
		"prefetch": "prefetchSize",
	} {
		got := Suggest(name, names)
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// ActiveMQ's int attributes have 32 bits: what is beyond is refused there, too.
func TestEveryWholeNumberHasARangeThatItsErrorNames(t *testing.T) {
	for _, e := range everyTable() {
		for i := range e.Attributes {
			a := &e.Attributes[i]
			if a.Type != Int {
				continue
			}
			least, most := a.bounds()
			beyond := []string{"-9223372036854775809", "9223372036854775808"}
			if least > math.MinInt64 {
				beyond = append(beyond, strconv.FormatInt(least-1, 10))
			}
			if most < math.MaxInt64 {
				beyond = append(beyond, strconv.FormatInt(most+1, 10))
			}
			for _, value := range beyond {
				err := a.Check(value)
				want := fmt.Sprintf("%q is not a whole number from %d", value, least)
				if err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s on <%s>: %v, want %s", a.Name, e.Name, err, want)
				}
			}
			if err := a.Check(strconv.FormatInt(least, 10)); err != nil {
				t.Errorf("%s on <%s>: the least: %v", a.Name, e.Name, err)
			}
			if most > math.MaxInt32 && a.Name != "maxSlowCount" {
				t.Errorf("%s on <%s> goes up to %d, and has 32 bits in ActiveMQ", a.Name, e.Name, most)
			}
		}
	}
}
