package schema

import "testing"

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
		"prefechSize": "prefetchSize", "url": "uri", "x": "", "completelyElse": "", "prefetch": "",
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
