package sim

import "testing"

// kept are seeds that found something, with the rule that was broken. They mean something as long
// as Draw and the applications draw the same from them; the rules have tests of their own, too.
var kept = []struct {
	seed uint64
	rule string
	plan func(*Plan) // what is changed in the seed's plan; nil nothing
}{
	{280, "of two forks of a message one is left (P2)", forked},
	{907, "of two forks of a message one is left (P2)", forked},
	{312, "a parked send of a dead link is forgotten when its peer asks (P3)", nil},
	{1620, "a second look does not jump over older copies (P1)", nil},
	{550, "replay to and fro does not use up the TTL (P1)", nil},
	{1103, "replay to and fro does not use up the TTL (P1)", nil},
	{2555, "of what a peer lost at a restart that a second link heard of late, clients are told (P3)",
		hopping},
}

// hopping has links that go both ways and break, and consumers that move.
func hopping(p *Plan) { p.Volatile, p.Cuts, p.Duplex, p.Hop = false, true, true, true }

// forked makes copies of one message that do not know of each other: a broker that cannot be asked,
// in a mesh whose links break.
func forked(p *Plan) {
	p.Topology, p.Brokers, p.ActiveMQ, p.TTL = "mesh", 3, 0, 10
	p.Cuts, p.Clogs, p.Hop = true, true, true
}

func TestKeptSeedsStayWhole(t *testing.T) {
	for _, k := range kept {
		p := Draw(k.seed)
		if k.plan != nil {
			k.plan(&p)
		}
		out := Run(p, nil, nil)
		if len(out.Violations) > 0 {
			t.Errorf("the rule was: %s", k.rule)
			report(t, out)
		}
	}
}
