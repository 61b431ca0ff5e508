package sim

import "testing"

// kept are seeds that found something, with the rule that was broken. They mean something as long
// as Draw and the applications draw the same from them; the rules have tests of their own, too.
var kept = []struct {
	seed uint64
	rule string
}{
	{544, "of two forks of a message one is left (P2)"},
	{312, "a parked send of a dead link is forgotten when its peer asks (P3)"},
	{1620, "a second look does not jump over older copies (P1)"},
	{550, "replay to and fro does not use up the TTL (P1)"},
	{1103, "replay to and fro does not use up the TTL (P1)"},
}

func TestKeptSeedsStayWhole(t *testing.T) {
	for _, k := range kept {
		out := Run(Draw(k.seed), nil, nil)
		if len(out.Violations) > 0 {
			t.Errorf("the rule was: %s", k.rule)
			report(t, out)
		}
	}
}
