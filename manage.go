package hopwire

import (
	"context"
	"path/filepath"

	"hopwire/internal/manage"
)

// What a broker tells of itself: the JSON of hopwire status --json has the same names, which
// docs/operations.md explains ("The names in --json"). Times are in milliseconds, sizes in messages
// unless they end in Bytes. The fields are shown by
//
//	go doc hopwire/internal/manage.Status
//
// and so on: a program names the types by those here.
type (
	// Status is a broker at one moment: Broker.Status. go doc hopwire/internal/manage.Status shows
	// its fields.
	Status = manage.Status
	// List is a slice that is [] in JSON when it is empty.
	List[T any] = manage.List[T]
	// Totals are a broker's counters since its start.
	Totals = manage.Totals
	// ReasonCount is how often something was refused, dropped or suppressed for a reason.
	ReasonCount = manage.ReasonCount
	// Connector is a transport connector whose port is open.
	Connector = manage.Connector
	// Destination is a queue or topic, with what is in it and who uses it.
	Destination = manage.Destination
	// Subscription is a durable subscription.
	Subscription = manage.Subscription
	// Transaction is a prepared XA branch.
	Transaction = manage.Transaction

	// Bridge is a network bridge: Broker.Bridges, Setup.Bridges and Status have them.
	Bridge = manage.Bridge
	// Demand is what a bridge forwards from one destination.
	Demand = manage.Demand
	// Parked is a destination that waits because the peer of a bridge refuses its messages.
	Parked = manage.Parked
	// Incoming is a bridge of a peer that leads here and not back.
	Incoming = manage.Incoming

	// Explanation says why a queue's messages are where they are: Broker.Explain.
	Explanation = manage.Explanation
	// ExplanationRow is one reason that holds for a number of messages.
	ExplanationRow = manage.ExplanationRow
	// Oldest is the oldest of a number of messages.
	Oldest = manage.Oldest
	// ExplanationOfWay says why a bridge takes nothing from the queue.
	ExplanationOfWay = manage.ExplanationOfWay
	// Refusal is what a user was refused at a destination.
	Refusal = manage.Refusal

	// Purged is what became of a queue that was purged: Broker.Purge.
	Purged = manage.Purged
	// Removed is what went with what was removed: Broker.Remove, Broker.RemoveDurable.
	Removed = manage.Removed
)

// NotHonoured is the State of a Bridge for a network connector of a kind that Hopwire does not
// have.
const NotHonoured = manage.NotHonoured

// managed is a broker as its control socket asks it.
type managed struct{ b *Broker }

// Presence implements manage.Subject.
func (m managed) Presence() *manage.Presence { return &manage.Presence{} }

// Status implements manage.Subject.
func (m managed) Status(ctx context.Context) (*Status, error) { return m.b.Status(ctx) }

// Explain implements manage.Subject.
func (m managed) Explain(ctx context.Context, queue, id string) (*Explanation, error) {
	return m.b.Explain(ctx, queue, id)
}

// Decide implements manage.Subject.
func (m managed) Decide(ctx context.Context, xid string, commit bool) error {
	return m.b.Decide(ctx, xid, commit)
}

// Purge implements manage.Subject.
func (m managed) Purge(ctx context.Context, queue string) (*Purged, error) {
	return m.b.Purge(ctx, queue)
}

// Remove implements manage.Subject.
func (m managed) Remove(ctx context.Context, destination string) (*Removed, error) {
	return m.b.Remove(ctx, destination)
}

// RemoveDurable implements manage.Subject.
func (m managed) RemoveDurable(ctx context.Context, clientID, name string) (*Removed, error) {
	return m.b.RemoveDurable(ctx, clientID, name)
}

// Stop implements manage.Subject.
func (m managed) Stop() { m.b.stop("asked to (hopwire stop)") }

// absolute is a folder as who is elsewhere finds it; "" stays.
func absolute(folder string) string {
	if full, err := filepath.Abs(folder); folder != "" && err == nil {
		return full
	}
	return folder
}
