package manage

import (
	"context"

	"hopwire/internal/broker"
)

type askerKey struct{}

// WithAsker tells who asks, for the log: a user and a process.
func WithAsker(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, askerKey{}, who)
}

// AskedBy is who asks; "" when that is not known.
func AskedBy(ctx context.Context) string {
	who, _ := ctx.Value(askerKey{}).(string)
	return who
}

// Purged is what became of a queue that was purged, and what stays as somebody has it.
type Purged struct {
	Dropped    int64 `json:"dropped"`
	InFlight   int64 `json:"inFlight"`   // delivered, or on their way there
	Transacted int64 `json:"transacted"` // in open and prepared transactions
	InDoubt    int64 `json:"inDoubt"`    // a peer may have them
	Parked     int   `json:"parkedSends"`
}

// Removed is what went with a destination or durable subscription that was removed.
type Removed struct {
	Dropped int64  `json:"dropped"`
	InDoubt int64  `json:"inDoubt"` // of Dropped: a peer may have them
	Remark  string `json:"remark,omitempty"`
}

// FromPurged gives what the core tells of a purge its outer form.
func FromPurged(p broker.Purged) *Purged {
	return &Purged{Dropped: p.Dropped, InFlight: p.InFlight, Transacted: p.Transacted,
		InDoubt: p.InDoubt, Parked: p.Parked}
}

// FromRemoved gives what the core tells of a removal its outer form.
func FromRemoved(r broker.Removed) *Removed {
	return &Removed{Dropped: r.Dropped, InDoubt: r.InDoubt, Remark: r.Remark}
}
