// Package usage counts what messages cost against limits: a destination's share inside the
// broker's.
package usage

// Usage is an amount in bytes with an optional limit and an optional parent that is charged too.
type Usage struct {
	parent *Usage
	used   int64
	limit  int64 // 0: none of its own
}

// New makes a usage; limitBytes 0 means no limit of its own.
func New(parent *Usage, limitBytes int64) *Usage {
	return &Usage{parent: parent, limit: limitBytes}
}

// Add charges n bytes (negative gives back).
func (u *Usage) Add(n int64) {
	for ; u != nil; u = u.parent {
		u.used += n
	}
}

// Used is the amount charged, in bytes.
func (u *Usage) Used() int64 { return u.used }

// Limit is the own limit in bytes, 0 for none.
func (u *Usage) Limit() int64 { return u.limit }

// Full reports whether this usage or a parent has reached its limit.
func (u *Usage) Full() bool {
	for ; u != nil; u = u.parent {
		if u.limit > 0 && u.used >= u.limit {
			return true
		}
	}
	return false
}

// Percent is the used part of the limit, own or the nearest parent's; 0 without any.
func (u *Usage) Percent() int {
	for v := u; v != nil; v = v.parent {
		if v.limit > 0 {
			return int(u.used * 100 / v.limit)
		}
	}
	return 0
}
