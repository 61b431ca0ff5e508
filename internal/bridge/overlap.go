package bridge

import (
	"slices"
	"time"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// markOverlaps finds topic demands that share names: each message crosses once, whoever wants it.
func (t *table) markOverlaps(n *demand) {
	if !n.dest.IsTopic() {
		return
	}
	others := t.demands
	if n.dest.IsPattern() {
		t.patterns = append(t.patterns, n)
	} else {
		others = slices.Concat(t.by[n.dest], t.patterns) // nothing else can share its name
	}
	for _, x := range others {
		if x != n && meets(x, n) {
			x.overlaps, n.overlaps = true, true
		}
	}
}

// unmarkOverlaps notes that a demand is out of the table.
func (t *table) unmarkOverlaps(d *demand) {
	t.patterns = slices.DeleteFunc(t.patterns, func(x *demand) bool { return x == d })
	if !d.overlaps {
		return
	}
	for _, x := range t.demands {
		if x.overlaps && meets(x, d) {
			x.overlaps = slices.ContainsFunc(t.demands, func(y *demand) bool {
				return x != y && meets(x, y)
			})
		}
	}
}

// meets reports whether a name is in both demands' destinations.
func meets(a, b *demand) bool {
	return a.dest == b.dest || (a.dest.IsPattern() || b.dest.IsPattern()) &&
		policy.Overlap(a.dest, b.dest)
}

// owner is the demand that carries a topic message that came at arrived and that asking has a
// copy of: a durable one before others, then the older.
func (t *table) owner(asking *demand, dest message.Destination, arrived time.Duration) *demand {
	var best *demand
	for _, d := range t.demands {
		has := d == asking || d.state == active && d.since < arrived && policy.Matches(d.dest, dest)
		if has && (best == nil || d.durable && !best.durable) {
			best = d
		}
	}
	return best
}
