package bridge

import (
	"slices"

	"hopwire/internal/message"
	"hopwire/internal/policy"
)

// rules say which destinations a bridge may carry.
type rules struct {
	dynamic, static, excluded policy.List
	temps                     bool
}

func newRules(o *Options) rules {
	return rules{
		dynamic:  splitAll(o.DynamicallyIncluded),
		static:   splitAll(o.StaticallyIncluded),
		excluded: splitAll(o.Excluded),
		temps:    o.BridgeTempDestinations,
	}
}

func splitAll(list []message.Destination) policy.List {
	var out policy.List
	for _, d := range list {
		out = append(out, d.Split()...)
	}
	return out
}

// permit gives the destinations to subscribe to for demand on d, a member of a composite already
// split: d itself, or what d and the dynamic list have in common. None comes with the reason.
func (r *rules) permit(d message.Destination) ([]message.Destination, message.Reason) {
	if d.IsTemp() {
		if !r.temps {
			return nil, message.NotIncluded
		}
		return []message.Destination{d}, ""
	}
	if r.excluded.Covers(d) {
		return nil, message.Excluded
	}
	if len(r.dynamic) == 0 || r.static.Covers(d) || r.dynamic.Covers(d) {
		return []message.Destination{d}, ""
	}
	var out policy.List
	for _, include := range r.dynamic {
		x, ok := policy.Intersect(include, d)
		if !ok || r.excluded.Covers(x) || out.Covers(x) {
			continue
		}
		out = slices.DeleteFunc(out, func(o message.Destination) bool { return policy.Covers(x, o) })
		out = append(out, x)
	}
	if len(out) == 0 {
		return nil, message.NotIncluded
	}
	return out, ""
}

// refuses gives the reason why a message to d may not cross; "" when it may. It is asked where
// a subscription is a pattern and may be wider than the lists.
func (r *rules) refuses(d message.Destination) message.Reason {
	if d.IsTemp() || d.IsAdvisory() {
		return ""
	}
	if r.excluded.Matches(d) {
		return message.Excluded
	}
	if len(r.dynamic) > 0 && !r.static.Matches(d) && !r.dynamic.Matches(d) {
		return message.NotIncluded
	}
	return ""
}
