package wants

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"hopwire/internal/message"
)

// color takes messages by their CorrelationID, and counts how often it is asked.
type color struct {
	name  string
	asked *int
}

func (c color) Matches(m *message.Message) bool {
	*c.asked++
	return m.CorrelationID == c.name
}

func (color) Identifiers() []string { return []string{"color"} }

type member struct {
	text string
	path []message.BrokerID
}

// refuse is what Set.Refuse should say, one member after the other.
func refuse(members []member, m *message.Message, back bool) message.Reason {
	why := message.SelectorNoMatch
	for _, x := range members {
		if x.text != "" && x.text != m.CorrelationID {
			continue
		}
		dead := slices.ContainsFunc(x.path, func(b message.BrokerID) bool {
			return message.Visited(m.BrokerPath, b)
		})
		if back || !dead {
			return ""
		}
		why = message.ReplayOff
	}
	return why
}

func TestSetSaysWhatItsMembersSay(t *testing.T) {
	texts := []string{"", "red", "blue"}
	brokers := []message.BrokerID{"ID:x", "ID:y"}
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		var members []member
		asked := 0
		one := func(label string) *message.Message {
			return &message.Message{CorrelationID: rapid.SampledFrom(texts[1:]).Draw(t, label),
				BrokerPath: rapid.SliceOfN(rapid.SampledFrom(brokers), 0, 2).Draw(t, label+" path")}
		}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				x := member{rapid.SampledFrom(texts).Draw(t, "text"),
					rapid.SliceOfN(rapid.SampledFrom(brokers), 0, 2).Draw(t, "path")}
				var parsed Selector
				if x.text != "" {
					parsed = color{x.text, &asked}
				}
				m := one("told")
				before, back := refuse(members, m, false), refuse(members, m, true)
				wider := s.Join(x.text, parsed, x.path)
				members = append(members, x)
				if !wider && (refuse(members, m, false) != before || refuse(members, m, true) != back) {
					t.Fatalf("%v is told to change nothing, and does for %v", x, m)
				}
			},
			"part": func(t *rapid.T) {
				if len(members) == 0 {
					return
				}
				i := rapid.IntRange(0, len(members)-1).Draw(t, "who")
				s.Part(members[i].text, members[i].path)
				members = slices.Delete(members, i, i+1)
			},
			"": func(t *rapid.T) {
				m := one("asked")
				for _, back := range []bool{false, true} {
					if got, want := s.Refuse(m, back), refuse(members, m, back); got != want {
						t.Fatalf("%v of %v, back %v: %q, want %q", m, members, back, got, want)
					}
				}
				if got, want := s.Take(m), refuse(members, m, true) == ""; got != want {
					t.Fatalf("%v of %v is taken: %v", m, members, got)
				}
			},
		})
	})
}

func TestEqualSelectorsAreAskedOnce(t *testing.T) {
	var s Set
	asked := 0
	for n := range 1000 {
		wider := s.Join("red", color{"red", &asked}, nil)
		if wider != (n == 0) {
			t.Fatalf("member %d: wider is %v", n, wider)
		}
	}
	m := &message.Message{CorrelationID: "blue"}
	if s.Refuse(m, false) == "" || asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestSelectorsThatReadWhatThePeerChangesAreNotJudged(t *testing.T) {
	for _, id := range append(peerChanges, "color") {
		if got := Judged(reads(id)); got != (id == "color") {
			t.Errorf("%s: %v", id, got)
		}
	}
	if n := len(new(Set).Texts()); n != 0 {
		t.Error(strconv.Itoa(n) + " selectors of nobody")
	}
}

type reads string

func (reads) Matches(*message.Message) bool { return true }
func (r reads) Identifiers() []string       { return []string{string(r)} }
