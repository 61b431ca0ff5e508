package bridge

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hopwire/internal/message"
)

func queue(name string) message.Destination {
	return message.Destination{Kind: message.Queue, Name: name}
}

func topic(name string) message.Destination {
	return message.Destination{Kind: message.Topic, Name: name}
}

func TestOverlapOfPatterns(t *testing.T) {
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
	} {
		for _, swap := range []bool{false, true} {
			x, y := queue(c.a), queue(c.b)
			if swap {
				x, y = y, x
			}
			got, ok := overlap(x, y)
			if ok != (c.want != "") || ok && got.Name != c.want {
				t.Errorf("overlap(%s, %s) = %q %v, want %q", x.Name, y.Name, got.Name, ok, c.want)
			}
		}
	}
	if _, ok := overlap(queue("a"), topic("a")); ok {
		t.Error("a queue and a topic have nothing in common")
	}
}

func pattern(t *rapid.T, label string) message.Destination {
	e := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*"}), 1, 3).Draw(t, label)
	if rapid.Bool().Draw(t, label+" deep") {
		e = append(e, ">")
	}
	return queue(strings.Join(e, "."))
}

func plain(t *rapid.T) message.Destination {
	e := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 4).Draw(t, "name")
	return queue(strings.Join(e, "."))
}

func TestOverlapMatchesWhatBothMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, d := pattern(t, "a"), pattern(t, "b"), plain(t)
		x, ok := overlap(a, b)
		both := covers(a, d) && covers(b, d)
		if got := ok && covers(x, d); got != both {
			t.Fatalf("%s and %s overlap in %q %v; for %s that is %v, both match: %v", a.Name,
				b.Name, x.Name, ok, d.Name, got, both)
		}
	})
}

func TestCoveringPatternMatchesAllOfTheCovered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, d := pattern(t, "a"), pattern(t, "b"), plain(t)
		if covers(a, b) && covers(b, d) && !covers(a, d) {
			t.Fatalf("%s covers %s, which matches %s, but does not match it", a.Name, b.Name, d.Name)
		}
	})
}

func TestListsDecideWhatIsCarried(t *testing.T) {
	r := rules{
		dynamic:  []message.Destination{queue("OK.>"), topic("news")},
		static:   []message.Destination{queue("fixed")},
		excluded: []message.Destination{queue("OK.SECRET.>")},
		temps:    true,
	}
	temp := message.Destination{Kind: message.TempQueue, Name: "ID:x:1"}
	for _, c := range []struct {
		d    message.Destination
		want string
		why  message.Reason
	}{
		{queue("OK.1"), "OK.1", ""},
		{queue("OK.SECRET.1"), "", message.Excluded},
		{queue("OTHER.1"), "", message.NotIncluded},
		{queue("fixed"), "fixed", ""},
		{queue(">"), "OK.>", ""},
		{queue("*.1"), "OK.1", ""},
		{topic("OK.1"), "", message.NotIncluded},
		{topic("news"), "news", ""},
		{temp, "ID:x:1", ""},
	} {
		got, why := r.permit(c.d)
		if why != c.why || len(got) > 0 != (c.want != "") || len(got) > 0 && got[0].Name != c.want {
			t.Errorf("permit(%v) = %v %q, want %q %q", c.d, got, why, c.want, c.why)
		}
	}
	if r.refuses(queue("OK.SECRET.1")) != message.Excluded {
		t.Error("a subscription wider than the exclusion must not carry what is excluded")
	}
}
