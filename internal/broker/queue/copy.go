package queue

import (
	"time"

	"hopwire/internal/message"
)

// Copy is one copy of a message in one queue. Its message is shared and immutable; what changes
// per copy is here. A copy is pending (in a lane or a gap) or out: delivered, held by a
// transaction, or in doubt.
type Copy struct {
	Seq        uint64
	Message    *message.Message
	Arrived    time.Duration // at this broker, monotonic; clamped for copies older than the process
	Redelivery int32
	GroupFirst bool               // taken by a consumer that got the message group with it
	Stored     bool               // a record of it is in the store or on the way there
	Durable    bool               // Stored and committed
	Spooled    bool               // not Stored; a record of it is in the spool, until the broker's end
	Doubts     []message.BrokerID // the peers that may have it: it is out until they told
	Raised     bool               // Redelivery was raised since it is in doubt
	Suspect    bool               // a client may have got it before the broker was killed
	Put        any                // what puts its record, until that is durable; the broker's business
	Owner      any                // who has it while it is out; the broker's business
	Arrival    any                // what waits for it to be safe; the broker's business
	// Tx is the transaction that it was acknowledged in, while it is out and that is open or prepared;
	// the broker's business.
	Tx any

	out   bool
	ended bool // removed
	lane  int8
	key   uint64 // its place in its lane
}

// Told is the redelivery count that whoever gets the copy is told. OpenWire says "redelivered" by
// it alone, so a suspect has one at least; this is not a delivery that counts.
func (c *Copy) Told() int32 {
	if c.Suspect {
		return max(1, c.Redelivery)
	}
	return c.Redelivery
}

// kept reports whether the copy may leave memory, as a record of it can be read.
func (c *Copy) kept() bool { return (c.Durable || c.Spooled) && c.Redelivery == 0 }

// read notes that the copy was read: from the spool, or from the store.
func (c *Copy) read() { c.Stored, c.Durable = !c.Spooled, !c.Spooled }

// Out reports whether the copy is not pending.
func (c *Copy) Out() bool { return c.out }

// Ended reports whether the copy was removed from its queue.
func (c *Copy) Ended() bool { return c.ended }

// The lanes, in the order in which they are looked at.
const (
	returned = iota
	main
	laneCount
)
